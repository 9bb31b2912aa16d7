#pragma once
// CudnnDescriptor: one of the descriptors that cuDNN's graph interface is made of.
#include <memory>
#include <span>
#include <vector>

#include "device/gpu/cuda/cudnn/api.h"

namespace russet::cuda {

/// The name that cuDNN has for a type of attributes' elements.
template <class T>
inline constexpr cudnnBackendAttributeType_t cudnn_type_of = CUDNN_TYPE_VOID_PTR;
template <>
inline constexpr cudnnBackendAttributeType_t cudnn_type_of<std::int64_t> = CUDNN_TYPE_INT64;
template <>
inline constexpr cudnnBackendAttributeType_t cudnn_type_of<bool> = CUDNN_TYPE_BOOLEAN;
template <>
inline constexpr cudnnBackendAttributeType_t cudnn_type_of<cudnnPointwiseMode_t> = CUDNN_TYPE_POINTWISE_MODE;
template <>
inline constexpr cudnnBackendAttributeType_t cudnn_type_of<cudnnNanPropagation_t> = CUDNN_TYPE_NAN_PROPOGATION;
template <>
inline constexpr cudnnBackendAttributeType_t cudnn_type_of<float> = CUDNN_TYPE_FLOAT;
template <>
inline constexpr cudnnBackendAttributeType_t cudnn_type_of<cudnnDataType_t> = CUDNN_TYPE_DATA_TYPE;
template <>
inline constexpr cudnnBackendAttributeType_t cudnn_type_of<cudnnConvolutionMode_t> = CUDNN_TYPE_CONVOLUTION_MODE;
template <>
inline constexpr cudnnBackendAttributeType_t cudnn_type_of<cudnnBackendHeurMode_t> = CUDNN_TYPE_HEUR_MODE;
template <>
inline constexpr cudnnBackendAttributeType_t cudnn_type_of<cudnnBackendNumericalNote_t> = CUDNN_TYPE_NUMERICAL_NOTE;
template <>
inline constexpr cudnnBackendAttributeType_t cudnn_type_of<cudnnBackendBehaviorNote_t> = CUDNN_TYPE_BEHAVIOR_NOTE;
template <>
inline constexpr cudnnBackendAttributeType_t cudnn_type_of<cudnnHandle_t> = CUDNN_TYPE_HANDLE;

/// What throws here throws DeviceError.
class CudnnDescriptor {
 public:
  explicit CudnnDescriptor(cudnnBackendDescriptorType_t type);

  template <class T>
  void set(cudnnBackendAttributeName_t attribute, const T& value) {
    set_raw(attribute, cudnn_type_of<T>, 1, &value);
  }
  template <class T>
  void set_all(cudnnBackendAttributeName_t attribute, std::span<const T> values) {
    set_raw(attribute, cudnn_type_of<T>, values.size(), values.data());
  }
  void set(cudnnBackendAttributeName_t attribute, const CudnnDescriptor& value) {
    const cudnnBackendDescriptor_t raw = value.get();
    set_raw(attribute, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &raw);
  }
  void set_all(cudnnBackendAttributeName_t attribute, std::span<const CudnnDescriptor> values) {
    std::vector<cudnnBackendDescriptor_t> raw;
    for (const CudnnDescriptor& value : values) raw.push_back(value.get());
    set_raw(attribute, CUDNN_TYPE_BACKEND_DESCRIPTOR, raw.size(), raw.data());
  }
  /// No attribute changes after this.
  void finalize();
  bool try_finalize();

  template <class T>
  std::vector<T> all(cudnnBackendAttributeName_t attribute, std::int64_t most) const {
    std::vector<T> values(static_cast<std::size_t>(most));
    values.resize(static_cast<std::size_t>(get_raw(attribute, cudnn_type_of<T>, most, values.data())));
    return values;
  }
  /// At most so many descriptors of a type.
  std::vector<CudnnDescriptor> descriptors(cudnnBackendAttributeName_t attribute, cudnnBackendDescriptorType_t type,
                                           std::int64_t most) const;

  cudnnBackendDescriptor_t get() const { return descriptor_.get(); }

 private:
  void set_raw(cudnnBackendAttributeName_t attribute, cudnnBackendAttributeType_t type, std::size_t count,
               const void* values);
  /// How many there are.
  std::int64_t get_raw(cudnnBackendAttributeName_t attribute, cudnnBackendAttributeType_t type, std::int64_t most,
                       void* values) const;

  struct Destroy {
    void operator()(cudnnBackendDescriptor_t descriptor) const { cudnn().destroy_descriptor(descriptor); }
  };
  std::unique_ptr<void, Destroy> descriptor_;
};

}  // namespace russet::cuda
