// Every gradient rule against finite differences, and its corners against PyTorch's conventions.
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

struct Unary {
  Op op;
  double scale;
  double shift;  // the input is scale * (-1..1) + shift
};

TEST(Rules, ElementwiseOfOneInput) {
  const Unary cases[] = {
      {Op::neg, 1, 0},     {Op::abs, 1, 0},    {Op::exp, 1, 0},    {Op::expm1, 1, 0},   {Op::log, 1, 2},
      {Op::log1p, 0.5, 0}, {Op::sqrt, 1, 2},   {Op::rsqrt, 1, 2},  {Op::sin, 2, 0},     {Op::cos, 2, 0},
      {Op::tan, 1, 0},     {Op::asin, 0.8, 0}, {Op::acos, 0.8, 0}, {Op::atan, 2, 0},    {Op::sinh, 1, 0},
      {Op::cosh, 1, 0},    {Op::tanh, 1, 0},   {Op::erf, 1, 0},    {Op::sigmoid, 2, 0},
  };
  for (const Unary& unary : cases) {
    SCOPED_TRACE(ops::row(unary.op).name);
    const auto f = [&](const Tensors& x) { return autograd::apply(unary.op, {x[0]}); };
    expect_gradients(f, {scattered_tensor({7}) * unary.scale + unary.shift});
  }
}

TEST(Rules, RoundingHasZeroGradients) {
  for (const Op op : {Op::floor, Op::ceil, Op::round, Op::trunc, Op::sign}) {
    const Tensor x = numbers({-1.3, 0.2, 2.6});
    const auto found = autograd::grad({sum(autograd::apply(op, {x}))}, {x});
    EXPECT_EQ(found[0].to_vector<double>(), (std::vector<double>{0, 0, 0})) << ops::row(op).name;
  }
}

TEST(Rules, ElementwiseOfTwoInputsBroadcasts) {
  for (const Op op : {Op::add, Op::sub, Op::mul, Op::div, Op::atan2, Op::maximum, Op::minimum, Op::fmod}) {
    SCOPED_TRACE(ops::row(op).name);
    const auto f = [&](const Tensors& x) { return autograd::apply(op, {x[0], x[1]}); };
    expect_gradients(f, {scattered_tensor({2, 3}) + 3, scattered_tensor({3}, 5) + 1.5});
    expect_gradients(f, {scattered_tensor({1, 3}) + 3, scattered_tensor({2, 1}, 5) + 1.5});
  }
  const auto power = [](const Tensors& x) { return pow(x[0], x[1]); };
  expect_gradients(power, {scattered_tensor({2, 3}) + 2, scattered_tensor({3}, 5)});
}

TEST(Rules, WhereSplitsByItsCondition) {
  const Tensor condition = Tensor::from({true, false, true}, {3}, device);
  expect_gradients([&](const Tensors& x) { return where(condition, x[0] * x[0], exp(x[1])); },
                   {scattered_tensor({2, 3}), scattered_tensor({3}, 2)});
}

