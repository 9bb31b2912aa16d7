#pragma once
// Chunks: memory that tables of launches are written to, and that comes back when a submission has completed.
#include <cstddef>
#include <functional>
#include <vector>

#include "device/gpu/driver/memory_blocks.h"

namespace russet::gpu {

struct Chunk {
  std::byte* begin = nullptr;
  std::size_t bytes = 0;
  std::size_t used = 0;
};

/// Not thread-safe.
class Chunks {
 public:
  /// Where chunks come from.
  struct Source {
    std::function<std::byte*(std::size_t bytes)> allocate;
    std::function<void(std::byte* memory, std::size_t bytes)> release;
  };
  /// Of what comes back, as much as `most_kept` bytes is kept for later: as much as submissions in flight have, or
  /// each of them allocates anew, which takes a driver longer than many a kernel.
  explicit Chunks(Source source, std::size_t most_kept = std::size_t{4} << 20)
      : source_(std::move(source)), most_kept_(most_kept) {}
  ~Chunks();
  Chunks(const Chunks&) = delete;
  Chunks& operator=(const Chunks&) = delete;

  /// 256-byte aligned memory in the chunks of a submission, which get one more where they have no room.
  std::byte* take(std::size_t bytes, std::vector<Chunk>& chunks);
  /// No work reads these any more.
  void give_back(std::vector<Chunk>& chunks);
  /// Bytes of the chunks that submissions have.
  std::size_t bytes_in_use() const { return bytes_in_use_; }

 private:
  /// The smallest free chunk that has so many bytes.
  std::vector<Chunk>::iterator smallest_of(std::size_t bytes);

  Source source_;
  std::size_t most_kept_;
  std::vector<Chunk> free_;  // what came back first comes first
  std::size_t free_bytes_ = 0;
  std::size_t bytes_in_use_ = 0;
};

/// Chunks of the GPU's memory. `blocks` outlives them.
inline Chunks::Source pieces_of(MemoryBlocks& blocks) {
  return {[&blocks](std::size_t bytes) { return blocks.allocate(bytes); },
          [&blocks](std::byte* memory, std::size_t bytes) { blocks.release(memory, bytes); }};
}

}  // namespace russet::gpu
