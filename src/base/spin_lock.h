#pragma once
// SpinLock: for a few instructions that threads hardly ever do at once.
#include <atomic>
#include <thread>

namespace russet::base {

/// To be held for a moment only, with std::lock_guard.
class SpinLock {
 public:
  void lock() {
    for (int tries = 0; flag_.test_and_set(std::memory_order_acquire); ++tries) {
      if (tries > 100) std::this_thread::yield();  // the thread that holds it may be waiting for this core
    }
  }
  void unlock() { flag_.clear(std::memory_order_release); }

 private:
  std::atomic_flag flag_{};
};

}  // namespace russet::base
