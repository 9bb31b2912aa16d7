// Gradient rules where conformance does not hold them against finite differences: at zeros and corners, where PyTorch's
// conventions decide, and through views that overlap themselves.
#include "autograd/rules.h"

#include <gtest/gtest.h>
#include <russet/functional.h>
#include <russet/nn_functional.h>

#include <limits>

#include "autograd/tape.h"
#include "gradcheck.h"
#include "ops/table.h"

namespace russet {
namespace {

using ops::Op;
using test::expect_gradients;
using test::scattered_tensor;
using Tensors = std::vector<Tensor>;

constexpr Device device = DeviceType::reference;

Tensor numbers(std::initializer_list<double> values) {
  return Tensor::from(values, {static_cast<std::int64_t>(values.size())}, device, true);
}

// The gradient of sum(f(x)) at x.
std::vector<double> gradient(const std::function<Tensor(const Tensor&)>& f, std::initializer_list<double> values) {
  const Tensor x = numbers(values);
  return autograd::grad({sum(f(x))}, {x})[0].to_vector<double>();
}

TEST(Rules, EveryRowIsFoundByItsOperator) {
  for (const auto& row : autograd::gradient_table()) {
    EXPECT_EQ(autograd::gradient_of(row.op), &row) << ops::row(row.op).name;
  }
  EXPECT_EQ(autograd::gradient_of(Op::argmax), nullptr);
}

TEST(Rules, RoundingHasZeroGradients) {
  for (const Op op : {Op::floor, Op::ceil, Op::round, Op::trunc, Op::sign}) {
    const Tensor x = numbers({-1.3, 0.2, 2.6});
    const auto found = autograd::grad({sum(autograd::apply(op, {x}))}, {x});
    EXPECT_EQ(found[0].to_vector<double>(), (std::vector<double>{0, 0, 0})) << ops::row(op).name;
  }
}

TEST(Rules, ProductWithZeros) {
  const auto along = [](const Tensors& x) { return prod(x[0], 1); };
  expect_gradients(along, {scattered_tensor({3, 4})});
  for (const std::vector<double>& values : {std::vector<double>{2, 0, 3}, {0, 0, 3}, {0, 0, 0}, {5, 3, 2}}) {
    expect_gradients(along, {Tensor::from(values, {1, 3}, device)}, {.step = 1e-5, .tolerance = 1e-5});
  }
  expect_gradients([](const Tensors& x) { return prod(x[0]); }, {scattered_tensor({2, 3})});
  EXPECT_EQ(gradient([](const Tensor& x) { return prod(x); }, {2, 0, 3}), (std::vector<double>{0, 6, 0}));
}

TEST(Rules, AViewThatShowsElementsSeveralTimes) {
  expect_gradients(
      [](const Tensors& x) {
        return (x[0] * x[0]).as_strided({3, 2, 2}, {1, 0, 1}, 1);
      },
      {scattered_tensor({5})});
}

// What PyTorch does where a function has a corner.
TEST(Rules, Corners) {
  using V = std::vector<double>;
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(gradient([](const Tensor& x) { return abs(x); }, {-2, 0, 3}), (V{-1, 0, 1}));
  EXPECT_EQ(gradient([](const Tensor& x) { return amax(x); }, {3, 1, 3}), (V{0.5, 0, 0.5}));
  EXPECT_EQ(gradient([](const Tensor& x) { return amin(x); }, {1, 1, 3, 1}), (V{1.0 / 3, 1.0 / 3, 0, 1.0 / 3}));
  EXPECT_EQ(gradient(
                [](const Tensor& x) {
                  return maximum(x, numbers({1, 2, 0}).detach());
                },
                {1, 1, 1}),
            (V{0.5, 0, 1}));
  EXPECT_EQ(gradient([](const Tensor& x) { return sqrt(x); }, {0, 4}), (V{infinity, 0.25}));
  EXPECT_EQ(gradient([](const Tensor& x) { return relu(x); }, {-1, 0, 2}), (V{0, 0, 1}));
  const auto to_the = [](double exponent) {
    return [exponent](const Tensor& x) { return pow(x, numbers({exponent}).detach()); };
  };
  EXPECT_EQ(gradient(to_the(0), {0, 2}), (V{0, 0}));
  EXPECT_EQ(gradient(to_the(1), {0, 2}), (V{1, 1}));
  EXPECT_EQ(gradient(to_the(2), {0, -3}), (V{0, -6}));
  EXPECT_EQ(gradient([](const Tensor& y) { return pow(numbers({0, 0, 1}).detach(), y); }, {2, 0, 5}), (V{0, 0, 0}));
}

}  // namespace
}  // namespace russet
