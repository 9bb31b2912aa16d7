#pragma once
// Race detection: a cell of 32 bits for every 2 bytes of memory holds who touched them last.
//
// Barriers divide a threadgroup's time into intervals. An interval has a number, its id; after a barrier of a simdgroup
// alone, its lanes count with an id of their own. Since a barrier orders all threads of a group, only accesses since
// the last one can conflict with the next access, so one record is enough:
//   a write by one thread, or a read by one thread, or reads by many of a simdgroup, or reads across simdgroups or
//   groups.
// Ids of device memory have an owner, the threadgroup; accesses of different threadgroups are never ordered.
#include <array>
#include <atomic>
#include <cstdint>

namespace russet::simulator {

using ShadowCell = std::uint32_t;

// id: 15 bits, thread: 10 bits, flags: 6 bits. The highest bit marks a cell that is divided between its two bytes.
constexpr std::uint32_t cell_atomic = 1;
constexpr std::uint32_t cell_wrote = 2;      // written at any time in this dispatch
constexpr std::uint32_t cell_sub_wrote = 4;  // written in this interval, before a barrier of the writer's simdgroup
constexpr std::uint32_t cell_write = 8;      // the record is a write
constexpr std::uint32_t cell_many = 16;      // more than one thread
constexpr std::uint32_t cell_across = 32;    // of more than one simdgroup
constexpr std::uint32_t cell_thread_shift = 6;
constexpr std::uint32_t cell_id_shift = 16;
constexpr std::uint32_t cell_divided = 1u << 31;
constexpr std::uint32_t max_ids = 1u << 15;

inline std::uint32_t cell_thread(ShadowCell cell) { return cell >> cell_thread_shift & 1023u; }
inline std::uint32_t cell_id(ShadowCell cell) { return cell >> cell_id_shift & (max_ids - 1); }

/// The present of one memory space, for the threadgroup that runs.
struct IntervalClock {
  std::uint32_t first = 1;                             // lower ids are of other times: what they did is over
  std::uint32_t base = 1;                              // since the last barrier of the whole group
  std::array<std::uint32_t, 32> now{};                 // by simdgroup
  const std::atomic<std::uint32_t>* owners = nullptr;  // by id; none where all ids are this group's
  std::uint32_t serial = 0;                            // this group's number
  bool barriers = false;                               // the group has passed one
  bool exhausted = false;                              // out of ids: nothing is recorded until the next group
  bool divided = false;                                // cells may be divided
};

enum class Conflict : std::uint8_t { none, race, mixed_atomic };

struct Toucher {
  std::uint32_t thread;
  bool write;
  bool atomic;
};

inline ShadowCell load_cell(const ShadowCell& cell) { return __atomic_load_n(&cell, __ATOMIC_RELAXED); }
inline void store_cell(ShadowCell& cell, ShadowCell value) { __atomic_store_n(&cell, value, __ATOMIC_RELAXED); }

inline ShadowCell record_of(const IntervalClock& clock, Toucher who) {
  return clock.now[who.thread / 32] << cell_id_shift | who.thread << cell_thread_shift |
         (who.atomic ? cell_atomic : 0) | (who.write ? cell_write | cell_wrote : 0);
}

/// What becomes of a cell that holds a live record of `old`, and whether that conflicts.
Conflict touch_live(ShadowCell& cell, ShadowCell old, IntervalClock& clock, Toucher who);

/// Notes that a thread touched the 2 bytes of a cell. `old`: what the cell held.
inline Conflict touch(ShadowCell& cell, IntervalClock& clock, Toucher who, ShadowCell& old) {
  const ShadowCell mine = record_of(clock, who);
  old = load_cell(cell);
  if (old == mine) return Conflict::none;
  if (old < clock.first << cell_id_shift) {
    store_cell(cell, mine);
    return Conflict::none;
  }
  return touch_live(cell, old, clock, who);
}

/// The common cases of touch(), in few instructions: what becomes of a record where no conflict can be, which is stored
/// in `now`. False where that takes more thought. `mine` is the record of who comes.
inline bool touch_quickly(ShadowCell old, ShadowCell mine, const IntervalClock& clock, Toucher who, ShadowCell& now) {
  constexpr std::uint32_t writes = cell_wrote | cell_sub_wrote | cell_write;
  now = mine;
  if (old == mine || old < clock.first << cell_id_shift) return true;
  if ((old & cell_divided) != 0) return false;
  // The same thread, no barrier later.
  if (((old ^ mine) & ~writes) == 0) {
    now = mine | (old & writes);
    return true;
  }
  const std::uint32_t id = cell_id(old);
  // A barrier of the whole group lies between.
  if (id < clock.base &&
      (clock.owners == nullptr || clock.owners[id].load(std::memory_order_relaxed) == clock.serial)) {
    now = mine | (old & cell_wrote);
    return true;
  }
  // Reads by many, of whom this is one more: which of them came last is of no interest.
  now = old;
  if (who.write || who.atomic) return false;
  if ((old & (cell_atomic | cell_sub_wrote | cell_write | cell_many)) != cell_many) return false;
  if ((old & cell_across) != 0) return id == clock.base || (clock.owners != nullptr && id == clock.first);
  return cell_thread(old) / 32 == who.thread / 32 && id == clock.now[who.thread / 32];
}

/// Notes that a thread touched one byte of the two, the first or the second. Divided cells keep less: fingerprints of
/// (interval, thread), and of several readers the last, so some races on single bytes stay unseen; none is invented.
Conflict touch_byte(ShadowCell& cell, std::uint32_t second, IntervalClock& clock, Toucher who);

/// A cell after all groups so far are summed up as "some other group", so that their ids can be used again.
ShadowCell summed_up(ShadowCell cell, const IntervalClock& clock);

}  // namespace russet::simulator
