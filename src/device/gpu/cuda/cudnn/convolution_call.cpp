#include "device/gpu/cuda/cudnn/convolution_call.h"

#include <russet/error.h>

#include <algorithm>
#include <array>

#include "device/gpu/templates/text.h"

namespace russet::cuda {
namespace {

using compile::Operand;
using compile::Primitive;
using ops::Op;

/// Of the arena, which all steps share. In float32 the first gradients of vgg16, 64 images, want 0.8 GiB; plans that
/// want less run at a fiftieth of the speed.
constexpr std::int64_t most_workspace = std::int64_t{2} << 30;

/// Numbers by which a plan tells its tensors apart: those of the step's operands, in its order.
constexpr std::array<std::int64_t, 3> operand_ids{1, 2, 3};

cudnnDataType_t type_of(DType dtype) {
  switch (dtype) {
    case DType::float32: return CUDNN_DATA_FLOAT;
    case DType::float16: return CUDNN_DATA_HALF;
    case DType::bfloat16: return CUDNN_DATA_BFLOAT16;
    default: throw InternalError("cuDNN is asked for a convolution of another type");
  }
}

CudnnDescriptor tensor_of(const Operand& operand, std::int64_t id, std::int64_t alignment) {
  CudnnDescriptor tensor(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  tensor.set(CUDNN_ATTR_TENSOR_DATA_TYPE, type_of(operand.access.dtype));
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
CudnnDescriptor operation_of(const Primitive& convolution, std::int64_t alignment,
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
  const std::array<const Operand*, 3> operands{&convolution.inputs[0], &convolution.inputs[1], &convolution.output};
  for (std::size_t i = 0; i < operands.size(); ++i) {
    add(names.tensors[i], tensor_of(*operands[i], operand_ids[i], alignment));
  }
  operation.finalize();
  return operation;
}

CudnnDescriptor graph_of(cudnnHandle_t handle, const CudnnDescriptor& operation) {
  CudnnDescriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operation);
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

ConvolutionCall::ConvolutionCall(cudnnHandle_t handle, cudnnHandle_t running, const Primitive& convolution,
                                 std::int64_t alignment)
    : running_(running) {
  parts_.push_back(operation_of(convolution, alignment, parts_));
  parts_.push_back(graph_of(handle, parts_.back()));
  for (CudnnDescriptor& proposal : proposals(parts_.back())) {
    if (!is_sound(proposal, convolution.inputs[0].access.dtype)) continue;
    CudnnDescriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, proposal);
    plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, handle);
    if (!plan.try_finalize()) continue;
    const std::int64_t workspace = plan.all<std::int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, 1).at(0);
    if (workspace > most_workspace) continue;
    workspace_bytes_ = static_cast<std::size_t>(workspace);
    plan_ = std::move(plan);
    parts_.push_back(std::move(proposal));
    return;
  }
  throw DeviceError("cuDNN has no plan that always gives the same bits");
}

void ConvolutionCall::load(cudnnHandle_t handle) const {
  // Nothing runs, so nothing has to lie there.
  constexpr std::uintptr_t apart = std::uintptr_t{1} << 36;
  std::array<std::byte*, 4> nowhere{};
  for (std::size_t i = 0; i < nowhere.size(); ++i) {
    nowhere[i] = reinterpret_cast<std::byte*>((i + 1) * apart);  // NOLINT(performance-no-int-to-ptr)
  }
  GraphHandle recorded;
  record(recorded, [&](CUstream stream) { execute(handle, nowhere, stream); });
}

void ConvolutionCall::execute(cudnnHandle_t handle, std::span<std::byte* const> addresses, CUstream stream) const {
  const std::array<void*, 3> operands{addresses[0], addresses[1], addresses[2]};
  void* const workspace = workspace_bytes_ > 0 ? aligned_workspace(addresses[3]) : nullptr;
  CudnnDescriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set_all<std::int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, operand_ids);
  pack.set_all<void*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, operands);
  pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, workspace);
  pack.finalize();
  check(cudnn().set_stream(handle, stream), "a convolution");
  check(cudnn().execute(handle, plan_->get(), pack.get()), "a convolution");
}

}  // namespace russet::cuda
