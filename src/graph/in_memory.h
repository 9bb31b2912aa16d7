#pragma once
// Tensors of what the host has.
#include "base/function_ref.h"
#include "graph/executor.h"
#include "graph/tensor_state.h"

namespace russet::graph {

/// A value whose memory `write` fills.
inline Tensor tensor_in_memory(const Shape& shape, const TensorOptions& options,
                               base::FunctionRef<void(Executor&, Buffer&)> write) {
  NodeInfo info;
  info.dtype = options.dtype;
  info.device = options.device;
  info.shape = shape;
  Executor& executor = executor_of(info.device);
  const Ref<Buffer> buffer = executor.allocate(info.device, byte_size(info));
  write(executor, *buffer);
  Tensor tensor = wrap(make_ref<Node>(std::move(info), buffer));
  if (options.requires_grad) tensor.requires_grad_();
  return tensor;
}

}  // namespace russet::graph
