#include <fmt/format.h>
#include <russet/error.h>
#include <russet/staging.h>

#include <algorithm>
#include <utility>

#include "graph/in_memory.h"

namespace russet {
namespace {

std::shared_ptr<std::byte> ordinary_memory(std::size_t bytes) {
  try {
    const auto memory = std::make_shared<std::byte[]>(bytes);
    return {memory, memory.get()};
  } catch (const std::bad_alloc&) {
    throw_no_host_memory(bytes);
  }
}

}  // namespace

StagingBuffer::StagingBuffer(Device device, std::size_t bytes)
    : device_(device), bytes_(bytes), memory_(graph::executor_of(device).allocate_staging(bytes)) {
  copied_directly_ = memory_ != nullptr;
  if (!copied_directly_) memory_ = ordinary_memory(bytes);
}

Tensor StagingBuffer::to_tensor(const Shape& shape, DType dtype) const {
  const std::size_t needed = static_cast<std::size_t>(numel(shape)) * size_of(dtype);
  if (needed > bytes_) {
    throw ShapeError(fmt::format("StagingBuffer: shape {} of {} takes {} bytes, the buffer has {}", to_string(shape),
                                 name_of(dtype), needed, bytes_));
  }
  graph::Executor& executor = graph::executor_of(device_);
  return graph::tensor_in_memory(shape, {dtype, device_, false}, [&](auto&, graph::Buffer& target) {
    if (copied_directly_) return executor.upload_staged(target, memory_, needed);
    executor.upload(target, bytes().first(needed));
  });
}

void StagingBuffer::renew() {
  if (!copied_directly_) return;
  graph::Executor& executor = graph::executor_of(device_);
  if (other_ == nullptr) other_ = executor.allocate_staging(bytes_);
  if (other_ != nullptr) std::swap(memory_, other_);
  executor.finish_copies(memory_);
}

}  // namespace russet
