// Steps that run sample by sample, on a device made up for the purpose: which steps do, and what comes before and after
// them.
#include <gtest/gtest.h>

#include <array>

#include "compile/passes/passes.h"
#include "group_builder.h"
#include "nothing.h"
#include "without_pass.h"

namespace russet::test {
namespace {

using compile::Bundle;
using compile::Operand;
using compile::Primitive;
using compile::Slot;
using compile::Step;

constexpr std::int64_t samples = 8;
constexpr std::int64_t width = 16;  // of a sample

/// Steps take 2 seconds alone and half of one with others, where none is named.
class ByTheSecond final : public PlansAlone {
 public:
  std::optional<compile::SampleTimes> sample_times(const Step& step, std::int64_t count) const override {
    EXPECT_EQ(count, samples);
    double together = 0.5;
    compile::for_each_access(step, [&](std::int32_t slot, bool writes) {
      if (writes && slow.contains(slot)) together = slow.at(slot);
    });
    return compile::SampleTimes{.launch = 1, .alone = 2, .together = together};
  }
  bool integers_divide_by_zero() const override { return divide_by_zero; }

  std::map<std::int32_t, double> slow;  // by what they write: seconds with others
  bool divide_by_zero = true;           // else such a step fails
};

/// A list of steps over slots of [samples, width] floats.
class Steps {
 public:
  int slot(Slot::Kind kind = Slot::Kind::temporary, std::int64_t elements = samples * width) {
    program.slots.push_back({.kind = kind, .bytes = static_cast<std::size_t>(elements) * 4});
    if (kind == Slot::Kind::leaf || kind == Slot::Kind::output) program.slots.back().index = 0;
    return static_cast<int>(program.slots.size()) - 1;
  }
  int weight() { return slot(Slot::Kind::temporary, width * width); }

  static Operand operand(int slot, const Shape& sizes) {
    return {{slot, DType::float32, 0, -1, contiguous_strides(sizes)}, sizes};
  }
  int multiply(int x, int weight) {
    const int y = slot();
    Primitive p;
    p.op = Op::matmul;
    p.inputs = {operand(x, {samples, width}), operand(weight, {width, width})};
    p.output = operand(y, {samples, width});
    program.steps.emplace_back(std::move(p));
    return y;
  }
  /// The sum of what lies so in two slots, over [samples, width].
  int add(int a, int b, const Strides& of_a = {width, 1}, const Strides& of_b = {width, 1}) {
    return add_to(slot(), a, b, of_a, of_b);
  }
  int add_to(int y, int a, int b, const Strides& of_a = {width, 1}, const Strides& of_b = {width, 1}) {
    Builder builder(Group::Kind::elementwise, {samples, width}, 2);
    const auto first = builder.load(a, DType::float32, of_a);
    const auto second = builder.load(b, DType::float32, of_b);
    builder.store(builder.compute(Op::add, DType::float32, first, second), y, {width, 1});
    program.steps.emplace_back(builder.group);
    return y;
  }
  /// What `compute` makes of a slot's elements, by a group over [samples, width].
  template <class Compute>
  int apply(Group::Kind kind, int split, int from, const Compute& compute) {
    const int y = slot();
    Builder builder(kind, {samples, width}, split);
    builder.store(compute(builder, builder.load(from, DType::float32, {width, 1})), y, {width, 1});
    program.steps.emplace_back(builder.group);
    return y;
  }
  /// Over all samples.
  int add_up(int x) { return add_up_to(slot(Slot::Kind::temporary, width), x); }
  int add_up_to(int y, int x) {
    Builder builder(Group::Kind::column, {samples, width}, 1);
    return add_up(builder, builder.load(x, DType::float32, {width, 1}), y);
  }
  /// The sums of a and b.
  int add_up(int a, int b, const Strides& of_b) {
    Builder builder(Group::Kind::column, {samples, width}, 1);
    const auto first = builder.load(a, DType::float32, {width, 1});
    const auto second = builder.load(b, DType::float32, of_b);
    return add_up(builder, builder.compute(Op::add, DType::float32, first, second), slot(Slot::Kind::temporary, width));
  }
  /// Rows of x by an index that nobody has checked.
  int take(int x, int index) {
    const int y = slot();
    Primitive p;
    p.op = Op::take;
    p.attributes = ops::Indexing{.lead = {samples}};
    p.inputs = {operand(x, {samples, width}), operand(index, {samples})};
    p.output = operand(y, {samples, width});
    program.steps.emplace_back(std::move(p));
    return y;
  }

