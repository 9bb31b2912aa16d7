#include "device/gpu/cuda/api.h"

#include <fmt/format.h>
#include <russet/error.h>

#include <algorithm>
#include <iterator>

#include "device/gpu/cuda/library.h"

namespace russet::cuda {
namespace {

constexpr const char* names[] = {"libcuda.so.1", "libcuda.so"};

// Symbols carry the version of what they take; those below are what cuda.h declares under the plain names.
Api load_api() {
  const Library library(names);
  Api api{};
  library.load(api.init, "cuInit");
  library.load(api.driver_get_version, "cuDriverGetVersion");
  library.load(api.get_error_string, "cuGetErrorString");
  library.load(api.device_get_count, "cuDeviceGetCount");
  library.load(api.device_get, "cuDeviceGet");
  library.load(api.device_get_name, "cuDeviceGetName");
  library.load(api.device_get_attribute, "cuDeviceGetAttribute");
  library.load(api.device_total_mem, "cuDeviceTotalMem_v2");
  library.load(api.device_primary_ctx_retain, "cuDevicePrimaryCtxRetain");
  library.load(api.ctx_set_current, "cuCtxSetCurrent");
  library.load(api.ctx_synchronize, "cuCtxSynchronize");
  library.load(api.mem_alloc, "cuMemAlloc_v2");
  library.load(api.mem_free, "cuMemFree_v2");
  library.load(api.mem_host_alloc, "cuMemHostAlloc");
  library.load(api.mem_free_host, "cuMemFreeHost");
  library.load(api.memset_async, "cuMemsetD8Async");
  library.load(api.memcpy_to_device_async, "cuMemcpyHtoDAsync_v2");
  library.load(api.memcpy_to_host_async, "cuMemcpyDtoHAsync_v2");
  library.load(api.stream_create, "cuStreamCreate");
  library.load(api.stream_destroy, "cuStreamDestroy_v2");
  library.load(api.stream_synchronize, "cuStreamSynchronize");
  library.load(api.stream_begin_capture, "cuStreamBeginCapture_v2");
  library.load(api.stream_end_capture, "cuStreamEndCapture");
  library.load(api.event_create, "cuEventCreate");
  library.load(api.event_destroy, "cuEventDestroy_v2");
  library.load(api.event_record, "cuEventRecord");
  library.load(api.event_query, "cuEventQuery");
  library.load(api.event_synchronize, "cuEventSynchronize");
  library.load(api.event_elapsed_time, "cuEventElapsedTime");
  library.load(api.module_load_data, "cuModuleLoadData");
  library.load(api.module_unload, "cuModuleUnload");
  library.load(api.module_get_function, "cuModuleGetFunction");
  library.load(api.func_set_attribute, "cuFuncSetAttribute");
  library.load(api.launch_kernel, "cuLaunchKernel");
  library.load(api.graph_create, "cuGraphCreate");
  library.load(api.graph_destroy, "cuGraphDestroy");
  library.load(api.graph_add_empty_node, "cuGraphAddEmptyNode");
  library.load(api.graph_add_kernel_node, "cuGraphAddKernelNode_v2");
  library.load(api.graph_add_child_graph_node, "cuGraphAddChildGraphNode");
  library.load(api.graph_instantiate, "cuGraphInstantiateWithFlags");
  library.load(api.graph_exec_destroy, "cuGraphExecDestroy");
  library.load(api.graph_launch, "cuGraphLaunch");
  library.load(api.tensor_map_encode_tiled, "cuTensorMapEncodeTiled");
  return api;
}

/// After these, CUDA's context takes no more work (CUDA driver API, CUresult: "the process must be terminated and
/// relaunched").
bool ends_all_work(CUresult result) {
  constexpr CUresult fatal[] = {CUDA_ERROR_ECC_UNCORRECTABLE,
                                CUDA_ERROR_NVLINK_UNCORRECTABLE,
                                CUDA_ERROR_ILLEGAL_ADDRESS,
                                CUDA_ERROR_LAUNCH_TIMEOUT,
                                CUDA_ERROR_ASSERT,
                                CUDA_ERROR_HARDWARE_STACK_ERROR,
                                CUDA_ERROR_ILLEGAL_INSTRUCTION,
                                CUDA_ERROR_MISALIGNED_ADDRESS,
                                CUDA_ERROR_INVALID_ADDRESS_SPACE,
                                CUDA_ERROR_INVALID_PC,
                                CUDA_ERROR_LAUNCH_FAILED,
                                CUDA_ERROR_CONTEXT_IS_DESTROYED};
  return std::find(std::begin(fatal), std::end(fatal), result) != std::end(fatal);
}

}  // namespace

const Api& api() {
  static const Api loaded = load_api();
  return loaded;
}

std::string_view text_of(CUresult result) {
  const char* text = nullptr;
  return api().get_error_string(result, &text) == CUDA_SUCCESS ? text : "an error that CUDA does not name";
}

void give_up(std::string_view reason) {
  throw DeviceError(
      fmt::format("cuda: the GPU takes no more work from this process, which must be started again: {}", reason));
}

void check(CUresult result, std::string_view what) {
  if (result == CUDA_SUCCESS) return;
  if (ends_all_work(result)) give_up(fmt::format("{} (code {})", text_of(result), static_cast<int>(result)));
  throw DeviceError(fmt::format("cuda: {} failed: {} (code {})", what, text_of(result), static_cast<int>(result)));
}

}  // namespace russet::cuda
