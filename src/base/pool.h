#pragma once
// ObjectPool: fixed-size pieces of memory from a free list, so that recording costs no call of malloc.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <mutex>
#include <new>

namespace russet::base {

/// Thread-safe; memory is kept for the life of the process.
class ObjectPool {
 public:
  explicit ObjectPool(std::size_t bytes) : bytes_((bytes + 63) / 64 * 64) {}

  void* allocate() {
    const std::lock_guard lock(mutex_);
    if (free_ == nullptr) grow();
    Piece* piece = free_;
    free_ = piece->next;
    return piece;
  }

  void release(void* memory) {
    const std::lock_guard lock(mutex_);
    free_ = new (memory) Piece{free_};
  }

 private:
  struct Piece {
    Piece* next;
  };
  class SpinLock {
   public:
    void lock() {
      while (flag_.test_and_set(std::memory_order_acquire)) {
      }
    }
    void unlock() { flag_.clear(std::memory_order_release); }

   private:
    std::atomic_flag flag_{};
  };

  void grow() {
    const std::size_t count = std::max<std::size_t>(1, 4096 / bytes_);
    auto* block = static_cast<std::byte*>(::operator new (count* bytes_, std::align_val_t{64}));
    for (std::size_t i = 0; i < count; ++i) free_ = new (block + i * bytes_) Piece{free_};
  }

  std::size_t bytes_;
  SpinLock mutex_;
  Piece* free_ = nullptr;
};

}  // namespace russet::base
