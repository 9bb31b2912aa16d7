#include "compile/passes/live_ranges.h"

#include <algorithm>

namespace russet::compile::passes {
namespace {

void insert_sorted(std::vector<std::int32_t>& sorted, std::int32_t number) {
  const auto at = std::lower_bound(sorted.begin(), sorted.end(), number);
  if (at == sorted.end() || *at != number) sorted.insert(at, number);
}

bool has(const std::vector<std::int32_t>& sorted, std::int32_t number) {
  return std::binary_search(sorted.begin(), sorted.end(), number);
}

}  // namespace

Operands operands_of(const Step& step) {
  Operands operands;
  for_each_access(
      step, [&](std::int32_t slot, bool writes) { insert_sorted(writes ? operands.writes : operands.reads, slot); });
  return operands;
}

std::vector<Rerun> merged(const std::vector<Rerun>& some, const std::vector<Rerun>& more) {
  std::vector<Rerun> all = more;
  for (const Rerun& rerun : some) {
    const auto is_same = [&](const Rerun& other) { return other.number == rerun.number; };
    if (std::none_of(more.begin(), more.end(), is_same)) all.push_back(rerun);
  }
  std::sort(all.begin(), all.end(), [](const Rerun& a, const Rerun& b) { return a.number < b.number; });
  return all;
}

LiveRanges::LiveRanges(const Program& program)
    : slots_(program.slots.size()),
      again_(program.steps.size()),
      live_(program.steps.size(), 0),
      on_the_way_(program.steps.size(), 0) {
  operands_.reserve(program.steps.size());
  for (std::size_t step = 0; step < program.steps.size(); ++step) {
    const Operands& operands = operands_.emplace_back(operands_of(program.steps[step]));
    const auto now = static_cast<std::int32_t>(step);
    for (const std::int32_t slot : operands.writes) of(slot).writers.push_back(now);
    for (const auto* touched : {&operands.reads, &operands.writes}) {
      for (const std::int32_t slot : *touched) insert_sorted(of(slot).touches, now);
    }
  }
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    Life& life = slots_[i];
    life.bytes = program.slots[i].bytes;
    life.needs = life.touches;
    if (program.slots[i].kind != Slot::Kind::temporary || life.writers.empty()) continue;
    life.ranges = {{life.touches.front(), life.touches.back()}};
    add_live(life.touches.front(), life.touches.back(), static_cast<std::int64_t>(life.bytes));
    // All that writes it comes before all that reads it.
    life.splittable = std::equal(life.writers.begin(), life.writers.end(), life.touches.begin()) &&
                      !has(operands(life.writers.back()).reads, static_cast<std::int32_t>(i));
  }
}

void LiveRanges::add_live(std::int32_t first, std::int32_t last, std::int64_t bytes) {
  for (std::int32_t step = first; step <= last; ++step) live_[static_cast<std::size_t>(step)] += bytes;
}

std::optional<std::size_t> LiveRanges::range_at(std::int32_t slot, std::int32_t step) const {
  const std::vector<LiveRange>& ranges = of(slot).ranges;
  for (std::size_t i = ranges.size(); i-- > 0;) {
    if (ranges[i].first <= step) return step <= ranges[i].last ? std::optional(i) : std::nullopt;
  }
  return std::nullopt;
}

std::optional<std::size_t> LiveRanges::range_from(std::int32_t slot, std::int32_t step) const {
  const std::optional<std::size_t> range = range_at(slot, step);
  return range && *range > 0 && of(slot).ranges[*range].first == step ? range : std::nullopt;
}

std::size_t LiveRanges::live(std::int32_t step) const {
  const auto at = static_cast<std::size_t>(step);
  return static_cast<std::size_t>(live_[at] + on_the_way_[at]);
}

std::size_t LiveRanges::most_live(std::int32_t first, std::int32_t last) const {
  std::size_t most = 0;
  for (std::int32_t step = first; step <= last; ++step) most = std::max(most, live(step));
  return most;
}

/// Whether the value, computed again before the step, is needed by the step itself or later.
bool LiveRanges::lives_on(std::int32_t slot, std::int32_t step) const {
  const std::optional<std::size_t> range = range_from(slot, step);
  return range && (of(slot).ranges[*range].last > step || has(of(slot).touches, step));
}

std::size_t LiveRanges::most_on_the_way(std::int32_t step, const std::vector<Rerun>& again, std::int32_t slot) const {
  std::vector<std::int64_t> change(again.size() + 1, 0);
  for (std::size_t i = 0; i < again.size(); ++i) {
    for (const std::int32_t written : again[i].operands.writes) {
      if (written == slot || lives_on(written, step)) continue;
      std::size_t last = i;
      for (std::size_t j = i + 1; j < again.size(); ++j) {
        if (has(again[j].operands.reads, written)) last = j;
      }
      change[i] += static_cast<std::int64_t>(bytes(written));
      change[last + 1] -= static_cast<std::int64_t>(bytes(written));
    }
  }
  std::int64_t now = 0;
  std::int64_t most = 0;
  for (const std::int64_t by : change) most = std::max(most, now += by);
  return static_cast<std::size_t>(most);
}

