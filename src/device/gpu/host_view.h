#pragma once
// HostView: what the host sees of a step's memory: the memory itself where host and GPU share it, else copies.
#include <span>
#include <vector>

#include "device/gpu/gpu_kernel.h"

namespace russet::gpu {

class HostView {
 public:
  /// Waits until everything has run. The host sees these regions of the slots, and `scratch_bytes` of scratch memory.
  /// Throws what went wrong.
  HostView(Stream& stream, std::span<const Region> regions, const compile::Bindings& bindings,
           std::size_t scratch_bytes = 0);

  /// With the host's addresses.
  const compile::Bindings& bindings() const { return host_; }
  /// The GPU sees what the host wrote to the regions that are written.
  void write_back();

 private:
  struct Copy {
    std::int32_t slot;
    std::byte* address;  // on the GPU
    std::size_t bytes;
    std::vector<std::byte> memory;
    std::byte* begin;  // in it, as far beyond a multiple of 64 as the address
  };

  Stream& stream_;
  std::vector<Region> written_;
  compile::Bindings device_;  // with the GPU's addresses
  std::vector<Copy> copies_;
  std::vector<std::byte*> slots_;
  std::vector<std::byte> scratch_;
  compile::Bindings host_;
};

}  // namespace russet::gpu
