#pragma once
// Cudnn: convolutions and their gradients by cuDNN, on operands whose channels lie side by side.
#include "device/gpu/cuda/answers.h"
#include "device/gpu/cuda/context.h"
#include "device/gpu/cuda/cudnn/convolution_call.h"
#include "device/gpu/vendor_library.h"

namespace russet::cuda {

/// The plain plans alone: what cuDNN fuses is slower than groups of ours, or does not repeat its bits.
class Cudnn final : public gpu::VendorLibrary {
 public:
  /// Throws DeviceError if there is no cuDNN.
  explicit Cudnn(const Context& context);
  const char* name() const override { return "cudnn"; }
  gpu::Verdict judge(const compile::Primitive& primitive, const gpu::GpuContext& context) const override;
  std::optional<Strides> required_strides(const compile::Primitive& contraction, int operand) const override;

 private:
  const Context& context_;
  // For the rest of the process. A handle is for one thread at a time.
  cudnnHandle_t handle_ = nullptr;
  cudnnHandle_t running_ = nullptr;
  mutable Answers<ConvolutionCall> answers_;
};

}  // namespace russet::cuda
