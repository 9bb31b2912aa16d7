#include "device/gpu/cuda/cudnn/descriptor.h"

#include <algorithm>

namespace russet::cuda {

CudnnDescriptor::CudnnDescriptor(cudnnBackendDescriptorType_t type) {
  cudnnBackendDescriptor_t made = nullptr;
  check(cudnn().create_descriptor(type, &made), "making a descriptor");
  descriptor_.reset(made);
}

void CudnnDescriptor::finalize() { check(cudnn().finalize(get()), "describing a convolution"); }

bool CudnnDescriptor::try_finalize() { return cudnn().finalize(get()) == CUDNN_STATUS_SUCCESS; }

void CudnnDescriptor::set_raw(cudnnBackendAttributeName_t attribute, cudnnBackendAttributeType_t type,
                              std::size_t count, const void* values) {
  check(cudnn().set_attribute(get(), attribute, type, static_cast<std::int64_t>(count), values),
        "describing a convolution");
}

std::int64_t CudnnDescriptor::get_raw(cudnnBackendAttributeName_t attribute, cudnnBackendAttributeType_t type,
                                      std::int64_t most, void* values) const {
  std::int64_t count = 0;
  check(cudnn().get_attribute(get(), attribute, type, most, &count, values), "asking of a convolution");
  return std::min(count, most);
}

std::vector<CudnnDescriptor> CudnnDescriptor::descriptors(cudnnBackendAttributeName_t attribute,
                                                          cudnnBackendDescriptorType_t type, std::int64_t most) const {
  std::vector<CudnnDescriptor> found;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (std::int64_t i = 0; i < most; ++i) {
    found.emplace_back(type);
    raw.push_back(found.back().get());
  }
  const std::int64_t count = get_raw(attribute, CUDNN_TYPE_BACKEND_DESCRIPTOR, most, raw.data());
  found.erase(found.begin() + static_cast<std::ptrdiff_t>(count), found.end());
  return found;
}

}  // namespace russet::cuda
