#include "space.h"

#include <fmt/format.h>
#include <russet/error.h>
#include <sys/mman.h>
#include <algorithm>
#include <cstring>
#include <numeric>

#include "device/gpu/simulator/module.h"

namespace russet::simulator {
namespace {

constexpr std::size_t page = 4096;
/// Windows keep this much memory for the next dispatch.
constexpr std::size_t kept_bytes = std::size_t{64} << 20;
/// Smaller bindings are copied: that takes less time than two system calls.
constexpr std::size_t shown_from = std::size_t{128} << 10;

void* map(void* where, std::size_t bytes) {
  const int fixed = where == nullptr ? 0 : MAP_FIXED;
  return mmap(where, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | fixed, -1, 0);
}

std::uintptr_t reserve(std::size_t bytes) {
  void* const memory = map(nullptr, bytes);
  if (memory == MAP_FAILED) {
    throw OutOfMemoryError(
        fmt::format("simulated GPU: its checks need {} GiB of address space (not memory), which this "
                    "process is not given; RUSSET_SIMULATOR=unchecked runs without them",
                    bytes >> 30));
  }
  return reinterpret_cast<std::uintptr_t>(memory);
}

/// The pages that hold [begin, end).
struct Pages {
  Pages(std::uintptr_t begin, std::uintptr_t end)
      : begin(reinterpret_cast<void*>(begin / page * page)),
        bytes((end + page - 1) / page * page - begin / page * page) {}
  void* begin;
  std::size_t bytes;
};

void discard(std::uintptr_t begin, std::uintptr_t end) {
  const Pages pages(begin, end);
  if (pages.bytes > 0) madvise(pages.begin, pages.bytes, MADV_DONTNEED);
}

/// Puts empty memory in the place of what was shown.
void cover(const Pages& pages) {
  if (map(pages.begin, pages.bytes) == MAP_FAILED) throw OutOfMemoryError("simulated GPU: no address space is left");
}

std::byte* pointer(std::uintptr_t address) { return reinterpret_cast<std::byte*>(address); }

void set_bits(std::uint8_t* bits, std::size_t first, std::size_t last, bool value) {
  for (; first < last && first % 8 != 0; ++first) {
    if (value) {
      bits[first / 8] = static_cast<std::uint8_t>(bits[first / 8] | 1u << first % 8);
    } else {
      bits[first / 8] = static_cast<std::uint8_t>(bits[first / 8] & ~(1u << first % 8));
    }
  }
  const std::size_t whole = (last - first) / 8;
  std::memset(bits + first / 8, value ? 0xff : 0, whole);
  first += whole * 8;
  for (; first < last; ++first) {
    const auto bit = static_cast<std::uint8_t>(1u << first % 8);
    bits[first / 8] = static_cast<std::uint8_t>(value ? bits[first / 8] | bit : bits[first / 8] & ~bit);
  }
}

}  // namespace

AddressSpace& AddressSpace::shared() {
  static AddressSpace* const space = new AddressSpace;  // threads of the pool may outlive static destructors
  return *space;
}

AddressSpace::AddressSpace()
    : data(reserve(space_bytes)),
      cells(reserve(space_bytes * 2)),
      bits(reserve(space_bytes / 8)),
      windows(slot_count + 1) {
  by_slot.fill(&windows.back());
}

void AddressSpace::take_slots(const Window& window, std::size_t count) {
  if (used_slots_ + count > slot_count) {
    throw OutOfMemoryError(
        "simulated GPU: a launch touches more memory than its checks can watch; RUSSET_SIMULATOR=unchecked runs "
        "without them");
  }
  for (std::size_t i = 0; i < count; ++i) by_slot[used_slots_++] = &window;
}

Window& AddressSpace::open_window(std::size_t phase, bool narrow) {
  Window& window = windows[used_++];
  window = Window{};
  const std::uintptr_t base = data + used_slots_ * slot_bytes;
  take_slots(window, narrow ? 1 : window_bytes / slot_bytes);
  window.begin = window.end = base + (narrow ? narrow_margin : window_margin) + phase;
  return window;
}

void AddressSpace::add_spans(const Dispatch& dispatch) {
  const auto& buffers = dispatch.buffers;
  const bool reached = !dispatch.bases.empty();
  const bool narrow = reached || buffers.size() > wide_windows;
  std::vector<std::size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), 0);
  // What is empty comes first, in windows of its own.
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return std::pair(buffers[i].bytes > 0, buffers[i].begin); });
  bound_.assign(buffers.size(), {});
  std::byte* end = nullptr;  // of the last window's memory
  for (const std::size_t i : order) {
    const BoundMemory& range = buffers[i];
    if (used_ == 0 || range.begin >= end || range.bytes == 0) {
      open_window(reinterpret_cast<std::uintptr_t>(range.begin) % page, narrow);
      end = range.begin;
    }
    Window& window = windows[used_ - 1];
    const std::byte* const home = window.spans.empty() ? range.begin : window.spans.front().home;
    const std::uintptr_t begin = window.begin + static_cast<std::size_t>(range.begin - home);
    if (!narrow &&
        (range.bytes > window_bytes - window_margin - page || begin + range.bytes > window.begin + window_bytes / 2)) {
      throw OutOfMemoryError(
          fmt::format("simulated GPU: '{}' holds {} bytes, more than its checks can watch; "
                      "RUSSET_SIMULATOR=unchecked runs without them",
                      range.name, range.bytes));
    }
    while (begin + range.bytes + narrow_margin / 2 > data + used_slots_ * slot_bytes) take_slots(window, 1);
    bound_[i] = {used_ - 1, window.spans.size()};
    window.spans.push_back({begin, begin + range.bytes, range.begin, range.writable,
                            reached ? fmt::format("buffer {} of the table", i) : dispatch.kernel->arguments()[i].name,
                            std::string(range.name)});
    window.end = std::max(window.end, begin + range.bytes);
    window.writable |= range.writable;
    window.plain = window.spans.size() == 1;
    end = range.bytes == 0 ? nullptr : std::max(end, range.begin + range.bytes);
  }
}

