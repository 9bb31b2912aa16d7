#pragma once
// Dispatches that no barrier separates run in any order or at once, so none may write what another touches.
#include <cstdint>
#include <set>
#include <span>
#include <vector>

#include "device/gpu/simulator/machine.h"
#include "space.h"

namespace russet::simulator {

class Contest {
 public:
  /// Finds memory that several of the dispatches bind and one of them may write.
  explicit Contest(std::span<const Dispatch> dispatches);
  /// Whether dispatch i binds such memory.
  bool concerns(std::size_t i) const { return concerned_[i]; }
  /// After dispatch i, before the space is released: reports where it met what an earlier one did.
  void note(std::size_t i, AddressSpace& space);

 private:
  /// Contested memory, with the last dispatch (from 1) that touched and that wrote each 2 bytes.
  struct Region {
    std::uintptr_t begin, end;
    std::vector<std::uint16_t> touched, wrote;
  };
  struct Use {
    std::uintptr_t begin, end;
    std::size_t dispatch;
    bool writes;
  };
  void mark_contested(std::vector<Use> uses);
  void add_region(std::uintptr_t begin, std::uintptr_t end);
  void note_span(std::size_t i, AddressSpace& space, const Span& span, Region& region);
  void report(std::size_t i, std::size_t other, const Span& span, std::uintptr_t address, bool wrote);

  std::span<const Dispatch> dispatches_;
  std::vector<Region> regions_;
  std::vector<bool> concerned_;
  std::set<std::pair<std::size_t, std::size_t>> reported_;
};

}  // namespace russet::simulator
