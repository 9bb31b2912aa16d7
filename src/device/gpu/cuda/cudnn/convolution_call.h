#pragma once
// ConvolutionCall: a convolution or one of its gradients by cuDNN, with what comes after it: its execution plan, made
// once.
#include <optional>

#include "compile/step.h"
#include "device/gpu/cuda/cudnn/descriptor.h"
#include "device/gpu/cuda/pipeline.h"
#include "device/gpu/cuda/planning/convolutions.h"

namespace russet::cuda {

/// Its buffers: the step's two inputs, its output, the bias and the residual if they are asked for, and a workspace if
/// it has one.
class ConvolutionCall final : public LibraryCall {
 public:
  /// Takes one of the plans of cuDNN's heuristic, the best of which is the first (0), of those that always give the
  /// same bits and multiply in the inputs' type. `handle`: of the thread that makes it; `running`: of the one that runs
  /// it. Throws DeviceError if cuDNN does not have as many.
  ConvolutionCall(cudnnHandle_t handle, cudnnHandle_t running, const ConvolutionQuestion& question,
                  std::size_t proposal);

  std::size_t workspace_bytes() const { return workspace_bytes_; }
  /// Has cuDNN load what the call runs, by recording it. `handle`: of this thread. Throws DeviceError.
  void load(cudnnHandle_t handle) const;

 private:
  void enqueue(std::span<std::byte* const> addresses, CUstream stream) const override {
    execute(running_, addresses, stream);
  }
  void execute(cudnnHandle_t handle, std::span<std::byte* const> addresses, CUstream stream) const;

  cudnnHandle_t running_;
  std::vector<std::int64_t> ids_;       // of the tensors in memory, in the order of the buffers
  std::vector<CudnnDescriptor> parts_;  // that the plan is made of
  std::optional<CudnnDescriptor> plan_;
  std::size_t workspace_bytes_ = 0;
};

}  // namespace russet::cuda
