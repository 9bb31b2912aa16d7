// Samples: steps of little work that go through a batch sample by sample become one, which runs them for each sample by
// itself: a launch instead of several that wait for each other. Before:    After, of 64 images:
//   y1 = convolution(x, w1); tanh                                            bundle by 64 samples:
//   p1 = sum_pool(y1)                                                          y1 = convolution(x, w1); tanh
//   y2 = convolution(p1, w2); tanh                                             p1 = sum_pool(y1)
//                                                                              y2 = convolution(p1, w2); tanh
// Each member but the first reads what another one writes. Steps between them that need nothing of theirs come before,
// others after. What members write lies sample by sample in its memory, and members that read it read their sample's
// part alone. The device says which steps it runs like that, and what is gained.
#include <algorithm>
#include <iterator>
#include <map>
#include <ranges>
#include <utility>

#include "base/function_ref.h"
#include "compile/failure.h"
#include "compile/passes/passes.h"
#include "compile/plan.h"
#include "ops/table.h"

namespace russet::compile::passes {
namespace {

using ops::Op;

/// An access of a step: of its index space, whose leading axis counts samples, unless it is `whole` for each of them.
struct Touch {
  const Access& access;
  const Shape& space;
  bool writes;
  bool whole = false;
};

using Visitor = base::FunctionRef<void(const Touch&)>;

void visit_group(const Group& group, Visitor visit) {
  const std::vector<bool> written = written_accesses(group);
  for (std::size_t i = 0; i < group.accesses.size(); ++i) {
    if (group.accesses[i].slot >= 0) visit({group.accesses[i], group.space, written[i]});
  }
}

void visit_primitive(const Primitive& primitive, Visitor visit) {
  const bool has_weight = ops::row(primitive.op).family == ops::Family::contraction;
  for (std::size_t i = 0; i < primitive.inputs.size(); ++i) {
    const Operand& input = primitive.inputs[i];
    if (input.access.slot >= 0) visit({input.access, input.sizes, false, has_weight && i == 1});
  }
  for (const Group& prologue : primitive.prologues) visit_group(prologue, visit);
  visit_group(primitive.epilogue, visit);
  visit({primitive.output.access, primitive.output.sizes, true});
  for (const Companion& companion : primitive.companions) {
    visit({companion.output.access, companion.output.sizes, true});
  }
}

/// Whether a group computes elements one by one, or rows.
bool has_samples(const Group& group) {
  const bool by_rows = group.kind == Group::Kind::elementwise || (group.kind == Group::Kind::row && group.split > 0);
  return by_rows && std::ranges::none_of(group.code, [](const Instruction& in) { return in.extent == Extent::column; });
}

bool has_samples(const Primitive& primitive) {
  if (!primitive.epilogue.code.empty() && !has_samples(primitive.epilogue)) return false;
  if (!primitive.prologues[1].code.empty()) return primitive.op == Op::max_pool;
  switch (primitive.op) {
    case Op::matmul: return primitive.inputs[0].sizes.rank() == 2 && primitive.inputs[1].sizes.rank() == 2;
    case Op::convolution:
    case Op::convolution_input: return true;
    default: return ops::row(primitive.op).family == ops::Family::window;
  }
}

/// How the members gathered so far, and the steps that come after them, touch a slot.
struct Use {
  bool read = false, written = false;  // by members
  bool apart = true;                   // by them, each time sample by sample
  bool read_after = false, written_after = false;
};

/// A step, and what is gained by its being a member, once that was asked.
struct Item {
  Step step;
  bool asked = false;
  std::optional<SampleTimes> times{};
};

class Finder {
 public:
  Finder(Program& program, const Target& target, std::int64_t samples)
      : program_(program), target_(target), samples_(samples), uses_(program.slots.size()) {}

  void run() {
    for (Step& step : std::views::reverse(program_.steps)) rest_.push_back({std::move(step)});
    std::vector<Step> done;
    while (!rest_.empty()) {
      if (!gather()) {
        done.push_back(std::move(rest_.back().step));
        rest_.pop_back();
        continue;
      }
      std::vector<Step> members;
      std::vector<Item> after;
      for (const Role role : roles_) {
        Item item = std::move(rest_.back());
        rest_.pop_back();
        if (role == Role::after) {
          after.push_back(std::move(item));
        } else {
          (role == Role::member ? members : done).push_back(std::move(item.step));
        }
      }
      Bundle bundle{.members = std::move(members), .samples = samples_};
      bundle.shared = shared_by(bundle.members);
      done.emplace_back(std::move(bundle));
      std::ranges::move(std::views::reverse(after), std::back_inserter(rest_));
    }
    program_.steps = std::move(done);
  }

