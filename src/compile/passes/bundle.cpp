// Bundles: groups of one code that do not touch each other's results become one step, so that many small ones cost one
// launch. Before:                                After:
//   group: load w1, g1; ...; store w1'             bundle of 3: load w, g; ...; store w'
//   group: load w2, g2; ...; store w2'
//   group: load w3, g3; ...; store w3'
// A bundle floats down the list of steps and takes in what fits, until a step needs what it writes or writes what it
// reads.
#include <algorithm>
#include <array>

#include "compile/passes/passes.h"

namespace russet::compile::passes {
namespace {

/// Temporaries that a waiting group reads live longer: more bytes than this do not wait.
constexpr std::size_t waiting_bytes = std::size_t{64} << 10;
/// How many bundles wait at once: one bit each.
constexpr std::size_t waiting_bundles = 8;

/// Alike but for the values of run-time arguments, sizes and places.
bool same_code(const Group& a, const Group& b) {
  const auto same_instruction = [](Instruction x, const Instruction& y) {
    if ((x.argument < 0) == (y.argument < 0)) x.argument = y.argument;
    return x == y;
  };
  const auto alike = [](const Access& x, const Access& y) {
    return x.dtype == y.dtype && (x.offset_argument < 0) == (y.offset_argument < 0) &&
           std::equal(x.strides.begin(), x.strides.end(), y.strides.begin(), y.strides.end(),
                      [](std::int64_t p, std::int64_t q) { return (p == 0) == (q == 0) && (p == 1) == (q == 1); });
  };
  return a.space.rank() == b.space.rank() &&
         std::equal(a.code.begin(), a.code.end(), b.code.begin(), b.code.end(), same_instruction) &&
         std::equal(a.accesses.begin(), a.accesses.end(), b.accesses.begin(), b.accesses.end(), alike);
}

class Bundler {
 public:
  Bundler(Program& program, std::size_t largest) : program_(program), largest_(largest), marks_(program.slots.size()) {}

  void run() {
    for (Step& step : program_.steps) take(step);
    for (std::size_t i = 0; i < waiting_bundles; ++i) close(i);
    program_.steps = std::move(done_);
  }

 private:
  /// Which waiting bundles read and write a slot.
  struct Mark {
    std::uint32_t reads = 0, writes = 0;
  };

  void take(Step& step) {
    std::uint32_t conflicts = 0;
    for_each_access(step, [&](const Access& access, bool writes) {
      const Mark& mark = marks_[static_cast<std::size_t>(access.slot)];
      conflicts |= mark.writes | (writes ? mark.reads : 0);
    });
    for (std::size_t i = 0; i < waiting_bundles; ++i) {
      if ((conflicts >> i) & 1U) close(i);
    }
    if (may_wait(step)) {
      join(std::move(step));
    } else {
      done_.push_back(std::move(step));
    }
  }

  bool may_wait(const Step& step) const {
    const auto* group = std::get_if<Group>(&step);
    if (!group || group->kind != Group::Kind::elementwise) return false;
    std::size_t held = 0;
    for_each_access(step, [&](const Access& access, bool writes) {
      const Slot& slot = program_.slots[static_cast<std::size_t>(access.slot)];
      if (!writes && slot.kind == Slot::Kind::temporary) held += slot.bytes;
    });
    return held <= waiting_bytes;
  }

  void join(Step step) {
    const Group& group = std::get<Group>(step);
    std::size_t place = waiting_bundles;
    for (std::size_t i = 0; i < waiting_bundles && place == waiting_bundles; ++i) {
      if (!waiting_[i].empty() && same_code(waiting_[i].front(), group)) place = i;
    }
    if (place == waiting_bundles) {
      place = next_++ % waiting_bundles;  // the one that has waited longest makes room
      close(place);
    }
    for_each_access(step, [&](const Access& access, bool writes) {
      Mark& mark = marks_[static_cast<std::size_t>(access.slot)];
      (writes ? mark.writes : mark.reads) |= 1U << place;
    });
    waiting_[place].push_back(std::get<Group>(std::move(step)));
    if (waiting_[place].size() == largest_) close(place);
  }

  void close(std::size_t place) {
    std::vector<Group> groups = std::move(waiting_[place]);
    waiting_[place].clear();
    if (groups.empty()) return;
    for (const Group& group : groups) {
      for (const Access& access : group.accesses) {
        if (access.slot < 0) continue;
        Mark& mark = marks_[static_cast<std::size_t>(access.slot)];
        mark.reads &= ~(1U << place);
        mark.writes &= ~(1U << place);
      }
    }
    if (groups.size() == 1) {
      done_.emplace_back(std::move(groups.front()));
    } else {
      done_.emplace_back(Bundle{std::move(groups)});
    }
  }

  Program& program_;
  std::size_t largest_;
  std::vector<Mark> marks_;  // by slot
  std::array<std::vector<Group>, waiting_bundles> waiting_;
  std::size_t next_ = 0;
  std::vector<Step> done_;
};

}  // namespace

void bundle(Program& program, const Target& target) {
  if (target.largest_bundle() > 1) Bundler(program, target.largest_bundle()).run();
}

}  // namespace russet::compile::passes
