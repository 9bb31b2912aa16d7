#pragma once
// What the checks know of the threadgroup that an executor runs: the time in both memory spaces, and the shadow of its
// group memory.
#include <cstddef>

#include "cell.h"
#include "device/gpu/kernels/prelude/simulator/abi.h"

namespace russet::simulator {

class GroupShadow {
 public:
  GroupShadow();
  ~GroupShadow();
  GroupShadow(const GroupShadow&) = delete;
  GroupShadow& operator=(const GroupShadow&) = delete;

  static constexpr std::size_t memory_bytes =
      std::size_t{russet_simulator::group_window_bytes} * russet_simulator::max_group_arrays;

  /// A threadgroup begins; `call` still lists the arrays of the one before. `serial` is its number in the dispatch.
  void begin(const russet_simulator::Threadgroup& threadgroup, std::uint32_t serial);
  /// A barrier of the whole group, or of one simdgroup, has been passed. `spaces` are those that it orders.
  void barrier(std::uint32_t spaces);
  void simdgroup_barrier(std::uint32_t spaces, std::uint32_t simdgroup);

  ShadowCell& cell(std::size_t offset) { return cells_[offset / 2]; }
  /// A bit a byte: written since the group began.
  std::uint8_t* bits(std::size_t offset) { return bits_ + offset / 8; }

  IntervalClock device;
  IntervalClock group;

 private:
  std::uint32_t fresh_device_id();
  void begin_group_interval();
  void forget_cells();

  ShadowCell* cells_;
  std::uint8_t* bits_;
  std::uint32_t group_id_ = 0;
};

}  // namespace russet::simulator
