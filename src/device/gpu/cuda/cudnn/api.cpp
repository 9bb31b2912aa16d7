#include "device/gpu/cuda/cudnn/api.h"

#include <fmt/format.h>
#include <russet/error.h>

#include "device/gpu/cuda/library.h"

namespace russet::cuda {
namespace {

constexpr const char* names[] = {"libcudnn.so.9", "libcudnn.so"};

CudnnApi load() {
  // cuDNN ends the process when it cannot load its engines, which are linked with cuBLASLt.
  if (const std::string reason = Library(cublaslt_names).missing(); !reason.empty()) {
    throw DeviceError("cuDNN needs cuBLASLt: " + reason);
  }
  const Library library(names);
  CudnnApi api{};
  library.load(api.create, "cudnnCreate");
  library.load(api.set_stream, "cudnnSetStream");
  library.load(api.get_error_string, "cudnnGetErrorString");
  library.load(api.get_version, "cudnnGetVersion");
  library.load(api.create_descriptor, "cudnnBackendCreateDescriptor");
  library.load(api.destroy_descriptor, "cudnnBackendDestroyDescriptor");
  library.load(api.finalize, "cudnnBackendFinalize");
  library.load(api.set_attribute, "cudnnBackendSetAttribute");
  library.load(api.get_attribute, "cudnnBackendGetAttribute");
  library.load(api.execute, "cudnnBackendExecute");
  return api;
}

}  // namespace

const CudnnApi& cudnn() {
  static const CudnnApi loaded = load();
  return loaded;
}

void check(cudnnStatus_t status, std::string_view what) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  throw DeviceError(fmt::format("cuda: {} failed: cuDNN says {}", what, cudnn().get_error_string(status)));
}

}  // namespace russet::cuda
