#include "device/gpu/cuda/cudnn/warm_up.h"

#include <russet/error.h>

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
    calls_.push_back(std::move(call));
    if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
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

void WarmUp::run() {
  try {
    context_.enter();
    cudnnHandle_t handle = nullptr;  // for the rest of the process
    check(cudnn().create(&handle), "starting cuDNN");
    while (const std::shared_ptr<const ConvolutionCall> call = next()) {
      try {
        call->load(handle);
      } catch (const DeviceError&) {  // what runs it will say so
        continue;
      }
    }
  } catch (const DeviceError&) {
    return;
  }
}

}  // namespace russet::cuda
