#pragma once
// cuDNN as it is called here: the graph interface of libcudnn.so.9.
#include <cudnn_graph.h>

#include <string_view>

namespace russet::cuda {

/// Under cuDNN's names without "cudnn".
struct CudnnApi {
  decltype(&::cudnnCreate) create;
  decltype(&::cudnnSetStream) set_stream;
  decltype(&::cudnnGetErrorString) get_error_string;
  decltype(&::cudnnGetVersion) get_version;
  decltype(&::cudnnBackendCreateDescriptor) create_descriptor;
  decltype(&::cudnnBackendDestroyDescriptor) destroy_descriptor;
  decltype(&::cudnnBackendFinalize) finalize;
  decltype(&::cudnnBackendSetAttribute) set_attribute;
  decltype(&::cudnnBackendGetAttribute) get_attribute;
  decltype(&::cudnnBackendExecute) execute;
};

/// Loaded at the first call. Throws DeviceError if there is no cuDNN 9.
const CudnnApi& cudnn();

/// Throws DeviceError of what was being done unless the status is a success.
void check(cudnnStatus_t status, std::string_view what);

}  // namespace russet::cuda
