#include "contest.h"

#include <fmt/format.h>
#include <algorithm>

#include "device/gpu/simulator/module.h"

namespace russet::simulator {

Contest::Contest(std::span<const Dispatch> dispatches) : dispatches_(dispatches), concerned_(dispatches.size()) {
  if (dispatches.size() < 2) return;
  std::vector<Use> uses;
  for (std::size_t i = 0; i < dispatches.size(); ++i) {
    for (const BoundMemory& range : dispatches[i].buffers) {
      const auto begin = reinterpret_cast<std::uintptr_t>(range.begin);
      if (range.bytes > 0) uses.push_back({begin, begin + range.bytes, i, range.writable});
    }
  }
  mark_contested(std::move(uses));
}

void Contest::mark_contested(std::vector<Use> uses) {
  // A sweep over addresses: between two neighbouring ends the set of uses is the same.
  std::ranges::sort(uses, {}, &Use::begin);
  std::vector<std::uintptr_t> ends;
  for (const Use& use : uses) {
    ends.push_back(use.begin);
    ends.push_back(use.end);
  }
  std::ranges::sort(ends);
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  std::vector<const Use*> live;
  std::size_t next = 0;
  for (std::size_t e = 0; e + 1 < ends.size(); ++e) {
    std::erase_if(live, [&](const Use* use) { return use->end <= ends[e]; });
    for (; next < uses.size() && uses[next].begin <= ends[e]; ++next) live.push_back(&uses[next]);
    const bool several = std::ranges::any_of(live, [&](const Use* use) { return use->dispatch != live[0]->dispatch; });
    const bool written = std::ranges::any_of(live, &Use::writes);
    if (!several || !written) continue;
    for (const Use* use : live) concerned_[use->dispatch] = true;
    add_region(ends[e], ends[e + 1]);
  }
  for (Region& region : regions_) {
    region.touched.resize((region.end - region.begin + 1) / 2 + 1);
    region.wrote.resize(region.touched.size());
  }
}

void Contest::add_region(std::uintptr_t begin, std::uintptr_t end) {
  if (!regions_.empty() && regions_.back().end == begin) {
    regions_.back().end = end;
  } else {
    regions_.push_back({begin / 2 * 2, end, {}, {}});
  }
}

void Contest::note(std::size_t i, AddressSpace& space) {
  if (!concerned_[i]) return;
  for (const Window& window : space.windows) {
    if (window.begin == window.end || !window.recorded) continue;
    for (const Span& span : window.spans) {
      for (Region& region : regions_) note_span(i, space, span, region);
    }
  }
}

void Contest::note_span(std::size_t i, AddressSpace& space, const Span& span, Region& region) {
  const auto home = reinterpret_cast<std::uintptr_t>(span.home);
  const std::uintptr_t begin = std::max(region.begin, home);
  const std::uintptr_t end = std::min(region.end, home + (span.end - span.begin));
  const auto self = static_cast<std::uint16_t>(i + 1);
  for (std::uintptr_t address = begin; address < end; address += 2) {
    const ShadowCell cell = space.cell(span.begin + (address - home));
    const bool divided = (cell & cell_divided) != 0;
    if (!divided && cell_id(cell) < space.first_id) continue;
    const bool wrote = divided ? (cell & (1u << 14 | 1u << 29)) != 0 : (cell & cell_wrote) != 0;
    std::uint16_t& touched = region.touched[(address - region.begin) / 2];
    std::uint16_t& written = region.wrote[(address - region.begin) / 2];
    if (written != 0 && written != self) report(i, written - 1u, span, address, true);
    if (wrote && touched != 0 && touched != self) report(i, touched - 1u, span, address, false);
    touched = self;
    if (wrote) written = self;
  }
}

void Contest::report(std::size_t i, std::size_t other, const Span& span, std::uintptr_t address, bool wrote) {
  if (!reported_.emplace(std::min(i, other), std::max(i, other)).second) return;
  add_report({"overlap", dispatches_[i].kernel->name(),
              fmt::format("no barrier separates it from a dispatch of '{}', which {} byte {} of '{}' ({}) too",
                          dispatches_[other].kernel->name(), wrote ? "writes" : "touches",
                          address - reinterpret_cast<std::uintptr_t>(span.home), span.argument, span.tensor)});
}

}  // namespace russet::simulator
