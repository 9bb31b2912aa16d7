#pragma once
// Convolutions: what cuDNN is asked, without cuDNN: so that a plan can be made where there is none.
#include "device/gpu/cuda/planning/library_epilogue.h"
#include "device/gpu/vendor_library.h"

namespace russet::cuda {

/// What is asked: a convolution without what comes after it, and which of that the library is to do. `alignment`: of
/// all addresses, in bytes.
struct ConvolutionQuestion {
  const compile::Primitive& convolution;
  LibraryTail tail;
  std::uint32_t alignment = 16;
};

/// Convolutions and their gradients, of images whose channels lie side by side.
class Convolutions : public gpu::VendorLibrary {
 public:
  const char* name() const final { return "cudnn"; }
  gpu::Verdict judge(const compile::Primitive& primitive, const gpu::GpuContext& context) const final;
  bool adds_biases(const compile::Primitive& convolution) const final;
  bool prefers_space_to_depth(const compile::Primitive& convolution) const final;
  bool prefers_subsampling(const compile::Primitive& convolution) const final;
  std::optional<Strides> required_strides(const compile::Primitive& contraction, int operand,
                                          const gpu::Properties& properties) const final;

 private:
  /// A call on the regions: of the convolution's inputs and result, the bias and the residual.
  virtual gpu::Verdict answer(const ConvolutionQuestion& question, std::vector<gpu::Region> regions,
                              const gpu::GpuContext& context) const = 0;
};

}  // namespace russet::cuda
