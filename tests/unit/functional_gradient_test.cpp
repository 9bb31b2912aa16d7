// First and second gradients of composites, those that own their gradient above all, against finite differences.
#include "unit/gradcheck.h"

namespace russet::test {
namespace {

using Inputs = std::vector<Tensor>;

Tensor in(const Shape& shape, int seed = 0) { return scattered_tensor(shape, seed); }

struct Case {
  const char* name;
  Function function;
  Inputs inputs;
};

Tensor ints(std::initializer_list<std::int64_t> values, const Shape& shape) {
  return Tensor::from(values, shape, DeviceType::reference);
}

std::vector<Case> cases() {
  const double infinity = std::numeric_limits<double>::infinity();
  return {
      {"softmax", [](const Inputs& x) { return softmax(x[0], 1); }, {in({2, 3})}},
      {"log_softmax", [](const Inputs& x) { return log_softmax(x[0], 0); }, {in({3, 2})}},
      {"logsumexp",
       [](const Inputs& x) {
         return logsumexp(x[0], {0, 1});
       },
       {in({2, 3})}},
      {"var", [](const Inputs& x) { return var(x[0], 1); }, {in({2, 4})}},
      {"var of all", [](const Inputs& x) { return var(x[0], {}, {.correction = 0, .keepdim = true}); }, {in({2, 3})}},
      {"std", [](const Inputs& x) { return std(x[0], {0}, {.keepdim = true}); }, {in({4, 2})}},
      {"norm", [](const Inputs& x) { return norm(x[0], 2, 1); }, {in({2, 3})}},
      {"norm 3", [](const Inputs& x) { return norm(x[0], 3, 0); }, {in({3, 2})}},
      {"norm 1.5", [](const Inputs& x) { return norm(x[0], 1.5); }, {in({4})}},
      {"norm inf", [=](const Inputs& x) { return norm(x[0], infinity, 0); }, {in({3, 2})}},
      {"asinh", [](const Inputs& x) { return asinh(x[0]); }, {in({5})}},
      {"acosh", [](const Inputs& x) { return acosh(x[0] + 3); }, {in({5})}},
      {"atanh", [](const Inputs& x) { return atanh(x[0] * 0.9); }, {in({5})}},
      {"sinc", [](const Inputs& x) { return sinc(x[0]); }, {in({5})}},
      {"hypot", [](const Inputs& x) { return hypot(x[0], x[1]); }, {in({2, 3}), in({3}, 1)}},
      {"logaddexp", [](const Inputs& x) { return logaddexp(x[0], x[1]); }, {in({2, 1}), in({3}, 1)}},
      {"logaddexp2", [](const Inputs& x) { return logaddexp2(x[0], x[1]); }, {in({3}), in({3}, 1)}},
      {"xlogy", [](const Inputs& x) { return xlogy(x[0], x[1] + 2); }, {in({3}), in({2, 1}, 1)}},
      {"clamp", [](const Inputs& x) { return clamp(x[0] * x[0], 0.1, 0.5); }, {in({7})}},
      {"clamp by tensors",
       [](const Inputs& x) { return clamp(x[0], x[1] - 1, x[2] + 0.5); },
       {in({2, 3}), in({3}, 1), in({2, 1}, 2)}},
      {"cumprod", [](const Inputs& x) { return cumprod(x[0], 1); }, {in({2, 5})}},
      {"cumprod of zeros",
       [](const Inputs& x) { return cumprod(x[0], 1); },
       {Tensor::from({0.5, 0.0, -0.7, 2.0, 0.0, 0.0, 0.3, 1.5, 0.9, -0.4}, {2, 5}, DeviceType::reference)}},
      {"cumprod of many", [](const Inputs& x) { return cumprod(x[0] + 1.5, 0); }, {in({9, 2})}},
      {"cumsum", [](const Inputs& x) { return cumsum(x[0] * x[0], 0); }, {in({3, 2})}},
      {"einsum",
       [](const Inputs& x) {
         return einsum("bij,kj->bki", {x[0], x[1]});
       },
       {in({2, 3, 4}), in({2, 4}, 1)}},
      {"addmm",
       [](const Inputs& x) { return addmm(x[0], x[1], x[2], 0.5, 2); },
       {in({3}), in({2, 4}, 1), in({4, 3}, 2)}},
      {"pad",
       [](const Inputs& x) {
         return square(pad(x[0], {1, 2, 0, 1}, PadMode::reflect));
       },
       {in({1, 3, 4})}},
      {"roll", [](const Inputs& x) { return square(roll(x[0], 2, 1)); }, {in({2, 5})}},
      {"take_along_dim",
       [](const Inputs& x) {
         return square(take_along_dim(x[0], ints({2, 0, 0, 1}, {2, 2}), 1));
       },
       {in({2, 3})}},
      {"scatter_add",
       [](const Inputs& x) {
         return square(scatter_add(x[0], 0, ints({1, 1, 0}, {3}), x[1]));
       },
       {in({2}), in({3}, 1)}},
      {"index",
       [](const Inputs& x) {
         return square(x[0].index({Slice{}, ints({1, 1, -1}, {3})}));
       },
       {in({2, 3})}},
      {"sort", [](const Inputs& x) { return square(sort(x[0], 1, true).values); }, {in({2, 4})}},
      {"lerp", [](const Inputs& x) { return lerp(x[0], x[1], x[2]); }, {in({3}), in({3}, 1), in({3}, 2)}},
      {"remainder", [](const Inputs& x) { return remainder(x[0] * 3, x[1] + 2); }, {in({5}), in({5}, 1)}},
      {"write through a view",
       [](const Inputs& x) {
         const Tensor y = x[0] * 1;
         y.select(1, 1).mul_(x[1]);
         y.t().narrow(0, 0, 1).add_(x[1]);
         return y * y;
       },
       {in({2, 3}), in({2}, 1)}},
      {"index_put",
       [](const Inputs& x) {
         const Tensor y = x[0] * 2;
         y.index_put_({ints({0, 2}, {2})}, x[1]);
         return y * y;
       },
       {in({3, 2}), in({2, 2}, 1)}},
  };
}

TEST(CompositeGradient, AgreesWithDifferences) {
  for (const Case& test : cases()) {
    SCOPED_TRACE(test.name);
    expect_gradients(test.function, test.inputs, {.tolerance = 2e-6});
  }
}

Tensor leaf(std::initializer_list<double> values) {
  return Tensor::from(values, {static_cast<std::int64_t>(values.size())}, DeviceType::reference, true);
}

std::vector<double> gradient_of(const Tensor& x, const Tensor& y) {
  sum(y).backward();
  return x.grad().to_vector<double>();
}

using List = std::vector<double>;

TEST(CompositeGradient, CornersAreThoseOfPyTorch) {
  const double infinity = std::numeric_limits<double>::infinity();
  Tensor x = leaf({0, 0});
  EXPECT_EQ(gradient_of(x, norm(x)), (List{0, 0}));
  x = leaf({2, 2});
  EXPECT_EQ(gradient_of(x, std(x)), (List{0, 0}));
  x = leaf({0, 1, 2, 0.5});
  EXPECT_EQ(gradient_of(x, clamp(x, 0, 1)), (List{1, 1, 0, 1}));
  x = leaf({-infinity, -infinity});
  EXPECT_EQ(logsumexp(x, 0).item(), -infinity);
  x = leaf({0});
  EXPECT_EQ(gradient_of(x, sinc(x)), (List{0}));
  x = leaf({0});
  EXPECT_EQ(gradient_of(x, xlogy(x, leaf({0}))), (List{0}));
  x = leaf({1, 3, 3});
  EXPECT_EQ(gradient_of(x, amax(x)), (List{0, 0.5, 0.5}));
  x = leaf({1, 3, 3});
  EXPECT_EQ(gradient_of(x, max(x, 0).values), (List{0, 1, 0}));
}

}  // namespace
}  // namespace russet::test
