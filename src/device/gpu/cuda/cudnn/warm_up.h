#pragma once
// WarmUp: cuDNN loads a call's kernels when it is first enqueued, 2 to 18 ms each; a thread of its own has it do so
// while the plan is still being made.
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

#include "device/gpu/cuda/context.h"
#include "device/gpu/cuda/cudnn/convolution_call.h"

namespace russet::cuda {

/// Thread-safe.
class WarmUp {
 public:
  explicit WarmUp(const Context& context) : context_(context) {}
  /// Waits for the call that is being loaded; others are left out.
  ~WarmUp();
  WarmUp(const WarmUp&) = delete;
  WarmUp& operator=(const WarmUp&) = delete;

  /// Loads its kernels soon. A call that fails says so when it runs.
  void add(std::shared_ptr<const ConvolutionCall> call);

 private:
  void run();
  static void load(const ConvolutionCall& call, cudnnHandle_t handle);
  /// The next call; nullptr when there will be none.
  std::shared_ptr<const ConvolutionCall> next();

  const Context& context_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<const ConvolutionCall>> calls_;
  bool ends_ = false;
  std::thread thread_;  // begins with the first call
};

}  // namespace russet::cuda
