// Gradients where conformance does not hold them against finite differences: values that were chosen, writes through
// views, corners.
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

std::vector<Case> cases() {
  return {
      {"norm 1.5", [](const Inputs& x) { return norm(x[0], 1.5); }, {in({4})}},
      {"cumprod of zeros",
       [](const Inputs& x) { return cumprod(x[0], 1); },
       {Tensor::from({0.5, 0.0, -0.7, 2.0, 0.0, 0.0, 0.3, 1.5, 0.9, -0.4}, {2, 5}, DeviceType::reference)}},
      {"write through a view",
       [](const Inputs& x) {
         const Tensor y = x[0] * 1;
         y.select(1, 1).mul_(x[1]);
         y.t().narrow(0, 0, 1).add_(x[1]);
         return y * y;
       },
       {in({2, 3}), in({2}, 1)}},
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
