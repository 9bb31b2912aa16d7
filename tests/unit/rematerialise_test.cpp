// The pass rematerialise on programs that are made up: what they compute stays the same, in less memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <vector>

#include "compile/passes/lives.h"
#include "compile/passes/passes.h"
#include "compile/passes/reduced_group.h"
#include "compile/plan.h"

namespace russet::compile {
namespace {

/// Compiles nothing.
class NoDevice final : public Target {
 public:
  std::unique_ptr<Kernel> compile(const Step&) const override { return nullptr; }
};

/// A program of groups, written step by step.
class Writer {
 public:
  Program program;

  std::int32_t slot(Slot::Kind kind, std::int64_t elements) {
    Slot made;
    made.kind = kind;
    made.bytes = static_cast<std::size_t>(elements) * 4;
    if (kind == Slot::Kind::leaf) {
      made.index = static_cast<std::int32_t>(program.leaves.size());
      program.leaves.push_back({-1, true, true});
    }
    program.slots.push_back(made);
    return static_cast<std::int32_t>(program.slots.size()) - 1;
  }
  std::int32_t leaf(std::int64_t elements) { return slot(Slot::Kind::leaf, elements); }
  std::int32_t temporary(std::int64_t elements) { return slot(Slot::Kind::temporary, elements); }

  /// A step that reads and writes slots, and takes `work` operations an element. No two steps compute the same. What it
  /// writes first leads to what it writes second.
  void step(const std::vector<std::int32_t>& reads, const std::vector<std::int32_t>& writes, int work) {
    Group group;
    group.space = {static_cast<std::int64_t>(program.slots[static_cast<std::size_t>(writes.front())].bytes / 4)};
    group.split = 1;
    const auto access = [&](std::int32_t slot) {
      group.accesses.push_back({slot, DType::float32, 0, -1, Strides{1}});
      return static_cast<std::int16_t>(group.accesses.size() - 1);
    };
    const auto add = [&](const Instruction& in) {
      group.code.push_back(in);
      return static_cast<std::int16_t>(group.code.size() - 1);
    };
    const auto sum = [&](std::int16_t a, std::int16_t b) {
      Instruction in{Instruction::Kind::compute};
      in.op = ops::Op::add;
      in.inputs = {a, b, -1};
      return add(in);
    };
    Instruction tag{Instruction::Kind::constant};
    tag.number.integer = ++tags_;
    const std::int16_t own = add(tag);
    std::int16_t value = own;
    for (const std::int32_t slot : reads) {
      Instruction load{Instruction::Kind::load};
      load.access = access(slot);
      value = sum(value, add(load));
    }
    for (int i = 0; i < work; ++i) value = sum(own, value);
    for (const std::int32_t slot : writes) {
      value = sum(value, own);
      Instruction store{Instruction::Kind::store};
      store.inputs[0] = value;
      store.access = access(slot);
      add(store);
    }
    program.steps.emplace_back(std::move(group));
  }

