// Where temporaries lie on a device that runs steps at once which do not need each other.
#include <gtest/gtest.h>

#include <random>

#include "compile/passes/passes.h"
#include "compile/passes/step_order.h"
#include "compile/plan.h"
#include "nothing.h"

namespace russet {
namespace {

using compile::Slot;

constexpr std::size_t slot_bytes = 1000;
constexpr std::size_t placed_bytes = 1024;  // of a slot, with what aligns the next one

/// A program of steps that each read some slots and write one.
class Steps {
 public:
  std::int32_t slot(Slot::Kind kind, std::int32_t index = -1) {
    program.slots.push_back({kind, index, slot_bytes, 0, -1});
    return static_cast<std::int32_t>(program.slots.size() - 1);
  }
  std::int32_t leaf() {
    program.leaves.push_back({});
    return slot(Slot::Kind::leaf, static_cast<std::int32_t>(program.leaves.size() - 1));
  }
  /// In the memory of that leaf, or in its own.
  std::int32_t output(std::int32_t donor = -1) {
    program.outputs.push_back({-1, donor});
    return slot(Slot::Kind::output, static_cast<std::int32_t>(program.outputs.size() - 1));
  }
  std::int32_t temporary() { return slot(Slot::Kind::temporary); }

  void step(const std::vector<std::int32_t>& reads, std::int32_t written, std::size_t scratch = 0) {
    compile::Primitive primitive;
    for (const std::int32_t read : reads) {
      primitive.inputs.emplace_back();
      primitive.inputs.back().access.slot = read;
    }
    primitive.output.access.slot = written;
    program.steps.emplace_back(primitive);
    program.scratch.push_back(scratch);
  }

