#pragma once
// How kernels split their work over threads.
#include <algorithm>
#include <cstdint>
#include <limits>

#include "base/parallel.h"

namespace russet::cpu {

/// How many pieces of `size` hold `count` items.
constexpr std::int64_t divide_up(std::int64_t count, std::int64_t size) { return (count + size - 1) / size; }

/// The threads that a kernel was made for, and has workspace for. Each takes neighbouring items of the work; which
/// thread takes an item never changes a result.
class Workers {
 public:
  explicit Workers(std::int64_t most = std::numeric_limits<int>::max())
      : count_(static_cast<int>(std::clamp<std::int64_t>(most, 1, base::thread_count()))) {}

  int count() const { return count_; }

  /// Calls body(worker, begin, end) for each worker's range of the items. `nanoseconds`, an estimate for all items,
  /// tells whether it is worth waking others; if not, worker 0 takes all.
  template <class Body>
  void split(std::int64_t items, double nanoseconds, Body&& body) const {
    const double each = items > 1 ? nanoseconds / count_ : 0;
    base::parallel_for(count_, each, [&](std::int64_t first, std::int64_t last) {
      if (first == 0 && last == count_) return body(0, std::int64_t{0}, items);
      for (std::int64_t worker = first; worker < last; ++worker) {
        const std::int64_t begin = items * worker / count_;
        const std::int64_t end = items * (worker + 1) / count_;
        if (begin < end) body(static_cast<int>(worker), begin, end);
      }
    });
  }

  /// Calls body(item, worker) for each item.
  template <class Body>
  void each(std::int64_t items, double nanoseconds, Body&& body) const {
    split(items, nanoseconds, [&](int worker, std::int64_t begin, std::int64_t end) {
      for (std::int64_t item = begin; item < end; ++item) body(item, worker);
    });
  }

 private:
  int count_;
};

}  // namespace russet::cpu
