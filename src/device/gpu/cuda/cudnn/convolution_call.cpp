#include "device/gpu/cuda/cudnn/convolution_call.h"

#include <russet/error.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "compile/layouts.h"
#include "device/gpu/templates/text.h"

namespace russet::cuda {
namespace {

using compile::Operand;
using compile::Primitive;
using ops::Op;

/// Of the arena, which all steps share. In float32 the first gradients of vgg16, 64 images, want 0.8 GiB; plans that
/// want less run at a fiftieth of the speed.
constexpr std::int64_t most_workspace = std::int64_t{2} << 30;

/// Numbers by which a plan tells its tensors apart: those of the step's operands, in its order, of a bias and a
/// residual, and, from the last on, of what is not in memory.
constexpr std::array<std::int64_t, 3> operand_ids{1, 2, 3};
constexpr std::int64_t bias_id = 4, residual_id = 5, first_between = 6;

cudnnDataType_t type_of(DType dtype) {
  switch (dtype) {
    case DType::float32: return CUDNN_DATA_FLOAT;
    case DType::float16: return CUDNN_DATA_HALF;
    case DType::bfloat16: return CUDNN_DATA_BFLOAT16;
    default: throw InternalError("cuDNN is asked for a convolution of another type");
  }
}

enum class Lies : bool { in_memory, between_operations };

CudnnDescriptor tensor_of(const Operand& operand, std::int64_t id, std::int64_t alignment,
                          Lies lies = Lies::in_memory) {
  CudnnDescriptor tensor(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  tensor.set(CUDNN_ATTR_TENSOR_DATA_TYPE, type_of(operand.access.dtype));
  tensor.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, lies == Lies::between_operations);
  tensor.set_all<std::int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS, std::vector(operand.sizes.begin(), operand.sizes.end()));
  tensor.set_all<std::int64_t>(CUDNN_ATTR_TENSOR_STRIDES,
                               std::vector(operand.access.strides.begin(), operand.access.strides.end()));
  tensor.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, id);
  tensor.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, alignment);
  tensor.finalize();
  return tensor;
}

CudnnDescriptor window_of(const ops::Window& window) {
  const auto wide = [](const std::array<std::int32_t, 2>& pair) {
    return std::vector<std::int64_t>(pair.begin(), pair.end());
  };
  CudnnDescriptor convolution(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  convolution.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT);
  convolution.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_CROSS_CORRELATION);
  convolution.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, std::int64_t{2});
  convolution.set_all<std::int64_t>(CUDNN_ATTR_CONVOLUTION_DILATIONS, wide(window.dilation));
  convolution.set_all<std::int64_t>(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, wide(window.stride));
  convolution.set_all<std::int64_t>(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, wide(window.padding));
  convolution.set_all<std::int64_t>(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, wide(window.padding_after));
  convolution.finalize();
  return convolution;
}

/// What cuDNN calls an operation and its parts. `tensors`: of the first input, the second, and the output.
struct Names {
  cudnnBackendDescriptorType_t type;
  cudnnBackendAttributeName_t window, alpha, beta;
  std::array<cudnnBackendAttributeName_t, 3> tensors;
};

Names names_of(Op op) {
  switch (op) {
    case Op::convolution:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
              {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
               CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y}};
    case Op::convolution_input:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
              {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
               CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX}};
    case Op::convolution_weight:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
              {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
               CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW}};
    default: throw InternalError("cuDNN is asked for something that is no convolution");
  }
}

/// What it is made of goes to `parts`.
CudnnDescriptor operation_of(const Primitive& convolution, std::int64_t alignment, const CudnnDescriptor& result,
                             std::vector<CudnnDescriptor>& parts) {
  const Names names = names_of(convolution.op);
  CudnnDescriptor operation(names.type);
  const auto add = [&](cudnnBackendAttributeName_t attribute, CudnnDescriptor part) {
    operation.set(attribute, part);
    parts.push_back(std::move(part));
  };
  add(names.window, window_of(gpu::attribute<ops::Window>(convolution)));
  operation.set(names.alpha, 1.0F);
  operation.set(names.beta, 0.0F);
  for (const std::size_t i : {0U, 1U}) {
    add(names.tensors[i], tensor_of(convolution.inputs[i], operand_ids[i], alignment));
  }
  operation.set(names.tensors[2], result);
  operation.finalize();
  return operation;
}

/// y = x + other, or, without it, y = max(x, 0), where NaN stays.
CudnnDescriptor pointwise_of(const CudnnDescriptor& x, const CudnnDescriptor* other, const CudnnDescriptor& y,
                             std::vector<CudnnDescriptor>& parts) {
  CudnnDescriptor mode(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  mode.set(CUDNN_ATTR_POINTWISE_MODE, other == nullptr ? CUDNN_POINTWISE_RELU_FWD : CUDNN_POINTWISE_ADD);
  mode.set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_FLOAT);
  if (other == nullptr) mode.set(CUDNN_ATTR_POINTWISE_NAN_PROPAGATION, CUDNN_PROPAGATE_NAN);
  mode.finalize();
  CudnnDescriptor operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, mode);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
  if (other != nullptr) operation.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, *other);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
  operation.finalize();
  parts.push_back(std::move(mode));
  return operation;
}

