#pragma once
// Memory: shared MTLBuffers as the blocks that memory is cut of.
#include <vector>

#include "device/gpu/driver/memory_blocks.h"
#include "device/gpu/metal/gpu.h"

namespace russet::metal {

/// Where the GPU finds an address.
struct BufferOffset {
  MTL::Buffer* buffer = nullptr;
  std::size_t offset = 0;
};

class Memory final : public gpu::BlockSource {
 public:
  explicit Memory(const Gpu& gpu);

  std::string limit_name() const override { return "Metal's recommended working set"; }
  std::size_t limit() const override { return gpu_.working_set; }
  std::size_t most_of_cut_block() const override { return gpu_.max_buffer; }
  /// One buffer, or several over one range of addresses if it is longer than a buffer may be.
  std::unique_ptr<gpu::Block> grant(std::size_t bytes) override;
  std::unique_ptr<gpu::Block> borrow(std::byte* memory, std::size_t bytes) override;

  /// Every buffer that there is and will be: bound to a queue so that Metal keeps them resident. nullptr before
  /// macOS 15.
  MTL::ResidencySet* residency() const { return residency_.get(); }
  /// Whether buffers overlap in memory somewhere: Metal then does not see that work on two buffers conflicts.
  bool overlapping() const { return overlapping_; }

 private:
  std::unique_ptr<gpu::Block> map_windows(std::size_t bytes);

  const Gpu& gpu_;
  NS::SharedPtr<MTL::ResidencySet> residency_;
  bool overlapping_ = false;
};

/// Where the GPU finds these bytes. Throws DeviceError if no one buffer holds them.
BufferOffset find(const gpu::MemoryBlocks& blocks, const std::byte* address, std::size_t bytes);

}  // namespace russet::metal