  /// What the steps write, after the pass: those that run sample by sample in brackets.
  std::string order(const compile::Target& target = ByTheSecond()) {
    compile::passes::samples(program, target);
    std::string text;
    for (const Step& step : program.steps) {
      const auto* bundle = std::get_if<Bundle>(&step);
      if (bundle != nullptr) {
        EXPECT_EQ(bundle->samples, samples);
        text += "[";
      }
      compile::for_each_member(step, [&](const Step& member) {
        compile::for_each_access(member, [&](std::int32_t slot, bool writes) {
          if (writes) text += std::to_string(slot) + " ";
        });
      });
      if (bundle != nullptr) text.back() = ']';
      if (bundle != nullptr) text += " ";
    }
    if (!text.empty()) text.pop_back();
    return text;
  }

  compile::Program program;

 private:
  int add_up(Builder& builder, std::int16_t value, int y) {
    builder.store(builder.reduce(Op::sum, DType::float32, value), y, {0, 1}, Extent::reduced);
    program.steps.emplace_back(builder.group);
    return y;
  }
};

class Samples : public ::testing::Test {
 protected:
  /// Four products, each of the one before.
  std::array<int, 4> chain() {
    std::array<int, 4> all{};
    int last = x;
    for (int& one : all) one = last = steps.multiply(last, weight);
    return all;
  }