 private:
  std::int64_t tags_ = 0;
};

/// What lies in each slot at the end, as a number that tells every operation that led to it. Fails where a step reads
/// what was never written.
std::map<std::int32_t, std::uint64_t> run(const Program& program) {
  std::map<std::int32_t, std::uint64_t> memory;
  for (std::size_t slot = 0; slot < program.slots.size(); ++slot) {
    if (program.slots[slot].kind == Slot::Kind::leaf) memory[static_cast<std::int32_t>(slot)] = slot + 1;
  }
  for (const Step& step : program.steps) {
    const auto& group = std::get<Group>(step);
    std::vector<std::uint64_t> values;
    for (const Instruction& in : group.code) {
      const auto input = [&](std::size_t i) { return values.at(static_cast<std::size_t>(in.inputs[i])); };
      const std::int32_t slot = in.access >= 0 ? group.accesses[static_cast<std::size_t>(in.access)].slot : -1;
      std::uint64_t value = static_cast<std::uint64_t>(in.number.integer);
      if (in.kind == Instruction::Kind::compute)
        value = (input(0) ^ (input(1) >> 7)) * 0x9E3779B97F4A7C15ULL + input(1);
      if (in.kind == Instruction::Kind::load) {
        EXPECT_TRUE(memory.contains(slot)) << "slot " << slot << " is read before it is written";
        value = memory[slot];
      }
      if (in.kind == Instruction::Kind::store) memory[slot] = input(0);
      values.push_back(value);
    }
  }
  return memory;
}

/// Of leaves and outputs.
std::map<std::int32_t, std::uint64_t> results(const Program& program) {
  std::map<std::int32_t, std::uint64_t> memory = run(program);
  std::erase_if(memory, [&](const auto& entry) {
    return program.slots[static_cast<std::size_t>(entry.first)].kind == Slot::Kind::temporary;
  });
  return memory;
}

double operations(const Program& program) {
  double sum = 0;
  for (const Step& step : program.steps) sum += operations_of(step);
  return sum;
}

std::size_t peak(const Program& program) { return passes::lives_of(program).peak; }

Program within(Program program, std::size_t room) {
  program.room = room;
  passes::rematerialise(program, NoDevice());
  return program;
}

/// Training of a network of layers: y = matmul(x, w); h = gelu(y); x' = h + x; and backward, with updates of the
/// weights in place.
Program network(int layers, std::int64_t width) {
  Writer writer;
  std::vector<std::int32_t> w(static_cast<std::size_t>(layers));
  for (std::int32_t& weight : w) weight = writer.leaf(width);
  std::vector<std::int32_t> x{writer.temporary(width)};
  std::vector<std::int32_t> y;
  std::vector<std::int32_t> h;
  writer.step({writer.leaf(width)}, {x[0]}, 1);
  for (std::size_t i = 0; i < w.size(); ++i) {
    y.push_back(writer.temporary(4 * width));
    h.push_back(writer.temporary(4 * width));
    x.push_back(writer.temporary(width));
    writer.step({x[i], w[i]}, {y[i]}, 400);
    writer.step({y[i]}, {h[i]}, 4);
    writer.step({h[i], x[i]}, {x[i + 1]}, 400);
  }
  std::int32_t gradient = writer.temporary(width);
  writer.step({x.back()}, {gradient}, 1);
  for (std::size_t i = w.size(); i-- > 0;) {
    const std::int32_t dh = writer.temporary(4 * width);
    const std::int32_t dw = writer.temporary(width);
    const std::int32_t next = writer.temporary(width);
    writer.step({gradient, h[i]}, {dw}, 400);
    writer.step({gradient, y[i]}, {dh}, 400);
    writer.step({dh, x[i], gradient}, {next}, 400);
    writer.step({w[i], dw}, {w[i]}, 2);
    gradient = next;
  }
  writer.step({gradient}, {writer.slot(Slot::Kind::output, width)}, 1);
  return writer.program;
}

constexpr std::int64_t waiting_elements = 1 << 16;

TEST(Rematerialise, WithRoomNothingChanges) {
  const Program program = network(8, 4096);
  EXPECT_EQ(within(program, peak(program)).steps, program.steps);
}

TEST(Rematerialise, TheCheapestGoesFirst) {
  const Program program = network(8, 4096);
  // Of each layer but the last h can be computed from y in one pass over memory.
  const Program smaller = within(program, peak(program) * 3 / 4);
  EXPECT_LE(peak(smaller), peak(program) * 3 / 4);
  EXPECT_EQ(results(smaller), results(program));
  EXPECT_LE(operations(smaller), operations(program) * 1.02);
}

TEST(Rematerialise, GoesOnWithWhatCostsMore) {
  const Program program = network(16, 4096);
  for (const double share : {0.6, 0.5, 0.4, 0.3}) {
    const auto room = static_cast<std::size_t>(static_cast<double>(peak(program)) * share);
    const Program smaller = within(program, room);
    EXPECT_LE(peak(smaller), room) << share;
    EXPECT_EQ(results(smaller), results(program)) << share;
    // Nothing is computed more than once again.
    EXPECT_LE(operations(smaller), operations(program) * 1.4) << share;
    EXPECT_EQ(within(program, room).steps, smaller.steps) << share;
  }
}

TEST(Rematerialise, WhatCannotBeMadeToFitStillComputesTheSame) {
  const Program program = network(6, 4096);
  const Program smallest = within(program, 1);
  EXPECT_LT(peak(smallest), peak(program) / 2);
  EXPECT_EQ(results(smallest), results(program));
}

/// A value made of a leaf waits until what is large is over. `meanwhile`: what else happens to the leaf.
Program waiting_value(const std::function<void(Writer&, std::int32_t leaf)>& meanwhile, bool read_at_the_end) {
  Writer writer;
  const std::int32_t leaf = writer.leaf(waiting_elements);
  const std::int32_t value = writer.temporary(waiting_elements);
  const std::int32_t large = writer.temporary(4 * waiting_elements);
  const std::int32_t sum = writer.temporary(waiting_elements);
  writer.step({leaf}, {value}, 1);
  meanwhile(writer, leaf);
  writer.step({leaf}, {large}, 1);
  writer.step({large}, {sum}, 1);
  std::vector<std::int32_t> reads{value, sum};
  if (read_at_the_end) reads.push_back(leaf);
  writer.step(reads, {writer.slot(Slot::Kind::output, waiting_elements)}, 1);
  return writer.program;
}

TEST(Rematerialise, AValueWhoseSourceWasOverwrittenStays) {
  const std::size_t room = waiting_elements * 4 * 5;
  const auto nothing = [](Writer&, std::int32_t) {};
  const auto overwrite = [](Writer& writer, std::int32_t leaf) { writer.step({leaf}, {leaf}, 1); };
  const Program kept = waiting_value(nothing, true);
  EXPECT_GT(within(kept, room).steps.size(), kept.steps.size());
  const Program overwritten = waiting_value(overwrite, true);
  EXPECT_EQ(within(overwritten, room).steps, overwritten.steps);
}

TEST(Rematerialise, ALeafWhoseMemoryAnOutputMayTakeIsNotKeptLonger) {
  const std::size_t room = waiting_elements * 4 * 5;
  const Program program = waiting_value([](Writer&, std::int32_t) {}, false);
  EXPECT_EQ(within(program, room).steps, program.steps);
}

TEST(Rematerialise, APartOfAGroupIsEnoughWhereItsOtherResultsAreInMemory) {
  Writer writer;
  const std::int64_t size = 1 << 16;
  const std::int32_t first = writer.temporary(size);
  const std::int32_t second = writer.temporary(size);
  const std::int32_t large = writer.temporary(4 * size);
  const std::int32_t sum = writer.temporary(size);
  const std::int32_t source = writer.temporary(size);
  writer.step({writer.leaf(size)}, {source}, 100);
  writer.step({source}, {first, second}, 100);
  writer.step({first}, {large}, 1);
  writer.step({large, first}, {sum}, 1);
  writer.step({first, second, sum}, {writer.slot(Slot::Kind::output, size)}, 1);
  const Program program = writer.program;
  const std::size_t room = peak(program) - size * 4;
  const Program smaller = within(program, room);
  EXPECT_LE(peak(smaller), room);
  EXPECT_EQ(results(smaller), results(program));
  // The second result is one operation away from the first.
  EXPECT_LE(operations(smaller), operations(program) + 2 * static_cast<double>(size));
}

/// A row group: s = sum(x), t = s + s, y = x + s; s, t and y are stored. Slots: x 0, s 1, t 2, y 3.
Group rows() {
  Group group;
  group.kind = Group::Kind::row;
  group.space = {4, 8};
  group.split = 1;
  group.accesses = {{0, DType::float32, 0, -1, Strides{8, 1}},
                    {1, DType::float32, 0, -1, Strides{1, 0}},
                    {2, DType::float32, 0, -1, Strides{1, 0}},
                    {3, DType::float32, 0, -1, Strides{8, 1}}};
  const auto add = [&](Instruction::Kind kind, Extent extent, std::int16_t a, std::int16_t b, std::int16_t access) {
    Instruction in{kind};
    in.op = kind == Instruction::Kind::reduce ? ops::Op::sum : ops::Op::add;
    in.extent = extent;
    in.inputs = {a, b, -1};
    in.access = access;
    group.code.push_back(in);
  };
  add(Instruction::Kind::load, Extent::full, -1, -1, 0);
  add(Instruction::Kind::reduce, Extent::reduced, 0, -1, -1);
  add(Instruction::Kind::store, Extent::reduced, 1, -1, 1);
  add(Instruction::Kind::compute, Extent::reduced, 1, 1, -1);
  add(Instruction::Kind::store, Extent::reduced, 3, -1, 2);
  add(Instruction::Kind::compute, Extent::full, 0, 1, -1);
  add(Instruction::Kind::store, Extent::full, 5, -1, 3);
  return group;
}

std::optional<Group> part_of_rows(std::int32_t wanted, std::vector<std::int32_t> in_memory) {
  return passes::reduced_group(
      rows(), [&](std::int32_t slot) { return slot == wanted; },
      [&](std::int32_t slot) { return std::find(in_memory.begin(), in_memory.end(), slot) != in_memory.end(); });
}

std::size_t count(const Group& group, Instruction::Kind kind) {
  return static_cast<std::size_t>(
      std::count_if(group.code.begin(), group.code.end(), [&](const Instruction& in) { return in.kind == kind; }));
}

TEST(ReducedGroup, KeepsWhatTheStoreNeeds) {
  const std::optional<Group> part = part_of_rows(3, {});
  ASSERT_TRUE(part);
  EXPECT_EQ(part->kind, Group::Kind::row);
  EXPECT_EQ(part->accesses.size(), 2U);
  EXPECT_EQ(part->code.size(), 4U);
  EXPECT_EQ(count(*part, Instruction::Kind::reduce), 1U);
}

TEST(ReducedGroup, IsElementwiseOnceWhatWasReducedIsLoaded) {
  const std::optional<Group> part = part_of_rows(3, {1});
  ASSERT_TRUE(part);
  EXPECT_EQ(part->kind, Group::Kind::elementwise);
  EXPECT_EQ(part->split, part->space.rank());
  EXPECT_EQ(count(*part, Instruction::Kind::reduce), 0U);
  EXPECT_EQ(count(*part, Instruction::Kind::load), 2U);
  EXPECT_TRUE(std::all_of(part->code.begin(), part->code.end(),
                          [](const Instruction& in) { return in.extent == Extent::full; }));
}

TEST(ReducedGroup, IsNoneWhereReducedValuesWouldBeStoredWithoutAReduction) {
  EXPECT_FALSE(part_of_rows(2, {1}));
  const std::optional<Group> part = part_of_rows(2, {});
  ASSERT_TRUE(part);
  EXPECT_EQ(count(*part, Instruction::Kind::reduce), 1U);
}

/// Programs of all shapes: several results a step, chains, late readers, writes to leaves.
Program random_program(std::mt19937& random) {
  const auto below = [&](std::size_t count) { return static_cast<std::size_t>(random()) % count; };
  Writer writer;
  std::vector<std::int32_t> slots;
  for (int i = 0; i < 4; ++i) slots.push_back(writer.leaf(2048));
  for (int i = 0; i < 120; ++i) {
    std::vector<std::int32_t> reads;
    for (std::size_t count = 1 + below(3); count > 0; --count) {
      const std::size_t back = below(4) == 0 ? slots.size() : std::min<std::size_t>(slots.size(), 8);
      reads.push_back(slots[slots.size() - 1 - below(back)]);
    }
    std::sort(reads.begin(), reads.end());
    reads.erase(std::unique(reads.begin(), reads.end()), reads.end());
    if (below(12) == 0) {
      const std::int32_t leaf = slots[below(4)];
      writer.step(reads, {leaf}, 2);
      continue;
    }
    std::vector<std::int32_t> writes;
    if (below(10) == 0) writes.push_back(below(2) == 0 ? slots[below(4)] : writer.slot(Slot::Kind::output, 2048));
    for (std::size_t count = 1 + (below(4) == 0 ? 1 : 0); count > 0; --count) {
      writes.push_back(writer.temporary(static_cast<std::int64_t>(1024 << below(5))));
    }
    writer.step(reads, writes, 1 + static_cast<int>(below(100)));
    slots.push_back(writes.back());
  }
  for (int i = 0; i < 8; ++i) {
    writer.step({slots[below(slots.size())], slots.back()}, {writer.slot(Slot::Kind::output, 2048)}, 1);
  }
  return writer.program;
}

TEST(Rematerialise, RandomProgramsComputeTheSame) {
  std::mt19937 random(7);
  int fitted = 0;
  for (int i = 0; i < 200; ++i) {
    const Program program = random_program(random);
    const std::size_t room = peak(program) * (5 + random() % 5) / 10;
    const Program smaller = within(program, room);
    ASSERT_EQ(results(smaller), results(program)) << "program " << i;
    ASSERT_LE(peak(smaller), peak(program)) << "program " << i;
    fitted += peak(smaller) <= room ? 1 : 0;
  }
  EXPECT_GE(fitted, 60);
}

}  // namespace
}  // namespace russet::compile
