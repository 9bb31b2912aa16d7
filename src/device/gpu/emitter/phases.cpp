#include "device/gpu/emitter/phases.h"

#include <algorithm>

namespace russet::gpu {
namespace {

using compile::Extent;
using compile::Group;
using compile::Instruction;
using Kind = Instruction::Kind;

class Planner {
 public:
  Planner(const Group& group, bool keep) : group_(group), keep_(keep), levels_(group.code.size(), 0) {
    phases_.kept.assign(group.code.size(), false);
    int last = 0;
    for (std::size_t i = 0; i < group.code.size(); ++i) {
      for (const std::int16_t input : group.code[i].inputs) {
        if (input < 0) continue;
        const auto from = static_cast<std::size_t>(input);
        levels_[i] = std::max(levels_[i], levels_[from] + (group.code[from].kind == Kind::reduce ? 1 : 0));
      }
      last = std::max(last, levels_[i]);
    }
    phases_.list.resize(static_cast<std::size_t>(last) + 1);
    wanted_.assign(phases_.list.size(), std::vector<bool>(group.code.size(), false));
    wanted_reduced_.assign(group.code.size(), false);
  }

  Phases run() {
    for (std::size_t i = 0; i < group_.code.size(); ++i) {
      const Instruction& in = group_.code[i];
      if (in.kind != Kind::store) continue;
      if (is_full(in)) {
        phase_of(i).stores.push_back(static_cast<int>(i));
      } else {
        phases_.reduced_stores.push_back(static_cast<int>(i));
        want(in.inputs[0], static_cast<int>(phases_.list.size()) - 1, false);
      }
    }
    // What later phases keep must be computed in earlier ones.
    for (int phase = static_cast<int>(phases_.list.size()) - 1; phase >= 0; --phase) collect(phase);
    for (std::size_t i = 0; i < group_.code.size(); ++i) {
      if (wanted_reduced_[i] && group_.code[i].kind != Kind::reduce) phase_of(i).reduced.push_back(static_cast<int>(i));
      for (std::size_t phase = 0; phase < wanted_.size(); ++phase) {
        if (wanted_[phase][i]) phases_.list[phase].full.push_back(static_cast<int>(i));
      }
    }
    return std::move(phases_);
  }

 private:
  bool is_full(const Instruction& in) const {
    return group_.kind == Group::Kind::elementwise || in.extent == Extent::full;
  }
  Phase& phase_of(std::size_t i) { return phases_.list[static_cast<std::size_t>(levels_[i])]; }

  /// A load of what all rows read, such as a norm's weight: caches have it, so no register should.
  bool is_the_same_for_all_rows(const Instruction& in) const {
    if (in.kind != Kind::load) return false;
    const Strides& strides = group_.accesses[static_cast<std::size_t>(in.access)].strides;
    return std::all_of(strides.begin(), strides.begin() + group_.split, [](auto stride) { return stride == 0; });
  }

  void collect(int phase) {
    for (const int store : phases_.list[static_cast<std::size_t>(phase)].stores) {
      want(group_.code[static_cast<std::size_t>(store)].inputs[0], phase);
    }
    for (std::size_t i = 0; i < group_.code.size(); ++i) {
      const Instruction& in = group_.code[i];
      const bool of_columns = in.extent == Extent::column;
      if (in.kind != Kind::reduce || levels_[i] != phase || (!of_columns && !wanted_reduced_[i])) continue;
      Phase& own = phases_.list[static_cast<std::size_t>(phase)];
      (of_columns ? own.column_sums : own.reductions).push_back(static_cast<int>(i));
      want(in.inputs[0], phase);
    }
  }

  void want(std::int16_t position, int phase, bool reader_is_full = true) {
    if (position < 0) return;
    const auto i = static_cast<std::size_t>(position);
    const Instruction& in = group_.code[i];
    if (is_uniform(in)) return;
    if (!is_full(in)) {
      if (reader_is_full && levels_[i] == 0 && in.kind != Kind::reduce) phases_.elements_read_reduced = true;
      if (wanted_reduced_[i]) return;
      wanted_reduced_[i] = true;
      if (in.kind == Kind::reduce) return;  // its phase takes its input
      for (const std::int16_t input : in.inputs) want(input, levels_[i], false);
      return;
    }
    int at = phase;
    if (keep_ && levels_[i] < phase && in.kind != Kind::index && !is_the_same_for_all_rows(in)) {
      if (!phases_.kept[i]) ++phases_.kept_count;
      phases_.kept[i] = true;
      at = levels_[i];
    }
    if (wanted_[static_cast<std::size_t>(at)][i]) return;
    wanted_[static_cast<std::size_t>(at)][i] = true;
    for (const std::int16_t input : in.inputs) want(input, at);
  }

  const Group& group_;
  bool keep_;
  std::vector<int> levels_;
  std::vector<std::vector<bool>> wanted_;
  std::vector<bool> wanted_reduced_;
  Phases phases_;
};

}  // namespace

bool is_uniform(const Instruction& instruction) {
  return instruction.kind == Kind::constant || instruction.kind == Kind::scalar;
}

Phases make_phases(const Group& group, bool keep) { return Planner(group, keep).run(); }

}  // namespace russet::gpu