 private:
  /// Of a step: it runs with the members, before them or after them.
  enum class Role : std::uint8_t { member, before, after };

  Use& use_of(std::int32_t slot) { return uses_[static_cast<std::size_t>(slot)]; }
  const Slot& slot_at(std::int32_t slot) const { return program_.slots[static_cast<std::size_t>(slot)]; }

  /// Finds the roles of the next steps, from the first member to the last one; whether a bundle of them is worth it.
  bool gather() {
    constexpr std::size_t window = 64;  // steps between two members
    if (!times_of(rest_.back())) return false;
    std::ranges::fill(uses_, Use());
    roles_.clear();
    held_bytes_ = 0;
    fails_after_ = false;
    gained_ = 0;
    bool multiplies = false;
    int members = 0;
    std::size_t last = 0;  // member
    std::size_t end = 0;   // of the members by which most is gained
    double most_gained = 0;
    while (roles_.size() < rest_.size() && roles_.size() <= last + window) {
      Item& item = rest_[rest_.size() - 1 - roles_.size()];
      const bool joins = may_join(item);
      if (!joins && roles_.empty()) return false;
      const Role role = joins ? Role::member : must_follow(item.step) ? Role::after : Role::before;
      note(item.step, role);
      roles_.push_back(role);
      if (!joins) continue;
      gained_ += gain_of(item);
      multiplies |= factors_of(item.step).has_value();
      ++members;
      last = roles_.size();
      const double gained = gained_ - item.times->launch;
      if (members < 2 || !multiplies || gained <= most_gained) continue;
      most_gained = gained;
      end = last;
    }
    roles_.resize(end);
    return end > 0;
  }

  const std::optional<SampleTimes>& times_of(Item& item) {
    if (!item.asked) item.times = writes_samples(item.step) ? target_.sample_times(item.step, samples_) : std::nullopt;
    item.asked = true;
    return item.times;
  }

  /// Calls visit with each access, and returns true, if the step computes samples.
  static bool visit_samples(const Step& step, Visitor visit) {
    if (const auto* group = std::get_if<Group>(&step)) {
      if (!has_samples(*group)) return false;
      visit_group(*group, visit);
      return true;
    }
    const auto* primitive = std::get_if<Primitive>(&step);
    if (primitive == nullptr || !has_samples(*primitive)) return false;
    visit_primitive(*primitive, visit);
    return true;
  }

  /// Whether all that a step computes lies sample by sample.
  bool writes_samples(const Step& step) const {
    bool all = true;
    return visit_samples(step, [&](const Touch& touch) { all &= !touch.writes || is_apart(touch); }) && all;
  }

  /// Slots that members read, each sample the same, and none of them writes.
  std::vector<std::int32_t> shared_by(const std::vector<Step>& members) const {
    std::map<std::int32_t, bool> is_shared;  // of slots, in their order
    for (const Step& member : members) {
      visit_samples(member, [&](const Touch& touch) {
        const bool same = touch.whole || touch.access.strides[0] == 0;
        const auto [entry, is_new] = is_shared.try_emplace(touch.access.slot, !touch.writes && same);
        if (!is_new) entry->second &= !touch.writes && same;
      });
    }
    std::vector<std::int32_t> shared;
    for (const auto& [slot, is] : is_shared) {
      if (is) shared.push_back(slot);
    }
    return shared;
  }

  /// Whether the part of sample i is the i-th part of the slot. It is if such parts are as far from each other as they
  /// are large: nothing lies outside of the slot. (A mask that is packed has fewer bytes than elements.)
  bool is_apart(const Touch& touch) const {
    const Access& access = touch.access;
    if (touch.whole || access.offset_argument >= 0 || touch.space.rank() == 0) return false;
    if (touch.space[0] == 0 || touch.space[0] % samples_ != 0) return false;
    const std::int64_t all = touch.space[0] * access.strides[0] * static_cast<std::int64_t>(size_of(access.dtype));
    return all == static_cast<std::int64_t>(slot_at(access.slot).bytes);
  }

  static double gain_of(const Item& item) { return item.times->alone - item.times->together; }

