#pragma once
// MemoryBlocks: shared MTLBuffers, cut into pieces, and which of them an address lies in.
#include <map>
#include <mutex>
#include <vector>

#include "base/range_set.h"
#include "device/gpu/metal/gpu.h"

namespace russet::metal {

/// Where the GPU finds an address.
struct BufferOffset {
  MTL::Buffer* buffer = nullptr;
  std::size_t offset = 0;
};

/// Pieces up to a page come from blocks of 4 MiB, larger ones from blocks of 64 MiB or of an eighth of all that there
/// is, if that is more: a launch over many tensors binds blocks, so they must be few. Pieces above half a block have
/// memory of their own: several buffers over one range of addresses if it is longer than a buffer may be. Thread-safe.
class MemoryBlocks {
 public:
  explicit MemoryBlocks(const Gpu& gpu);
  ~MemoryBlocks();
  MemoryBlocks(const MemoryBlocks&) = delete;
  MemoryBlocks& operator=(const MemoryBlocks&) = delete;

  /// 64-byte aligned, page-aligned above a page. Throws OutOfMemoryError.
  std::byte* allocate(std::size_t bytes);
  void release(std::byte* memory, std::size_t bytes);
  /// Wraps whole pages of CPU memory in a buffer until end_borrowing() has been called as often as this. False if they
  /// are not whole pages, or are more than a buffer or the working set may hold.
  bool borrow(std::byte* memory, std::size_t bytes);
  void end_borrowing(const std::byte* memory);
  /// The buffer that holds [address, address + bytes). Throws InternalError if that is not memory of this device, and
  /// DeviceError if no one buffer holds it.
  BufferOffset find(const std::byte* address, std::size_t bytes) const;
  /// An arbitrary valid address, to bind for an empty buffer.
  BufferOffset anywhere() const { return find(spare_, 1); }

  /// Every buffer that there is and will be: bound to a queue so that Metal keeps them resident. nullptr before
  /// macOS 15.
  MTL::ResidencySet* residency() const { return residency_.get(); }
  /// Whether buffers overlap in memory somewhere: Metal then does not see that work on two buffers conflicts.
  bool overlapping() const { return overlapping_; }

 private:
  /// A range of addresses and the buffers over it: one, or several that start `stride` bytes apart.
  struct Block {
    std::byte* begin = nullptr;
    std::size_t bytes = 0;
    std::size_t stride = 0;
    std::vector<NS::SharedPtr<MTL::Buffer>> buffers;
    void* mapping = nullptr;  // if the memory is ours, not Metal's; one page longer
    base::RangeSet free;      // offsets, where pieces are cut
    std::size_t unit = 0;     // of which pieces are multiples; 0: one piece
    int borrowers = 0;        // of memory that is the CPU's
  };

  std::byte* cut(std::size_t bytes, std::size_t unit, std::size_t block_bytes);
  std::size_t large_block() const;
  Block& make_block(std::size_t bytes);
  Block& add_block(Block block);
  void map_windows(Block& block);
  void drop_block(std::map<const std::byte*, Block>::iterator block);
  void set_resident(MTL::Buffer* buffer, bool resident);
  [[noreturn]] void throw_out_of_memory(std::size_t bytes) const;

  const Gpu& gpu_;
  NS::SharedPtr<MTL::ResidencySet> residency_;
  mutable std::mutex mutex_;
  std::map<const std::byte*, Block> blocks_;  // by address
  std::size_t granted_ = 0;                   // bytes of all blocks
  bool overlapping_ = false;
  const std::byte* spare_ = nullptr;
};

}  // namespace russet::metal
