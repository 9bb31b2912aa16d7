#pragma once
// The device memory that a checked kernel sees: each binding lies in a window of address space of its own, far from all
// others, so no index that a mistake computes reaches another tensor's bytes unseen. A large binding is the memory
// itself, mapped once more, a small one a copy. Beside the data a window has cells (cell.h, twice the data, for memory
// that is written in this dispatch) and, if some of it has never been written, a bit a byte that says whether it has.
// Bindings that overlap share a window.
#include <array>
#include <atomic>
#include <string>
#include <vector>

#include "base/range_set.h"
#include "cell.h"
#include "device/gpu/simulator/machine.h"
#include "device/gpu/simulator/run.h"

namespace russet::simulator {

/// The space is divided into slots; a window has one or several.
constexpr int slot_bits = 31;
constexpr std::size_t slot_bytes = std::size_t{1} << slot_bits;
constexpr std::size_t slot_count = 2048;
constexpr std::size_t space_bytes = slot_bytes * slot_count;
/// The window of a binding: an index of 32 bits, over elements of up to 8 bytes, never leaves it.
constexpr std::size_t window_bytes = std::size_t{1} << 36;
/// Where data begins in it: indices may fall below it, too.
constexpr std::size_t window_margin = std::size_t{1} << 32;
/// Wide windows that there is room for. Where a launch has more, or reaches memory through a table, all are narrow.
constexpr std::size_t wide_windows = space_bytes / window_bytes;
/// What a narrow window has around its binding.
constexpr std::size_t narrow_margin = std::size_t{1} << 29;

/// A binding in a window.
struct Span {
  std::uintptr_t begin = 0, end = 0;
  std::byte* home = nullptr;  // where the memory really is
  bool writable = false;
  std::string argument;
  std::string tensor;
};

struct Window {
  std::uintptr_t begin = 0, end = 0;  // the hull of its spans; nothing lies outside
  bool plain = true;                  // one span: within the hull, its rules hold for all
  bool writable = false;
  bool recorded = false;     // accesses go to cells
  bool partly = false;       // some bytes have never been written
  bool shown = false;        // it is the memory itself, in the place of a copy
  bool simple_read = false;  // within the hull there is nothing to check but races
  bool simple_write = false;
  std::vector<Span> spans;
  std::uintptr_t home_of(std::uintptr_t address) const {
    return reinterpret_cast<std::uintptr_t>(spans.front().home) + (address - spans.front().begin);
  }
};

class AddressSpace {
 public:
  /// The machine's one.
  static AddressSpace& shared();

  /// Shows what the dispatch binds in windows, or copies it there. `contested`: reads are recorded as well, since other
  /// dispatches that no barrier separates from this one touch the same memory.
  Bound bind(const Dispatch& dispatch, bool contested);
  /// Copies results back where they are copies, and remembers what has been written.
  void release();
  /// Runs between parts of a dispatch, while no group does: sees to it that there are ids for more groups.
  void renew_ids();

  std::uintptr_t data = 0;                          // of window 0
  std::uintptr_t cells = 0;                         // those of address data + x lie at cells + 2 x
  std::uintptr_t bits = 0;                          // at bits + x / 8
  std::vector<Window> windows;                      // those in use come first
  std::array<const Window*, slot_count> by_slot{};  // never null
  base::RangeSet uninitialised;                     // addresses of device memory that was never written

  // Ids of device memory.
  std::uint32_t first_id = 1;
  std::atomic<std::uint32_t> next_id{1};
  std::array<std::atomic<std::uint32_t>, max_ids> owners{};
  std::atomic<bool> divided{false};

  ShadowCell& cell(std::uintptr_t address) {
    return *reinterpret_cast<ShadowCell*>(cells + (address - data) / 2 * sizeof(ShadowCell));
  }
  bool holds(std::uintptr_t address) const { return address - data < space_bytes; }
  const Window& window_at(std::uintptr_t address) const { return *by_slot[(address - data) >> slot_bits]; }
  std::uint8_t* bits_of(std::uintptr_t address) { return reinterpret_cast<std::uint8_t*>(bits + (address - data) / 8); }

 private:
  AddressSpace();
  void add_spans(const Dispatch& dispatch);
  Window& open_window(std::size_t phase, bool narrow);
  void take_slots(const Window& window, std::size_t count);
  /// The table with places in the windows.
  void write_places(const Dispatch& dispatch, std::byte* table) const;
  void fill(Window& window);
  static bool show(Window& window);
  void settle(Window& window);
  void give_back();
  void forget_cells();

  std::vector<std::pair<std::size_t, std::size_t>> bound_;  // by binding: its window, its span
  std::size_t used_ = 0;                                    // windows
  std::size_t used_slots_ = 0;
};

}  // namespace russet::simulator
