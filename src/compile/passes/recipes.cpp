#include "compile/passes/recipes.h"

#include <algorithm>

#include "compile/failure.h"
#include "compile/passes/lives.h"
#include "compile/passes/reduced_group.h"
#include "compile/plan.h"

namespace russet::compile::passes {
namespace {

/// Operations in the time in which memory moves a byte, about: 14 to 40 for float32 on the processors and GPUs that
/// docs/benchmarks.md and russet/chips.h know. Only the order in which values are chosen depends on it.
constexpr double operations_a_byte = 32;

constexpr std::size_t most_steps = 64;  // of a recipe
/// Inputs that are this many times smaller than the value may stay in memory for it.
constexpr std::size_t much_smaller = 16;

double cost_of(const Step& step) {
  return static_cast<double>(bytes_of(step)) + operations_of(step) / operations_a_byte;
}

/// The rerun of a step; nullptr for none.
template <class Reruns>
auto* find_rerun(Reruns& reruns, std::int32_t step) {
  const auto found = std::find_if(reruns.begin(), reruns.end(), [&](const Rerun& r) { return r.number == step; });
  return found == reruns.end() ? nullptr : &*found;
}

bool contains(const std::vector<std::int32_t>& numbers, std::int32_t number) {
  return std::find(numbers.begin(), numbers.end(), number) != numbers.end();
}

/// Outputs and leaves are written once.
bool writes_temporaries_alone(const Program& program, const std::vector<std::int32_t>& written) {
  return std::all_of(written.begin(), written.end(), [&](std::int32_t slot) {
    return program.slots[static_cast<std::size_t>(slot)].kind == Slot::Kind::temporary;
  });
}

}  // namespace

Recipes::Recipes(const Program& program, const Target& target, const LiveRanges& ranges, std::size_t room)
    : program_(program), ranges_(ranges), room_(room) {
  for (const Step& step : program.steps) {
    cost_.push_back(cost_of(step));
    // What may fail would fail twice.
    may_run_again_.push_back(!may_fail(step, target));
  }
}

double Recipes::cost_of_value(std::int32_t slot) const {
  double cost = 0;
  for (const std::int32_t step : ranges_.writers(slot)) cost += cost_[static_cast<std::size_t>(step)];
  return cost;
}

std::optional<Recipe> Recipes::find(std::int32_t slot, LiveRange gap) const {
  Recipe recipe;
  recipe.slot = slot;
  recipe.gap = gap;
  recipe.freed = static_cast<double>(ranges_.bytes(slot));
  if (!compute(slot, recipe) || recipe.freed <= 0) return std::nullopt;
  recipe.reruns = merged({}, recipe.reruns);
  const std::vector<Rerun> again = merged(ranges_.again_before(gap.last), recipe.reruns);
  const std::size_t then = ranges_.live(gap.last) + ranges_.most_on_the_way(gap.last, again, slot);
  if (then > room_ && then >= ranges_.most_live(gap.first + 1, gap.last - 1)) return std::nullopt;
  return recipe;
}

/// Adds the steps that write the value, and what they need.
bool Recipes::compute(std::int32_t slot, Recipe& recipe) const {
  for (const std::int32_t step : ranges_.writers(slot)) {
    if (!may_run_again_[static_cast<std::size_t>(step)]) return false;
    Rerun added = rerun(step, slot, recipe);
    if (!writes_temporaries_alone(program_, added.operands.writes)) return false;
    const std::vector<std::int32_t> reads = added.operands.reads;
    recipe.cost += added.cost;
    if (Rerun* const present = find_rerun(recipe.reruns, step)) {
      recipe.cost -= present->cost;
      *present = std::move(added);
    } else {
      if (recipe.reruns.size() == most_steps) return false;
      const Rerun* const other = find_rerun(ranges_.again_before(recipe.gap.last), step);
      if (other != nullptr) recipe.cost -= other->cost;
      recipe.reruns.push_back(std::move(added));
    }
    for (const std::int32_t read : reads) {
      if (!provide(read, step, recipe)) return false;
    }
  }
  return true;
}

/// Whether the value is computed again before the recipe's step: by the recipe, or by others.
bool Recipes::comes_again(std::int32_t slot, const Recipe& recipe) const {
  return slot == recipe.slot || contains(recipe.results, slot) || ranges_.range_from(slot, recipe.gap.last).has_value();
}

/// The step as it runs again for a value and for those of its results that come again anyway: of a group, no more than
/// these need, from what is in memory.
Rerun Recipes::rerun(std::int32_t step, std::int32_t slot, const Recipe& recipe) const {
  const Step& whole = program_.steps[static_cast<std::size_t>(step)];
  const std::vector<std::int32_t>& written = ranges_.operands(step).writes;
  const auto is_wanted = [&](std::int32_t result) { return result == slot || comes_again(result, recipe); };
  const auto is_in_memory = [&](std::int32_t other) {
    return contains(written, other) && !is_wanted(other) && ranges_.is_splittable(other) &&
           (ranges_.range_at(other, recipe.gap.last) || contains(recipe.kept, other));
  };
  const auto* group = std::get_if<Group>(&whole);
  if (group != nullptr && written.size() > 1 && ranges_.writers(slot).size() == 1) {
    if (std::optional<Group> part = reduced_group(*group, is_wanted, is_in_memory)) {
      const auto rest = std::make_shared<const Step>(std::move(*part));
      return {step, rest, operands_of(*rest), cost_of(*rest)};
    }
  }
  return {step, nullptr, ranges_.operands(step), cost_[static_cast<std::size_t>(step)]};
}

/// Sees to it that what a step read is there when it runs again.
bool Recipes::provide(std::int32_t slot, std::int32_t reader, Recipe& recipe) const {
  const std::int32_t step = recipe.gap.last;
  const Slot& place = program_.slots[static_cast<std::size_t>(slot)];
  if (place.kind != Slot::Kind::temporary) return is_unchanged(slot, {reader, step});
  if (!ranges_.is_splittable(slot)) return false;
  if (slot == recipe.slot || contains(recipe.results, slot) || contains(recipe.kept, slot)) return true;
  if (ranges_.range_at(slot, step)) return true;
  if (keep(slot, recipe)) return true;
  recipe.results.push_back(slot);
  return compute(slot, recipe);
}

/// Lets a value stay in memory until the step, if it is small, or if there is room.
bool Recipes::keep(std::int32_t slot, Recipe& recipe) const {
  const std::vector<LiveRange>& all = ranges_.ranges(slot);
  const auto range =
      std::find_if(all.rbegin(), all.rend(), [&](const LiveRange& r) { return r.last < recipe.gap.last; });
  const std::size_t bytes = ranges_.bytes(slot);
  const bool is_small = bytes * much_smaller <= ranges_.bytes(recipe.slot);
  if (!is_small && ranges_.most_live(range->last + 1, recipe.gap.last) + bytes > room_) return false;
  if (range->last < recipe.gap.last - 1) recipe.freed -= is_small ? static_cast<double>(bytes) : 0;
  recipe.kept.push_back(slot);
  return true;
}

/// Whether a leaf or an output holds the same value still. Leaves whose memory an output may take are not kept from it.
bool Recipes::is_unchanged(std::int32_t slot, LiveRange since) const {
  const std::vector<std::int32_t>& writers = ranges_.writers(slot);
  const auto later = std::lower_bound(writers.begin(), writers.end(), since.first);
  if (later != writers.end() && *later < since.last) return false;
  const Slot& place = program_.slots[static_cast<std::size_t>(slot)];
  if (place.kind != Slot::Kind::leaf || place.bytes <= small_bytes) return true;
  const bool is_donor = program_.leaves[static_cast<std::size_t>(place.index)].donatable;
  return !is_donor || ranges_.touches(slot).back() >= since.last;
}

}  // namespace russet::compile::passes
