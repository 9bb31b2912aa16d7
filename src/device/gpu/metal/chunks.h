#pragma once
// Chunks: memory that tables of launches are written to, and that comes back when a command buffer has completed.
#include <vector>

#include "device/gpu/driver/memory_blocks.h"

namespace russet::metal {

struct Chunk {
  std::byte* begin = nullptr;
  std::size_t bytes = 0;
  std::size_t used = 0;
};

/// Not thread-safe.
class Chunks {
 public:
  explicit Chunks(gpu::MemoryBlocks& blocks) : blocks_(blocks) {}
  ~Chunks();
  Chunks(const Chunks&) = delete;
  Chunks& operator=(const Chunks&) = delete;

  /// Memory in the chunks of a command buffer, which get one more where they have no room.
  std::byte* take(std::size_t bytes, std::vector<Chunk>& chunks);
  /// No command buffer reads these any more.
  void give_back(std::vector<Chunk>& chunks);

 private:
  gpu::MemoryBlocks& blocks_;
  std::vector<Chunk> free_;
};

}  // namespace russet::metal
