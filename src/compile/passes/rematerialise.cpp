// Rematerialisation: where temporaries would take more memory than there is, some are computed again for their later
// readers (live range splitting; Briggs et al., "Rematerialization", 1992, for registers).
//   1: y = gelu(h)                                         1: y = gelu(h)
//   2: z = matmul(y, w)                                    2: z = matmul(y, w)
//   ...  the peak: h and y are alive               =>      ...  the peak: h is alive
//   8: dw = matmul(y^T, dz)                                7: y' = gelu(h)
//   9: dh = gelu_gradient(h, matmul(dz, w^T))              8: dw = matmul(y'^T, dz)
//                                                          9: dh = gelu_gradient(h, matmul(dz, w^T))
// Of the values that are alive while there is too little room, the one that costs least for each byte that it frees is
// split first, inputs that would have to be computed again included. The same steps run on the same inputs, so the
// results' bits are the same. In the end, values that turn out to have room stay where they are.
#include <algorithm>
#include <limits>
#include <map>
#include <queue>

#include "compile/passes/passes.h"
#include "compile/passes/recipes.h"

namespace russet::compile::passes {
namespace {

/// A value that does not stay in memory between two steps that need it.
struct Gap {
  double score;  // what the value costs, in bytes, for each byte that is freed; at least
  std::int32_t slot;
  LiveRange between;

  /// The queue's order: the cheapest first, then the longest gap.
  bool operator<(const Gap& other) const {
    if (score != other.score) return score > other.score;
    const std::int32_t length = between.last - between.first;
    const std::int32_t others = other.between.last - other.between.first;
    return length != others ? length < others : slot > other.slot;
  }
};

class Rematerialiser {
 public:
  Rematerialiser(Program& program, const Target& target, std::size_t room)
      : program_(program), ranges_(program), recipes_(program, target, ranges_, room), room_(room) {}

  void run() {
    // What could not be split once may be split when others are.
    for (bool any = true; any && ranges_.peak() > room_;) {
      for (std::size_t slot = 0; slot < ranges_.slots(); ++slot) add_gaps(static_cast<std::int32_t>(slot));
      any = split_cheapest();
    }
    join_where_there_is_room();
    rewrite();
  }

 private:
  /// Puts the gaps of a slot into the queue, or those within a part of it.
  void add_gaps(std::int32_t slot, LiveRange within = {0, std::numeric_limits<std::int32_t>::max()}) {
    if (!ranges_.is_splittable(slot) || ranges_.bytes(slot) < least_bytes) return;
    const std::vector<std::int32_t>& needs = ranges_.needs(slot);
    std::int32_t before = -1;
    for (const std::int32_t need : needs) {
      const LiveRange gap{before, need};
      const bool is_new = before >= within.first && need <= within.last && need - before > 1;
      before = need;
      if (is_new && is_gap(slot, gap)) queue_.push({least_score, slot, gap});
    }
  }

  /// Whether the value stays in memory between the two, for nobody else, and could be written before the first.
  bool is_gap(std::int32_t slot, LiveRange gap) const {
    if (gap.first < ranges_.writers(slot).back()) return false;
    const auto range = ranges_.range_at(slot, gap.first);
    return range && range == ranges_.range_at(slot, gap.last);
  }

  /// Splits gaps, the cheapest first, until there is room. Returns whether it split any. A gap's place in the queue is
  /// a lower bound, so that few are looked at more than once (Minoux, "Accelerated greedy algorithms for maximizing
  /// submodular set functions", 1978).
  bool split_cheapest() {
    bool any = false;
    while (!queue_.empty()) {
      Gap gap = queue_.top();
      queue_.pop();
      const auto [first, last] = gap.between;
      const std::vector<std::int32_t>& needs = ranges_.needs(gap.slot);
      if (*std::upper_bound(needs.begin(), needs.end(), first) != last) {
        add_gaps(gap.slot, gap.between);
        continue;
      }
      if (!is_gap(gap.slot, gap.between) || ranges_.most_live(first + 1, last - 1) <= room_) continue;
      const std::optional<Recipe> recipe = recipes_.find(gap.slot, gap.between);
      if (!recipe) continue;
      if (recipe->score() > gap.score && !queue_.empty() && recipe->score() > queue_.top().score) {
        gap.score = recipe->score();
        queue_.push(gap);
        continue;
      }
      ranges_.split(*recipe);
      any = true;
    }
    return any;
  }

  /// Joins ranges again, those whose values cost most first.
  void join_where_there_is_room() {
    std::vector<std::pair<double, std::int32_t>> split;
    for (std::size_t i = 0; i < ranges_.slots(); ++i) {
      const auto slot = static_cast<std::int32_t>(i);
      if (ranges_.ranges(slot).size() > 1) split.emplace_back(-recipes_.cost_of_value(slot), slot);
    }
    std::sort(split.begin(), split.end());
    for (const auto& [cost, slot] : split) {
      for (std::size_t range = ranges_.ranges(slot).size(); --range > 0;) {
        if (range >= ranges_.ranges(slot).size()) continue;  // it went with another
        const LiveRange gap{ranges_.ranges(slot)[range - 1].last, ranges_.ranges(slot)[range].first};
        if (ranges_.most_live(gap.first, gap.last) + ranges_.bytes(slot) <= room_) ranges_.join(slot, range);
      }
    }
  }

  /// Writes the steps anew: each range of a value has a slot of its own.
  void rewrite() {
    std::vector<std::vector<std::int32_t>> places(ranges_.slots());  // by slot and range
    for (std::size_t i = 0; i < ranges_.slots(); ++i) {
      places[i].push_back(static_cast<std::int32_t>(i));
      const std::size_t ranges = ranges_.ranges(static_cast<std::int32_t>(i)).size();
      for (std::size_t range = 1; range < ranges; ++range) places[i].push_back(add_slot(i));
    }
    std::vector<Step> steps;
    for (std::size_t i = 0; i < program_.steps.size(); ++i) {
      const auto now = static_cast<std::int32_t>(i);
      const auto place = [&](std::int32_t slot) {
        return places[static_cast<std::size_t>(slot)][ranges_.range_at(slot, now).value_or(0)];
      };
      for (const Rerun& again : ranges_.again_before(now)) {
        std::map<std::int32_t, std::int32_t> unread;  // results that are still in memory, or that nobody needs
        for (const std::int32_t result : again.operands.writes) {
          if (!ranges_.range_from(result, now)) unread[result] = add_slot(static_cast<std::size_t>(result));
        }
        const Step& whole = program_.steps[static_cast<std::size_t>(again.number)];
        rename_slots(steps.emplace_back(again.part ? *again.part : whole), [&](std::int32_t slot) {
          const auto found = unread.find(slot);
          return found == unread.end() ? place(slot) : found->second;
        });
      }
      rename_slots(steps.emplace_back(program_.steps[i]), place);
    }
    program_.steps = std::move(steps);
  }

  /// A temporary like another slot.
  std::int32_t add_slot(std::size_t slot) {
    program_.slots.push_back(program_.slots[slot]);
    return static_cast<std::int32_t>(program_.slots.size() - 1);
  }

  static constexpr std::size_t least_bytes = 4096;
  static constexpr double least_score = 1;  // a value is written at least

  Program& program_;
  LiveRanges ranges_;
  Recipes recipes_;
  std::size_t room_;
  std::priority_queue<Gap> queue_;
};

}  // namespace

void rematerialise(Program& program, const Target& target) {
  if (program.room) Rematerialiser(program, target, *program.room).run();
}

}  // namespace russet::compile::passes
