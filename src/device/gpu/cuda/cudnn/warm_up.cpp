#include "device/gpu/cuda/cudnn/warm_up.h"

#include <exception>
#include <utility>

namespace russet::cuda {
namespace {

void load(const ConvolutionCall& call, cudnnHandle_t handle) {
  try {
    call.load(handle);
  } catch (const std::exception&) {
    // What runs it will say so.
    return;
  }
}

}  // namespace

WarmUp::~WarmUp() {
  {
    const std::lock_guard lock(mutex_);
    calls_.clear();
  }
  thread_.reset();
}

void WarmUp::add(std::shared_ptr<const ConvolutionCall> call) {
  const std::lock_guard lock(mutex_);
  try {
    calls_.push_back(std::move(call));
    if (!std::exchange(runs_, true)) thread_.emplace([this] { run(); });
  } catch (const std::exception&) {  // no memory: it is loaded when it runs
    calls_.clear();
  }
}

std::shared_ptr<const ConvolutionCall> WarmUp::next() {
  const std::lock_guard lock(mutex_);
  runs_ = !calls_.empty();
  if (!runs_) return nullptr;
  std::shared_ptr<const ConvolutionCall> call = std::move(calls_.front());
  calls_.pop_front();
  return call;
}

void WarmUp::run() {
  context_.enter();
  if (handle_ == nullptr) check(cudnn().create(&handle_), "starting cuDNN");
  while (const std::shared_ptr<const ConvolutionCall> call = next()) load(*call, handle_);
}

}  // namespace russet::cuda
