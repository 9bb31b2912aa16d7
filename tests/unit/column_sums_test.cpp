// Row groups that add up columns, too: what becomes of two groups that are united, and which steps the pass unites.
#include <gtest/gtest.h>

#include <algorithm>

#include "compile/passes/passes.h"
#include "compile/plan.h"
#include "nothing.h"
#include "united_groups.h"
#include "without_pass.h"

namespace russet {
namespace {

using compile::Access;
using compile::Extent;
using compile::Group;
using compile::Instruction;
using compile::Program;
using compile::Slot;
using compile::Step;
using test::Builder;

TEST(UnitedGroups, DoWhatBothDoOneAfterTheOther) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    test::GroupPair pair = test::PairMaker(seed).make(3, 5, 12);
    test::Memory wanted = pair.rows.memory;
    for (const Group* group : {&pair.first(), &pair.second()}) test::run_reference(*group, wanted, {});
    Builder united = pair.united();
    test::run_reference(united.group, united.memory, {});
    ASSERT_TRUE(united.memory == wanted) << "seed " << seed << "\n"
                                         << to_string(pair.first()) << to_string(pair.second())
                                         << to_string(united.group);
  }
}

constexpr std::int64_t rows = 6, columns = 8;
const Strides elements{columns, 1};
const Strides a_row{0, 1};

/// Adds up the columns of `from`.
Group sums_of(int from, int to) {
  Builder b(Group::Kind::column, {rows, columns}, 1);
  b.store(b.reduce(ops::Op::sum, DType::float32, b.load(from, DType::float32, elements)), to, a_row, Extent::reduced);
  return b.group;
}

/// Takes the largest of its row off each element of `from`.
Group distances_of(int from, int to, const Strides& strides = elements) {
  Builder b(Group::Kind::row, {rows, columns}, 1);
  const auto x = b.load(from, DType::float32, strides);
  const auto largest = b.reduce(ops::Op::amax, DType::float32, x);
  b.store(b.compute(ops::Op::sub, DType::float32, x, largest), to, elements);
  return b.group;
}

Group copy_of(int from, int to) {
  Builder b(Group::Kind::elementwise, {rows, columns}, 2);
  b.store(b.load(from, DType::float32, elements), to, elements);
  return b.group;
}

std::size_t count(const Group& group, Instruction::Kind kind) {
  return static_cast<std::size_t>(std::ranges::count(group.code, kind, &Instruction::kind));
}

TEST(UnitedGroups, LoadOnce) {
  const std::optional<Group> both = compile::passes::united_group(distances_of(0, 1), sums_of(0, 2));
  ASSERT_TRUE(both);
  EXPECT_EQ(both->kind, Group::Kind::row);
  EXPECT_EQ(count(*both, Instruction::Kind::load), 1U);
  EXPECT_EQ(count(*both, Instruction::Kind::reduce), 2U);
  EXPECT_EQ(both->code.back().extent, Extent::column);
}

TEST(UnitedGroups, AreNoneWhereTheSecondNeedsAllElementsOfTheFirst) {
  // What the first adds up, for all rows.
  Group reads = distances_of(0, 1);
  reads.accesses[0] = {2, DType::float32, 0, -1, a_row};
  EXPECT_FALSE(compile::passes::united_group(sums_of(0, 2), reads));
  // Other elements of what the first stores.
  EXPECT_FALSE(compile::passes::united_group(distances_of(0, 1), [] {
    Group shifted = sums_of(1, 2);
    shifted.accesses[0].offset = 1;
    return shifted;
  }()));
  // The second overwrites what the first loads.
  EXPECT_FALSE(compile::passes::united_group(sums_of(0, 2), distances_of(1, 0)));
}

