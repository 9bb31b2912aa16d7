// Bundles: steps that do not touch each other's results become one, so that many small ones cost one launch. Before:
//   group: load w1, g1; ...; store w1'             After:
//   group: load w2, g2; ...; store w2'               bundle of 3: load w, g; ...; store w'
//   group: load w3, g3; ...; store w3'
// A bundle floats down the list of steps and takes in what fits, until a step needs what it writes or writes what it
// reads. The device says what fits. Temporaries that a waiting step reads live longer, so it waits only if they are
// small, or where the plan's peak lies elsewhere.
#include <algorithm>
#include <utility>

#include "compile/passes/lives.h"
#include "compile/passes/passes.h"

namespace russet::compile::passes {
namespace {

/// Temporaries of so many bytes may live longer anywhere.
constexpr std::size_t small_bytes = std::size_t{64} << 10;

Work work_of(Step step) {
  if (auto* group = std::get_if<Group>(&step)) return std::move(*group);
  if (auto* primitive = std::get_if<Primitive>(&step)) return std::move(*primitive);
  return std::get<Stage>(std::move(step));
}

class Bundler {
 public:
  Bundler(Program& program, const Target& target)
      : program_(program),
        target_(target),
        limits_(target.bundle_limits()),
        marks_(program.slots.size()),
        lives_(lives_of(program)),
        waiting_(limits_.waiting) {}

  void run() {
    for (now_ = 0; now_ < program_.steps.size(); ++now_) take(program_.steps[now_]);
    for (std::size_t i = 0; i < waiting_.size(); ++i) close(i);
    program_.steps = std::move(done_);
  }

 private:
  /// Which waiting bundles read and write a slot.
  struct Mark {
    std::uint32_t reads = 0, writes = 0;
  };
  struct Waiting {
    std::string kind;
    std::vector<std::string> codes;
    std::vector<Step> members;
    std::size_t held_bytes = 0;  // of temporaries that would have ended, if they are not small
  };

  const Slot& slot_at(std::int32_t slot) const { return program_.slots[static_cast<std::size_t>(slot)]; }
  bool is_temporary(std::int32_t slot) const { return slot_at(slot).kind == Slot::Kind::temporary; }

  void take(Step& step) {
    std::uint32_t conflicts = 0;
    for_each_access(step, [&](std::int32_t slot, bool writes) {
      const Mark& mark = marks_[static_cast<std::size_t>(slot)];
      conflicts |= mark.writes | (writes ? mark.reads : 0);
    });
    conflicts |= readers_of_donors(step);
    for (std::size_t i = 0; i < waiting_.size(); ++i) {
      if ((conflicts >> i) & 1U) close(i);
    }
    for (std::size_t i = 0; i < waiting_.size() && !fits(0); ++i) {
      if (waiting_[i].held_bytes > 0) close(i);
    }
    Sharing sharing = target_.sharing(step);
    const std::size_t held = held_by(step);
    const bool large = held > small_bytes;
    if (sharing.kind.empty() || (large && !fits(held))) {
      done_.push_back(std::move(step));
    } else {
      join(std::move(step), std::move(sharing), large ? held : 0);
    }
  }

  /// Bundles that read a leaf whose memory a result of this step may take: it takes it only if nobody reads it later.
  std::uint32_t readers_of_donors(const Step& step) const {
    std::vector<std::size_t> results;  // bytes
    for_each_access(step, [&](std::int32_t slot, bool writes) {
      if (writes && slot_at(slot).kind == Slot::Kind::output) results.push_back(slot_at(slot).bytes);
    });
    std::uint32_t readers = 0;
    for_each_access(step, [&](std::int32_t slot, bool) {
      const Slot& place = slot_at(slot);
      if (place.kind != Slot::Kind::leaf || place.bytes <= small_bytes) return;
      const bool donor = program_.leaves[static_cast<std::size_t>(place.index)].donatable &&
                         std::find(results.begin(), results.end(), place.bytes) != results.end();
      if (donor) readers |= marks_[static_cast<std::size_t>(slot)].reads;
    });
    return readers;
  }

  /// Bytes of temporaries that would end with the step.
  std::size_t held_by(const Step& step) const {
    std::size_t all = 0;
    std::size_t ending = 0;
    for_each_access(step, [&](std::int32_t slot, bool writes) {
      if (writes || !is_temporary(slot)) return;
      all += slot_at(slot).bytes;
      if (lives_.last[static_cast<std::size_t>(slot)] == static_cast<std::int32_t>(now_)) ending += slot_at(slot).bytes;
    });
    return limits_.held_bytes == 0 || all <= small_bytes ? all : std::max(ending, small_bytes + 1);
  }

  /// Whether what is held, and so many bytes more, can live during this step and the next.
  bool fits(std::size_t more) const {
    std::size_t held = more;
    for (const Waiting& bundle : waiting_) held += bundle.held_bytes;
    return held == 0 || (held <= limits_.held_bytes && lives_.fits(now_, held));
  }

  /// The waiting bundle that takes the step: one that holds its code, else one that has room for another.
  std::size_t find_bundle(const Sharing& sharing) const {
    std::size_t place = waiting_.size();
    for (std::size_t i = 0; i < waiting_.size(); ++i) {
      const Waiting& bundle = waiting_[i];
      if (bundle.members.empty() || bundle.kind != sharing.kind) continue;
      if (std::find(bundle.codes.begin(), bundle.codes.end(), sharing.code) != bundle.codes.end()) return i;
      if (bundle.codes.size() < limits_.codes) place = i;
    }
    return place;
  }

  void join(Step step, Sharing sharing, std::size_t held) {
    std::size_t place = find_bundle(sharing);
    if (place == waiting_.size()) {
      place = next_++ % waiting_.size();  // the one that has waited longest makes room
      close(place);
      waiting_[place].kind = std::move(sharing.kind);
    }
    Waiting& bundle = waiting_[place];
    for_each_access(step, [&](std::int32_t slot, bool writes) {
      Mark& mark = marks_[static_cast<std::size_t>(slot)];
      (writes ? mark.writes : mark.reads) |= 1U << place;
    });
    if (std::find(bundle.codes.begin(), bundle.codes.end(), sharing.code) == bundle.codes.end()) {
      bundle.codes.push_back(std::move(sharing.code));
    }
    bundle.held_bytes += held;
    bundle.members.push_back(std::move(step));
    if (bundle.members.size() == limits_.members) close(place);
  }

  void close(std::size_t place) {
    Waiting bundle = std::exchange(waiting_[place], {});
    if (bundle.members.empty()) return;
    for (const Step& member : bundle.members) {
      for_each_access(member, [&](std::int32_t slot, bool) {
        Mark& mark = marks_[static_cast<std::size_t>(slot)];
        mark.reads &= ~(1U << place);
        mark.writes &= ~(1U << place);
      });
    }
    if (bundle.members.size() == 1) {
      done_.push_back(std::move(bundle.members.front()));
      return;
    }
    Bundle closed;
    for (Step& member : bundle.members) closed.works.push_back(work_of(std::move(member)));
    done_.emplace_back(std::move(closed));
  }

  Program& program_;
  const Target& target_;
  BundleLimits limits_;
  std::vector<Mark> marks_;  // by slot
  Lives lives_;
  std::size_t now_ = 0;
  std::vector<Waiting> waiting_;
  std::size_t next_ = 0;
  std::vector<Step> done_;
};

}  // namespace

void bundle(Program& program, const Target& target) {
  if (target.bundle_limits().members > 1) Bundler(program, target).run();
}

}  // namespace russet::compile::passes
