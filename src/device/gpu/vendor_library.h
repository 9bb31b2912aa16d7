#pragma once
// VendorLibrary: kernels of a GPU's maker (cuBLASLt, cuDNN), which go before our own.
#include <optional>

#include "device/gpu/gpu_kernel.h"

namespace russet::gpu {

/// Thread-safe.
class VendorLibrary {
 public:
  virtual ~VendorLibrary() = default;
  /// "cublaslt", as in the log.
  virtual const char* name() const = 0;
  /// "9.19.0".
  virtual std::string version() const = 0;
  /// As an implementation judges: see compile/implementation.h. What it accepts is deterministic.
  virtual Verdict judge(const compile::Primitive& primitive, const GpuContext& context) const = 0;
  /// Whether it takes products of the type that have so many operations.
  virtual bool multiplies(DType /*dtype*/, double /*operations*/) const { return false; }
  /// Whether it takes the convolution, and adds a bias of the result's type and a residual at no cost.
  virtual bool adds_biases(const compile::Primitive& /*convolution*/) const { return false; }
  /// See compile::Target.
  virtual bool prefers_space_to_depth(const compile::Primitive& /*convolution*/) const { return false; }
  /// See compile::Target.
  virtual bool prefers_subsampling(const compile::Primitive& /*convolution*/) const { return false; }
  /// See compile::Target; nothing if the library would not take the contraction, or takes it as it is.
  virtual std::optional<Strides> required_strides(const compile::Primitive& /*contraction*/, int /*operand*/,
                                                  const Properties& /*properties*/) const {
    return std::nullopt;
  }
};

/// A step that is one call of a library, which finds the regions in this order; `scratch_bytes` lie behind
/// Region::scratch. `name` is the kernel's, in the log.
KernelPtr make_library_kernel(const GpuContext& context, std::string name, std::shared_ptr<const Pipeline> call,
                              std::vector<Region> regions, std::size_t scratch_bytes);

}  // namespace russet::gpu
