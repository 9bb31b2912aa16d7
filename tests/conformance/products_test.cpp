// Products of float32 that are large enough for a device's fastest way: their error against float64 is no larger than
// four times that of the plain sum, on hard numbers too.
#include <gtest/gtest.h>
#include <russet/functional.h>
#include <russet/nn_functional.h>
#include <russet/runtime.h>

#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include "devices/tested.h"

namespace russet {
namespace {

class Products : public testing::TestWithParam<std::string> {
 protected:
  const Device device{GetParam()};
};

using Draw = std::function<float(std::mt19937&)>;

struct Numbers {
  const char* name;
  Draw left, right;
};

float normal(std::mt19937& engine) { return std::normal_distribution<float>()(engine); }
float positive(std::mt19937& engine) { return std::uniform_real_distribution<float>(0, 1)(engine); }
/// Magnitudes from 2^-20 to 2^20.
float wide(std::mt19937& engine) {
  return normal(engine) * std::exp2(std::uniform_real_distribution<float>(-20, 20)(engine));
}
Draw scaled(float factor) {
  return [factor](std::mt19937& engine) { return normal(engine) * factor; };
}
/// One number in ten thousand is `rare`.
Draw with(float rare) {
  return [rare](std::mt19937& engine) { return engine() % 10000 == 0 ? rare : normal(engine); };
}

std::vector<float> drawn(const Draw& draw, std::int64_t count, unsigned seed) {
  std::mt19937 engine(seed);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = draw(engine);
  return values;
}

struct Size {
  std::int64_t rows, depth, columns;
  bool transposed;  // both factors
};

/// Root mean squares of errors, relative to the size of the terms; of a sample of elements.
struct Errors {
  double device = 0, plain = 0;
};

Errors errors_of(const Size& size, const std::vector<float>& a, const std::vector<float>& b,
                 const std::vector<float>& result) {
  std::mt19937 engine(7);
  Errors errors;
  const int samples = 500;
  for (int i = 0; i < samples; ++i) {
    const auto row = static_cast<std::int64_t>(engine() % static_cast<std::uint64_t>(size.rows));
    const auto column = static_cast<std::int64_t>(engine() % static_cast<std::uint64_t>(size.columns));
    double exact = 0;
    double terms = 0;
    float plain = 0;
    for (std::int64_t k = 0; k < size.depth; ++k) {
      const float x = a[static_cast<std::size_t>(size.transposed ? k * size.rows + row : row * size.depth + k)];
      const float y =
          b[static_cast<std::size_t>(size.transposed ? column * size.depth + k : k * size.columns + column)];
      exact += static_cast<double>(x) * y;
      terms += std::abs(static_cast<double>(x) * y);
      plain = std::fma(x, y, plain);
    }
    const auto at = static_cast<std::size_t>(row * size.columns + column);
    if (!std::isfinite(exact) || !std::isfinite(plain)) {
      const bool same = std::isnan(plain) ? std::isnan(result[at]) : result[at] == plain;
      EXPECT_TRUE(same) << result[at] << " instead of " << plain;
      continue;
    }
    errors.device += std::pow((result[at] - exact) / terms, 2);
    errors.plain += std::pow((plain - exact) / terms, 2);
  }
  errors.device = std::sqrt(errors.device / samples);
  errors.plain = std::sqrt(errors.plain / samples);
  return errors;
}

TEST_P(Products, OfFloat32AreAsGoodAsPlainSums) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const Numbers numbers[] = {{"normal", normal, normal},
                             {"positive", positive, positive},
                             {"wide", wide, wide},
                             {"tiny", scaled(1e-36F), normal},
                             {"tiny and huge", scaled(1e-30F), scaled(1e30F)},
                             {"huge", scaled(5e37F), scaled(1e-3F)},
                             {"infinities", with(infinity), normal},
                             {"NaN", normal, with(std::nanf(""))}};
  // The last ones' depth is split, and has a rest.
  for (const Size& size : {Size{1280, 96, 1284, false}, Size{1284, 64, 1280, true}, Size{260, 6004, 520, false},
                           Size{516, 5000, 260, true}}) {
    for (const Numbers& one : numbers) {
      const std::vector<float> a = drawn(one.left, size.rows * size.depth, 1);
      const std::vector<float> b = drawn(one.right, size.depth * size.columns, 2);
      const Tensor left = size.transposed ? Tensor::from(a, {size.depth, size.rows}).to(device).t()
                                          : Tensor::from(a, {size.rows, size.depth}).to(device);
      const Tensor right = size.transposed ? Tensor::from(b, {size.columns, size.depth}).to(device).t()
                                           : Tensor::from(b, {size.depth, size.columns}).to(device);
      const std::vector<float> result = matmul(left, right).to(Device("cpu")).to_vector<float>();
      const Errors errors = errors_of(size, a, b, result);
      EXPECT_LE(errors.device, 4 * errors.plain)
          << one.name << " numbers, " << size.rows << " x " << size.depth << " x " << size.columns;
    }
  }
}

// A library may add the bias, and take relu, where there is enough work for one: of a layer, of a transposed product,
// of one whose result is a column; and a number a row, which none adds.
TEST_P(Products, WithABias) {
  constexpr std::int64_t rows = 264;
  constexpr std::int64_t depth = 144;
  constexpr std::int64_t columns = 272;
  for (const DType dtype : {DType::float32, DType::bfloat16, DType::float16}) {
    const auto run = [&](Device on) {
      const auto tensor = [&](const Shape& shape, unsigned seed) {
        return Tensor::from(drawn(normal, numel(shape), seed), shape).to(dtype).to(on);
      };
      const Tensor x = tensor({rows, depth}, 1);
      const Tensor w = tensor({columns, depth}, 2);
      const Tensor bias = tensor({columns}, 3);
      const Tensor of_row = tensor({rows, 1}, 4);
      flush();
      std::vector<std::vector<float>> results;
      const auto add = [&](const Tensor& y) {
        results.push_back(y.to(Device("cpu")).to(DType::float32).to_vector<float>());
      };
      add(linear(x, w, bias));
      add(bias + matmul(x, w.t()));
      add(matmul(x, w.t()) + of_row);
      add(matmul(w, x.t()).t() + bias);
      add(matmul(x, w.t()) + bias.slice(0, {1, 2}));
      add(matmul(x, w.t()) - bias);
      add(relu(linear(x, w, bias)));
      return results;
    };
    const auto found = run(device);
    const auto wanted = run(Device{DeviceType::reference});
    const float bound = dtype == DType::float32 ? 1e-5F : 2e-2F;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      ASSERT_EQ(found[i].size(), wanted[i].size());
      for (std::size_t j = 0; j < wanted[i].size(); ++j) {
        ASSERT_NEAR(found[i][j], wanted[i][j], bound * (1 + std::abs(wanted[i][j])))
            << name_of(dtype) << ", product " << i << ", element " << j;
      }
    }
  }
}

TEST_P(Products, ReluHandsOnNaN) {
  constexpr std::int64_t rows = 264;
  constexpr std::int64_t depth = 144;
  constexpr std::int64_t columns = 272;
  for (const DType dtype : {DType::float32, DType::bfloat16}) {
    std::vector<float> values(static_cast<std::size_t>(rows * depth), 1.0F);
    values[5] = std::numeric_limits<float>::quiet_NaN();
    const Tensor x = Tensor::from(values, {rows, depth}).to(dtype).to(device);
    const Tensor w = Tensor::from(drawn(normal, columns * depth, 2), {columns, depth}).to(dtype).to(device);
    const Tensor bias = Tensor::from(std::vector<float>(columns, 0.0F), {columns}).to(dtype).to(device);
    flush();
    const auto y = relu(linear(x, w, bias)).to(DType::float32).to_vector<float>();
    for (std::size_t i = 0; i < y.size(); ++i) {
      ASSERT_EQ(std::isnan(y[i]), i < static_cast<std::size_t>(columns)) << name_of(dtype) << ", element " << i;
      ASSERT_FALSE(y[i] < 0) << name_of(dtype) << ", element " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, Products, testing::ValuesIn(conformance::tested_devices()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace russet
