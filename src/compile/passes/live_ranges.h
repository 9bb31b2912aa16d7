#pragma once
// Live ranges of temporaries that the pass rematerialise has split, over the steps as they were lowered.
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/function_ref.h"
#include "compile/program.h"

namespace russet::compile::passes {

/// Steps between which a value lies in memory, both included. A value's first range starts where it is computed, each
/// later one at a step before which it is computed again.
struct LiveRange {
  std::int32_t first, last;
};

/// The slots that a step reads and writes, each once, ascending.
struct Operands {
  std::vector<std::int32_t> reads, writes;
};
Operands operands_of(const Step& step);

/// A step that runs again, or a part of it (reduced_group.h). The slots are those of the first run.
struct Rerun {
  std::int32_t number = -1;          // of the step
  std::shared_ptr<const Step> part;  // nullptr: all of it
  Operands operands;
  double cost = 0;  // in bytes that memory would move in the same time
};

/// How a value can be computed again before a step.
struct Recipe {
  std::int32_t slot = -1;
  LiveRange gap{};                    // the steps that need the value before and after; again from gap.last on
  std::vector<Rerun> reruns;          // ascending
  std::vector<std::int32_t> results;  // temporaries that those compute on the way
  std::vector<std::int32_t> kept;     // temporaries that stay in memory until then
  double cost = 0;                    // of the reruns, less those of which they take the place
  double freed = 0;                   // bytes
  double score() const { return cost / freed; }
};

/// Both, ascending; where a step is in both, the second's rerun.
std::vector<Rerun> merged(const std::vector<Rerun>& some, const std::vector<Rerun>& more);

class LiveRanges {
 public:
  explicit LiveRanges(const Program& program);

  std::size_t steps() const { return operands_.size(); }
  std::size_t slots() const { return slots_.size(); }
  const Operands& operands(std::int32_t step) const { return operands_[static_cast<std::size_t>(step)]; }
  /// The steps that touched the slot before anything was split, ascending.
  const std::vector<std::int32_t>& touches(std::int32_t slot) const { return of(slot).touches; }
  const std::vector<std::int32_t>& writers(std::int32_t slot) const { return of(slot).writers; }
  /// The steps that need the value now: those, and those before which something is computed again from it.
  const std::vector<std::int32_t>& needs(std::int32_t slot) const { return of(slot).needs; }
  const std::vector<LiveRange>& ranges(std::int32_t slot) const { return of(slot).ranges; }
  /// Whether the value is a temporary that is complete when it is read first.
  bool is_splittable(std::int32_t slot) const { return of(slot).splittable; }
  std::size_t bytes(std::int32_t slot) const { return of(slot).bytes; }
  /// The steps that run again before a step, ascending.
  const std::vector<Rerun>& again_before(std::int32_t step) const { return again_[static_cast<std::size_t>(step)]; }

  /// The number of the range that contains the step.
  std::optional<std::size_t> range_at(std::int32_t slot, std::int32_t step) const;
  /// The number of the range that starts with the value being computed again before the step.
  std::optional<std::size_t> range_from(std::int32_t slot, std::int32_t step) const;
  /// Bytes of temporaries alive at a step, or while others run again before it.
  std::size_t live(std::int32_t step) const;
  /// The most of them from one step to another, both included; 0 for none.
  std::size_t most_live(std::int32_t first, std::int32_t last) const;
  std::size_t peak() const { return most_live(0, static_cast<std::int32_t>(steps()) - 1); }
  /// The most bytes of what lives only while these run again before a step; `slot` lives on.
  std::size_t most_on_the_way(std::int32_t step, const std::vector<Rerun>& again, std::int32_t slot) const;

  /// Splits a range as the recipe says.
  void split(const Recipe& recipe);
  /// Makes a range, not the first, and the one before it one again: the value stays in memory.
  void join(std::int32_t slot, std::size_t range);

 private:
  struct Life {
    std::size_t bytes = 0;
    bool splittable = false;
    std::vector<std::int32_t> touches, writers, needs;
    std::vector<LiveRange> ranges;  // ascending, of temporaries
  };

  const Life& of(std::int32_t slot) const { return slots_[static_cast<std::size_t>(slot)]; }
  Life& of(std::int32_t slot) { return slots_[static_cast<std::size_t>(slot)]; }
  bool lives_on(std::int32_t slot, std::int32_t step) const;
  void change(std::int32_t slot, base::FunctionRef<void(std::vector<LiveRange>&)> edit);
  void weigh(std::int32_t step);
  void drop_unneeded(std::int32_t step);
  bool is_read_again(std::int32_t slot, std::int32_t step, std::size_t from) const;
  void forget(std::int32_t slot, std::int32_t step);
  void end_earlier(std::int32_t slot, std::int32_t step);
  void add_live(std::int32_t first, std::int32_t last, std::int64_t bytes);

  std::vector<Operands> operands_;         // by step
  std::vector<Life> slots_;                // by slot
  std::vector<std::vector<Rerun>> again_;  // by step
  std::vector<std::int64_t> live_;         // by step: of ranges that others than what runs again before it need
  std::vector<std::int64_t> on_the_way_;   // by step: what lives only while others run again before it
};

}  // namespace russet::compile::passes
