#pragma once
// Recipes: how, and at what cost, a value that has left memory can be computed again.
#include <optional>
#include <vector>

#include "compile/passes/live_ranges.h"

namespace russet::compile::passes {

class Recipes {
 public:
  /// `room`: bytes that temporaries may take.
  Recipes(const Program& program, const Target& target, const LiveRanges& ranges, std::size_t room);

  /// How the value could be computed again before gap.last, rather than stay in memory during the gap. Nothing if it
  /// cannot, if that frees nothing, or if it would take more memory than it frees.
  std::optional<Recipe> find(std::int32_t slot, LiveRange gap) const;
  /// What the steps cost that write the value, in bytes that memory would move in the same time; parts of them may cost
  /// less.
  double cost_of_value(std::int32_t slot) const;

 private:
  bool compute(std::int32_t slot, Recipe& recipe) const;
  Rerun rerun(std::int32_t step, std::int32_t slot, const Recipe& recipe) const;
  bool comes_again(std::int32_t slot, const Recipe& recipe) const;
  bool provide(std::int32_t slot, std::int32_t reader, Recipe& recipe) const;
  bool keep(std::int32_t slot, Recipe& recipe) const;
  bool is_unchanged(std::int32_t slot, LiveRange since) const;

  const Program& program_;
  const LiveRanges& ranges_;
  std::size_t room_;
  std::vector<double> cost_;         // by step
  std::vector<bool> may_run_again_;  // by step
};

}  // namespace russet::compile::passes