void AddressSpace::write_places(const Dispatch& dispatch, std::byte* table) const {
  constexpr int base_shift = 56;
  for (std::size_t i = 0; i < dispatch.reached.size(); ++i) {
    const auto& [window, span] = bound_[i];
    const std::uint64_t place =
        std::uint64_t{dispatch.reached[i].base} << base_shift | (windows[window].spans[span].begin - data);
    std::memcpy(table + dispatch.reached[i].place, &place, sizeof(place));
  }
}

// Memory that is mapped as shared, as the buffers of a checked device are, can be mapped once more. (mremap of no
// bytes; if it fails, it leaves a hole.)
bool AddressSpace::show(Window& window) {
  if (window.end - window.begin < shown_from) return false;
  const Pages pages(window.begin, window.end);
  const Pages home(window.home_of(window.begin), window.home_of(window.end));
  if (mremap(home.begin, 0, pages.bytes, MREMAP_MAYMOVE | MREMAP_FIXED, pages.begin) != MAP_FAILED) return true;
  cover(pages);
  return false;
}

void AddressSpace::fill(Window& window) {
  const std::uintptr_t home = window.home_of(window.begin);
  const std::size_t bytes = window.end - window.begin;
  if (bytes == 0) return;
  window.shown = show(window);
  if (!window.shown) std::memcpy(pointer(window.begin), pointer(home), bytes);
  window.partly = uninitialised.overlaps({home, home + bytes});
  if (!window.partly) return;
  const std::uintptr_t window_base = window.begin / 8 * 8;
  std::uint8_t* const own = bits_of(window_base);
  const std::size_t offset = window.begin - window_base;
  set_bits(own, offset, offset + bytes, true);
  for (const base::ByteRange part : uninitialised.parts_of({home, home + bytes})) {
    set_bits(own, offset + (part.begin - home), offset + (part.end - home), false);
  }
}

