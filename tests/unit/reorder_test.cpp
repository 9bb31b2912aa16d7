// The pass reorder: contractions get their operands in the one memory order that a device takes.
#include <gtest/gtest.h>

#include <set>

#include "compile/layouts.h"
#include "compile/plan.h"
#include "nothing.h"
#include "without_pass.h"

namespace russet {
namespace {

/// A device whose convolutions take channels side by side alone.
class ChannelsLast final : public PlansAlone {
 public:
  std::optional<Strides> required_strides(const compile::Primitive& contraction, int operand) const override {
    if (contraction.op == ops::Op::matmul) return std::nullopt;
    return compile::channels_last(compile::operand_of(contraction, operand).sizes);
  }
};

/// A convolution and its two gradients, of leaves that lie row-major, all kept.
compile::Program convolutions() {
  compile::Program program;
  const auto add = [&](ops::Op op, const Shape& shape, compile::Inputs inputs) {
    const ops::Window window{.kernel = {3, 3}, .padding = {1, 1}, .padding_after = {1, 1}};
    program.values.push_back({{{DType::float32, shape}, op, window}, inputs, -1, -1, contiguous_strides(shape)});
    return static_cast<compile::ValueId>(program.values.size() - 1);
  };
  const auto add_leaf = [&](const Shape& shape) {
    const auto id = static_cast<compile::ValueId>(program.values.size());
    program.values.push_back({{{DType::float32, shape}, ops::Op::leaf, {}},
                              {},
                              -1,
                              static_cast<std::int32_t>(program.leaves.size()),
                              contiguous_strides(shape)});
    program.leaves.push_back({id, false, false});
    return id;
  };
  const Shape x_shape{2, 3, 5, 5};
  const Shape weight_shape{4, 3, 3, 3};
  const Shape y_shape{2, 4, 5, 5};
  const compile::ValueId x = add_leaf(x_shape);
  const compile::ValueId weight = add_leaf(weight_shape);
  const compile::ValueId gradient = add_leaf(y_shape);
  program.outputs.push_back({add(ops::Op::convolution, y_shape, {x, weight}), -1});
  program.outputs.push_back({add(ops::Op::convolution_input, x_shape, {gradient, weight}), -1});
  program.outputs.push_back({add(ops::Op::convolution_weight, weight_shape, {x, gradient}), -1});
  return program;
}

TEST(Layouts, KnowWeightsByTheirPlace) {
  compile::Primitive convolution;
  convolution.op = ops::Op::convolution_input;
  EXPECT_TRUE(compile::is_weight(convolution, 1));
  EXPECT_FALSE(compile::is_weight(convolution, 0));
  EXPECT_FALSE(compile::is_weight(convolution, -1));
  convolution.op = ops::Op::convolution_weight;
  EXPECT_TRUE(compile::is_weight(convolution, -1));
  EXPECT_FALSE(compile::is_weight(convolution, 1));
}

TEST(Passes, ReorderGivesContractionsTheOrderThatTheyTake) {
  const compile::Plan plan = compile::make_plan(convolutions(), ChannelsLast());
  int contractions = 0;
  std::set<std::int32_t> read;
  for (const compile::Step& step : plan.program.steps) {
    const auto* primitive = std::get_if<compile::Primitive>(&step);
    if (primitive == nullptr) continue;
    ++contractions;
    std::vector<compile::Operand> operands = primitive->inputs;
    operands.push_back(primitive->output);
    for (const compile::Operand& operand : operands) {
      EXPECT_TRUE(compile::has_strides(operand, compile::channels_last(operand.sizes)));
    }
    for (const compile::Operand& input : primitive->inputs) read.insert(input.access.slot);
  }
  EXPECT_EQ(contractions, 3);
  EXPECT_EQ(read.size(), 3U);  // each leaf was copied once
}

}  // namespace
}  // namespace russet
