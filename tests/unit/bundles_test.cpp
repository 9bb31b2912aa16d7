// Stages and bundles on devices made up for the purpose, where what shares a step with what is known.
#include <gtest/gtest.h>

#include <set>

#include "compile/plan.h"
#include "nothing.h"
#include "without_pass.h"

namespace russet {
namespace {

/// A device that takes two launches for each column group, and one for the second ones of several.
class TwoLaunches final : public PlansAlone {
 public:
  std::optional<compile::Stages> stages(const compile::Step& step) const override {
    const compile::Group& group = std::get<compile::Group>(step);
    if (group.kind != compile::Group::Kind::column) return std::nullopt;
    compile::Stages stages;
    stages.parts_bytes = 1024;
    compile::for_each_access(step, [&](std::int32_t slot, bool writes) {
      if (writes) stages.writes[1].push_back(slot);
      if (!writes) stages.reads[0].push_back(slot);
    });
    return stages;
  }
  compile::Sharing sharing(const compile::Step& step) const override {
    const auto* stage = std::get_if<compile::Stage>(&step);
    if (stage == nullptr || stage->number == 0) return {};
    return {"results", "sum"};
  }
  compile::BundleLimits bundle_limits() const override { return {.members = 8, .codes = 2}; }
};

/// Adds the columns of `count` leaves of [rows, 16].
compile::Program column_sums(int count, std::int64_t rows) {
  compile::Program program;
  for (int i = 0; i < count; ++i) {
    const auto id = static_cast<compile::ValueId>(program.values.size());
    const Shape shape{rows, 16};
    program.values.push_back(
        {{{DType::float32, shape}, ops::Op::leaf, {}}, {-1, -1, -1}, -1, i, contiguous_strides(shape)});
    program.leaves.push_back({id, false, false});
    const Shape sums{16};
    program.values.push_back(
        {{{DType::float32, sums}, ops::Op::sum, ops::Axes{1}}, {id, -1, -1}, -1, -1, contiguous_strides(sums)});
    program.outputs.push_back({id + 1, -1});
  }
  return program;
}

TEST(Passes, StagesLetResultsShareAStep) {
  const compile::Plan plan = compile::make_plan(column_sums(3, 1000), TwoLaunches());
  ASSERT_EQ(plan.program.steps.size(), 4U);
  std::set<std::int32_t> parts;
  for (std::size_t i = 0; i < 3; ++i) {
    const auto* stage = std::get_if<compile::Stage>(&plan.program.steps[i]);
    ASSERT_NE(stage, nullptr);
    EXPECT_EQ(stage->number, 0);
    EXPECT_TRUE(stage->writes.empty());
    parts.insert(stage->parts);
  }
  EXPECT_EQ(parts.size(), 3U);
  const auto* bundle = std::get_if<compile::Bundle>(&plan.program.steps[3]);
  ASSERT_NE(bundle, nullptr);
  for (const compile::Step& work : bundle->members) EXPECT_EQ(parts.erase(std::get<compile::Stage>(work).parts), 1U);
  // The parts live together until the last step.
  EXPECT_GE(plan.program.arena_bytes, 3 * 1024U);
}

/// A device on which all column sums may share a step, wherever they are.
class AllTogether final : public PlansAlone {
 public:
  explicit AllTogether(std::size_t members) : members_(members) {}
  compile::Sharing sharing(const compile::Step& step) const override {
    return std::holds_alternative<compile::Group>(step) ? compile::Sharing{"sum", "sum"} : compile::Sharing{};
  }
  compile::BundleLimits bundle_limits() const override {
    return {.members = members_, .codes = 1, .window = 64, .held_bytes = std::size_t{1} << 30};
  }