  /// Whether a step can be a member, and takes no more time than those before it gained.
  bool may_join(Item& item) {
    if (!times_of(item) || gained_ + gain_of(item) <= 0 || may_fail(item.step, target_)) return false;
    bool may = true;
    bool reads_members = roles_.empty();
    std::size_t held = held_bytes_;
    visit_samples(item.step, [&](const Touch& touch) {
      const Use& use = use_of(touch.access.slot);
      const bool meets = use.written || (touch.writes && use.read);
      reads_members |= use.written && !touch.writes;
      may &= !use.written_after && !(touch.writes && use.read_after);
      may &= !meets || (use.apart && is_apart(touch));
      may &= !(touch.writes && fails_after_ && slot_at(touch.access.slot).kind == Slot::Kind::leaf);
      if (!use.read && !use.written) held += slot_at(touch.access.slot).bytes;
    });
    constexpr std::size_t most_held = std::size_t{64} << 20;
    return may && reads_members && held <= most_held;
  }

  /// Whether a step that is no member needs what members, or steps after them, compute, or may fail without them.
  bool must_follow(const Step& step) {
    bool must = may_fail(step, target_);
    for_each_access(step, [&](std::int32_t slot, bool writes) {
      const Use& use = use_of(slot);
      must |= use.written || use.written_after || (writes && (use.read || use.read_after));
    });
    return must;
  }

  void note(const Step& step, Role role) {
    if (role == Role::before) return;
    if (role == Role::after) {
      fails_after_ |= may_fail(step, target_);
      for_each_access(step, [&](std::int32_t slot, bool writes) {
        Use& use = use_of(slot);
        (writes ? use.written_after : use.read_after) = true;
      });
      return;
    }
    visit_samples(step, [&](const Touch& touch) {
      Use& use = use_of(touch.access.slot);
      if (!use.read && !use.written) held_bytes_ += slot_at(touch.access.slot).bytes;
      use.apart &= is_apart(touch);
      (touch.writes ? use.written : use.read) = true;
    });
  }

  Program& program_;
  const Target& target_;
  std::int64_t samples_;
  std::vector<Use> uses_;   // by slot
  std::vector<Item> rest_;  // the next one last
  std::vector<Role> roles_;
  double gained_ = 0;           // seconds, by the members
  std::size_t held_bytes_ = 0;  // of slots that members touch
  bool fails_after_ = false;    // a step after them may
};

/// The size of the batch that most contractions go through; 0 if there are none.
std::int64_t batch_of(const Program& program) {
  std::map<std::int64_t, int> counts;
  for (const Step& step : program.steps) {
    const auto* primitive = std::get_if<Primitive>(&step);
    if (primitive == nullptr || ops::row(primitive->op).family != ops::Family::contraction) continue;
    if (has_samples(*primitive)) ++counts[primitive->output.sizes[0]];
  }
  const auto most = std::ranges::max_element(counts, {}, [](const auto& count) { return count.second; });
  return most == counts.end() ? 0 : most->first;
}

/// Finds the temporaries that members of a bundle write and no other step touches.
void find_handed_on(Program& program) {
  constexpr std::int32_t nobody = -1;
  constexpr std::int32_t several = -2;
  std::vector<std::int32_t> users(program.slots.size(), nobody);
  std::vector<bool> written(program.slots.size(), false);
  for (std::size_t step = 0; step < program.steps.size(); ++step) {
    const auto self = static_cast<std::int32_t>(step);
    for_each_access(program.steps[step], [&](std::int32_t slot, bool writes) {
      const auto at = static_cast<std::size_t>(slot);
      users[at] = users[at] == nobody || users[at] == self ? self : several;
      if (writes) written[at] = true;
    });
  }
  for (std::size_t slot = 0; slot < users.size(); ++slot) {
    if (users[slot] < 0 || !written[slot] || program.slots[slot].kind != Slot::Kind::temporary) continue;
    auto* bundle = std::get_if<Bundle>(&program.steps[static_cast<std::size_t>(users[slot])]);
    if (bundle == nullptr || bundle->samples == 0) continue;
    bundle->handed_on.push_back({static_cast<std::int32_t>(slot), program.slots[slot].bytes});
  }
}

}  // namespace

void samples(Program& program, const Target& target) {
  const std::int64_t batch = batch_of(program);
  if (batch < 2) return;
  Finder(program, target, batch).run();
  find_handed_on(program);
}

}  // namespace russet::compile::passes
