#include "compile/passes/donation.h"

#include <algorithm>
#include <map>

#include "compile/failure.h"

namespace russet::compile::passes {
namespace {

/// Whether every instruction that reads the leaf comes before the first store to the output: a device may use loaded
/// memory in place, so nothing may look at it after the store.
bool reads_before_store(const Group& group, std::int32_t leaf, std::int32_t output) {
  const auto slot_of = [&](const Instruction& in) { return group.accesses[static_cast<std::size_t>(in.access)].slot; };
  bool stored = false;
  for (const Instruction& in : group.code) {
    if (stored && in.kind == Instruction::Kind::load && slot_of(in) == leaf) return false;
    for (const std::int16_t input : in.inputs) {
      if (!stored || input < 0) continue;
      const Instruction& read = group.code[static_cast<std::size_t>(input)];
      if (read.kind == Instruction::Kind::load && slot_of(read) == leaf) return false;
    }
    if (in.kind == Instruction::Kind::store && slot_of(in) == output) stored = true;
  }
  return true;
}

/// Whether a group reads the leaf only where, and before, it writes the output.
bool reads_in_place(const Group& group, std::int32_t leaf, std::int32_t output) {
  if (group.kind != Group::Kind::elementwise) return false;
  const Access* target = nullptr;
  for (const Access& access : group.accesses) {
    if (access.slot == output) {
      if (target) return false;
      target = &access;
    }
  }
  if (!target) return false;
  const bool same_places = std::all_of(group.accesses.begin(), group.accesses.end(), [&](const Access& access) {
    return access.slot != leaf || (access.strides == target->strides && access.offset == 0 && target->offset == 0 &&
                                   access.offset_argument < 0 && access.dtype == target->dtype);
  });
  return same_places && reads_before_store(group, leaf, output);
}

/// Likewise for a contraction: its epilogue alone.
bool reads_in_place(const Primitive& primitive, std::int32_t leaf, std::int32_t output) {
  const auto is_leaf = [&](const Access& access) { return access.slot == leaf; };
  const auto reads_leaf = [&](const Group& group) {
    return std::any_of(group.accesses.begin(), group.accesses.end(), is_leaf);
  };
  if (std::any_of(primitive.inputs.begin(), primitive.inputs.end(),
                  [&](const Operand& input) { return is_leaf(input.access); })) {
    return false;
  }
  if (std::any_of(primitive.prologues.begin(), primitive.prologues.end(), reads_leaf)) return false;
  return reads_in_place(primitive.epilogue, leaf, output);
}

bool reads_in_place(const Stage& stage, std::int32_t leaf, std::int32_t output) {
  return std::visit([&](const auto& whole) { return reads_in_place(whole, leaf, output); }, stage.whole);
}

/// Likewise for a step that is no bundle.
bool reads_in_place(const Step& member, bool epilogues, std::int32_t leaf, std::int32_t output) {
  const auto* group = std::get_if<Group>(&member);
  const auto* primitive = std::get_if<Primitive>(&member);
  const auto* stage = std::get_if<Stage>(&member);
  return (group != nullptr && reads_in_place(*group, leaf, output)) ||
         (epilogues && primitive != nullptr && reads_in_place(*primitive, leaf, output)) ||
         (epilogues && stage != nullptr && reads_in_place(*stage, leaf, output));
}

/// Which member of a step touches each slot: those of a bundle run in any order, so one alone may touch a leaf and what
/// takes its memory; none of those that run sample by sample, of which the device may read ahead.
class Members {
 public:
  explicit Members(const Program& program) : toucher_(program.slots.size(), nobody) {}

  void read(const Step& step) {
    for (const std::int32_t slot : touched_) toucher(slot) = nobody;
    touched_.clear();
    members_of_step_.clear();
    const auto* bundle = std::get_if<Bundle>(&step);
    if (bundle != nullptr && bundle->samples > 0) return;
    for_each_member(step, [&](const Step& member) {
      const auto number = static_cast<std::int32_t>(members_of_step_.size());
      for_each_access(member, [&](std::int32_t slot, bool) {
        if (toucher(slot) == nobody) touched_.push_back(slot);
        toucher(slot) = toucher(slot) == nobody || toucher(slot) == number ? number : several;
      });
      members_of_step_.push_back(&member);
    });
  }

