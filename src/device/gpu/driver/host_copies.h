#pragma once
// HostCopies: what the host put into a GPU's memory or read there lately, as long as it lies there: so that it can look
// at indices and labels where the memory is not its own.
#include <list>
#include <map>
#include <memory>
#include <span>

#include "base/range_set.h"

namespace russet::gpu {

/// Copies of at most a MiB, 16 MiB in all; those that came first go first. Not thread-safe.
class HostCopies {
 public:
  static constexpr std::size_t most_of_one = std::size_t{1} << 20;

  /// What lies at an address of the GPU.
  void keep(const std::byte* address, std::span<const std::byte> content);
  /// What lies in the range is something else from now on.
  void forget(base::ByteRange range);
  /// The content of a range that was put there as one; nullptr if it is not known.
  std::shared_ptr<const std::byte> find(base::ByteRange range) const;

 private:
  struct Copy {
    base::ByteRange range;
    std::shared_ptr<const std::byte> content;
    std::list<std::uintptr_t>::iterator age;
  };
  using Copies = std::map<std::uintptr_t, Copy>;
  void drop(Copies::iterator copy);

  Copies copies_;                   // by address
  std::list<std::uintptr_t> ages_;  // the oldest first
  std::size_t bytes_ = 0;
};

}  // namespace russet::gpu
