#pragma once
// WarmUp: cuDNN loads a call's kernels when it is first enqueued, 2 to 18 ms each; a thread of its own has it do so
// while the plan is still being made.
#include <deque>
#include <memory>
#include <mutex>
#include <optional>

#include "device/gpu/cuda/context.h"
#include "device/gpu/cuda/cudnn/convolution_call.h"
#include "device/gpu/cuda/loading_thread.h"

namespace russet::cuda {

/// Thread-safe.
class WarmUp {
 public:
  explicit WarmUp(const Context& context) : context_(context) {}
  /// Waits for the call that is being loaded; others are left out.
  ~WarmUp();
  WarmUp(const WarmUp&) = delete;
  WarmUp& operator=(const WarmUp&) = delete;

  /// Loads its kernels soon, or, without a thread or a handle, when it runs. A call that fails says so then.
  void add(std::shared_ptr<const ConvolutionCall> call);

 private:
  /// Loads what waits, until nothing does.
  void run();
  /// The next call; nullptr when there is none, and the thread ends.
  std::shared_ptr<const ConvolutionCall> next();

  const Context& context_;
  cudnnHandle_t handle_ = nullptr;  // the thread's, for the rest of the process
  std::mutex mutex_;
  std::deque<std::shared_ptr<const ConvolutionCall>> calls_;
  bool runs_ = false;
  std::optional<LoadingThread> thread_;
};

}  // namespace russet::cuda