  /// The member that alone touches both; nullptr if there is none.
  const Step* of(std::int32_t leaf, std::int32_t output) {
    const std::int32_t member = toucher(leaf);
    return member >= 0 && member == toucher(output) ? members_of_step_[static_cast<std::size_t>(member)] : nullptr;
  }

 private:
  static constexpr std::int32_t nobody = -1;
  static constexpr std::int32_t several = -2;

  std::int32_t& toucher(std::int32_t slot) { return toucher_[static_cast<std::size_t>(slot)]; }

  std::vector<std::int32_t> toucher_;
  std::vector<std::int32_t> touched_;
  std::vector<const Step*> members_of_step_;
};

class Donation {
 public:
  Donation(Program& program, const std::vector<Span>& spans, const Target& target)
      : program_(program), spans_(spans), in_place_(target.epilogues_update_in_place()), members_(program) {
    sure_ = static_cast<std::int32_t>(first_sure_step(program, target));
    std::vector<bool> taken(program.leaves.size(), false);
    for (const Output& output : program.outputs) {
      if (output.donor >= 0) taken[static_cast<std::size_t>(output.donor)] = true;
    }
    for (std::size_t leaf = 0; leaf < program.leaves.size(); ++leaf) {
      if (!program.leaves[leaf].donatable || taken[leaf]) continue;
      donors_[program.slots[leaf].bytes].ending[spans[leaf].last].push_back(static_cast<std::int32_t>(leaf));
    }
  }

  void run() {
    std::vector<std::int32_t> takers;
    for (std::size_t slot = 0; slot < program_.slots.size(); ++slot) {
      if (program_.slots[slot].kind == Slot::Kind::output && spans_[slot].first >= sure_ && output(slot).donor < 0) {
        takers.push_back(static_cast<std::int32_t>(slot));
      }
    }
    const auto first = [&](std::int32_t slot) { return spans_[static_cast<std::size_t>(slot)].first; };
    std::stable_sort(takers.begin(), takers.end(), [&](auto a, auto b) { return first(a) < first(b); });
    for (const std::int32_t slot : takers) find_donor(static_cast<std::size_t>(slot));
  }

 private:
  /// Leaves of one size: by the step that reads them last, and those that no step reads any more.
  struct Donors {
    std::map<std::int32_t, std::vector<std::int32_t>> ending;
    std::vector<std::int32_t> ended;
  };

  Output& output(std::size_t slot) { return program_.outputs[static_cast<std::size_t>(program_.slots[slot].index)]; }

  void find_donor(std::size_t slot) {
    const auto found = donors_.find(program_.slots[slot].bytes);
    if (found == donors_.end()) return;
    Donors& donors = found->second;
    const std::int32_t now = spans_[slot].first;
    while (!donors.ending.empty() && donors.ending.begin()->first < now) {
      const std::vector<std::int32_t>& more = donors.ending.begin()->second;
      donors.ended.insert(donors.ended.end(), more.begin(), more.end());
      donors.ending.erase(donors.ending.begin());
    }
    if (take_in_place(slot, donors) || donors.ended.empty()) return;
    output(slot).donor = donors.ended.back();
    donors.ended.pop_back();
  }

  bool take_in_place(std::size_t slot, Donors& donors) {
    const std::int32_t now = spans_[slot].first;
    const auto ending = donors.ending.find(now);
    if (ending == donors.ending.end()) return false;
    if (now != looked_at_) {
      members_.read(program_.steps[static_cast<std::size_t>(now)]);
      looked_at_ = now;
    }
    for (std::size_t i = 0; i < ending->second.size(); ++i) {
      const std::int32_t leaf = ending->second[i];
      const Step* const member = members_.of(leaf, static_cast<std::int32_t>(slot));
      if (!member || !reads_in_place(*member, in_place_, leaf, static_cast<std::int32_t>(slot))) continue;
      output(slot).donor = leaf;
      ending->second.erase(ending->second.begin() + static_cast<std::ptrdiff_t>(i));
      return true;
    }
    return false;
  }

  Program& program_;
  const std::vector<Span>& spans_;
  bool in_place_;
  std::int32_t sure_ = 0;
  Members members_;  // of the step looked_at_
  std::int32_t looked_at_ = -1;
  std::map<std::size_t, Donors> donors_;  // by bytes
};

}  // namespace

void donate(Program& program, const std::vector<Span>& spans, const Target& target) {
  Donation(program, spans, target).run();
}

}  // namespace russet::compile::passes
