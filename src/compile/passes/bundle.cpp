// Bundles: steps that do not touch each other's results become one, so that many small ones cost one launch. Before:
//   group: load w1, g1; ...; store w1'             After:
//   group: load w2, g2; ...; store w2'               bundle of 3: load w, g; ...; store w'
//   group: load w3, g3; ...; store w3'
// A bundle floats down the list of steps and takes in what fits, until a step needs what it writes or writes what it
// reads. Then, if the device wishes, it takes in what fits of the next steps, if they need none of those between. The
// device says what fits. Temporaries that a waiting step reads live longer, and so do results that come early, so that
// happens only if they are small, or where the plan's peak lies elsewhere.
#include <algorithm>
#include <utility>

#include "compile/failure.h"
#include "compile/passes/lives.h"
#include "compile/passes/passes.h"

namespace russet::compile::passes {
namespace {

class Bundler {
 public:
  Bundler(Program& program, const Target& target)
      : program_(program),
        target_(target),
        limits_(target.bundle_limits()),
        marks_(program.slots.size()),
        lives_(lives_of(program)),
        taken_(program.steps.size(), false),
        sharing_(program.steps.size()),
        passed_(program.slots.size()),
        waiting_(limits_.waiting) {
    if (lives_.peak < target.bytes_apart()) limits_.window = limits_.window_apart;
  }

  void run() {
    for (now_ = 0; now_ < program_.steps.size(); ++now_) {
      if (!taken_[now_]) take(program_.steps[now_]);
    }
    for (std::size_t i = 0; i < waiting_.size(); ++i) close(i);
    program_.steps = std::move(done_);
  }

 private:
  /// Which waiting bundles read and write a slot.
  struct Mark {
    std::uint32_t reads = 0, writes = 0;
  };
  /// The last time that steps which come first were seen to touch a slot.
  struct Passed {
    std::size_t read = 0, written = 0;
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
    const Sharing& sharing = sharing_of(now_);
    const std::size_t held = held_by(step);
    const bool large = held > small_bytes;
    const bool waits = !large || fits(held);
    if (sharing.kind.empty() || (!waits && limits_.window == 0)) {
      done_.push_back(std::move(step));
      return;
    }
    const std::size_t place = place_for(sharing);  // a bundle that makes room pulls steps, none past this one
    join(place, step, sharing, large && waits ? held : 0);
    taken_[now_] = true;
    if (!waits || waiting_[place].members.size() == limits_.members) close(place);
  }

  const Sharing& sharing_of(std::size_t step) {
    // A step that may fail runs alone, so that nothing fails with it.
    const Step& own = program_.steps[step];
    if (!sharing_[step]) sharing_[step] = may_fail(own, target_) ? Sharing{} : target_.sharing(own);
    return *sharing_[step];
  }

  /// Bundles that read a leaf whose memory this step's result could take; they must run first.
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
      if (has_code(bundle, sharing)) return i;
      if (bundle.codes.size() < limits_.codes) place = i;
    }
    return place;
  }

  /// Likewise, or the place of the one that has waited longest, which makes room.
  std::size_t place_for(const Sharing& sharing) {
    std::size_t place = find_bundle(sharing);
    if (place == waiting_.size()) {
      place = next_++ % waiting_.size();
      close(place);
      waiting_[place].kind = sharing.kind;
    }
    return place;
  }

  void join(std::size_t place, Step& step, const Sharing& sharing, std::size_t held) {
    Waiting& bundle = waiting_[place];
    for_each_access(step, [&](std::int32_t slot, bool writes) {
      Mark& mark = marks_[static_cast<std::size_t>(slot)];
      (writes ? mark.writes : mark.reads) |= 1U << place;
    });
    if (!has_code(bundle, sharing)) bundle.codes.push_back(sharing.code);
    bundle.held_bytes += held;
    bundle.members.push_back(std::move(step));
  }

  static bool has_code(const Waiting& bundle, const Sharing& sharing) {
    return std::find(bundle.codes.begin(), bundle.codes.end(), sharing.code) != bundle.codes.end();
  }

  /// Moves later steps into the bundle if they depend on no step that has not run yet.
  void pull(std::size_t place) {
    ++round_;
    const std::size_t end = std::min(now_ + limits_.window, program_.steps.size());
    for (std::size_t i = now_; i < end && waiting_[place].members.size() < limits_.members; ++i) {
      if (taken_[i]) continue;
      Step& step = program_.steps[i];
      if (i > now_ && may_come_early(step, i) && fits_bundle(waiting_[place], sharing_of(i))) {
        lengthen_lives(step, i);
        join(place, step, sharing_of(i), 0);
        taken_[i] = true;
        continue;
      }
      for_each_access(step, [&](std::int32_t slot, bool writes) {
        Passed& passed = passed_[static_cast<std::size_t>(slot)];
        (writes ? passed.written : passed.read) = round_;
      });
    }
  }

  bool fits_bundle(const Waiting& bundle, const Sharing& sharing) const {
    return bundle.kind == sharing.kind && (has_code(bundle, sharing) || bundle.codes.size() < limits_.codes);
  }

  /// Whether a step can run before all from now on, which have been passed, and before all that wait. Large outputs
  /// keep their place: they may take the memory of a leaf that others read until then. So does what overwrites a leaf,
  /// which a step that fails before it would leave as it was.
  bool may_come_early(const Step& step, std::size_t at) const {
    bool may = true;
    std::size_t results = 0;
    for_each_access(step, [&](std::int32_t slot, bool writes) {
      const Mark& mark = marks_[static_cast<std::size_t>(slot)];
      const Passed& passed = passed_[static_cast<std::size_t>(slot)];
      may &= mark.writes == 0 && passed.written != round_;
      if (!writes) return;
      may &= mark.reads == 0 && passed.read != round_;
      may &= is_temporary(slot) || (slot_at(slot).bytes <= small_bytes && slot_at(slot).kind != Slot::Kind::leaf);
      if (is_temporary(slot)) results += slot_at(slot).bytes;
    });
    for (std::size_t i = now_; may && results > small_bytes && i < at; ++i) may &= lives_.fits(i, results);
    return may;
  }

  void lengthen_lives(const Step& step, std::size_t at) {
    for_each_access(step, [&](std::int32_t slot, bool writes) {
      if (!writes || !is_temporary(slot)) return;
      for (std::size_t i = now_; i < at; ++i) lives_.bytes[i] += slot_at(slot).bytes;
    });
  }

  void close(std::size_t place) {
    if (waiting_[place].members.empty()) return;
    pull(place);
    Waiting bundle = std::exchange(waiting_[place], {});
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
    done_.emplace_back(Bundle{std::move(bundle.members)});
  }

  Program& program_;
  const Target& target_;
  BundleLimits limits_;
  std::vector<Mark> marks_;  // by slot
  Lives lives_;
  std::size_t now_ = 0;
  std::vector<bool> taken_;  // by step: it is in a bundle
  std::vector<std::optional<Sharing>> sharing_;
  std::vector<Passed> passed_;  // by slot
  std::size_t round_ = 0;
  std::vector<Waiting> waiting_;
  std::size_t next_ = 0;
  std::vector<Step> done_;
};

}  // namespace

void bundle(Program& program, const Target& target) {
  if (target.bundle_limits().members > 1) Bundler(program, target).run();
}

}  // namespace russet::compile::passes
