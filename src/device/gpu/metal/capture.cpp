#include "device/gpu/metal/capture.h"

#include <fmt/format.h>

#include <cstdlib>

#include "base/log.h"

namespace russet::metal {
namespace {

constexpr int captured_command_buffers = 64;

}  // namespace

Capture::Capture(const Gpu& gpu) {
  const char* const path = std::getenv("RUSSET_METAL_CAPTURE");
  if (path == nullptr || *path == '\0') return;
  const PoolScope pool;
  MTL::CaptureManager* const manager = MTL::CaptureManager::sharedCaptureManager();
  if (!manager->supportsDestination(MTL::CaptureDestinationGPUTraceDocument)) {
    base::log_line("metal", "no capture: set MTL_CAPTURE_ENABLED=1, too");
    return;
  }
  const auto descriptor = NS::TransferPtr(MTL::CaptureDescriptor::alloc()->init());
  descriptor->setCaptureObject(gpu.device.get());
  descriptor->setDestination(MTL::CaptureDestinationGPUTraceDocument);
  descriptor->setOutputURL(file_url(path));
  NS::Error* error = nullptr;
  running_ = manager->startCapture(descriptor.get(), &error);
  if (!running_) base::log_line("metal", fmt::format("no capture to {}: {}", path, text(error)));
}

void Capture::count() {
  if (running_ && ++command_buffers_ == captured_command_buffers) stop();
}

void Capture::stop() {
  if (!running_) return;
  running_ = false;
  const PoolScope pool;
  MTL::CaptureManager::sharedCaptureManager()->stopCapture();
}

}  // namespace russet::metal
