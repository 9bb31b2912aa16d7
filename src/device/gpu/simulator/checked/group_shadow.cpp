#include "group_shadow.h"

#include <russet/error.h>
#include <sys/mman.h>
#include <algorithm>
#include <cstring>

#include "space.h"

namespace russet::simulator {
namespace {

constexpr std::size_t cell_bytes = GroupShadow::memory_bytes * 2;
constexpr std::size_t bit_bytes = GroupShadow::memory_bytes / 8;

void* map(std::size_t bytes) {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw OutOfMemoryError("simulated GPU: no address space for the shadow of group memory");
  return memory;
}

}  // namespace

GroupShadow::GroupShadow()
    : cells_(static_cast<ShadowCell*>(map(cell_bytes))), bits_(static_cast<std::uint8_t*>(map(bit_bytes))) {}

GroupShadow::~GroupShadow() {
  munmap(cells_, cell_bytes);
  munmap(bits_, bit_bytes);
}

void GroupShadow::forget_cells() { madvise(cells_, cell_bytes, MADV_DONTNEED); }

std::uint32_t GroupShadow::fresh_device_id() {
  AddressSpace& space = AddressSpace::shared();
  const std::uint32_t id = space.next_id.fetch_add(1, std::memory_order_relaxed);
  if (id >= max_ids) {
    space.next_id = max_ids;
    device.exhausted = true;
    return max_ids - 1;
  }
  space.owners[id].store(device.serial, std::memory_order_relaxed);
  return id;
}

void GroupShadow::begin_group_interval() {
  // The whole group is at one place, so that all that happened is over: the time to begin with low ids again.
  const bool restart = group_id_ >= max_ids / 2;
  if (restart || group.divided) forget_cells();
  group.divided = group.exhausted = false;
  if (restart) {
    group_id_ = 0;
    group.first = 1;
  }
  group.base = ++group_id_;
  group.now.fill(group.base);
}

void GroupShadow::begin(const russet_simulator::Threadgroup& threadgroup, std::uint32_t serial) {
  const std::uint32_t arrays = std::min(threadgroup.group_arrays, russet_simulator::max_group_arrays);
  for (std::uint32_t i = 0; i < arrays; ++i) {
    const std::size_t begin = russet_simulator::group_array_offset(i) / 8;
    std::memset(bits_ + begin, 0, threadgroup.arrays[i].bytes / 8 + 2);
  }
  device.serial = serial;
  device.owners = AddressSpace::shared().owners.data();
  device.first = AddressSpace::shared().first_id;
  device.exhausted = device.barriers = false;
  device.base = fresh_device_id();
  device.now.fill(device.base);
  begin_group_interval();
  group.first = group.base;
}

void GroupShadow::barrier(std::uint32_t spaces) {
  if ((spaces & russet_simulator::device_space) != 0) {
    device.base = fresh_device_id();
    device.now.fill(device.base);
    device.barriers = true;
  }
  if ((spaces & russet_simulator::group_space) != 0) begin_group_interval();
}

void GroupShadow::simdgroup_barrier(std::uint32_t spaces, std::uint32_t simdgroup) {
  if ((spaces & russet_simulator::device_space) != 0) {
    device.now[simdgroup] = fresh_device_id();
    device.barriers = true;
  }
  if ((spaces & russet_simulator::group_space) == 0) return;
  if (group_id_ + 1 == max_ids) {
    group.exhausted = true;
  } else {
    group.now[simdgroup] = ++group_id_;
  }
}

}  // namespace russet::simulator
