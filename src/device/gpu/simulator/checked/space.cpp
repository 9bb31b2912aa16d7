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

std::uintptr_t reserve(std::size_t bytes) {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    throw OutOfMemoryError(
        fmt::format("simulated GPU: its checks need {} GiB of address space (not memory), which this "
                    "process is not given; RUSSET_SIMULATOR=unchecked runs without them",
                    bytes >> 30));
  }
  return reinterpret_cast<std::uintptr_t>(memory);
}

void discard(std::uintptr_t begin, std::uintptr_t end) {
  begin = begin / page * page;
  end = (end + page - 1) / page * page;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
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

Space& Space::shared() {
  static Space* const space = new Space;  // threads of the pool may outlive static destructors
  return *space;
}

Space::Space()
    : data(reserve(window_bytes * window_count)),
      cells(reserve(window_bytes * window_count * 2)),
      bits(reserve(window_bytes * window_count / 8)) {}

void Space::add_spans(const Dispatch& dispatch) {
  const auto& buffers = dispatch.buffers;
  std::vector<std::size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), 0);
  // What is empty comes first, in windows of its own.
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return std::pair(buffers[i].bytes > 0, buffers[i].begin); });
  bound_.assign(buffers.size(), {});
  std::byte* reached = nullptr;  // end of the last window's memory
  for (const std::size_t i : order) {
    const Range& range = buffers[i];
    if (used_ == 0 || range.begin >= reached || range.bytes == 0) {
      Window& fresh = windows[used_++];
      fresh = Window{};
      const std::uintptr_t base = data + (used_ - 1) * window_bytes + window_margin;
      fresh.begin = base + reinterpret_cast<std::uintptr_t>(range.begin) % page;
      fresh.end = fresh.begin;
      reached = range.begin;
    }
    Window& window = windows[used_ - 1];
    const std::byte* const home = window.spans.empty() ? range.begin : window.spans.front().home;
    const std::uintptr_t begin = window.begin + static_cast<std::size_t>(range.begin - home);
    if (range.bytes > window_bytes - window_margin - page || begin + range.bytes > window.begin + window_bytes / 2) {
      throw OutOfMemoryError(
          fmt::format("simulated GPU: '{}' holds {} bytes, more than its checks can watch; "
                      "RUSSET_SIMULATOR=unchecked runs without them",
                      range.name, range.bytes));
    }
    bound_[i] = {used_ - 1, window.spans.size()};
    const auto& argument = dispatch.kernel->arguments()[i];
    window.spans.push_back(
        {begin, begin + range.bytes, range.begin, range.writable, argument.name, std::string(range.name)});
    window.end = std::max(window.end, begin + range.bytes);
    window.writable |= range.writable;
    window.plain = window.spans.size() == 1;
    reached = range.bytes == 0 ? nullptr : std::max(reached, range.begin + range.bytes);
  }
}

void Space::fill(Window& window) {
  const std::uintptr_t home = window.home_of(window.begin);
  const std::size_t bytes = window.end - window.begin;
  if (bytes == 0) return;
  std::memcpy(pointer(window.begin), pointer(home), bytes);
  window.partly = uninitialised.meets(home, home + bytes);
  if (!window.partly) return;
  const std::uintptr_t window_base = (window.begin - data) / window_bytes * window_bytes + data;
  std::uint8_t* const own = bits_of(window_base);
  const std::size_t offset = window.begin - window_base;
  set_bits(own, offset, offset + bytes, true);
  uninitialised.for_each(home, home + bytes, [&](std::uintptr_t begin, std::uintptr_t end) {
    set_bits(own, offset + (begin - home), offset + (end - home), false);
  });
}

Bound Space::bind(const Dispatch& dispatch, bool contested) {
  used_ = 0;
  add_spans(dispatch);
  for (std::size_t i = 0; i < used_; ++i) {
    windows[i].recorded = windows[i].writable || contested;
    fill(windows[i]);
    windows[i].simple_read = windows[i].plain && !windows[i].partly;
    windows[i].simple_write = windows[i].simple_read && windows[i].writable;
  }
  Bound bound;
  for (const auto& [window, span] : bound_) bound.buffers.push_back(pointer(windows[window].spans[span].begin));
  if (!dispatch.values.empty()) {
    Window& window = windows[used_++];
    window = Window{};
    window.begin = data + (used_ - 1) * window_bytes + window_margin;
    window.end = window.begin + dispatch.values.size();
    window.simple_read = true;
    const auto& argument = dispatch.kernel->arguments().back();
    window.spans.push_back({window.begin, window.end, nullptr, false, argument.name, "inline values"});
    std::memcpy(pointer(window.begin), dispatch.values.data(), dispatch.values.size());
    bound.values = pointer(window.begin);
  }
  for (std::size_t i = used_; i < window_count; ++i) windows[i].begin = windows[i].end = 0;
  if (next_id > max_ids / 4) forget_cells();
  // An id of its own stands for "some other group".
  first_id = next_id++;
  owners[first_id] = ~0u;
  return bound;
}

void Space::forget_cells() {
  for (std::size_t i = 0; i < window_count; ++i) {
    const std::uintptr_t begin = cells + i * window_bytes * 2;
    discard(begin, begin + window_bytes * 2);
  }
  next_id = 1;
}

void Space::renew_ids() {
  if (next_id < max_ids / 2) return;
  Clock clock;
  clock.first = first_id;
  for (std::size_t i = 0; i < used_; ++i) {
    if (!windows[i].recorded || windows[i].begin == windows[i].end) continue;
    Cell* const last = &cell(windows[i].end - 1);
    for (Cell* c = &cell(windows[i].begin); c <= last; ++c) *c = summed_up(*c, clock);
  }
  next_id = first_id + 1;
}

void Space::settle(Window& window) {
  for (const Span& span : window.spans) {
    if (!span.writable || span.begin == span.end) continue;
    std::memcpy(span.home, pointer(span.begin), span.end - span.begin);
    if (!window.partly) continue;
    const std::uintptr_t home = reinterpret_cast<std::uintptr_t>(span.home);
    uninitialised.remove(home, home + (span.end - span.begin));
    const std::uintptr_t window_base = (window.begin - data) / window_bytes * window_bytes + data;
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
      uninitialised.add(home + (begin - span.begin), home + (end - span.begin));
      begin = end;
    }
  }
}

void Space::give_back() {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < used_; ++i) {
    const Window& window = windows[i];
    kept += (window.end - window.begin) * 3;
    if (kept <= kept_bytes && !divided) continue;
    if (!divided) discard(window.begin, window.end);
    discard(cells + (window.begin - data) * 2, cells + (window.end - data) * 2);
    if (!divided) discard(bits + (window.begin - data) / 8, bits + (window.end - data) / 8);
  }
  divided = false;
}

void Space::release() {
  for (std::size_t i = 0; i < used_; ++i) {
    if (windows[i].writable) settle(windows[i]);
  }
  give_back();
  for (Window& window : windows) window.begin = window.end = 0;
  used_ = 0;
}

}  // namespace russet::simulator
