#pragma once
// Convolutions and their gradients as small programs, for passes that write them otherwise.
#include <gtest/gtest.h>

#include <initializer_list>

#include "small_program.h"

namespace russet::testing {

struct ConvolutionCase {
  ops::Window window;
  Shape image, weight, result;
};

/// Those of a convolution and its gradients that `ops` names, in their order, all kept. Leaves: the image, the weight
/// and the result's gradient.
inline SmallProgram convolutions(const ConvolutionCase& c, std::initializer_list<ops::Op> ops,
                                 DType dtype = DType::float32) {
  SmallProgram small;
  const compile::ValueId image = small.leaf(dtype, c.image);
  const compile::ValueId weight = small.leaf(dtype, c.weight);
  const compile::ValueId gradient = small.leaf(dtype, c.result);
  ops::Window of_weight = c.window;
  of_weight.kernel = {static_cast<std::int32_t>(c.weight[2]), static_cast<std::int32_t>(c.weight[3])};
  for (const ops::Op op : ops) {
    if (op == ops::Op::convolution) small.output(small.add(op, dtype, c.result, {image, weight}, c.window));
    if (op == ops::Op::convolution_input) small.output(small.add(op, dtype, c.image, {gradient, weight}, c.window));
    if (op == ops::Op::convolution_weight) small.output(small.add(op, dtype, c.weight, {image, gradient}, of_weight));
  }
  return small;
}

/// What `rewrite` leaves of the program computes the same.
template <class Rewrite>
void expect_same_results(const ConvolutionCase& c, compile::Program& program, const Rewrite& rewrite) {
  const std::vector<Values> leaves{integers(DType::float32, c.image, 1), integers(DType::float32, c.weight, 2),
                                   integers(DType::float32, c.result, 3)};
  const auto expected = evaluate(program, leaves);
  rewrite();
  const auto found = evaluate(program, leaves);
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].shape, expected[i].shape);
    EXPECT_EQ(found[i].values, expected[i].values);
  }
}

}  // namespace russet::testing