/// The convolution, and what comes after it in the order that cuDNN's engines know.
std::vector<CudnnDescriptor> operations_of(const ConvolutionQuestion& question, std::vector<CudnnDescriptor>& parts) {
  const Primitive& convolution = question.convolution;
  const LibraryTail& tail = question.tail;
  int left = int{tail.residual} + int{tail.bias} + int{tail.relu};
  std::int64_t between = first_between;
  Operand inner = convolution.output;
  inner.access.dtype = DType::float32;
  const auto next_result = [&] {
    return left-- == 0 ? tensor_of(convolution.output, operand_ids[2], question.alignment)
                       : tensor_of(inner, between++, question.alignment, Lies::between_operations);
  };
  std::vector<CudnnDescriptor> operations;
  CudnnDescriptor x = next_result();
  operations.push_back(operation_of(convolution, question.alignment, x, parts));
  const auto add = [&](std::optional<CudnnDescriptor> other) {
    CudnnDescriptor y = next_result();
    operations.push_back(pointwise_of(x, other ? &*other : nullptr, y, parts));
    parts.push_back(std::exchange(x, std::move(y)));
    if (other) parts.push_back(std::move(*other));
  };
  if (tail.residual) add(tensor_of(convolution.output, residual_id, question.alignment));
  if (tail.bias) {
    Operand bias = convolution.output;
    bias.sizes = {1, bias.sizes[1], 1, 1};
    bias.access.strides = compile::channels_last(bias.sizes);
    add(tensor_of(bias, bias_id, question.alignment));
  }
  if (tail.relu) add(std::nullopt);
  parts.push_back(std::move(x));
  return operations;
}

CudnnDescriptor graph_of(cudnnHandle_t handle, const std::vector<CudnnDescriptor>& operations) {
  CudnnDescriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  graph.set_all(CUDNN_ATTR_OPERATIONGRAPH_OPS, operations);
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, handle);
  graph.finalize();
  return graph;
}

/// cuDNN's proposals, the best first by its judgement.
std::vector<CudnnDescriptor> proposals(const CudnnDescriptor& graph) {
  constexpr std::int64_t most = 32;
  CudnnDescriptor heuristic(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristic.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
  heuristic.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_HEUR_MODE_A);
  heuristic.finalize();
  return heuristic.descriptors(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, most);
}

/// Whether an engine gives the same bits each time, from products in the inputs' type, and is compiled already.
bool is_sound(const CudnnDescriptor& proposal, DType factors) {
  const std::vector<CudnnDescriptor> engines =
      proposal.descriptors(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR, 1);
  if (engines.empty()) return false;
  const auto notes = engines.front().all<cudnnBackendNumericalNote_t>(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                                                                      CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
  const auto behavior =
      engines.front().all<cudnnBackendBehaviorNote_t>(CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_BEHAVIOR_NOTE_TYPE_COUNT);
  const auto is_refused = [&](cudnnBackendNumericalNote_t note) {
    // Tensor cores would round float32 to TF32.
    if (note == CUDNN_NUMERICAL_NOTE_TENSOR_CORE) return factors == DType::float32;
    return note != CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP;
  };
  return std::ranges::none_of(notes, is_refused) &&
         std::ranges::find(behavior, CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION) == behavior.end();
}

}  // namespace

ConvolutionCall::ConvolutionCall(cudnnHandle_t handle, cudnnHandle_t running, const ConvolutionQuestion& question,
                                 std::size_t proposal)
    : running_(running), ids_(operand_ids.begin(), operand_ids.end()) {
  if (question.tail.bias) ids_.push_back(bias_id);
  if (question.tail.residual) ids_.push_back(residual_id);
  std::vector<CudnnDescriptor> operations = operations_of(question, parts_);
  CudnnDescriptor graph = graph_of(handle, operations);
  std::ranges::move(operations, std::back_inserter(parts_));
  parts_.push_back(std::move(graph));
  for (CudnnDescriptor& proposed : proposals(parts_.back())) {
    if (!is_sound(proposed, question.convolution.inputs[0].access.dtype)) continue;
    CudnnDescriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, proposed);
    plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, handle);
    if (!plan.try_finalize()) continue;
    const std::int64_t workspace = plan.all<std::int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, 1).at(0);
    if (workspace > most_workspace) continue;
    if (proposal-- > 0) continue;
    workspace_bytes_ = static_cast<std::size_t>(workspace);
    plan_ = std::move(plan);
    parts_.push_back(std::move(proposed));
    return;
  }
  throw DeviceError("cuDNN has no plan that always gives the same bits");
}

void ConvolutionCall::load(cudnnHandle_t handle) const {
  // Nothing runs, so nothing has to lie there.
  constexpr std::uintptr_t apart = std::uintptr_t{1} << 36;
  std::array<std::byte*, 6> nowhere{};  // operands, a bias, a residual, the workspace
  for (std::size_t i = 0; i < nowhere.size(); ++i) {
    nowhere[i] = reinterpret_cast<std::byte*>((i + 1) * apart);  // NOLINT(performance-no-int-to-ptr)
  }
  GraphHandle recorded;
  record(recorded, [&](CUstream stream) { execute(handle, nowhere, stream); });
}

void ConvolutionCall::execute(cudnnHandle_t handle, std::span<std::byte* const> addresses, CUstream stream) const {
  const std::vector<void*> operands(addresses.begin(), addresses.begin() + static_cast<std::ptrdiff_t>(ids_.size()));
  void* const workspace = workspace_bytes_ > 0 ? aligned_workspace(addresses[ids_.size()]) : nullptr;
  CudnnDescriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set_all<std::int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, ids_);
  pack.set_all<void*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, operands);
  pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, workspace);
  pack.finalize();
  check(cudnn().set_stream(handle, stream), "a convolution");
  check(cudnn().execute(handle, plan_->get(), pack.get()), "a convolution");
}

}  // namespace russet::cuda
