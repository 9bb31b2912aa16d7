// A libcuda.so.1 without a GPU: memory is the host's, copies copy, and kernels do nothing. What russet does around the
// kernels runs and can be counted and timed. At the end of the process the calls that were made are written to the file
// that CUDA_STAND_IN_CALLS names, a line "cuGraphLaunch 12" for each function, and how many kernels of a graph wait for
// each other at most, one after the other: "launches_in_a_row 9". Of the graphs that were made "large_graphs" have more
// than 100 kernels. "launches_at_the_start" of them wait for no node at all.
#include <cuda.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

enum Call {
  synchronize,
  graph_launch,
  graph_instantiate,
  kernel_launch,
  copy_to_device,
  copy_to_host,
  allocate,
  record_event,
  calls
};
constexpr const char* names[calls] = {"cuStreamSynchronize", "cuGraphLaunch",     "cuGraphInstantiate",
                                      "cuLaunchKernel",      "cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync",
                                      "cuMemAlloc",          "cuEventRecord"};
std::atomic<long> counts[calls];
std::atomic<std::size_t> launches_in_a_row;
std::atomic<long> large_graphs;
std::atomic<long> launches_at_the_start;
std::atomic<std::size_t> allocated;

constexpr std::size_t memory_bytes = std::size_t{8} << 30;

struct WriteCounts {
  ~WriteCounts() {
    const char* const path = std::getenv("CUDA_STAND_IN_CALLS");
    std::FILE* const file = path == nullptr ? nullptr : std::fopen(path, "w");
    if (file == nullptr) return;
    for (int call = 0; call < calls; ++call) std::fprintf(file, "%s %ld\n", names[call], counts[call].load());
    std::fprintf(file, "large_graphs %ld\n", large_graphs.load());
    std::fprintf(file, "launches_at_the_start %ld\n", launches_at_the_start.load());
    std::fprintf(file, "launches_in_a_row %zu\n", launches_in_a_row.load());
    std::fclose(file);
  }
} write_counts;