TEST(Rules, Reductions) {
  expect_gradients([](const Tensors& x) { return sum(x[0] * x[0], {0, 2}); }, {scattered_tensor({2, 3, 2})});
  expect_gradients([](const Tensors& x) { return amax(x[0] * x[0], 1); }, {scattered_tensor({2, 3, 2})});
  expect_gradients([](const Tensors& x) { return amin(x[0] * x[0]); }, {scattered_tensor({2, 3})});
  expect_gradients([](const Tensors& x) { return cumsum(x[0] * x[0], 1); }, {scattered_tensor({2, 4})});
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

TEST(Rules, Contractions) {
  const auto f = [](const Tensors& x) { return matmul(x[0], x[1]); };
  expect_gradients(f, {scattered_tensor({2, 3}), scattered_tensor({3, 2}, 3)});
  expect_gradients(f, {scattered_tensor({2, 2, 3}), scattered_tensor({3, 2}, 3)});
  expect_gradients(f, {scattered_tensor({2, 2, 3}), scattered_tensor({2, 3, 2}, 3)});
  expect_gradients(f, {scattered_tensor({1, 2, 3}), scattered_tensor({2, 3, 2}, 3)});
  // A shared matrix with a batch axis of one.
  const auto primitive = [](const Tensors& x) { return autograd::apply(Op::matmul, {x[0], x[1]}); };
  expect_gradients(primitive, {scattered_tensor({2, 2, 3}), scattered_tensor({1, 3, 2}, 3)});
}

TEST(Rules, Convolutions) {
  const Conv2dOptions options{.stride = {2, 1}, .padding = {1, 0}, .dilation = {1, 2}, .groups = 2};
  expect_gradients([&](const Tensors& x) { return conv2d(x[0], x[1], x[2], options); },
                   {scattered_tensor({1, 2, 4, 5}), scattered_tensor({2, 1, 2, 2}, 3), scattered_tensor({2}, 4)});
  expect_gradients(
      [](const Tensors& x) {
        return conv_transpose2d(x[0], x[1], x[2], {.stride = 2, .padding = 1, .output_padding = {1, 0}});
      },
      {scattered_tensor({1, 2, 2, 3}), scattered_tensor({2, 2, 3, 2}, 3), scattered_tensor({2}, 4)});
  // The weight's gradient as an operator of its own.
  expect_gradients(
      [](const Tensors& x) {
        graph::NodeInfo given;
        given.dtype = DType::float64;
        given.shape = {2, 1, 2, 2};
        given.attributes = ops::Window{};
        return autograd::apply(Op::convolution_weight, {x[0], x[1]}, given);
      },
      {scattered_tensor({1, 1, 3, 3}), scattered_tensor({1, 2, 2, 2}, 3)});
}

TEST(Rules, Views) {
  const auto check = [](auto&& view, const Shape& shape) {
    expect_gradients([&](const Tensors& x) { return view(x[0] * x[0]); }, {scattered_tensor(shape)});
  };
  check([](const Tensor& x) { return x.permute({2, 0, 1}); }, {2, 3, 2});
  check([](const Tensor& x) { return x.t().reshape({2, 3}); }, {2, 3});
  check([](const Tensor& x) { return x.expand({2, 3, 2}); }, {3, 1});
  check([](const Tensor& x) { return x.slice(1, {1, 4, 2}); }, {2, 5});
  check([](const Tensor& x) { return x.select(0, 1); }, {3, 2});
  check([](const Tensor& x) { return x.diagonal(); }, {3, 3});
  check([](const Tensor& x) { return flip(x, {0, 1}); }, {2, 3});
  check([](const Tensor& x) { return cat({x, x * x}, 1); }, {2, 2});
  check([](const Tensor& x) { return x.unfold(0, 3, 1); }, {5});                      // overlapping windows
  check([](const Tensor& x) { return x.as_strided({3, 2, 2}, {1, 0, 1}, 1); }, {5});  // overlapping and repeated
}

TEST(Rules, Indexing) {
  const Tensor index = Tensor::from<std::int64_t>({2, 0, 2}, {3}, device);
  expect_gradients([&](const Tensors& x) { return index_select(x[0] * x[0], 0, index); }, {scattered_tensor({3, 2})});
  expect_gradients([&](const Tensors& x) { return index_add(x[0] * x[0], 0, index, x[1] * x[1]); },
                   {scattered_tensor({3, 2}), scattered_tensor({3, 2}, 2)});
  const Tensor distinct = Tensor::from<std::int64_t>({2, 0}, {2}, device);
  expect_gradients([&](const Tensors& x) { return index_copy(x[0] * x[0], 0, distinct, x[1] * x[1]); },
                   {scattered_tensor({3, 2}), scattered_tensor({2, 2}, 2)});
}

TEST(Rules, Pooling) {
  expect_gradients([](const Tensors& x) { return max_pool2d(x[0] * x[0], 2, {.stride = 1, .padding = 1}); },
                   {scattered_tensor({1, 1, 3, 3})});
  expect_gradients(
      [](const Tensors& x) {
        return avg_pool2d(x[0] * x[0], {3, 2}, {.stride = 1, .padding = 1});
      },
      {scattered_tensor({1, 2, 3, 3})});
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