/// Changes the ranges of a slot, and what follows from them.
void LiveRanges::change(std::int32_t slot, base::FunctionRef<void(std::vector<LiveRange>&)> edit) {
  std::vector<std::int32_t> starts;
  const auto count = [&](std::int64_t bytes) {
    const std::vector<LiveRange>& ranges = of(slot).ranges;
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      if (i > 0) starts.push_back(ranges[i].first);
      if (i == 0 || lives_on(slot, ranges[i].first)) add_live(ranges[i].first, ranges[i].last, bytes);
    }
  };
  const auto size = static_cast<std::int64_t>(bytes(slot));
  count(-size);
  edit(of(slot).ranges);
  count(size);
  for (const std::int32_t start : starts) weigh(start);
}

/// Measures again what lives only while others run before the step.
void LiveRanges::weigh(std::int32_t step) {
  on_the_way_[static_cast<std::size_t>(step)] =
      static_cast<std::int64_t>(most_on_the_way(step, again_before(step), -1));
}

void LiveRanges::split(const Recipe& recipe) {
  const auto [before, step] = recipe.gap;
  change(recipe.slot, [&, before = before, step = step](std::vector<LiveRange>& ranges) {
    const std::size_t range = *range_at(recipe.slot, before);
    const LiveRange later{step, ranges[range].last};
    ranges[range].last = before;
    ranges.insert(ranges.begin() + static_cast<std::ptrdiff_t>(range) + 1, later);
  });
  for (const std::int32_t slot : recipe.kept) {
    change(slot, [step = step](std::vector<LiveRange>& ranges) {
      std::find_if(ranges.rbegin(), ranges.rend(), [&](const LiveRange& r) { return r.last < step; })->last = step;
    });
  }
  for (const std::int32_t slot : recipe.results) {
    change(slot, [step = step](std::vector<LiveRange>& ranges) {
      const auto next = std::find_if(ranges.begin(), ranges.end(), [&](const LiveRange& r) { return r.first > step; });
      ranges.insert(next, {step, step});
    });
  }
  std::vector<Rerun>& again = again_[static_cast<std::size_t>(step)];
  again = merged(again, recipe.reruns);
  for (const Rerun& rerun : recipe.reruns) {
    for (const std::int32_t read : rerun.operands.reads) insert_sorted(of(read).needs, step);
  }
  weigh(step);
}

void LiveRanges::join(std::int32_t slot, std::size_t range) {
  const std::int32_t step = of(slot).ranges[range].first;
  change(slot, [&](std::vector<LiveRange>& ranges) {
    ranges[range - 1].last = ranges[range].last;
    ranges.erase(ranges.begin() + static_cast<std::ptrdiff_t>(range));
  });
  drop_unneeded(step);
}

/// What runs again before a step for nobody any more does not, and what it read ends earlier.
void LiveRanges::drop_unneeded(std::int32_t step) {
  std::vector<Rerun>& again = again_[static_cast<std::size_t>(step)];
  for (std::size_t i = again.size(); i-- > 0;) {
    const std::vector<std::int32_t> written = again[i].operands.writes;
    const bool is_needed = std::any_of(written.begin(), written.end(), [&](std::int32_t slot) {
      return lives_on(slot, step) || (range_from(slot, step) && is_read_again(slot, step, i + 1));
    });
    if (is_needed) continue;
    const std::vector<std::int32_t> read = again[i].operands.reads;
    again.erase(again.begin() + static_cast<std::ptrdiff_t>(i));
    for (const std::int32_t slot : written) {
      if (range_from(slot, step)) forget(slot, step);
    }
    for (const std::int32_t slot : read) end_earlier(slot, step);
  }
  weigh(step);
}

/// Whether what runs again before the step, from number `from` on, reads the slot.
bool LiveRanges::is_read_again(std::int32_t slot, std::int32_t step, std::size_t from) const {
  const std::vector<Rerun>& again = again_before(step);
  return std::any_of(again.begin() + static_cast<std::ptrdiff_t>(from), again.end(),
                     [&](const Rerun& rerun) { return has(rerun.operands.reads, slot); });
}

/// Removes the range that starts with the step, which nobody needs.
void LiveRanges::forget(std::int32_t slot, std::int32_t step) {
  change(slot, [&](std::vector<LiveRange>& ranges) {
    ranges.erase(ranges.begin() + static_cast<std::ptrdiff_t>(*range_from(slot, step)));
  });
}

/// The step does not need the slot any more, unless it does itself or for others that run again before it.
void LiveRanges::end_earlier(std::int32_t slot, std::int32_t step) {
  if (has(of(slot).touches, step) || is_read_again(slot, step, 0)) return;
  std::vector<std::int32_t>& needs = of(slot).needs;
  needs.erase(std::find(needs.begin(), needs.end(), step));
  const std::optional<std::size_t> range = range_at(slot, step);
  if (!range || of(slot).ranges[*range].last != step || of(slot).ranges[*range].first == step) return;
  change(slot, [&](std::vector<LiveRange>& ranges) {
    const auto next = std::lower_bound(needs.begin(), needs.end(), step);
    ranges[*range].last = next == needs.begin() ? ranges[*range].first : std::max(ranges[*range].first, *(next - 1));
  });
}

}  // namespace russet::compile::passes