TEST(UnitedGroups, AreNoneOverOtherElements) {
  Builder other(Group::Kind::column, {columns, rows}, 1);
  const auto x = other.load(0, DType::float32, {rows, 1});
  other.store(other.reduce(ops::Op::sum, DType::float32, x), 2, a_row, Extent::reduced);
  EXPECT_FALSE(compile::passes::united_group(distances_of(0, 1), other.group));
  EXPECT_FALSE(compile::passes::united_group(distances_of(0, 1), distances_of(0, 2)));
  Group nothing = sums_of(0, 2);
  nothing.space = {0, columns};
  EXPECT_FALSE(compile::passes::united_group(distances_of(0, 1), nothing));
}

class AddsUpColumns final : public PlansAlone {
 public:
  bool adds_up_columns(const Group&) const override { return true; }
};

/// Steps over slots of [rows, columns] or, from number `first_sum` on, of [columns]; the first `leaves` are leaves, and
/// the last an output.
Program program_of(std::vector<Step> steps, int leaves, int first_sum, int count) {
  Program program;
  for (int i = 0; i < count; ++i) {
    Slot slot;
    slot.kind = i < leaves ? Slot::Kind::leaf : i + 1 == count ? Slot::Kind::output : Slot::Kind::temporary;
    slot.bytes = static_cast<std::size_t>(i < first_sum ? rows * columns : columns) * sizeof(float);
    program.slots.push_back(slot);
  }
  program.steps = std::move(steps);
  return program;
}

std::size_t steps_after(Program program) {
  compile::passes::column_sums(program, AddsUpColumns());
  return program.steps.size();
}

TEST(ColumnSums, AreARowGroupsInEitherOrder) {
  EXPECT_EQ(steps_after(program_of({distances_of(0, 1), sums_of(1, 2)}, 1, 2, 3)), 1U);
  EXPECT_EQ(steps_after(program_of({sums_of(0, 2), distances_of(0, 1)}, 1, 2, 3)), 1U);
  EXPECT_EQ(steps_after(program_of({sums_of(0, 2), distances_of(0, 1), sums_of(1, 3)}, 1, 2, 4)), 1U);
}

TEST(ColumnSums, StoreNothingForTheRowGroupAlone) {
  Program program = program_of({distances_of(0, 1), sums_of(1, 2)}, 1, 2, 3);
  compile::passes::column_sums(program, AddsUpColumns());
  EXPECT_EQ(count(std::get<Group>(program.steps.at(0)), Instruction::Kind::store), 1U);
  // Somebody else reads it.
  program = program_of({distances_of(0, 1), sums_of(1, 2), distances_of(1, 3)}, 1, 2, 4);
  compile::passes::column_sums(program, AddsUpColumns());
  ASSERT_EQ(program.steps.size(), 2U);
  EXPECT_EQ(count(std::get<Group>(program.steps[0]), Instruction::Kind::store), 2U);
}

/// The gradients of a normalisation without a mean, and of the bias that its input was the sum with: one step.
TEST(ColumnSums, OfANormsGradientsAreOneStep) {
  Program program;
  const auto add = [&](ops::Op op, const Shape& shape, compile::Inputs inputs, ops::Attributes attributes = {}) {
    const auto id = static_cast<compile::ValueId>(program.values.size());
    program.values.push_back({{{DType::float32, shape}, op, std::move(attributes)}, inputs, -1, -1});
    program.values.back().strides = contiguous_strides(shape);
    if (op == ops::Op::leaf) {
      program.values.back().leaf = static_cast<std::int32_t>(program.leaves.size());
      program.leaves.push_back({id, false, false});
    }
    return id;
  };
  const Shape all{rows, columns}, of_rows{rows, 1}, of_columns{columns};
  const auto gradient = add(ops::Op::leaf, all, {});
  const auto normalised = add(ops::Op::leaf, all, {});
  const auto product = add(ops::Op::mul, all, {gradient, normalised});
  const auto share = add(ops::Op::sum, of_rows, {product}, ops::Axes{2});
  const auto part = add(ops::Op::mul, all, {normalised, share});
  const auto result = add(ops::Op::sub, all, {gradient, part});
  const auto weight = add(ops::Op::sum, of_columns, {product}, ops::Axes{1});
  const auto bias = add(ops::Op::sum, of_columns, {result}, ops::Axes{1});
  for (const auto output : {result, weight, bias}) program.outputs.push_back({output, -1});
  EXPECT_EQ(compile::make_plan(program, AddsUpColumns()).program.steps.size(), 1U);
  EXPECT_EQ(compile::make_plan(program, PlansAlone()).program.steps.size(), 3U);
}