  compile::Program program;
};

/// Two chains of a temporary each, one after the other.
Steps two_chains(std::size_t scratch = 0) {
  Steps steps;
  for (int chain = 0; chain < 2; ++chain) {
    const std::int32_t between = steps.temporary();
    steps.step({steps.leaf()}, between, scratch);
    steps.step({between}, steps.output());
  }
  return steps;
}

std::size_t arena_bytes(Steps steps, std::size_t bytes_apart) {
  compile::passes::arena(steps.program, PlansAlone(), bytes_apart);
  return steps.program.arena_bytes;
}

TEST(Arena, LaysTemporariesOfIndependentStepsApart) {
  EXPECT_EQ(arena_bytes(two_chains(), 0), placed_bytes);
  EXPECT_EQ(arena_bytes(two_chains(), 2 * placed_bytes), 2 * placed_bytes);
}

TEST(Arena, UsesMemoryAgainWhereApartTheyWouldTakeTooMuch) {
  EXPECT_EQ(arena_bytes(two_chains(), 2 * placed_bytes - 1), placed_bytes);
}

TEST(Arena, LaysWhatStepsNeedToRunApart) {
  EXPECT_EQ(arena_bytes(two_chains(slot_bytes), 0), 2 * placed_bytes);
  EXPECT_EQ(arena_bytes(two_chains(slot_bytes), 1 << 20), 4 * placed_bytes);
}

TEST(Arena, UsesMemoryAgainAlongAChain) {
  Steps steps;
  std::int32_t last = steps.leaf();
  for (int i = 0; i < 5; ++i) {
    const std::int32_t next = steps.temporary();
    steps.step({last}, next);
    last = next;
  }
  steps.step({last}, steps.output());
  EXPECT_EQ(arena_bytes(steps, 1 << 20), 2 * placed_bytes);
}

TEST(Arena, UsesMemoryAgainWhereAPlanHasToFit) {
  class Apart final : public PlansAlone {
   public:
    std::size_t bytes_apart() const override { return std::size_t{1} << 30; }
  };
  compile::Program program;
  const Shape shape{250};
  const auto add = [&](ops::Op op, compile::ValueId input) {
    const ops::Attributes attributes = op == ops::Op::cumsum ? ops::Attributes{ops::Axes{1}} : ops::Attributes{};
    program.values.push_back(
        {{{DType::float32, shape}, op, attributes}, {input, -1, -1}, -1, -1, contiguous_strides(shape)});
    return static_cast<compile::ValueId>(program.values.size() - 1);
  };
  for (int chain = 0; chain < 2; ++chain) {
    const compile::ValueId leaf = add(ops::Op::leaf, -1);
    program.values.back().leaf = chain;
    program.leaves.push_back({leaf, false, false});
    program.outputs.push_back({add(ops::Op::cumsum, add(ops::Op::cumsum, leaf)), -1});
  }
  EXPECT_EQ(compile::make_plan(program, Apart()).program.arena_bytes, 2 * placed_bytes);
  const std::size_t room = 2 * slot_bytes + placed_bytes;
  EXPECT_EQ(compile::make_plan(program, Apart(), room).total_bytes, room);
  EXPECT_EQ(compile::make_plan(program, Apart(), room + placed_bytes).total_bytes, room + placed_bytes);
}

TEST(StepOrder, KnowsWhoReadsWritesAndOverwrites) {
  Steps steps;
  const std::int32_t parameter = steps.leaf();
  const std::int32_t a = steps.temporary();
  const std::int32_t b = steps.temporary();
  steps.step({parameter}, a);                  // 0
  steps.step({parameter}, b);                  // 1: as 0
  steps.step({a}, steps.output());             // 2: after 0
  steps.step({b}, steps.output(/*donor=*/0));  // 3: after both that read the parameter
  steps.step({b}, a);                          // 4: after 1, and after all that wrote and read a
  const compile::passes::StepOrder order(steps.program);
  const std::vector<std::vector<std::size_t>> expected{{}, {}, {0}, {0, 1}, {0, 1, 2}};
  for (std::size_t later = 0; later < expected.size(); ++later) {
    for (std::size_t earlier = 0; earlier < later; ++earlier) {
      EXPECT_EQ(order.waits(later, earlier), std::ranges::count(expected[later], earlier) == 1)
          << later << " for " << earlier;
    }
  }
}

/// Steps that read a few of the slots before them.
Steps drawn(std::uint32_t seed, int count) {
  std::mt19937 random(seed);
  Steps steps;
  std::vector<std::int32_t> values{steps.leaf(), steps.leaf()};
  for (int i = 0; i < count; ++i) {
    std::vector<std::int32_t> reads;
    for (int read = 0; read < 2; ++read) reads.push_back(values[random() % values.size()]);
    values.push_back(steps.temporary());
    steps.step(reads, values.back(), random() % 3 == 0 ? slot_bytes : 0);
  }
  return steps;
}

bool touches(const compile::Step& step, std::int32_t slot) {
  bool touched = false;
  compile::for_each_access(step, [&](std::int32_t other, bool) { touched |= other == slot; });
  return touched;
}

/// Each temporary is written once here, so a step waits for those that write what it reads, and for whom these wait.
std::vector<std::vector<bool>> waits_by_reads(const compile::Program& program) {
  const std::size_t count = program.steps.size();
  std::vector<std::vector<bool>> waits(count, std::vector<bool>(count));
  for (std::size_t later = 0; later < count; ++later) {
    compile::for_each_access(program.steps[later], [&](std::int32_t slot, bool writes) {
      for (std::size_t earlier = 0; !writes && earlier < later; ++earlier) {
        if (std::get<compile::Primitive>(program.steps[earlier]).output.access.slot != slot) continue;
        waits[later][earlier] = true;
        for (std::size_t before = 0; before < earlier; ++before) {
          if (waits[earlier][before]) waits[later][before] = true;
        }
      }
    });
  }
  return waits;
}

/// Memory in the arena, and the steps that touch it.
struct Placed {
  std::size_t offset;
  std::vector<std::size_t> steps;
};

std::vector<Placed> placed_in(const compile::Program& program, const std::vector<bool>& has_scratch) {
  std::vector<Placed> all;
  for (std::size_t step = 0; step < program.steps.size(); ++step) {
    const std::int32_t slot = std::get<compile::Primitive>(program.steps[step]).output.access.slot;
    all.push_back({program.slots[static_cast<std::size_t>(slot)].offset, {}});
    for (std::size_t user = 0; user < program.steps.size(); ++user) {
      if (touches(program.steps[user], slot)) all.back().steps.push_back(user);
    }
    if (has_scratch[step]) all.push_back({program.scratch[step], {step}});
  }
  return all;
}

/// Whether the first step of one waits for all of the other's.
bool follows(const Placed& later, const Placed& earlier, const std::vector<std::vector<bool>>& waits) {
  const std::size_t first = later.steps.front();
  return std::ranges::all_of(earlier.steps, [&](std::size_t step) { return first > step && waits[first][step]; });
}

TEST(Arena, OrdersNoStepsThatDoNotNeedEachOther) {
  int shared = 0;
  for (std::uint32_t seed = 0; seed < 50; ++seed) {
    Steps steps = drawn(seed, 24);
    const std::vector<bool> has_scratch(steps.program.scratch.begin(), steps.program.scratch.end());
    compile::passes::arena(steps.program, PlansAlone(), std::size_t{1} << 30);
    const auto waits = waits_by_reads(steps.program);
    const std::vector<Placed> all = placed_in(steps.program, has_scratch);
    for (std::size_t i = 0; i < all.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        const auto [low, high] = std::minmax(all[i].offset, all[j].offset);
        if (high >= low + slot_bytes) continue;
        ++shared;
        EXPECT_TRUE(follows(all[i], all[j], waits) || follows(all[j], all[i], waits))
            << "seed " << seed << ": " << i << " and " << j;
      }
    }
  }
  EXPECT_GT(shared, 0);  // memory is used again where nothing waits for that
}

}  // namespace
}  // namespace russet