/// Handles are addresses that nobody reads.
template <class Handle>
CUresult make(Handle* handle) {
  *handle = reinterpret_cast<Handle>(std::malloc(1));
  return CUDA_SUCCESS;
}
template <class Handle>
CUresult drop(Handle handle) {
  std::free(reinterpret_cast<void*>(handle));
  return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

CUresult cuInit(unsigned) { return CUDA_SUCCESS; }
CUresult cuDriverGetVersion(int* version) {
  *version = CUDA_VERSION;
  return CUDA_SUCCESS;
}
CUresult cuGetErrorString(CUresult result, const char** text) {
  *text = result == CUDA_ERROR_OUT_OF_MEMORY ? "out of memory" : "an error of the stand-in";
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetCount(int* count) {
  *count = 1;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGet(CUdevice* device, int) {
  *device = 0;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetName(char* name, int length, CUdevice) {
  std::snprintf(name, static_cast<std::size_t>(length), "a stand-in for a GPU");
  return CUDA_SUCCESS;
}
CUresult cuDeviceTotalMem(std::size_t* bytes, CUdevice) {
  *bytes = memory_bytes;
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice) { return make(context); }
CUresult cuCtxSetCurrent(CUcontext) { return CUDA_SUCCESS; }
CUresult cuCtxSynchronize() { return CUDA_SUCCESS; }

// An H200's, as its documentation states them.
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute which, CUdevice) {
  switch (which) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = 9; break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *value = 0; break;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = 1024; break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK: *value = 49152; break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: *value = 232448; break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *value = 132; break;
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE: *value = 1980000; break;
    case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE: *value = 3201000; break;
    case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH: *value = 6144; break;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

CUresult cuMemAlloc(CUdeviceptr* address, std::size_t bytes) {
  ++counts[allocate];
  if (allocated + bytes > memory_bytes) return CUDA_ERROR_OUT_OF_MEMORY;
  constexpr std::size_t alignment = 512;
  std::size_t* const memory =
      static_cast<std::size_t*>(std::aligned_alloc(alignment, (bytes + 2 * alignment - 1) / alignment * alignment));
  if (memory == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  *memory = bytes;
  allocated += bytes;
  *address = reinterpret_cast<CUdeviceptr>(reinterpret_cast<char*>(memory) + alignment);
  return CUDA_SUCCESS;
}
CUresult cuMemFree(CUdeviceptr address) {
  void* const memory = reinterpret_cast<char*>(address) - 512;
  allocated -= *static_cast<std::size_t*>(memory);
  std::free(memory);
  return CUDA_SUCCESS;
}
CUresult cuMemHostAlloc(void** memory, std::size_t bytes, unsigned) {
  *memory = std::malloc(bytes);
  return *memory == nullptr ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}
CUresult cuMemFreeHost(void* memory) { return drop(memory); }
CUresult cuMemcpyHtoDAsync(CUdeviceptr target, const void* source, std::size_t bytes, CUstream) {
  ++counts[copy_to_device];
  std::memcpy(reinterpret_cast<void*>(target), source, bytes);
  return CUDA_SUCCESS;
}
CUresult cuMemsetD8Async(CUdeviceptr target, unsigned char value, std::size_t bytes, CUstream) {
  std::memset(reinterpret_cast<void*>(target), value, bytes);
  return CUDA_SUCCESS;
}
CUresult cuMemcpyDtoHAsync(void* target, CUdeviceptr source, std::size_t bytes, CUstream) {
  ++counts[copy_to_host];
  std::memcpy(target, reinterpret_cast<const void*>(source), bytes);
  return CUDA_SUCCESS;
}

CUresult cuStreamCreate(CUstream* stream, unsigned) { return make(stream); }
CUresult cuStreamDestroy(CUstream stream) { return drop(stream); }
CUresult cuStreamSynchronize(CUstream) {
  ++counts[synchronize];
  return CUDA_SUCCESS;
}
CUresult cuStreamBeginCapture(CUstream, CUstreamCaptureMode) { return CUDA_ERROR_NOT_SUPPORTED; }
CUresult cuStreamEndCapture(CUstream, CUgraph*) { return CUDA_ERROR_NOT_SUPPORTED; }

CUresult cuEventCreate(CUevent* event, unsigned) { return make(event); }
CUresult cuEventDestroy(CUevent event) { return drop(event); }
CUresult cuEventRecord(CUevent, CUstream) {
  ++counts[record_event];
  return CUDA_SUCCESS;
}
CUresult cuEventQuery(CUevent) { return CUDA_SUCCESS; }
CUresult cuEventSynchronize(CUevent) {
  ++counts[synchronize];
  return CUDA_SUCCESS;
}
#undef cuEventElapsedTime  // whose newer version takes the same
CUresult cuEventElapsedTime(float* milliseconds, CUevent, CUevent) {
  *milliseconds = 0.25F;
  return CUDA_SUCCESS;
}

CUresult cuModuleLoadData(CUmodule* module, const void*) {
  return std::getenv("CUDA_STAND_IN_FAULT") ? CUDA_ERROR_ILLEGAL_ADDRESS : make(module);
}
CUresult cuModuleUnload(CUmodule module) { return drop(module); }
CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char*) {
  *function = reinterpret_cast<CUfunction>(module);
  return CUDA_SUCCESS;
}
CUresult cuFuncSetAttribute(CUfunction, CUfunction_attribute, int) { return CUDA_SUCCESS; }
CUresult cuLaunchKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream,
                        void**, void**) {
  ++counts[kernel_launch];
  return CUDA_SUCCESS;
}

/// A graph's handle is the address of the number of its kernels.
CUresult cuGraphCreate(CUgraph* graph, unsigned) {
  *graph = reinterpret_cast<CUgraph>(std::calloc(1, sizeof(long)));
  return CUDA_SUCCESS;
}
CUresult cuGraphDestroy(CUgraph graph) { return drop(graph); }
CUresult cuGraphAddEmptyNode(CUgraphNode* node, CUgraph, const CUgraphNode*, std::size_t) {
  *node = nullptr;  // no kernel
  return CUDA_SUCCESS;
}
/// A node's handle is its place in the longest chain of kernels that leads to it, from 1 on.
CUresult cuGraphAddKernelNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* before, std::size_t count,
                              const CUDA_KERNEL_NODE_PARAMS*) {
  ++*reinterpret_cast<long*>(graph);
  if (count == 0) ++launches_at_the_start;
  std::size_t place = 1;
  for (std::size_t i = 0; i < count; ++i) place = std::max(place, reinterpret_cast<std::size_t>(before[i]) + 1);
  std::size_t longest = launches_in_a_row;
  while (longest < place && !launches_in_a_row.compare_exchange_weak(longest, place)) {
  }
  *node = reinterpret_cast<CUgraphNode>(place);
  return CUDA_SUCCESS;
}
CUresult cuGraphAddChildGraphNode(CUgraphNode*, CUgraph, const CUgraphNode*, std::size_t, CUgraph) {
  return CUDA_ERROR_NOT_SUPPORTED;
}
CUresult cuGraphInstantiateWithFlags(CUgraphExec* executable, CUgraph graph, unsigned long long) {
  ++counts[graph_instantiate];
  if (*reinterpret_cast<const long*>(graph) > 100) ++large_graphs;
  return make(executable);
}
CUresult cuGraphExecDestroy(CUgraphExec executable) { return drop(executable); }
CUresult cuGraphLaunch(CUgraphExec, CUstream) {
  ++counts[graph_launch];
  return CUDA_SUCCESS;
}
/// The address alone; what CUDA refuses of lines of 128 bytes is refused.
CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address,
                                const cuuint64_t* sizes, const cuuint64_t* strides, const cuuint32_t* box,
                                const cuuint32_t*, CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion,
                                CUtensorMapFloatOOBfill) {
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  if (type != CU_TENSOR_MAP_DATA_TYPE_UINT16 || rank != 2 || begin % 16 != 0 || strides[0] % 16 != 0 || sizes[0] == 0 ||
      sizes[1] == 0 || box[0] != 64 || box[1] == 0 || box[1] > 256) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  std::memset(map, 0, sizeof(*map));
  std::memcpy(map, &begin, sizeof(begin));
  return CUDA_SUCCESS;
}

}  // extern "C"
