#pragma once
// Context: the GPU that is used, and what it says of itself.
#include <cstddef>
#include <cstdint>
#include <string>

#include "device/gpu/cuda/api.h"

namespace russet::cuda {

/// The primary context of the first GPU, made here and kept to the end of the process. Threads enter it before they
/// call CUDA. Thread-safe.
class Context {
 public:
  /// Throws DeviceError if there is no GPU, or one that is too old.
  Context();

  void enter() const { check(api().ctx_set_current(context_), "entering the GPU's context"); }
  /// Likewise, for what gives something back: at the end of the process CUDA may be gone before it, with all it held.
  bool try_enter() const noexcept { return api().ctx_set_current(context_) == CUDA_SUCCESS; }
  int attribute(CUdevice_attribute which) const;

  const std::string& name() const { return name_; }
  /// The driver's version, as CUDA counts: 13000 is 13.0.
  int driver_version() const { return driver_version_; }
  /// Compute capability: 90 is 9.0.
  int capability() const { return capability_; }
  std::size_t memory_bytes() const { return memory_bytes_; }

 private:
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
  std::string name_;
  int driver_version_ = 0;
  int capability_ = 0;
  std::size_t memory_bytes_ = 0;
};

}  // namespace russet::cuda
