#include "cell.h"

namespace russet::simulator {
namespace {

/// How the record in a cell stands to a thread that comes now.
struct Relation {
  bool other_group;
  bool over;  // an earlier interval of the same group
  bool same_simdgroup;
  bool same_thread;
  bool ordered;  // by a barrier of the simdgroup
};

Relation relation(ShadowCell old, const IntervalClock& clock, std::uint32_t thread) {
  const std::uint32_t id = cell_id(old);
  Relation r{};
  r.other_group = clock.owners != nullptr && clock.owners[id].load(std::memory_order_relaxed) != clock.serial;
  r.over = !r.other_group && id < clock.base;
  r.same_simdgroup = !r.other_group && (old & cell_across) == 0 && cell_thread(old) / 32 == thread / 32;
  r.same_thread = r.same_simdgroup && (old & cell_many) == 0 && cell_thread(old) == thread;
  r.ordered = r.same_simdgroup && id < clock.now[thread / 32];
  return r;
}

/// A record that stands for several threads: lanes of one simdgroup, simdgroups, or groups.
ShadowCell joined(ShadowCell mine, const Relation& r, const IntervalClock& clock) {
  if (r.same_simdgroup) return mine | cell_many;
  const std::uint32_t id = r.other_group ? clock.first : clock.base;
  const ShadowCell low = mine & ((1u << cell_id_shift) - 1);
  return id << cell_id_shift | low | cell_many | cell_across;
}

// A divided cell: 15 bits a byte, the highest says "write", the others who and when; 0 if untouched.
constexpr std::uint32_t byte_bits = 15;
constexpr std::uint32_t byte_mask = (1u << byte_bits) - 1;
constexpr std::uint32_t byte_write = 1u << (byte_bits - 1);
constexpr std::uint32_t print_mask = byte_write - 1;
constexpr std::uint32_t prints_of_time = 15;

std::uint32_t print_of(const IntervalClock& clock, std::uint32_t id, std::uint32_t thread) {
  if (clock.owners == nullptr) return (id % prints_of_time + 1) << 10 | thread;
  const std::uint32_t mixed = (id * 1024u + thread) * 2654435761u >> 18;
  return mixed == 0 ? 1 : mixed;
}

bool byte_conflicts(std::uint32_t old, const IntervalClock& clock, Toucher who) {
  if (old == 0 || (!who.write && (old & byte_write) == 0)) return false;
  const std::uint32_t print = print_of(clock, clock.now[who.thread / 32], who.thread);
  if ((old & print_mask) == print) return false;
  if (clock.owners == nullptr) return (old & print_mask) >> 10 == print >> 10;
  return !clock.barriers;
}

Conflict touch_divided(ShadowCell& cell, ShadowCell old, IntervalClock& clock, Toucher who) {
  const std::uint32_t first = old & byte_mask, second = old >> byte_bits & byte_mask;
  const bool conflict = byte_conflicts(first, clock, who) || byte_conflicts(second, clock, who);
  const bool wrote = ((first | second) & byte_write) != 0;
  store_cell(cell, record_of(clock, who) | (wrote ? cell_wrote : 0));
  return conflict ? Conflict::race : Conflict::none;
}

}  // namespace

Conflict touch_live(ShadowCell& cell, ShadowCell old, IntervalClock& clock, Toucher who) {
  if ((old & cell_divided) != 0) return touch_divided(cell, old, clock, who);
  const ShadowCell mine = record_of(clock, who);
  const Relation r = relation(old, clock, who.thread);
  const ShadowCell wrote = old & cell_wrote;
  const bool old_wrote_here = (old & (cell_write | cell_sub_wrote)) != 0;
  if (r.over) {
    store_cell(cell, mine | wrote);
    return Conflict::none;
  }
  if (r.ordered) {
    store_cell(cell, mine | wrote | (old_wrote_here ? cell_sub_wrote : 0));
    return Conflict::none;
  }
  if (r.same_thread) {
    store_cell(cell, mine | (old & (cell_wrote | cell_write | cell_sub_wrote)));
    return Conflict::none;
  }
  const bool old_writes = (old & cell_write) != 0 || (!r.same_simdgroup && old_wrote_here);
  const bool both_atomic = who.atomic && (old & cell_atomic) != 0;
  if (both_atomic || (!who.write && !old_writes)) {
    const ShadowCell both = joined(mine, r, clock) | (old & (cell_wrote | cell_write | cell_sub_wrote));
    if (both != old) store_cell(cell, both);
    return Conflict::none;
  }
  store_cell(cell, mine | wrote);
  return who.atomic || (old & cell_atomic) != 0 ? Conflict::mixed_atomic : Conflict::race;
}

Conflict touch_byte(ShadowCell& cell, std::uint32_t second, IntervalClock& clock, Toucher who) {
  const ShadowCell old = load_cell(cell);
  const std::uint32_t mine = print_of(clock, clock.now[who.thread / 32], who.thread) | (who.write ? byte_write : 0);
  const std::uint32_t place = second * byte_bits;
  clock.divided = true;
  if ((old & cell_divided) != 0) {
    const std::uint32_t before = old >> place & byte_mask;
    const bool own = (before & print_mask) == (mine & print_mask);
    const std::uint32_t after = own ? mine | before : mine;
    store_cell(cell, (old & ~(byte_mask << place)) | after << place);
    return byte_conflicts(before, clock, who) ? Conflict::race : Conflict::none;
  }
  Conflict conflict = Conflict::none;
  std::uint32_t other = 0;
  if (old >= clock.first << cell_id_shift) {
    ShadowCell copy = old;
    conflict = touch_live(copy, old, clock, who);
    // Reads by many are forgotten: no fingerprint stands for them.
    if ((old & cell_many) == 0) {
      other = print_of(clock, cell_id(old), cell_thread(old)) | ((old & cell_write) != 0 ? byte_write : 0);
    }
  }
  store_cell(cell, cell_divided | mine << place | other << (byte_bits - place));
  return conflict;
}

ShadowCell summed_up(ShadowCell cell, const IntervalClock& clock) {
  if ((cell & cell_divided) != 0 || cell < clock.first << cell_id_shift) return cell;
  const ShadowCell kept = cell & (cell_atomic | cell_wrote | cell_write | cell_sub_wrote);
  return clock.first << cell_id_shift | kept | cell_many | cell_across;
}

}  // namespace russet::simulator
