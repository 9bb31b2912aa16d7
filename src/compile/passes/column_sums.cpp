// Column sums: a row group adds up the columns of what it reads and computes, so that nobody reads that again, such as
// the gradients of a layer norm, whose weight and bias have theirs from sums over all rows. Before:    After:
//   column group: load g, x; store sums over rows of g * x, g        row group: load g, x; store h = g - mean(g) ...,
//   row group: load g, x; store h = g - mean(g) - x * mean(g * x)                 sums over rows of g * x, g, h
//   column group: load h; store sum over rows of h
// The column group takes the row group's place in the order, where it may.
#include <algorithm>
#include <iterator>

#include "compile/failure.h"
#include "compile/passes/live_ranges.h"
#include "compile/passes/lives.h"
#include "compile/passes/passes.h"
#include "compile/passes/reduced_group.h"
#include "compile/passes/united_group.h"
#include "compile/plan.h"

namespace russet::compile::passes {
namespace {

class ColumnSums {
 public:
  ColumnSums(Program& program, const Target& target)
      : program_(program),
        target_(target),
        lives_(lives_of(program)),
        taken_(program.steps.size(), false),
        touches_(program.slots.size(), 0) {
    for (const Step& step : program.steps) {
      for (const std::int32_t slot : slots_of(step)) ++touches_[index_of(slot)];
    }
  }

  void run() {
    for (std::size_t row = 0; row < program_.steps.size(); ++row) {
      if (is_group(row, Group::Kind::row)) unite_with_neighbours(row);
    }
    std::vector<Step> steps;
    for (std::size_t step = 0; step < taken_.size(); ++step) {
      if (!taken_[step]) steps.push_back(std::move(program_.steps[step]));
    }
    program_.steps = std::move(steps);
  }

 private:
  static std::size_t index_of(std::int32_t slot) { return static_cast<std::size_t>(slot); }

  /// What the step touches, each once.
  static std::vector<std::int32_t> slots_of(const Step& step) {
    const Operands operands = operands_of(step);
    std::vector<std::int32_t> slots;
    std::ranges::set_union(operands.reads, operands.writes, std::back_inserter(slots));
    return slots;
  }

  bool is_group(std::size_t step, Group::Kind kind) const {
    const auto* group = std::get_if<Group>(&program_.steps[step]);
    return !taken_[step] && group != nullptr && group->kind == kind;
  }

  void unite_with_neighbours(std::size_t row) {
    constexpr std::size_t window = 16;  // steps
    const std::size_t end = std::min(row + window + 1, program_.steps.size());
    for (std::size_t column = row - std::min(row, window); column < end; ++column) {
      if (is_group(column, Group::Kind::column)) unite(row, column);
    }
  }

  void unite(std::size_t row, std::size_t column) {
    Step& whole = program_.steps[row];
    Step& part = program_.steps[column];
    if (may_fail(whole, target_) || may_fail(part, target_) || !may_meet(row, column)) return;
    const auto& rows = std::get<Group>(whole);
    const auto& columns = std::get<Group>(part);
    std::optional<Group> both = row < column ? united_group(rows, columns) : united_group(columns, rows);
    if (!both) return;
    const std::vector<std::int32_t> own = slots_of(whole);
    const std::vector<std::int32_t> others = slots_of(part);
    // What the one stores for the other alone stays in registers.
    const auto is_needed = [&](std::int32_t slot) {
      const bool is_known_to_both = std::ranges::binary_search(own, slot) && std::ranges::binary_search(others, slot);
      return !is_temporary(slot) || !is_known_to_both || touches_[index_of(slot)] > 2;
    };
    both = reduced_group(*both, is_needed, [](std::int32_t) { return false; });
    if (!moves_less(rows, columns, *both) || !fits(row, column, *both) || !target_.adds_up_columns(*both)) return;
    for (const std::int32_t slot : own) --touches_[index_of(slot)];
    for (const std::int32_t slot : others) --touches_[index_of(slot)];
    whole = std::move(*both);
    for (const std::int32_t slot : slots_of(whole)) ++touches_[index_of(slot)];
    taken_[column] = true;
  }

  bool is_temporary(std::int32_t slot) const { return program_.slots[index_of(slot)].kind == Slot::Kind::temporary; }

  /// Whether the column group may run at the row group's place: nothing between them needs what it writes, or writes
  /// what it needs. What overwrites a leaf does not come early: a step that fails before it would leave that as it was.
  bool may_meet(std::size_t row, std::size_t column) const {
    const Operands own = operands_of(program_.steps[column]);
    const auto has = [](const std::vector<std::int32_t>& slots, std::int32_t slot) {
      return std::ranges::binary_search(slots, slot);
    };
    const bool comes_early = column > row + 1;
    bool may = !comes_early || std::ranges::none_of(own.writes, [&](std::int32_t slot) {
      return program_.slots[index_of(slot)].kind == Slot::Kind::leaf;
    });
    for (std::size_t step = std::min(row, column) + 1; step < std::max(row, column); ++step) {
      if (taken_[step]) continue;
      for_each_access(program_.steps[step], [&](std::int32_t slot, bool writes) {
        may &= !has(own.writes, slot) && (!writes || !has(own.reads, slot));
      });
    }
    return may;
  }

  /// Whether it is worth it: half of what the column group alone would move.
  static bool moves_less(const Group& rows, const Group& columns, const Group& both) {
    return 2 * (bytes_of(rows) + bytes_of(columns) - std::min(bytes_of(both), bytes_of(rows) + bytes_of(columns))) >=
           bytes_of(columns);
  }

  /// Whether temporaries that live longer find room: what the column group reads until the row group's place, what it
  /// writes from there on.
  bool fits(std::size_t row, std::size_t column, const Group& both) const {
    std::size_t held = 0;
    for_each_access(both, [&](std::int32_t slot, bool writes) {
      const auto last = static_cast<std::size_t>(lives_.last[index_of(slot)]);
      const bool is_held = column < row ? !writes && last < row : writes;
      if (is_temporary(slot) && is_held) held += program_.slots[index_of(slot)].bytes;
    });
    for (std::size_t step = std::min(row, column) + 1; held > small_bytes && step < std::max(row, column); ++step) {
      if (!lives_.fits(step, held)) return false;
    }
    return true;
  }

  Program& program_;
  const Target& target_;
  Lives lives_;
  std::vector<bool> taken_;            // by step: it is part of another
  std::vector<std::int32_t> touches_;  // by slot: how many steps touch it
};

}  // namespace

void column_sums(Program& program, const Target& target) { ColumnSums(program, target).run(); }

}  // namespace russet::compile::passes
