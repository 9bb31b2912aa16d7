#include "device/gpu/cuda/cudnn/warm_up.h"

#include <exception>
#include <utility>

namespace russet::cuda {

WarmUp::~WarmUp() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void WarmUp::add(std::shared_ptr<const ConvolutionCall> call) {
  {
    const std::lock_guard lock(mutex_);
    try {
      calls_.push_back(std::move(call));
      if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
    } catch (const std::exception&) {  // no thread, no memory: it is loaded when it runs
      return calls_.clear();
    }
  }
  changed_.notify_all();
}

std::shared_ptr<const ConvolutionCall> WarmUp::next() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return ends_ || !calls_.empty(); });
  if (ends_) return nullptr;
  std::shared_ptr<const ConvolutionCall> call = std::move(calls_.front());
  calls_.pop_front();
  return call;
}

void WarmUp::load(const ConvolutionCall& call, cudnnHandle_t handle) {
  try {
    call.load(handle);
  } catch (const std::exception&) {
    // What runs it will say so.
    return;
  }
}

void WarmUp::run() {
  try {
    context_.enter();
    cudnnHandle_t handle = nullptr;  // for the rest of the process
    check(cudnn().create(&handle), "starting cuDNN");
    while (const std::shared_ptr<const ConvolutionCall> call = next()) load(*call, handle);
  } catch (const std::exception&) {
    // Without a handle calls are loaded when they run.
    return;
  }
}

}  // namespace russet::cuda
