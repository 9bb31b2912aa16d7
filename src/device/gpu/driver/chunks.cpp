#include "device/gpu/driver/chunks.h"

#include <algorithm>

namespace russet::gpu {
namespace {

constexpr std::size_t alignment = 256;
constexpr std::size_t usual = std::size_t{128} << 10;

}  // namespace

Chunks::~Chunks() {
  for (const Chunk& chunk : free_) source_.release(chunk.begin, chunk.bytes);
}

std::vector<Chunk>::iterator Chunks::smallest_of(std::size_t bytes) {
  auto smallest = free_.end();
  for (auto chunk = free_.begin(); chunk != free_.end(); ++chunk) {
    if (chunk->bytes >= bytes && (smallest == free_.end() || chunk->bytes < smallest->bytes)) smallest = chunk;
  }
  return smallest;
}

std::byte* Chunks::take(std::size_t bytes, std::vector<Chunk>& chunks) {
  for (Chunk& chunk : chunks) {
    if (chunk.bytes - chunk.used < bytes) continue;
    std::byte* const memory = chunk.begin + chunk.used;
    chunk.used += std::min((bytes + alignment - 1) / alignment * alignment, chunk.bytes - chunk.used);
    return memory;
  }
  const auto free = smallest_of(bytes);
  if (free != free_.end()) {
    chunks.push_back(*free);
    free_bytes_ -= free->bytes;
    free_.erase(free);
  } else {
    const std::size_t size = std::max(bytes, usual);
    chunks.push_back({source_.allocate(size), size, 0});
  }
  bytes_in_use_ += chunks.back().bytes;
  return take(bytes, chunks);
}

void Chunks::give_back(std::vector<Chunk>& chunks) {
  for (Chunk& chunk : chunks) {
    chunk.used = 0;
    bytes_in_use_ -= chunk.bytes;
    free_bytes_ += chunk.bytes;
    free_.push_back(chunk);
  }
  chunks.clear();
  while (free_bytes_ > most_kept_) {
    const Chunk oldest = free_.front();
    free_.erase(free_.begin());
    free_bytes_ -= oldest.bytes;
    source_.release(oldest.begin, oldest.bytes);
  }
}

}  // namespace russet::gpu