Bound AddressSpace::bind(const Dispatch& dispatch, bool contested) {
  used_ = used_slots_ = 0;
  add_spans(dispatch);
  for (std::size_t i = 0; i < used_; ++i) {
    windows[i].recorded = windows[i].writable || contested;
    fill(windows[i]);
    windows[i].simple_read = windows[i].plain && !windows[i].partly;
    windows[i].simple_write = windows[i].simple_read && windows[i].writable;
  }
  Bound bound;
  if (dispatch.bases.empty()) {
    for (const auto& [window, span] : bound_) bound.buffers.push_back(pointer(windows[window].spans[span].begin));
  } else {
    bound.buffers.assign(dispatch.bases.size(), pointer(data));
  }
  if (!dispatch.values.empty()) {
    Window& window = open_window(0, true);
    window.end = window.begin + dispatch.values.size();
    window.simple_read = true;
    const auto& argument = dispatch.kernel->arguments().back();
    window.spans.push_back({window.begin, window.end, nullptr, false, argument.name,
                            dispatch.bases.empty() ? "inline values" : "the table"});
    std::memcpy(pointer(window.begin), dispatch.values.data(), dispatch.values.size());
    write_places(dispatch, pointer(window.begin));
    bound.values = pointer(window.begin);
  }
  if (next_id > max_ids / 4) forget_cells();
  // An id of its own stands for "some other group".
  first_id = next_id++;
  owners[first_id] = ~0u;
  return bound;
}

void AddressSpace::forget_cells() {
  discard(cells, cells + space_bytes * 2);
  next_id = 1;
}

void AddressSpace::renew_ids() {
  if (next_id < max_ids / 2) return;
  IntervalClock clock;
  clock.first = first_id;
  for (std::size_t i = 0; i < used_; ++i) {
    if (!windows[i].recorded || windows[i].begin == windows[i].end) continue;
    ShadowCell* const last = &cell(windows[i].end - 1);
    for (ShadowCell* c = &cell(windows[i].begin); c <= last; ++c) *c = summed_up(*c, clock);
  }
  next_id = first_id + 1;
}

void AddressSpace::settle(Window& window) {
  for (const Span& span : window.spans) {
    if (!span.writable || span.begin == span.end) continue;
    if (!window.shown) std::memcpy(span.home, pointer(span.begin), span.end - span.begin);
    if (!window.partly) continue;
    const std::uintptr_t home = reinterpret_cast<std::uintptr_t>(span.home);
    uninitialised.remove({home, home + (span.end - span.begin)});
    const std::uintptr_t window_base = window.begin / 8 * 8;
    const std::uint8_t* const own = bits_of(window_base);
    const auto written = [&](std::uintptr_t address) {
      const std::size_t i = address - window_base;
      return (own[i / 8] >> i % 8 & 1) != 0;
    };
    for (std::uintptr_t begin = span.begin; begin < span.end;) {
      if (written(begin)) {
        const std::size_t i = begin - window_base;
        begin += i % 8 == 0 && own[i / 8] == 0xff ? 8 : 1;
        continue;
      }
      std::uintptr_t end = begin + 1;
      while (end < span.end && !written(end)) ++end;
      uninitialised.add({home + (begin - span.begin), home + (end - span.begin)});
      begin = end;
    }
  }
}

void AddressSpace::give_back() {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < used_; ++i) {
    const Window& window = windows[i];
    if (window.shown) cover(Pages(window.begin, window.end));
    kept += (window.end - window.begin) * 3;
    if (kept <= kept_bytes && !divided) continue;
    if (!divided && !window.shown) discard(window.begin, window.end);
    discard(cells + (window.begin - data) * 2, cells + (window.end - data) * 2);
    if (!divided) discard(bits + (window.begin - data) / 8, bits + (window.end - data) / 8);
  }
  divided = false;
}

void AddressSpace::release() {
  for (std::size_t i = 0; i < used_; ++i) {
    if (windows[i].writable) settle(windows[i]);
  }
  give_back();
  for (std::size_t i = 0; i < used_; ++i) windows[i].begin = windows[i].end = 0;
  std::fill_n(by_slot.begin(), used_slots_, &windows.back());
  used_ = used_slots_ = 0;
}

}  // namespace russet::simulator
