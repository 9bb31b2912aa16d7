#pragma once
// Cudnn: convolutions and their gradients by cuDNN, on operands whose channels lie side by side.
#include "device/gpu/cuda/answers.h"
#include "device/gpu/cuda/context.h"
#include "device/gpu/cuda/cudnn/convolution_call.h"
#include "device/gpu/cuda/cudnn/warm_up.h"
#include "device/gpu/cuda/planning/convolutions.h"
#include "device/gpu/cuda/planning/questions.h"

namespace russet::cuda {

/// Plain plans, or with the epilogue that costs nothing: what cuDNN fuses otherwise is slower than groups of ours, is
/// compiled when it is asked for, or does not repeat its bits.
class Cudnn final : public Convolutions {
 public:
  /// Throws DeviceError if there is no cuDNN.
  explicit Cudnn(const Context& context);
  std::string version() const override { return version_text(cudnn().get_version()); }

 private:
  void load_engines() const;
  gpu::Verdict answer(const ConvolutionQuestion& question, std::vector<gpu::Region> regions,
                      const gpu::GpuContext& context) const override;

  const Context& context_;
  // For the rest of the process. A handle is for one thread at a time.
  cudnnHandle_t handle_ = nullptr;
  cudnnHandle_t running_ = nullptr;
  mutable WarmUp warm_up_;
  mutable Answers<ConvolutionCall> answers_;
};

}  // namespace russet::cuda
