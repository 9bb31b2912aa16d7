#pragma once
// A GPU capture for Xcode: RUSSET_METAL_CAPTURE=FILE.gputrace records the first command buffers of the process.
#include "device/gpu/metal/gpu.h"

namespace russet::metal {

class Capture {
 public:
  /// Starts if the environment asks for a capture; says in the log why one could not start.
  explicit Capture(const Gpu& gpu);
  ~Capture() { stop(); }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  /// A command buffer was committed: the capture ends after 64.
  void count();
  bool running() const { return running_; }

 private:
  void stop();

  bool running_ = false;
  int command_buffers_ = 0;
};

}  // namespace russet::metal