 private:
  std::size_t members_;
};

/// A chain of running sums over [1000, 256], of each of which the columns are added, too; and then, of as many rows as
/// are asked for, one running sum more.
compile::Program chain(int length, std::int64_t rows_at_the_end) {
  compile::Program program;
  const auto add = [&](ops::Op op, const Shape& shape, compile::ValueId input) {
    ops::Attributes attributes;
    if (op == ops::Op::cumsum) attributes = ops::Axes{2};
    if (op == ops::Op::sum) attributes = ops::Axes{1};
    program.values.push_back(
        {{{DType::float32, shape}, op, attributes}, {input, -1, -1}, -1, -1, contiguous_strides(shape)});
    return static_cast<compile::ValueId>(program.values.size() - 1);
  };
  const auto add_leaf = [&](const Shape& shape) {
    const compile::ValueId id = add(ops::Op::leaf, shape, -1);
    program.values.back().leaf = static_cast<std::int32_t>(program.leaves.size());
    program.leaves.push_back({id, false, false});
    return id;
  };
  const auto add_sums = [&](const Shape& shape, compile::ValueId input) {
    const compile::ValueId running = add(ops::Op::cumsum, shape, input);
    program.outputs.push_back({add(ops::Op::sum, Shape{256}, running), -1});
    return running;
  };
  const Shape shape{1000, 256};
  compile::ValueId last = add_leaf(shape);
  for (int i = 0; i < length; ++i) last = add_sums(shape, last);
  if (rows_at_the_end > 0) add_sums({rows_at_the_end, 256}, add_leaf({rows_at_the_end, 256}));
  return program;
}

TEST(Passes, BundlesHoldNoTemporariesWhereThePeakIs) {
  const compile::Plan alone = compile::make_plan(chain(6, 0), AllTogether(1));
  const compile::Plan together = compile::make_plan(chain(6, 0), AllTogether(64));
  EXPECT_EQ(alone.program.steps.size(), 12U);
  // Two arrays live at a time; one for a sum that waits would be the third.
  EXPECT_LE(together.program.arena_bytes, alone.program.arena_bytes + alone.program.arena_bytes / 100);
}

TEST(Passes, BundlesHoldTemporariesWhereThePeakIsNot) {
  const compile::Plan alone = compile::make_plan(chain(6, 20000), AllTogether(1));
  const compile::Plan together = compile::make_plan(chain(6, 20000), AllTogether(64));
  EXPECT_EQ(alone.program.steps.size(), 14U);
  // Five sums share a step; the peak comes before the sixth could join them.
  EXPECT_EQ(together.program.steps.size(), 10U);
  EXPECT_EQ(together.program.arena_bytes, alone.program.arena_bytes);
}

/// Likewise, but temporaries of steps that do not need each other lie apart up to a size, and then few come early.
class ApartTogether final : public PlansAlone {
 public:
  explicit ApartTogether(std::size_t bytes_apart) : bytes_apart_(bytes_apart) {}
  compile::Sharing sharing(const compile::Step& step) const override { return AllTogether(64).sharing(step); }
  compile::BundleLimits bundle_limits() const override {
    compile::BundleLimits limits = AllTogether(64).bundle_limits();
    limits.window_apart = 1;
    return limits;
  }
  std::size_t bytes_apart() const override { return bytes_apart_; }

 private:
  std::size_t bytes_apart_;
};

TEST(Passes, BundlesWaitForFewStepsWhereTheseRunAtOnce) {
  compile::Program program;
  const auto add = [&](ops::Op op, const Shape& shape, compile::ValueId input) {
    const ops::Attributes attributes = op == ops::Op::leaf ? ops::Attributes{} : ops::Attributes{ops::Axes{1}};
    program.values.push_back(
        {{{DType::float32, shape}, op, attributes}, {input, -1, -1}, -1, -1, contiguous_strides(shape)});
    return static_cast<compile::ValueId>(program.values.size() - 1);
  };
  for (std::int32_t i = 0; i < 4; ++i) {
    const compile::ValueId leaf = add(ops::Op::leaf, {1000, 16}, -1);
    program.values.back().leaf = i;
    program.leaves.push_back({leaf, false, false});
    program.outputs.push_back({add(ops::Op::cumsum, {16}, add(ops::Op::sum, {16}, leaf)), -1});
  }
  const auto steps = [&](const compile::Target& target) {
    return compile::make_plan(program, target).program.steps.size();
  };
  EXPECT_EQ(steps(AllTogether(1)), 8U);
  EXPECT_EQ(steps(ApartTogether(1)), 5U);  // all sums at once: their results take more than a byte
  EXPECT_EQ(steps(ApartTogether(1 << 20)), 8U);
}

/// A device on which running sums may share a step, and sums of columns another one, but one bundle waits at a time.
class OneWaits final : public PlansAlone {
 public:
  compile::Sharing sharing(const compile::Step& step) const override {
    const char* const kind = std::holds_alternative<compile::Group>(step) ? "sum" : "running sum";
    return {kind, kind};
  }
  compile::BundleLimits bundle_limits() const override {
    return {.members = 64, .codes = 1, .waiting = 1, .window = 64, .held_bytes = std::size_t{1} << 30};
  }
};

/// How many steps read a temporary that no step before them wrote.
int reads_too_early(const compile::Program& program) {
  std::set<std::int32_t> written;
  int count = 0;
  for (const compile::Step& step : program.steps) {
    bool early = false;
    std::set<std::int32_t> writes;
    compile::for_each_access(step, [&](std::int32_t slot, bool is_write) {
      if (is_write) writes.insert(slot);
      const bool temporary = program.slots[static_cast<std::size_t>(slot)].kind == compile::Slot::Kind::temporary;
      early |= !is_write && temporary && !written.contains(slot);
    });
    count += early;
    written.insert(writes.begin(), writes.end());
  }
  return count;
}

// The bundle that makes room for a step took in, from further down, a step that reads what this one writes.
TEST(Passes, ABundleThatMakesRoomPullsNothingPastTheStepThatWantsIt) {
  for (const int length : {2, 3, 6}) {
    const compile::Plan plan = compile::make_plan(chain(length, 20000), OneWaits());
    EXPECT_EQ(reads_too_early(plan.program), 0) << length;
  }
}

}  // namespace
}  // namespace russet
