#pragma once
// CUDA's driver interface as it is called here: functions of libcuda.so, which belongs to NVIDIA's kernel driver.
#include <cuda.h>

#include <string_view>

namespace russet::cuda {

/// Under CUDA's names without "cu".
struct Api {
  decltype(&::cuInit) init;
  decltype(&::cuDriverGetVersion) driver_get_version;
  decltype(&::cuGetErrorString) get_error_string;
  decltype(&::cuDeviceGetCount) device_get_count;
  decltype(&::cuDeviceGet) device_get;
  decltype(&::cuDeviceGetName) device_get_name;
  decltype(&::cuDeviceGetAttribute) device_get_attribute;
  decltype(&::cuDeviceTotalMem) device_total_mem;
  decltype(&::cuDevicePrimaryCtxRetain) device_primary_ctx_retain;
  decltype(&::cuCtxSetCurrent) ctx_set_current;
  decltype(&::cuCtxSynchronize) ctx_synchronize;
  decltype(&::cuMemAlloc) mem_alloc;
  decltype(&::cuMemFree) mem_free;
  decltype(&::cuMemHostAlloc) mem_host_alloc;
  decltype(&::cuMemFreeHost) mem_free_host;
  decltype(&::cuMemcpyHtoDAsync) memcpy_to_device_async;
  decltype(&::cuMemcpyDtoHAsync) memcpy_to_host_async;
  decltype(&::cuMemsetD8Async) memset_async;
  decltype(&::cuStreamCreate) stream_create;
  decltype(&::cuStreamDestroy) stream_destroy;
  decltype(&::cuStreamSynchronize) stream_synchronize;
  decltype(&::cuStreamBeginCapture) stream_begin_capture;
  decltype(&::cuStreamEndCapture) stream_end_capture;
  decltype(&::cuEventCreate) event_create;
  decltype(&::cuEventDestroy) event_destroy;
  decltype(&::cuEventRecord) event_record;
  decltype(&::cuEventQuery) event_query;
  decltype(&::cuEventSynchronize) event_synchronize;
  decltype(&::cuEventElapsedTime) event_elapsed_time;
  decltype(&::cuModuleLoadData) module_load_data;
  decltype(&::cuModuleUnload) module_unload;
  decltype(&::cuModuleGetFunction) module_get_function;
  decltype(&::cuFuncSetAttribute) func_set_attribute;
  decltype(&::cuLaunchKernel) launch_kernel;
  decltype(&::cuGraphCreate) graph_create;
  decltype(&::cuGraphDestroy) graph_destroy;
  decltype(&::cuGraphAddEmptyNode) graph_add_empty_node;
  decltype(&::cuGraphAddKernelNode) graph_add_kernel_node;
  decltype(&::cuGraphAddChildGraphNode) graph_add_child_graph_node;
  decltype(&::cuGraphInstantiate) graph_instantiate;
  decltype(&::cuGraphExecDestroy) graph_exec_destroy;
  decltype(&::cuGraphLaunch) graph_launch;
  decltype(&::cuTensorMapEncodeTiled) tensor_map_encode_tiled;
};

/// Loaded at the first call. Throws DeviceError if there is no driver, or one that is too old.
const Api& api();

/// What CUDA says of a result: "an illegal memory access was encountered".
std::string_view text_of(CUresult result);
/// Throws DeviceError: no more work of this process runs.
[[noreturn]] void give_up(std::string_view reason);
/// Throws DeviceError of what was being done ("copies to the GPU") unless the result is a success.
void check(CUresult result, std::string_view what);

}  // namespace russet::cuda