TEST(ColumnSums, StayWhereTheyCannotMove) {
  // The leaf is overwritten in between.
  EXPECT_EQ(steps_after(program_of({distances_of(0, 1), copy_of(2, 0), sums_of(0, 3)}, 3, 3, 4)), 3U);
  Builder reader(Group::Kind::elementwise, {rows, columns}, 2);
  reader.store(reader.load(3, DType::float32, a_row), 1, elements);
  // Their result is needed before the row group's place.
  EXPECT_EQ(steps_after(program_of({sums_of(0, 3), reader.group, distances_of(0, 2)}, 1, 3, 5)), 3U);
  // They overwrite a leaf, which a step that fails before them would leave as it was.
  Program program = program_of({distances_of(0, 1), copy_of(0, 2), sums_of(0, 3), sums_of(1, 4)}, 1, 3, 5);
  program.slots[3].kind = Slot::Kind::leaf;
  EXPECT_EQ(steps_after(program), 3U);
}

/// Adds up the product of two leaves and temporary 2, which nobody reads after that, before a row group reads the
/// leaves, with copies before all and in between.
Program with_copies(std::vector<Step> before, std::vector<Step> between) {
  const auto product = [](Builder& b) {
    const auto first = b.load(0, DType::float32, elements);
    return b.compute(ops::Op::mul, DType::float32, first, b.load(1, DType::float32, elements));
  };
  Builder sums(Group::Kind::column, {rows, columns}, 1);
  const auto weighted =
      sums.compute(ops::Op::mul, DType::float32, product(sums), sums.load(2, DType::float32, elements));
  sums.store(sums.reduce(ops::Op::sum, DType::float32, weighted), 6, a_row, Extent::reduced);
  Builder row(Group::Kind::row, {rows, columns}, 1);
  const auto value = product(row);
  const auto sum = row.reduce(ops::Op::sum, DType::float32, value);
  row.store(row.compute(ops::Op::sub, DType::float32, value, sum), 5, elements);
  std::vector<Step> steps = std::move(before);
  steps.emplace_back(copy_of(0, 2));
  steps.emplace_back(sums.group);
  for (Step& copy : between) steps.push_back(std::move(copy));
  steps.emplace_back(row.group);
  Program program = program_of(std::move(steps), 2, 6, 7);
  for (Slot& slot : program.slots) slot.bytes *= 1024;
  return program;
}

TEST(ColumnSums, StayWhereWhatTheyReadFindsNoRoomUntilTheRowGroup) {
  EXPECT_EQ(steps_after(with_copies({}, {})), 2U);
  EXPECT_EQ(steps_after(with_copies({}, {copy_of(0, 3)})), 4U);
  // The plan's peak lies elsewhere.
  EXPECT_EQ(steps_after(with_copies({copy_of(0, 3), copy_of(3, 4)}, {copy_of(0, 3)})), 5U);
}

TEST(ColumnSums, StayWhereNothingIsReadTwice) {
  EXPECT_EQ(steps_after(program_of({distances_of(0, 2), sums_of(1, 3)}, 2, 3, 4)), 2U);
}

TEST(ColumnSums, StayWhereTheDeviceDeclines) {
  Program program = program_of({distances_of(0, 1), sums_of(1, 2)}, 1, 2, 3);
  compile::passes::column_sums(program, PlansAlone());
  EXPECT_EQ(program.steps.size(), 2U);
}

}  // namespace
}  // namespace russet
