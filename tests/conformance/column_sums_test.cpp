// Sums along the rows of what a contraction gives, as batch norm and gradients of biases need them: on GPUs their first
// stage is a part of the contraction's kernel. And the sum of squared deviations, however far from 0 the mean lies.
#include <gtest/gtest.h>
#include <russet/autograd.h>
#include <russet/functional.h>
#include <russet/nn_functional.h>
#include <russet/runtime.h>

#include <cmath>

#include "conformance/results.h"
#include "devices/tested.h"

namespace russet {
namespace {

using conformance::difference;
using conformance::Results;

const Device reference{DeviceType::reference};

class ColumnSums : public testing::TestWithParam<std::string>, protected conformance::NormalNumbers {
 protected:
  const Device device{GetParam()};
};

/// How many steps of `program` read a whole array to reduce its columns.
int column_steps(Device device, const std::function<void()>& program) {
  flush();
  int found = 0;
  observe_plans(device, [&](const PlanSummary& plan) {
    for (const StepInfo& step : plan.steps) {
      found +=
          step.detail.find("column group") != std::string::npos && step.detail.find("results of") == std::string::npos;
    }
  });
  program();
  flush();
  observe_plans(device, nullptr);
  return found;
}

TEST_P(ColumnSums, OfMatrixProducts) {
  struct Size {
    std::int64_t rows, depth, columns;
  };
  // Kernels differ in nothing but the type, and each is compiled.
  DType half = DType::bfloat16;
  for (const Size size : {Size{64, 40, 64}, Size{70, 20, 40}, Size{33, 33, 9}, Size{300, 24, 260}, Size{8, 8, 8}}) {
    half = half == DType::float16 ? DType::bfloat16 : DType::float16;
    for (const DType type : {DType::float32, half}) {
      const auto run = [&](Device on) {
        restart();
        const Tensor a = numbers({size.rows, size.depth}, on, type);
        const Tensor b = numbers({size.depth, size.columns}, on, type);
        const Tensor bias = numbers({size.columns}, on, type);
        flush();
        const Tensor y = matmul(a, b);
        const Tensor z = matmul(b.t(), a.t());
        const Tensor positive = relu(z);
        return Results{y,        sum(y.to(DType::float32), 0),        var(y.to(DType::float32), {0}),
                       positive, sum(positive.to(DType::float32), 0), amax(positive, 0)};
      };
      const double bound = type == DType::float32 ? 1e-5 : type == DType::float16 ? 4e-3 : 3e-2;
      EXPECT_EQ(difference(run(device), run(reference), bound), "")
          << size.rows << " x " << size.depth << " x " << size.columns << " in " << name_of(type);
    }
  }
}

TEST_P(ColumnSums, AreMultipliedByWhatIsBroadcastAlongOtherAxes) {
  const auto run = [&](Device on) {
    restart();
    const Tensor x = numbers({5, 2, 4, 6}, on);
    const Tensor a = numbers({4, 1}, on);
    const Tensor b = numbers({2, 1, 1}, on);
    flush();
    return Results{sum(x, 0, true) * a, sum(x, -1, true) * b, sum(x, {0, 3}, true) * a + b, amax(x, 0) - a};
  };
  EXPECT_EQ(difference(run(device), run(reference), 1e-5), "");
}

TEST_P(ColumnSums, OfConvolutionsBeforeABatchNorm) {
  struct Size {
    Shape x, weight;
    std::int64_t stride;
  };
  const Size sizes[] = {{{2, 8, 12, 13}, {40, 8, 3, 3}, 1},
                        {{4, 16, 16, 16}, {72, 16, 1, 1}, 1},
                        {{3, 9, 11, 10}, {17, 9, 3, 3}, 2},
                        {{8, 16, 24, 24}, {64, 16, 3, 3}, 1}};
  for (const Size& size : sizes) {
    const std::int64_t channels = size.weight[0];
    int steps = 0;
    const auto run = [&](Device on) {
      restart();
      const Tensor x = numbers(size.x, on).requires_grad_();
      const Tensor w = numbers(size.weight, on).requires_grad_();
      const Tensor v = numbers({channels, channels, 1, 1}, on).requires_grad_();
      const Tensor gamma = numbers({channels}, on).requires_grad_();
      const Tensor beta = numbers({channels}, on).requires_grad_();
      const Tensor running_mean = numbers({channels}, on);
      const Tensor running_var = square(numbers({channels}, on));
      flush();
      Tensor y;
      steps = column_steps(on, [&] {
        const Tensor h = relu(batch_norm(conv2d(x, w, {}, {.stride = size.stride, .padding = 1}), running_mean,
                                         running_var, gamma, beta, {.training = true}));
        y = batch_norm(conv2d(h, v, {}, {}), {}, {}, {}, {}, {.training = true});
        mean(y * y * y).backward();
      });
      return Results{y, running_mean, running_var, x.grad(), w.grad(), v.grad(), gamma.grad(), beta.grad()};
    };
    const Results actual = run(device);
    // The sums for y's own gradient have no contraction before them.
    if (conformance::fuses_contractions(GetParam())) {
      EXPECT_LE(steps, 1) << to_string(size.x);
    }
    EXPECT_EQ(difference(actual, run(reference), 2e-4), "") << to_string(size.x);
  }
}

// As ConvMixer has it: what relu gives is stored, and where that is zero, besides the statistics.
TEST_P(ColumnSums, OfWhatReluGivesAndWhereItIsZero) {
  for (const Shape& size : {Shape{4, 16, 16, 16}, Shape{3, 9, 11, 10}}) {
    int steps = 0;
    const auto run = [&](Device on) {
      restart();
      const Tensor x = numbers(size, on);
      const Tensor w = numbers({72, size[1], 1, 1}, on);
      const Tensor v = numbers({8, 72, 1, 1}, on);
      const Tensor bias = numbers({72}, on);
      flush();
      Results results;
      steps = column_steps(on, [&] {
        const Tensor y = relu(conv2d(x, w, bias));
        const Tensor is_zero = (y <= 0).to(DType::float32);
        results = {conv2d(y, v), conv2d(is_zero, v), mean(y, {0, 2, 3}), var(y, {0, 2, 3})};
      });
      return results;
    };
    const Results actual = run(device);
    if (conformance::fuses_contractions(GetParam())) {
      EXPECT_EQ(steps, 0) << to_string(size);
    }
    EXPECT_EQ(difference(actual, run(reference), 1e-5), "") << to_string(size);
  }
}

TEST_P(ColumnSums, OfTheGradientOfAWeight) {
  const auto run = [&](Device on) {
    restart();
    const Tensor x = numbers({2, 40, 6, 5}, on);
    const Tensor w = numbers({33, 40, 3, 3}, on).requires_grad_();
    const Tensor g = numbers({2, 33, 6, 5}, on);
    flush();
    const Tensor gradient = autograd::grad({conv2d(x, w, {}, {.padding = 1})}, {w}, {g})[0];
    return Results{gradient, sum(gradient, {0, 2, 3}), sum(gradient, {1, 2, 3}), sum(gradient, {0})};
  };
  EXPECT_EQ(difference(run(device), run(reference), 1e-5), "");
}

// As in lenet5: tanh's gradient, of which a bias has the sums, follows that of a pool or of a product, and the last
// pool's gradient comes from a product.
TEST_P(ColumnSums, OfGradientsOfTanhBehindPoolsAndProducts) {
  for (const DType type : {DType::float32, DType::float16, DType::bfloat16}) {
    const auto run = [&](Device on) {
      restart();
      const Tensor x = numbers({4, 6, 12, 12}, on, type).requires_grad_();
      const Tensor v = (numbers({8, 6, 3, 3}, on, type) * 0.2).detach().requires_grad_();
      const Tensor u = (numbers({8 * 9, 20}, on, type) * 0.2).detach().requires_grad_();
      const Tensor w = (numbers({20, 10}, on, type) * 0.3).detach().requires_grad_();
      const Tensor a = numbers({8}, on, type).requires_grad_();
      const Tensor b = numbers({20}, on, type).requires_grad_();
      flush();
      Tensor y;
      in_one_plan([&] {
        const Tensor pooled = avg_pool2d(tanh(conv2d(avg_pool2d(tanh(x), 2), v, a, {.padding = 1})), 2);
        y = matmul(tanh(matmul(pooled.to(DType::float32).flatten(1).to(type), u) + b), w);
        sum(y * y).backward();
      });
      return Results{y, x.grad(), v.grad(), u.grad(), w.grad(), a.grad(), b.grad()};
    };
    const double bound = type == DType::float32 ? 1e-5 : type == DType::float16 ? 5e-3 : 4e-2;
    EXPECT_EQ(difference(run(device), run(reference), bound), "") << name_of(type);
  }
}

TEST_P(ColumnSums, DeviationsFromAnyMean) {
  for (const double mean : {0.0, 1e4, -3e3}) {
    for (const auto& [rows, columns] :
         {std::pair<std::int64_t, std::int64_t>{5000, 3}, {77, 130}, {1, 4}, {40000, 1}}) {
      restart();
      const Tensor x = numbers({rows, columns}, device, DType::float32, mean);
      std::vector<float> values = x.to(Device("cpu")).to_vector<float>();
      values[0] = static_cast<float>(mean + 1e5);  // far from all others, and the first
      const Tensor given = Tensor::from(values, {rows, columns}).to(device);
      for (const int axis : {0, 1}) {
        const std::vector<double> found =
            (axis == 0 ? var(given, {0}, {.correction = 0}) : var(given.t().contiguous(), {1}, {.correction = 0}))
                .to_vector<double>();
        for (std::int64_t column = 0; column < columns; ++column) {
          long double sum = 0;
          long double squares = 0;
          for (std::int64_t row = 0; row < rows; ++row) sum += values[static_cast<std::size_t>(row * columns + column)];
          for (std::int64_t row = 0; row < rows; ++row) {
            const long double distance =
                values[static_cast<std::size_t>(row * columns + column)] - sum / static_cast<long double>(rows);
            squares += distance * distance;
          }
          const double expected = static_cast<double>(squares / static_cast<long double>(rows));
          // Means are known to half an ulp, which is much of a deviation that is small beside its mean.
          const double bound = 1e-5 + 1.2e-7 * std::abs(mean) / std::sqrt(std::max(expected, 1e-9));
          EXPECT_NEAR(found[static_cast<std::size_t>(column)], expected, bound * expected)
              << "around " << mean << ", " << rows << " rows, axis " << axis << ", column " << column;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, ColumnSums, testing::ValuesIn(conformance::tested_devices()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace russet