  Steps steps;
  int x = steps.slot(Slot::Kind::leaf);
  int weight = steps.weight();
};

std::string text(std::initializer_list<int> slots) {
  std::string text;
  for (const int slot : slots) text += (text.empty() ? "" : " ") + std::to_string(slot);
  return text;
}
std::string bundle(std::initializer_list<int> slots) { return "[" + text(slots) + "]"; }

TEST_F(Samples, RunStepsThatReadEachOther) {
  const int a = steps.multiply(x, weight);
  const int b = steps.add(a, x);
  const int c = steps.multiply(b, weight);
  EXPECT_EQ(steps.order(), bundle({a, b, c}));
}

TEST_F(Samples, AreNotWorthALaunchWithoutProducts) {
  const int a = steps.add(x, x);
  const int b = steps.add(a, x);
  steps.multiply(x, weight);  // says how many samples there are
  const int c = b + 1;
  EXPECT_EQ(steps.order(), text({a, b, c}));
}

TEST_F(Samples, LeaveOutWhatReadsNothingOfTheirs) {
  const int a = steps.multiply(x, weight);
  const int other = steps.add(x, x);
  const int b = steps.multiply(a, weight);
  EXPECT_EQ(steps.order(), text({other}) + " " + bundle({a, b}));
}

TEST_F(Samples, LetComeBeforeWhatTheyNeedAndAfterWhatNeedsThem) {
  const int a = steps.multiply(x, weight);
  const int sums = steps.add_up(a);
  const int first = steps.add_up(x);
  const int b = steps.add(a, first, {width, 1}, {0, 1});
  const int more = steps.add_up(b);
  const int c = steps.multiply(b, weight);
  EXPECT_EQ(steps.order(), text({first}) + " " + bundle({a, b, c}) + " " + text({sums, more}));
}

TEST_F(Samples, DoNotReadWhatComesAfterThem) {
  const int a = steps.multiply(x, weight);
  const int sums = steps.add_up(a);
  const int b = steps.add(a, sums, {width, 1}, {0, 1});
  const int c = steps.multiply(b, weight);
  EXPECT_EQ(steps.order(), text({a, sums}) + " " + bundle({b, c}));
}

TEST_F(Samples, DoNotReadOtherSamples) {
  const int square = steps.slot(Slot::Kind::temporary, samples * samples);
  Builder builder(Group::Kind::elementwise, {samples, samples}, 2);
  const int a = steps.multiply(x, weight);
  // Columns of what samples wrote as rows.
  const auto value = builder.load(a, DType::float32, {1, width});
  builder.store(builder.compute(Op::exp, DType::float32, value), square, {samples, 1});
  steps.program.steps.emplace_back(builder.group);
  EXPECT_EQ(steps.order(), text({a, square}));
}

TEST_F(Samples, DoNotReadAPartThatARunFinds) {
  const int a = steps.multiply(x, weight);
  Builder builder(Group::Kind::elementwise, {samples, width}, 2);
  const int b = steps.slot();
  const auto value = builder.load(a, DType::float32, {width, 1});
  builder.group.accesses.back().offset_argument = 0;
  builder.store(builder.compute(Op::exp, DType::float32, value), b, {width, 1});
  steps.program.steps.emplace_back(builder.group);
  EXPECT_EQ(steps.order(), text({a, b}));
}

/// Twelve rows of what eight samples wrote: some begin in one sample and end in the next.
TEST_F(Samples, AreNotRowsThatTwoShare) {
  constexpr std::int64_t wide = width * 3 / 2;
  const int a = steps.slot(Slot::Kind::temporary, samples * wide);
  const int b = steps.slot(Slot::Kind::temporary, samples * wide);
  Primitive p;
  p.op = Op::matmul;
  p.inputs = {Steps::operand(x, {samples, width}), Steps::operand(weight, {width, wide})};
  p.output = Steps::operand(a, {samples, wide});
  steps.program.steps.emplace_back(std::move(p));
  Builder builder(Group::Kind::row, {samples * 3 / 2, width}, 1);
  const auto value = builder.load(a, DType::float32, {width, 1});
  const auto largest = builder.reduce(Op::amax, DType::float32, value);
  builder.store(builder.compute(Op::sub, DType::float32, value, largest), b, {width, 1});
  steps.program.steps.emplace_back(builder.group);
  EXPECT_EQ(steps.order(), text({a, b}));
}

/// Of all samples the largest, which each would need.
TEST_F(Samples, AreNotRowsOfSeveral) {
  const int a = steps.multiply(x, weight);
  const int b = steps.apply(Group::Kind::row, 0, a, [](Builder& builder, std::int16_t value) {
    const auto largest = builder.reduce(Op::amax, DType::float32, value);
    return builder.compute(Op::sub, DType::float32, value, largest);
  });
  EXPECT_EQ(steps.order(), text({a, b}));
}

/// The same, by a product's epilogue.
TEST_F(Samples, HaveNoEpilogueOverRowsOfSeveral) {
  const int a = steps.multiply(x, weight);
  const int b = steps.multiply(a, weight);
  Builder builder(Group::Kind::row, {samples, width}, 0);
  const auto product = builder.load(-1, DType::float32, {width, 1});
  const auto largest = builder.reduce(Op::amax, DType::float32, product);
  builder.store(builder.compute(Op::sub, DType::float32, product, largest), b, {width, 1});
  std::get<Primitive>(steps.program.steps.back()).epilogue = builder.group;
  EXPECT_EQ(steps.order(), text({a, b}));
}

TEST_F(Samples, DoNotAddUpColumnsBesideRows) {
  const int a = steps.multiply(x, weight);
  const int b = steps.apply(Group::Kind::row, 1, a, [](Builder& builder, std::int16_t value) {
    const auto largest = builder.reduce(Op::amax, DType::float32, value);
    builder.push({.kind = Kind::reduce,
                  .op = Op::sum,
                  .dtype = DType::float32,
                  .extent = Extent::column,
                  .inputs = {value, -1, -1}});
    return builder.compute(Op::sub, DType::float32, value, largest);
  });
  EXPECT_EQ(steps.order(), text({a, b}));
}

/// Half of a slot has parts of another size than all of it.
TEST_F(Samples, DoNotShareASlotInParts) {
  const int wide = steps.slot(Slot::Kind::temporary, samples * width * 2);
  const int a = steps.multiply(x, weight);
  steps.add_to(wide, a, a);
  const int b = steps.add(wide, x, {2 * width, 1});
  EXPECT_EQ(steps.order(), text({a, wide, b}));
}

/// What one sample's rows are is, to the next product, all of its second factor.
TEST_F(Samples, DoNotTakeTheirResultsAsWeights) {
  const int wide = steps.slot(Slot::Kind::temporary, samples * samples);
  Primitive p;
  p.op = Op::matmul;
  p.inputs = {Steps::operand(x, {samples, width}), Steps::operand(weight, {width, samples})};
  p.output = Steps::operand(wide, {samples, samples});
  steps.program.steps.emplace_back(p);
  const int y = steps.slot(Slot::Kind::temporary, samples * samples);
  const int other = steps.slot(Slot::Kind::leaf, samples * samples);
  p.inputs = {Steps::operand(other, {samples, samples}), Steps::operand(wide, {samples, samples})};
  p.output = Steps::operand(y, {samples, samples});
  steps.program.steps.emplace_back(p);
  EXPECT_EQ(steps.order(), text({wide, y}));
}

TEST_F(Samples, DoNotOverwriteWhatLaterStepsRead) {
  const int a = steps.multiply(x, weight);
  const int state = steps.slot();
  const int b = steps.add(a, state, {width, 1}, {0, 1});  // its first row, by all samples
  steps.add_to(state, b, b);
  EXPECT_EQ(steps.order(), bundle({a, b}) + " " + text({state}));
}

TEST_F(Samples, AreNotOverwrittenByWhatComesBefore) {
  const int state = steps.slot(Slot::Kind::temporary, width);
  const int a = steps.multiply(x, weight);
  const int b = steps.add(a, state, {width, 1}, {0, 1});
  steps.add_up_to(state, x);  // overwrites what a member has read
  const int c = steps.multiply(b, weight);
  EXPECT_EQ(steps.order(), bundle({a, b, c}) + " " + text({state}));
}

/// A step after them reads what a later one would overwrite.
TEST_F(Samples, WaitForReadersOfWhatTheyOverwrite) {
  const int state = steps.slot();
  const int a = steps.multiply(x, weight);
  const int sums = steps.add_up(a, state, {width, 1});
  const int b = steps.multiply(a, weight);
  steps.add_to(state, b, b);
  EXPECT_EQ(steps.order(), bundle({a, b}) + " " + text({sums, state}));
}

/// Nor does a step come before them that overwrites what one after them reads.
TEST_F(Samples, DoNotFollowWhatFollowsAReader) {
  const int state = steps.slot(Slot::Kind::temporary, width);
  const int a = steps.multiply(x, weight);
  const int sums = steps.add_up(a, state, {0, 1});
  steps.add_up_to(state, x);
  const int b = steps.multiply(a, weight);
  EXPECT_EQ(steps.order(), bundle({a, b}) + " " + text({sums, state}));
}

TEST_F(Samples, ComeBeforeWhatMayFail) {
  const int index = steps.slot(Slot::Kind::leaf, samples);
  const int a = steps.multiply(x, weight);
  const int rows = steps.take(x, index);
  const int b = steps.multiply(a, weight);
  EXPECT_EQ(steps.order(), bundle({a, b}) + " " + text({rows}));
}

TEST_F(Samples, DoNotFailThemselves) {
  for (const bool divide_by_zero : {true, false}) {
    Steps three;
    ByTheSecond target;
    target.divide_by_zero = divide_by_zero;
    const int leaf = three.slot(Slot::Kind::leaf);
    const int a = three.multiply(leaf, three.weight());
    const int b = three.apply(Group::Kind::elementwise, 2, a, [](Builder& builder, std::int16_t value) {
      const auto whole = builder.compute(Op::cast, DType::int32, value);
      return builder.compute(Op::cast, DType::float32, builder.compute(Op::fmod, DType::int32, whole, whole));
    });
    EXPECT_EQ(three.order(target), divide_by_zero ? bundle({a, b}) : text({a, b}));
  }
}

/// Else the leaf would be gone when the step fails.
TEST_F(Samples, OverwriteNoLeafBeforeWhatMayFail) {
  const int index = steps.slot(Slot::Kind::leaf, samples);
  const int state = steps.slot(Slot::Kind::leaf);
  const int a = steps.multiply(x, weight);
  const int rows = steps.take(x, index);
  const int b = steps.multiply(a, weight);
  steps.add_to(state, b, b);
  EXPECT_EQ(steps.order(), bundle({a, b}) + " " + text({rows, state}));
}

TEST_F(Samples, EndWhereMostIsGained) {
  ByTheSecond target;
  const auto [a, b, c, d] = chain();
  target.slow = {{c, 4}};  // a loss of 2 that d does not make up for
  EXPECT_EQ(steps.order(target), bundle({a, b}) + " " + text({c, d}));
}

TEST_F(Samples, TakeALossThatLaterStepsMakeUpFor) {
  ByTheSecond target;
  const auto [a, b, c, d] = chain();
  target.slow = {{c, 3}};
  EXPECT_EQ(steps.order(target), bundle({a, b, c, d}));
}

TEST_F(Samples, TakeNoStepThatCostsMoreThanAllGained) {
  ByTheSecond target;
  const auto [a, b, c, d] = chain();
  target.slow = {{c, 6}};
  EXPECT_EQ(steps.order(target), bundle({a, b}) + " " + text({c, d}));
}

/// It does not keep others out either.
TEST_F(Samples, GoOnBesideAStepThatCostsTooMuch) {
  ByTheSecond target;
  const int a = steps.multiply(x, weight);
  const int b = steps.multiply(a, weight);
  const int c = steps.multiply(b, weight);
  const int d = steps.multiply(b, weight);
  target.slow = {{c, 6}};
  EXPECT_EQ(steps.order(target), bundle({a, b, d}) + " " + text({c}));
}

TEST_F(Samples, LetComeAfterWhatNeedsWhatComesAfter) {
  const int a = steps.multiply(x, weight);
  const int sums = steps.add_up(a);
  const int shifted = steps.add(sums, x, {0, 1});
  const int b = steps.multiply(a, weight);
  EXPECT_EQ(steps.order(), bundle({a, b}) + " " + text({sums, shifted}));
}

TEST_F(Samples, AreWorthMoreThanTheLaunch) {
  ByTheSecond target;
  const int a = steps.multiply(x, weight);
  const int b = steps.multiply(a, weight);
  target.slow = {{a, 1.5}, {b, 1.5}};  // gains 1, which the launch takes
  EXPECT_EQ(steps.order(target), text({a, b}));
}

TEST_F(Samples, HoldLittleMemory) {
  for (const std::size_t mebibytes : {60, 65}) {
    Steps two;
    const int large = two.weight();
    two.program.slots.back().bytes = mebibytes << 20;
    const int leaf = two.slot(Slot::Kind::leaf);
    const int a = two.multiply(leaf, two.weight());
    const int b = two.multiply(a, large);
    EXPECT_EQ(two.order(), mebibytes == 60 ? bundle({a, b}) : text({a, b}));
  }
}

TEST_F(Samples, HoldLittleMemoryTogether) {
  const auto large = [&] {
    const int slot = steps.weight();
    steps.program.slots.back().bytes = std::size_t{40} << 20;
    return slot;
  };
  const int a = steps.multiply(x, weight);
  const int b = steps.multiply(a, large());
  const int c = steps.multiply(b, large());
  EXPECT_EQ(steps.order(), bundle({a, b}) + " " + text({c}));
}

/// A device may read leaves ahead, so no member's result takes the memory of what it reads.
TEST_F(Samples, TakeNoMemoryOfLeavesThatTheyRead) {
  for (const bool together : {false, true}) {
    Steps two;
    const int leaf = two.slot(Slot::Kind::leaf);
    const int result = two.slot(Slot::Kind::output);
    two.program.leaves.push_back({-1, true, false});
    two.program.outputs.push_back({-1, -1});
    two.add_to(result, leaf, leaf);
    if (together) two.program.steps = {Bundle{std::move(two.program.steps), samples}};
    two.program.scratch = {0};
    compile::passes::arena(two.program, ByTheSecond(), 0);
    EXPECT_EQ(two.program.outputs[0].donor, together ? -1 : 0);
  }
}

/// Of a bundle's slots, those that no other step touches are its own, and those that no member writes are read by all
/// samples alike unless each has a part of its own.
TEST_F(Samples, KnowWhatTheyHandOnAndShare) {
  const int other_weight = steps.weight();
  const int bias = steps.slot(Slot::Kind::leaf, width);
  const int result = steps.slot(Slot::Kind::output);
  steps.program.slots[static_cast<std::size_t>(weight)].kind = Slot::Kind::leaf;
  steps.program.slots[static_cast<std::size_t>(other_weight)].kind = Slot::Kind::leaf;
  const int a = steps.multiply(x, weight);
  const int b = steps.add(a, bias, {width, 1}, {0, 1});
  const int c = steps.multiply(b, other_weight);
  steps.add_to(result, c, x);
  const int sums = steps.add_up(b);
  EXPECT_EQ(steps.order(), bundle({a, b, c, result}) + " " + text({sums}));
  const auto& members = std::get<Bundle>(steps.program.steps[0]);
  const std::vector<compile::HandedOn> handed_on{{a, samples * width * 4}, {c, samples * width * 4}};
  EXPECT_EQ(members.handed_on, handed_on);
  EXPECT_EQ(members.shared, (std::vector<std::int32_t>{weight, other_weight, bias}));
}

TEST_F(Samples, KeepWhatIsTheirsWhenSlotsAreRenamed) {
  const int a = steps.multiply(x, weight);
  steps.multiply(a, weight);
  steps.order();
  compile::rename_slots(steps.program.steps[0], [](std::int32_t slot) { return slot + 100; });
  const auto& members = std::get<Bundle>(steps.program.steps[0]);
  ASSERT_EQ(members.handed_on.size(), 2U);
  EXPECT_EQ(members.handed_on[0].slot, a + 100);
  EXPECT_EQ(members.shared, std::vector<std::int32_t>{weight + 100});
}

/// The pass is one of those that a plan is made by.
TEST_F(Samples, ArePartOfPlans) {
  compile::Program program;
  const auto add = [&](ops::Op op, const Shape& shape, compile::Inputs inputs) {
    program.values.push_back({{{DType::float32, shape}, op, {}}, inputs, -1, -1, contiguous_strides(shape)});
    return static_cast<compile::ValueId>(program.values.size() - 1);
  };
  const auto leaf = [&](const Shape& shape) {
    const compile::ValueId id = add(Op::leaf, shape, {});
    program.values.back().leaf = static_cast<std::int32_t>(program.leaves.size());
    program.leaves.push_back({id, false, false});
    return id;
  };
  const compile::ValueId input = leaf({samples, width});
  const compile::ValueId first = add(Op::matmul, {samples, width}, {input, leaf({width, width})});
  program.outputs.push_back({add(Op::matmul, {samples, width}, {first, leaf({width, width})}), -1});
  const compile::Plan plan = compile::make_plan(std::move(program), ByTheSecond());
  ASSERT_EQ(plan.program.steps.size(), 1U);
  EXPECT_EQ(std::get<Bundle>(plan.program.steps[0]).samples, samples);
}

}  // namespace
}  // namespace russet::test
