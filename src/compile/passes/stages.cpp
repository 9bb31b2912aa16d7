// Stages: where a device takes two launches for a step, each becomes a step, and the second ones, which are small, go
// down to where their results are needed, so that both kinds can share launches. Before:      After:
//   column group: sum over 1024 rows of dy1                    parts1 = sums over 16 chunks of rows of dy1
//   column group: sum over 1024 rows of dy2                    parts2 = sums over 16 chunks of rows of dy2
//   ...                                                        ...
//   group: update of the biases                                bias1 = sum of parts1
//                                                              bias2 = sum of parts2
//                                                              group: update of the biases
// The parts are temporaries like any other. The launches are the same, so the bits are.
#include <algorithm>

#include "compile/passes/lives.h"
#include "compile/passes/passes.h"

namespace russet::compile::passes {
namespace {

class Divider {
 public:
  Divider(Program& program, const Target& target)
      : program_(program), target_(target), limit_(target.bundle_limits().held_bytes), lives_(lives_of(program)) {}

  void run() {
    for (now_ = 0; now_ < program_.steps.size(); ++now_) take(program_.steps[now_]);
    while (!late_.empty()) place_first();
    program_.steps = std::move(steps_);
  }

 private:
  /// A second stage that has not found its place yet.
  struct Late {
    Stage stage;
    std::size_t bytes;  // of the parts
  };

  void take(Step& step) {
    make_room_for(step);
    std::optional<Stages> stages = target_.stages(step);
    if (!stages) {
      steps_.push_back(std::move(step));
      return;
    }
    Stage stage;
    if (auto* group = std::get_if<Group>(&step)) stage.whole = std::move(*group);
    if (auto* primitive = std::get_if<Primitive>(&step)) stage.whole = std::move(*primitive);
    stage.parts = add_temporary(program_, stages->parts_bytes);
    stage.reads = std::move(stages->reads[0]);
    stage.writes = std::move(stages->writes[0]);
    steps_.emplace_back(stage);
    stage.number = 1;
    stage.reads = std::move(stages->reads[1]);
    stage.writes = std::move(stages->writes[1]);
    late_.push_back({std::move(stage), stages->parts_bytes});
    held_ += stages->parts_bytes;
  }

  /// Inserts, before the step, waiting second stages whose results it reads, whose inputs it overwrites, or whose
  /// inputs would otherwise have to live longer than this step.
  void make_room_for(const Step& step) {
    for (std::size_t i = 0; i < late_.size();) {
      if (meets(step, late_[i].stage)) {
        place(i);
      } else {
        ++i;
      }
    }
    while (!late_.empty() && (held_ > limit_ || !lives_.fits(now_, held_))) place_first();
  }

  bool meets(const Step& step, const Stage& stage) const {
    const auto in = [](const std::vector<std::int32_t>& slots, std::int32_t slot) {
      return std::find(slots.begin(), slots.end(), slot) != slots.end();
    };
    bool meet = false;
    for_each_access(step, [&](std::int32_t slot, bool writes) {
      const bool ends = lives_.last[static_cast<std::size_t>(slot)] <= static_cast<std::int32_t>(now_);
      meet |= in(stage.writes, slot) || ((writes || ends) && in(stage.reads, slot));
    });
    return meet;
  }

  void place_first() { place(0); }
  void place(std::size_t i) {
    held_ -= late_[i].bytes;
    steps_.emplace_back(std::move(late_[i].stage));
    late_.erase(late_.begin() + static_cast<std::ptrdiff_t>(i));
  }

  Program& program_;
  const Target& target_;
  std::size_t limit_;
  Lives lives_;
  std::size_t now_ = 0;
  std::vector<Late> late_;  // in their order
  std::size_t held_ = 0;    // bytes of their parts
  std::vector<Step> steps_;
};

}  // namespace

void stages(Program& program, const Target& target) { Divider(program, target).run(); }

}  // namespace russet::compile::passes
