#include "runtime/memory.h"

#include <fmt/format.h>
#include <russet/error.h>

#include <algorithm>

#include "graph/counters.h"

namespace russet::runtime {
namespace {

/// Free memory that the pool keeps beyond this goes back to the system.
constexpr std::size_t kept_free = std::size_t{256} << 20;

constexpr std::size_t largest_unit = 4096;

std::size_t rounded(std::size_t bytes) {
  const std::size_t unit = bytes > largest_unit ? largest_unit : 64;
  return std::max<std::size_t>(unit, (bytes + unit - 1) / unit * unit);
}

}  // namespace

class MemoryPool::PooledBuffer final : public graph::Buffer {
 public:
  PooledBuffer(MemoryPool& pool, Device device, std::byte* data, std::size_t bytes)
      : Buffer(device, data, bytes), pool_(pool) {}
  ~PooledBuffer() override { pool_.give(data(), bytes()); }

 private:
  MemoryPool& pool_;
};

Ref<graph::Buffer> MemoryPool::allocate(Device device, std::size_t bytes) {
  const std::size_t size = rounded(bytes);
  return Ref<graph::Buffer>(new PooledBuffer(*this, device, take(size), size));
}

std::byte* MemoryPool::take(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  std::byte* memory = nullptr;
  const auto found = free_.find(bytes);
  if (found != free_.end() && !found->second.empty()) {
    memory = found->second.back();
    found->second.pop_back();
    free_bytes_ -= bytes;
  } else {
    trim_for(bytes);
    try {
      memory = driver_.allocate(bytes);
    } catch (const OutOfMemoryError&) {
      trim(0);
      memory = driver_.allocate(bytes);
    }
    graph::engine_counters().allocations.fetch_add(1, std::memory_order_relaxed);
  }
  used_bytes_ += bytes;
  note_peak();
  return memory;
}

void MemoryPool::give(std::byte* memory, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  used_bytes_ -= bytes;
  free_[bytes].push_back(memory);
  free_bytes_ += bytes;
  if (free_bytes_ > kept_free) trim(kept_free / 2);
}

// The largest blocks are released first: another allocation of exactly that size is the least likely.
void MemoryPool::trim(std::size_t keep) {
  while (free_bytes_ > keep && !free_.empty()) {
    const auto largest = std::prev(free_.end());
    if (largest->second.empty()) {
      free_.erase(largest);
      continue;
    }
    driver_.release(largest->second.back(), largest->first);
    largest->second.pop_back();
    free_bytes_ -= largest->first;
  }
}

/// Under a limit, what is kept free counts, too: it is the process's.
void MemoryPool::trim_for(std::size_t bytes) {
  if (!limit_) return;
  const std::size_t taken = used_bytes_ + arena_bytes_ + bytes;
  trim(*limit_ - std::min(*limit_, taken));
}

std::byte* MemoryPool::arena(std::size_t bytes, std::size_t more) {
  const std::lock_guard lock(mutex_);
  const bool too_large = limit_ && used_bytes_ + arena_bytes_ + more > *limit_;
  if (bytes <= arena_bytes_ && !too_large) return arena_;
  const std::size_t size = rounded(bytes);
  drop_arena();
  trim_for(size + more);
  try {
    arena_ = driver_.allocate(size);
  } catch (const OutOfMemoryError&) {
    trim(0);
    arena_ = driver_.allocate(size);
  }
  arena_bytes_ = size;
  graph::engine_counters().arena_bytes.store(size, std::memory_order_relaxed);
  graph::engine_counters().allocations.fetch_add(1, std::memory_order_relaxed);
  note_peak();
  return arena_;
}

void MemoryPool::drop_arena() {
  if (arena_) driver_.release(arena_, arena_bytes_);
  arena_ = nullptr;
  arena_bytes_ = 0;
}

void MemoryPool::drop_free() {
  const std::lock_guard lock(mutex_);
  trim(0);
  drop_arena();
}

void MemoryPool::note_peak() { peak_bytes_ = std::max(peak_bytes_, used_bytes_ + arena_bytes_); }

std::optional<std::size_t> MemoryPool::room(std::size_t buffers) const {
  const std::lock_guard lock(mutex_);
  if (!limit_) return std::nullopt;
  return *limit_ - std::min(*limit_, used_bytes_ + largest_unit * (buffers + 1));
}

bool MemoryPool::has_room(std::size_t more) const {
  const std::lock_guard lock(mutex_);
  return !limit_ || used_bytes_ + arena_bytes_ + more <= *limit_;
}

void MemoryPool::check(std::size_t more, std::size_t arena) const {
  const std::lock_guard lock(mutex_);
  const std::size_t needed = used_bytes_ + more + arena;
  if (!limit_ || needed <= *limit_) return;
  refused_bytes_ = needed;
  throw OutOfMemoryError(
      fmt::format("out of memory: this work needs {} bytes ({} for values that stay, {} for values in between), {} are "
                  "in use, and the limit is {}. Use a smaller batch, or raise the limit.",
                  more + arena, more, arena, used_bytes_, *limit_));
}

void MemoryPool::set_limit(std::optional<std::size_t> bytes) {
  const std::lock_guard lock(mutex_);
  limit_ = bytes;
  trim_for(0);
}

std::optional<std::size_t> MemoryPool::limit() const {
  const std::lock_guard lock(mutex_);
  return limit_;
}

std::size_t MemoryPool::refused() const {
  const std::lock_guard lock(mutex_);
  return refused_bytes_;
}

std::size_t MemoryPool::used() const {
  const std::lock_guard lock(mutex_);
  return used_bytes_;
}

std::size_t MemoryPool::in_use() const {
  const std::lock_guard lock(mutex_);
  return used_bytes_ + arena_bytes_;
}

std::size_t MemoryPool::peak() const {
  const std::lock_guard lock(mutex_);
  return peak_bytes_;
}

void MemoryPool::reset_peak() {
  const std::lock_guard lock(mutex_);
  peak_bytes_ = used_bytes_ + arena_bytes_;
}

}  // namespace russet::runtime
