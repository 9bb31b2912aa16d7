#pragma once
// Convolutions: what cuDNN is asked, without cuDNN: so that a plan can be made where there is none.
#include "device/gpu/vendor_library.h"

namespace russet::cuda {

/// Convolutions and their gradients, of images whose channels lie side by side.
class Convolutions : public gpu::VendorLibrary {
 public:
  const char* name() const final { return "cudnn"; }
  gpu::Verdict judge(const compile::Primitive& primitive, const gpu::GpuContext& context) const final;
  bool prefers_space_to_depth(const compile::Primitive& convolution) const final;
  std::optional<Strides> required_strides(const compile::Primitive& contraction, int operand) const final;

 private:
  /// Of a convolution that is asked for: a call on the regions of its inputs and its result. `alignment`: of all
  /// addresses, in bytes.
  virtual gpu::Verdict answer(const compile::Primitive& convolution, std::uint32_t alignment,
                              std::vector<gpu::Region> regions, const gpu::GpuContext& context) const = 0;
};

}  // namespace russet::cuda
