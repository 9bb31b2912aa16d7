// Values of the neural network functions, worked out by plain loops, formulas or by hand.
#include <gtest/gtest.h>
#include <russet/autograd.h>
#include <russet/functional.h>
#include <russet/nn_functional.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "gradcheck.h"

namespace russet {
namespace {

using test::scattered_tensor;
using V = std::vector<double>;

constexpr Device device = DeviceType::reference;
constexpr double infinity = std::numeric_limits<double>::infinity();

Tensor numbers(const V& values, const Shape& shape) { return Tensor::from(values, shape, device); }
Tensor numbers(const V& values) { return numbers(values, {static_cast<std::int64_t>(values.size())}); }
Tensor classes(const std::vector<std::int64_t>& values) {
  return Tensor::from(values, {static_cast<std::int64_t>(values.size())}, device);
}

void expect_values(const Tensor& found, const V& expected, double tolerance = 1e-12) {
  const V values = found.to_vector<double>();
  ASSERT_EQ(values.size(), expected.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(expected[i])) {
      EXPECT_TRUE(std::isnan(values[i])) << "element " << i << " is " << values[i];
    } else if (std::isinf(expected[i])) {
      EXPECT_EQ(values[i], expected[i]) << "element " << i;
    } else {
      EXPECT_NEAR(values[i], expected[i], tolerance * (1 + std::abs(expected[i]))) << "element " << i;
    }
  }
}

// A plain convolution: every output by its definition.
V convolution(const Tensor& x, const Tensor& weight, const V& bias, std::int64_t sh, std::int64_t sw, std::int64_t ph,
              std::int64_t pw, std::int64_t dh, std::int64_t dw, std::int64_t groups, std::int64_t oh,
              std::int64_t ow) {
  const V a = x.to_vector<double>();
  const V w = weight.to_vector<double>();
  const std::int64_t h = x.size(2), wd = x.size(3), per = weight.size(1), kh = weight.size(2), kw = weight.size(3);
  V result;
  for (std::int64_t n = 0; n < x.size(0); ++n) {
    for (std::int64_t o = 0; o < weight.size(0); ++o) {
      const std::int64_t group = o / (weight.size(0) / groups);
      for (std::int64_t i = 0; i < oh * ow; ++i) {
        double sum = bias.empty() ? 0 : bias[static_cast<std::size_t>(o)];
        for (std::int64_t t = 0; t < per * kh * kw; ++t) {
          const std::int64_t c = t / (kh * kw), y = i / ow * sh - ph + t / kw % kh * dh,
                             z = i % ow * sw - pw + t % kw * dw;
          if (y < 0 || y >= h || z < 0 || z >= wd) continue;
          sum += a[static_cast<std::size_t>(((n * x.size(1) + group * per + c) * h + y) * wd + z)] *
                 w[static_cast<std::size_t>(o * per * kh * kw + t)];
        }
        result.push_back(sum);
      }
    }
  }
  return result;
}

TEST(Convolution, MatchesItsDefinition) {
  const Tensor x = scattered_tensor({2, 4, 6, 5});
  const Tensor weight = scattered_tensor({6, 2, 3, 2}, 1);
  const Tensor bias = scattered_tensor({6}, 2);
  const Tensor y = conv2d(x, weight, bias, {.stride = {2, 1}, .padding = {1, 2}, .dilation = {1, 2}, .groups = 2});
  EXPECT_EQ(y.sizes(), (Shape{2, 6, 3, 7}));
  expect_values(y, convolution(x, weight, bias.to_vector<double>(), 2, 1, 1, 2, 1, 2, 2, 3, 7));
}

TEST(Convolution, SamePaddingKeepsTheSize) {
  const Tensor x = scattered_tensor({1, 1, 5, 4});
  const Tensor weight = scattered_tensor({1, 1, 4, 3}, 1);
  const Tensor y = conv2d(x, weight, {}, {.padding = "same"});
  EXPECT_EQ(y.sizes(), x.sizes());
  // An even window: one row more after than before.
  expect_values(y, convolution(x, weight, {}, 1, 1, 1, 1, 1, 1, 1, 5, 4));
  EXPECT_EQ(conv2d(x, weight, {}, {.padding = "valid"}).sizes(), (Shape{1, 1, 2, 2}));
  EXPECT_THROW(conv2d(x, weight, {}, {.stride = 2, .padding = "same"}), ValueError);
  EXPECT_THROW(conv2d(x, weight, {}, {.padding = "full"}), ValueError);
}

TEST(Convolution, OneAxisAndNoBatch) {
  const Tensor x = scattered_tensor({2, 7});
  const Tensor weight = scattered_tensor({3, 2, 3}, 1);
  const Tensor y = conv1d(x, weight, {}, {.stride = 2, .padding = 1});
  EXPECT_EQ(y.sizes(), (Shape{3, 4}));
  expect_values(y, convolution(x.reshape({1, 2, 1, 7}), weight.reshape({3, 2, 1, 3}), {}, 1, 2, 0, 1, 1, 1, 1, 1, 4));
}

TEST(Convolution, TransposedIsTheTranspose) {
  // <conv(x), y> = <x, conv_transpose(y)>.
  const Tensor x = scattered_tensor({1, 4, 7, 6});
  const Tensor weight = scattered_tensor({6, 2, 3, 2}, 1);
  const Tensor y = conv2d(x, weight, {}, {.stride = {2, 2}, .padding = {1, 1}, .groups = 2});
  const Tensor z = scattered_tensor(y.sizes(), 4);
  const Tensor back =
      conv_transpose2d(z, weight, {}, {.stride = 2, .padding = 1, .output_padding = {0, 0}, .groups = 2});
  ASSERT_EQ(back.sizes(), x.sizes());
  EXPECT_NEAR(sum(y * z).item(), sum(x * back).item(), 1e-12);
  EXPECT_EQ(
      conv_transpose1d(scattered_tensor({1, 2, 3}), scattered_tensor({2, 1, 4}), {}, {.stride = 3, .output_padding = 1})
          .sizes(),
      (Shape{1, 1, 11}));
}

TEST(Convolution, ErrorsSayWhatIsWrong) {
  const Tensor x = scattered_tensor({1, 3, 4, 4});
  EXPECT_THROW(conv2d(x, scattered_tensor({2, 2, 3, 3})), ShapeError);
  EXPECT_THROW(conv2d(x, scattered_tensor({2, 3, 5, 5})), ShapeError);
  EXPECT_THROW(conv2d(x, scattered_tensor({2, 3, 3})), ShapeError);
  EXPECT_THROW(conv2d(x, scattered_tensor({2, 3, 3, 3}), scattered_tensor({3})), ShapeError);
  EXPECT_THROW(conv2d(x, scattered_tensor({2, 3, 3, 3}), {}, {.stride = 0}), ValueError);
}

TEST(Pooling, Maxima) {
  const Tensor x = numbers({1, 5, 2, 0, 3, 4, 8, 8, 7, 6, 8, 1, -1, -2, -3, -4}, {1, 1, 4, 4});
  const auto [values, indices] = max_pool2d_with_indices(x, 2);
  expect_values(values, {5, 8, 7, 8});
  expect_values(indices, {1, 6, 8, 10});
  const auto padded = max_pool2d_with_indices(x, 3, {.stride = 2, .padding = 1});
  expect_values(padded.values, {5, 8, 7, 8});
  expect_values(padded.indices, {1, 6, 8, 6});
  expect_values(max_pool2d(x, {1, 3}, {.stride = 1, .dilation = {1, 1}}).select(2, 0), {5, 5});
  expect_values(max_pool1d(numbers({1, 3, 2, 5, 4}, {1, 5}), 2, {.ceil_mode = true}), {3, 5, 4});
  EXPECT_THROW(max_pool2d(x, 2, {.padding = 2}), ValueError);
}

TEST(Pooling, CeilModeStartsNoWindowInThePadding) {
  // PyTorch: size 5, window 2, stride 3, padding 1: starts -1, 2 and, only if allowed, 5.
  EXPECT_EQ(max_pool1d(scattered_tensor({1, 5}), 2, {.stride = 3, .padding = 1, .ceil_mode = true}).size(-1), 2);
  EXPECT_EQ(max_pool1d(scattered_tensor({1, 6}), 2, {.stride = 3, .padding = 1, .ceil_mode = true}).size(-1), 3);
}

TEST(Pooling, Averages) {
  const Tensor x = numbers({1, 2, 3, 4, 5}, {1, 1, 5});
  expect_values(avg_pool1d(x, 2), {1.5, 3.5});
  expect_values(avg_pool1d(x, 3, {.stride = 2, .padding = 1}), {1, 3, 3});
  expect_values(avg_pool1d(x, 3, {.stride = 2, .padding = 1, .count_include_pad = false}), {1.5, 3, 4.5});
  // The last window is cut at the end: it holds one element (without padding), or one element and one zero.
  expect_values(avg_pool1d(x, 2, {.ceil_mode = true}), {1.5, 3.5, 5});
  const Tensor longer = numbers({1, 2, 3, 4, 5, 6}, {1, 1, 6});
  expect_values(avg_pool1d(longer, 4, {.stride = 3, .padding = 1, .ceil_mode = true}), {1.5, 4.5 - 0.0, 3});
  const Tensor square = numbers({1, 2, 3, 4}, {1, 1, 2, 2});
  expect_values(avg_pool2d(square, 2, {.divisor_override = 5}), {2});
}

TEST(Pooling, Adaptive) {
  const Tensor x = numbers({1, 2, 3, 4, 5, 6, 7}, {1, 1, 7});
  expect_values(adaptive_avg_pool1d(x, 3), {2, 4, 6});
  expect_values(adaptive_max_pool1d(x, 3), {3, 5, 7});
  expect_values(adaptive_avg_pool1d(x, 7), {1, 2, 3, 4, 5, 6, 7});
  const Tensor image = numbers({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, {1, 3, 4});
  expect_values(adaptive_avg_pool2d(image, 1), {6.5});
  expect_values(adaptive_avg_pool2d(image, {3, 2}), {1.5, 3.5, 5.5, 7.5, 9.5, 11.5});
  expect_values(adaptive_avg_pool2d(image, {2, 3}), {4 - 0.5, 4.5, 5.5, 7.5, 8.5, 9.5});
  expect_values(adaptive_max_pool2d(image, {2, 2}), {6, 8, 10, 12});
}

// {mean, biased variance} of some numbers.
std::pair<double, double> moments(const V& v) {
  const double mean = std::accumulate(v.begin(), v.end(), 0.0) / static_cast<double>(v.size());
  double squares = 0;
  for (const double value : v) squares += (value - mean) * (value - mean);
  return {mean, squares / static_cast<double>(v.size())};
}

TEST(Normalisation, BatchNormTrainsAndMovesItsStatistics) {
  const Tensor x = scattered_tensor({3, 2, 2}) * 3.0 + 1.0;
  const Tensor running_mean = numbers({1, 2});
  const Tensor running_var = numbers({3, 4});
  const Tensor weight = numbers({2, -1});
  const Tensor bias = numbers({0.5, 0.25});
  const Tensor y = batch_norm(x, running_mean, running_var, weight, bias, {.training = true, .momentum = 0.3});
  const V a = x.to_vector<double>();
  V expected(12);
  V means, variances;
  for (std::size_t c = 0; c < 2; ++c) {
    V channel;
    for (std::size_t n = 0; n < 3; ++n) {
      for (std::size_t i = 0; i < 2; ++i) channel.push_back(a[(n * 2 + c) * 2 + i]);
    }
    const auto [mean, var] = moments(channel);
    means.push_back(0.7 * V{1, 2}[c] + 0.3 * mean);
    variances.push_back(0.7 * V{3, 4}[c] + 0.3 * var * 6 / 5);
    for (std::size_t n = 0; n < 3; ++n) {
      for (std::size_t i = 0; i < 2; ++i) {
        const std::size_t at = (n * 2 + c) * 2 + i;
        expected[at] = (a[at] - mean) / std::sqrt(var + 1e-5) * V{2, -1}[c] + V{0.5, 0.25}[c];
      }
    }
  }
  expect_values(y, expected);
  expect_values(running_mean, means);
  expect_values(running_var, variances);
}

TEST(Normalisation, BatchNormEvaluatesWithRunningStatistics) {
  const Tensor x = numbers({1, 2, 3, 4}, {2, 2});
  const Tensor y = batch_norm(x, numbers({1, 2}), numbers({4, 9}), numbers({2, 3}), numbers({10, 20}), {.eps = 0});
  expect_values(y, {10, 20, 12, 22});
  expect_values(batch_norm(x, numbers({1, 2}), numbers({4, 16}), {}, {}, {.eps = 0}), {0, 0, 1, 0.5});
  EXPECT_THROW(batch_norm(x, {}, {}), ValueError);
  EXPECT_THROW(batch_norm(x.narrow(0, 0, 1), {}, {}, {}, {}, {.training = true}), ValueError);
  EXPECT_THROW(batch_norm(x, numbers({1}), numbers({1})), ShapeError);
}

TEST(Normalisation, LayerGroupInstanceAndRootMeanSquare) {
  const Tensor x = numbers({1, 2, 3, 4, 6, 8, 0, 5}, {1, 4, 2});
  const auto normal = [](double value, const V& among, double eps) {
    const auto [mean, var] = moments(among);
    return (value - mean) / std::sqrt(var + eps);
  };
  V expected;
  for (const V& row : {V{1, 2}, {3, 4}, {6, 8}, {0, 5}}) {
    for (std::size_t i = 0; i < 2; ++i) expected.push_back(normal(row[i], row, 1e-5) * V{2, 3}[i] + V{1, -1}[i]);
  }
  expect_values(layer_norm(x, {2}, numbers({2, 3}), numbers({1, -1})), expected);

  expected.clear();
  for (const V& group : {V{1, 2, 3, 4}, {6, 8, 0, 5}}) {
    for (const double value : group) expected.push_back(normal(value, group, 1e-5));
  }
  expect_values(group_norm(x, 2), expected);
  for (std::size_t i = 0; i < 8; ++i) expected[i] = expected[i] * V{1, 2, 3, 4}[i / 2] + V{0, 1, 2, 3}[i / 2];
  expect_values(group_norm(x, 2, numbers({1, 2, 3, 4}), numbers({0, 1, 2, 3})), expected);

  expected.clear();
  for (const V& row : {V{1, 2}, {3, 4}, {6, 8}, {0, 5}}) {
    for (const double value : row) expected.push_back(normal(value, row, 1e-5));
  }
  expect_values(instance_norm(x), expected);

  const Tensor v = numbers({3, 4}, {1, 2});
  expect_values(rms_norm(v, {2}, numbers({1, 2}), 0.5), {3 / std::sqrt(13.0), 8 / std::sqrt(13.0)});
  expect_values(normalize(v), {0.6, 0.8});
  EXPECT_THROW(layer_norm(x, {3}), ShapeError);
  EXPECT_THROW(group_norm(x, 3), ValueError);
}

TEST(Normalisation, LowerPrecisionIsComputedInFloat32) {
  // Squares beyond float16's range.
  const Tensor x = numbers({1000, 2000, 3000, 4000}, {1, 4}).to(DType::float16);
  const Tensor y = layer_norm(x, {4});
  EXPECT_EQ(y.dtype(), DType::float16);
  expect_values(y, {-1.3416407865, -0.4472135955, 0.4472135955, 1.3416407865}, 1e-3);
}

TEST(Activations, MatchTheirFormulas) {
  const V points{-30, -3.5, -2, -0.7, -0.2, 0, 0.3, 1, 2.5, 3, 7, 40};
  const Tensor x = numbers(points);
  const auto check = [&](const char* name, const Tensor& y, const std::function<double(double)>& formula) {
    SCOPED_TRACE(name);
    V expected;
    for (const double point : points) expected.push_back(formula(point));
    expect_values(y, expected);
  };
  const auto softplus_at = [](double v) { return std::log1p(std::exp(-std::abs(v))) + std::max(v, 0.0); };
  check("relu", relu(x), [](double v) { return std::max(v, 0.0); });
  check("relu6", relu6(x), [](double v) { return std::min(std::max(v, 0.0), 6.0); });
  check("leaky_relu", leaky_relu(x, 0.2), [](double v) { return v > 0 ? v : 0.2 * v; });
  check("elu", elu(x, 1.5), [](double v) { return v > 0 ? v : 1.5 * std::expm1(v); });
  check("celu", celu(x, 1.5), [](double v) { return v > 0 ? v : 1.5 * std::expm1(v / 1.5); });
  check("selu", selu(x),
        [](double v) { return 1.0507009873554805 * (v > 0 ? v : 1.6732632423543772 * std::expm1(v)); });
  check("gelu", gelu(x), [](double v) { return v * 0.5 * (1 + std::erf(v / std::sqrt(2.0))); });
  check("gelu tanh", gelu(x, GeluApproximation::tanh),
        [](double v) { return 0.5 * v * (1 + std::tanh(std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v))); });
  check("silu", silu(x), [](double v) { return v / (1 + std::exp(-v)); });
  check("mish", mish(x), [&](double v) { return v * std::tanh(softplus_at(v)); });
  check("softplus", softplus(x, 2, 6), [&](double v) { return 2 * v > 6 ? v : softplus_at(2 * v) / 2; });
  check("softsign", softsign(x), [](double v) { return v / (1 + std::abs(v)); });
  check("tanhshrink", tanhshrink(x), [](double v) { return v - std::tanh(v); });
  check("softshrink", softshrink(x), [](double v) { return v > 0.5 ? v - 0.5 : v < -0.5 ? v + 0.5 : 0; });
  check("hardshrink", hardshrink(x), [](double v) { return std::abs(v) > 0.5 ? v : 0; });
  check("hardtanh", hardtanh(x, -2, 1), [](double v) { return std::min(std::max(v, -2.0), 1.0); });
  check("hardsigmoid", hardsigmoid(x), [](double v) { return std::min(std::max(v + 3, 0.0), 6.0) / 6; });
  check("hardswish", hardswish(x), [](double v) { return v * std::min(std::max(v + 3, 0.0), 6.0) / 6; });
  check("logsigmoid", logsigmoid(x), [&](double v) { return -softplus_at(-v); });
  check("threshold", threshold(x, 0.3, -7), [](double v) { return v > 0.3 ? v : -7; });
  check("prelu", prelu(x, numbers({0.1})), [](double v) { return v > 0 ? v : 0.1 * v; });
}

TEST(Activations, Others) {
  expect_values(glu(numbers({1, 2, 0, std::log(3.0)}, {1, 4})), {0.5, 1.5});
  expect_values(prelu(numbers({-1, -2, -3, 4}, {1, 2, 2}), numbers({0.1, 0.5})), {-0.1, -0.2, -1.5, 4});
  expect_values(softmin(numbers({0, std::log(3.0)}), 0), {0.75, 0.25});
  EXPECT_THROW(glu(numbers({1, 2, 3})), ShapeError);
}

TEST(Dropout, KeepsTheMeanAndRepeats) {
  const Tensor x = ones({100, 100}, {DType::float64, device});
  Generator first(3);
  Generator second(3);
  const Tensor y = dropout(x, 0.2, true, &first);
  EXPECT_TRUE(equal(y, dropout(x, 0.2, true, &second)));
  EXPECT_FALSE(equal(y, dropout(x, 0.2, true, &second)));
  EXPECT_NEAR(mean(y).item(), 1, 0.02);
  for (const double value : y.to_vector<double>()) EXPECT_TRUE(value == 0 || std::abs(value - 1.25) < 1e-12);
  EXPECT_TRUE(equal(dropout(x, 0.2, false), x));
  expect_values(sum(dropout(x, 1.0)), {0});
  EXPECT_THROW(dropout(x, 1.5), ValueError);
  // Whole channels.
  const V sums = sum(dropout2d(ones({4, 8, 3, 3}, {DType::float64, device}), 0.5), {2, 3}).to_vector<double>();
  for (const double value : sums) EXPECT_TRUE(value == 0 || std::abs(value - 18) < 1e-12) << value;
}

TEST(Dropout, GradientHasTheSameMask) {
  const Tensor x = Tensor::from(V(50, 1.0), {50}, device, true);
  const Tensor y = dropout(x, 0.5);
  EXPECT_EQ(autograd::grad({sum(y)}, {x}, {}, {.retain_graph = true})[0].to_vector<double>(), y.to_vector<double>());
}

TEST(Embedding, LooksUpRowsAndSkipsPadding) {
  const Tensor weight = Tensor::from(V{1, 2, 3, 4, 5, 6}, {3, 2}, device, true);
  const Tensor index = Tensor::from(std::vector<std::int32_t>{2, 0, 2, 1}, {2, 2}, device);
  const Tensor y = embedding(index, weight, -2);
  EXPECT_EQ(y.sizes(), (Shape{2, 2, 2}));
  expect_values(y, {5, 6, 1, 2, 5, 6, 3, 4});
  expect_values(autograd::grad({sum(y)}, {weight})[0], {1, 1, 0, 0, 2, 2});
  EXPECT_THROW(embedding(index, weight, 3), ValueError);
  EXPECT_THROW(embedding(weight, weight), TypeError);
}

// softmax(q k^T scale) v by loops, for one head; allowed(i, j) says which columns a row sees.
V attention(const Tensor& q, const Tensor& k, const Tensor& v, const std::function<bool(int, int)>& allowed,
            double scale) {
  const V a = q.to_vector<double>(), b = k.to_vector<double>(), c = v.to_vector<double>();
  const auto l = static_cast<int>(q.size(0)), s = static_cast<int>(k.size(0)), e = static_cast<int>(q.size(1)),
             w = static_cast<int>(v.size(1));
  V result;
  for (int i = 0; i < l; ++i) {
    V p;
    double total = 0;
    for (int j = 0; j < s; ++j) {
      double score = 0;
      for (int t = 0; t < e; ++t)
        score += a[static_cast<std::size_t>(i * e + t)] * b[static_cast<std::size_t>(j * e + t)];
      p.push_back(allowed(i, j) ? std::exp(score * scale) : 0);
      total += p.back();
    }
    for (int t = 0; t < w; ++t) {
      double sum = 0;
      for (int j = 0; j < s; ++j) sum += p[static_cast<std::size_t>(j)] * c[static_cast<std::size_t>(j * w + t)];
      result.push_back(total == 0 ? 0 : sum / total);
    }
  }
  return result;
}

TEST(Attention, MatchesItsDefinition) {
  const Tensor q = scattered_tensor({3, 4});
  const Tensor k = scattered_tensor({5, 4}, 1);
  const Tensor v = scattered_tensor({5, 2}, 2);
  const auto all = [](int, int) { return true; };
  expect_values(scaled_dot_product_attention(q, k, v), attention(q, k, v, all, 0.5));
  expect_values(scaled_dot_product_attention(q, k, v, {}, {.scale = 2.0}), attention(q, k, v, all, 2));
  expect_values(scaled_dot_product_attention(q, k, v, {}, {.is_causal = true}),
                attention(
                    q, k, v, [](int i, int j) { return j <= i; }, 0.5));
  // The middle row may look nowhere.
  const Tensor mask =
      Tensor::from({true, false, true, false, true, false, false, false, false, false, false, true, true, false, false},
                   {3, 5}, device);
  const auto seen = [](int i, int j) { return (i == 0 && j % 2 == 0) || (i == 2 && (j == 1 || j == 2)); };
  expect_values(scaled_dot_product_attention(q, k, v, mask), attention(q, k, v, seen, 0.5));
  const Tensor added = where(mask, 0.0, -infinity).to(DType::float64);
  expect_values(scaled_dot_product_attention(q, k, v, added), attention(q, k, v, seen, 0.5));
  EXPECT_THROW(scaled_dot_product_attention(q, k, v, mask, {.is_causal = true}), ValueError);
  EXPECT_THROW(scaled_dot_product_attention(q, v, v), ShapeError);
}

TEST(Attention, SharedHeads) {
  const Tensor q = scattered_tensor({1, 4, 3, 2});
  const Tensor k = scattered_tensor({1, 2, 3, 2}, 1);
  const Tensor y = scaled_dot_product_attention(q, k, k, {}, {.enable_gqa = true});
  const Tensor single = scaled_dot_product_attention(q[0][3], k[0][1], k[0][1]);
  EXPECT_TRUE(allclose(y[0][3], single));
}

// As in PyTorch: an element that the leaf shows several times has as many gradients.
TEST(Attention, ALeafThatWasExpandedHasTheGradientOfItsCopy) {
  const Tensor q = scattered_tensor({2, 3, 4});
  const Tensor v = scattered_tensor({2, 5, 2}, 2);
  const Tensor row = scattered_tensor({1, 4}, 1);
  const Tensor weight = scattered_tensor({2, 3, 2}, 3);
  const auto gradient = [&](const Tensor& k) {
    return autograd::grad({scaled_dot_product_attention(q, k, v)}, {k}, {weight})[0];
  };
  for (const Shape& sizes : {Shape{5, 4}, Shape{2, 5, 4}}) {
    const Tensor found = gradient(row.expand(sizes).detach().requires_grad_());
    EXPECT_EQ(found.sizes(), sizes);
    EXPECT_TRUE(allclose(found, gradient(row.expand(sizes).detach().clone().requires_grad_())));
  }
}

TEST(Attention, MultiHead) {
  const std::int64_t e = 4;
  const Tensor x = scattered_tensor({3, 2, e});  // [l, n, e]
  const Tensor weight = scattered_tensor({3 * e, e}, 1);
  const Tensor bias = scattered_tensor({3 * e}, 2);
  const Tensor out = scattered_tensor({e, e}, 3);
  MultiHeadAttentionOptions options;
  options.num_heads = 2;
  options.in_proj_weight = weight;
  options.in_proj_bias = bias;
  options.out_proj_weight = out;
  options.out_proj_bias = numbers({1, 2, 3, 4});
  // Keys 0 and 1 for the first sample, all for the second.
  options.key_padding_mask = Tensor::from({false, false, true, false, false, false}, {2, 3}, device);
  const auto [y, weights] = multi_head_attention_forward(x, x, x, options);
  ASSERT_EQ(y.sizes(), (Shape{3, 2, e}));
  ASSERT_EQ(weights.sizes(), (Shape{2, 3, 3}));
  EXPECT_TRUE(allclose(sum(weights, -1), ones({2, 3}, {DType::float64, device})));
  for (std::int64_t n = 0; n < 2; ++n) {
    const Tensor rows = linear(x.select(1, n), weight, bias);
    std::vector<Tensor> heads;
    for (std::int64_t h = 0; h < 2; ++h) {
      const auto part = [&](std::int64_t i) { return rows.narrow(1, i * e + h * 2, 2); };
      const auto seen = [&](int, int j) { return n == 1 || j < 2; };
      heads.push_back(numbers(attention(part(0), part(1), part(2), seen, 1 / std::sqrt(2.0)), {3, 2}));
    }
    const Tensor expected = linear(cat(heads, 1), out, numbers({1, 2, 3, 4}));
    EXPECT_TRUE(allclose(y.select(1, n), expected)) << to_string(y.select(1, n)) << to_string(expected);
  }
  // The same by other ways to say it.
  MultiHeadAttentionOptions first = options;
  first.batch_first = true;
  const Tensor moved = x.transpose(0, 1);
  EXPECT_TRUE(allclose(multi_head_attention_forward(moved, moved, moved, first).output.transpose(0, 1), y));
  EXPECT_TRUE(allclose(multi_head_attention_forward(x, x.clone(), x.clone(), options).output, y));
  EXPECT_TRUE(allclose(multi_head_attention_forward(x, x, x.clone(), options).output, y));
  MultiHeadAttentionOptions one = options;
  one.key_padding_mask = options.key_padding_mask[0];
  const Tensor sample = x.select(1, 0);
  EXPECT_TRUE(allclose(multi_head_attention_forward(sample, sample, sample, one).output, y.select(1, 0)));
}

TEST(Losses, CrossEntropy) {
  const Tensor x = numbers({1, 2, 3, 0, -1, 4, 2, 2, 2}, {3, 3});
  const V a = x.to_vector<double>();
  V lse;
  for (std::size_t n = 0; n < 3; ++n) {
    lse.push_back(std::log(std::exp(a[3 * n]) + std::exp(a[3 * n + 1]) + std::exp(a[3 * n + 2])));
  }
  const V terms{lse[0] - 1, lse[1] - 4, lse[2] - 2};
  const Tensor target = classes({0, 2, 1});
  expect_values(cross_entropy(x, target, {.reduction = Reduction::none}), terms);
  expect_values(cross_entropy(x, target, {.reduction = Reduction::sum}), {terms[0] + terms[1] + terms[2]});
  expect_values(cross_entropy(x, target), {(terms[0] + terms[1] + terms[2]) / 3});
  expect_values(cross_entropy(x, classes({0, -100, 1})), {(terms[0] + terms[2]) / 2});
  expect_values(cross_entropy(x, target, {.ignore_index = 2}), {(terms[0] + terms[2]) / 2});
  expect_values(cross_entropy(x, classes({-100, -100, -100})), {std::nan("")});
  for (const std::int64_t wrong : {3, -1}) {
    EXPECT_THROW(cross_entropy(x, classes({0, wrong, 1})).item(), IndexError);
    EXPECT_THROW(nll_loss(x, classes({0, wrong, 1})).item(), IndexError);
  }

  const V w{1, 2, 4};
  const CrossEntropyOptions weighted{.weight = numbers(w)};
  expect_values(cross_entropy(x, target, weighted), {(terms[0] + 4 * terms[1] + 2 * terms[2]) / 7});

  // Smoothing: a share of each class's loss.
  const double s = 0.3;
  V smooth;
  double total = 0;
  for (std::size_t n = 0; n < 3; ++n) {
    const std::size_t t = static_cast<std::size_t>(V{0, 2, 1}[n]);
    double spread = 0;
    for (std::size_t c = 0; c < 3; ++c) spread += w[c] * (lse[n] - a[3 * n + c]);
    smooth.push_back((1 - s) * w[t] * terms[n] + s / 3 * spread);
    total += w[t];
  }
  expect_values(cross_entropy(x, target, {.weight = numbers(w), .label_smoothing = s}),
                {(smooth[0] + smooth[1] + smooth[2]) / total});

  const Tensor p = numbers({0.5, 0.5, 0, 0, 0, 1, 0.2, 0.3, 0.5}, {3, 3});
  const V q = p.to_vector<double>();
  double sum_of_products = 0;
  for (std::size_t i = 0; i < 9; ++i) sum_of_products += q[i] * (lse[i / 3] - a[i]);
  expect_values(cross_entropy(x, p), {sum_of_products / 3});
  EXPECT_THROW(cross_entropy(x, classes({0, 1})), ShapeError);
  EXPECT_THROW(cross_entropy(x, p, {.label_smoothing = 2}), ValueError);
}

TEST(Losses, CrossEntropyOfImagesAndSingleSamples) {
  const Tensor x = scattered_tensor({2, 3, 2, 2});
  const Tensor target = classes({0, 1, 2, 1, 2, 2, 0, 1}).reshape({2, 2, 2});
  const Tensor rows = x.permute({0, 2, 3, 1}).reshape({8, 3});
  EXPECT_TRUE(allclose(cross_entropy(x, target), cross_entropy(rows, target.reshape({8}))));
  EXPECT_TRUE(allclose(cross_entropy(rows[0], target[0][0][0]), cross_entropy(rows.narrow(0, 0, 1), classes({0}))));
  EXPECT_TRUE(allclose(nll_loss(log_softmax(x, 1), target), cross_entropy(x, target)));
  const CrossEntropyOptions options{.weight = numbers({1, 3, 2}), .ignore_index = 1};
  EXPECT_TRUE(allclose(nll_loss(log_softmax(x, 1), target, {options.weight, 1}), cross_entropy(x, target, options)));
}

TEST(Losses, OfPairs) {
  const Tensor x = numbers({1, -2, 0.5, 3});
  const Tensor y = numbers({0.5, 1, 0.5, 5});
  expect_values(mse_loss(x, y), {(0.25 + 9 + 0 + 4) / 4});
  expect_values(l1_loss(x, y, Reduction::sum), {5.5});
  expect_values(smooth_l1_loss(x, y, Reduction::none, 1), {0.125, 2.5, 0, 1.5});
  expect_values(huber_loss(x, y, Reduction::none, 2), {0.125, 4, 0, 2});
  const Tensor p = numbers({0.25, 1, 0});
  const Tensor t = numbers({1, 0, 0});
  expect_values(binary_cross_entropy(p, t, {}, Reduction::none), {std::log(4.0), 100, 0});
  const Tensor logits = numbers({-1, 50, 0.3});
  const auto softplus_at = [](double v) { return std::log1p(std::exp(-std::abs(v))) + std::max(v, 0.0); };
  expect_values(binary_cross_entropy_with_logits(logits, t, {}, Reduction::none),
                {softplus_at(1), softplus_at(50), softplus_at(0.3)});
  expect_values(binary_cross_entropy_with_logits(logits, t, numbers({1, 2, 1}), Reduction::none, numbers({3})),
                {3 * softplus_at(1), 2 * softplus_at(50), softplus_at(0.3)});
  const Tensor logs = log(numbers({0.5, 0.5}));
  expect_values(kl_div(logs, numbers({0, 1}), KlReduction::sum), {std::log(2.0)});
  expect_values(kl_div(logs, log(numbers({0.25, 0.75})), KlReduction::batchmean, true),
                {(0.25 * std::log(0.5) + 0.75 * std::log(1.5)) / 2});
  expect_values(poisson_nll_loss(numbers({0, 1}), numbers({1, 2}), true, false, 1e-8, Reduction::none),
                {1, std::exp(1.0) - 2});
  expect_values(gaussian_nll_loss(numbers({1}), numbers({3}), numbers({2})), {0.5 * (std::log(2.0) + 2)});
}

TEST(Losses, OfDistances) {
  const Tensor a = numbers({3, 4, 1, 0}, {2, 2});
  const Tensor b = numbers({4, 3, -1, 0}, {2, 2});
  expect_values(cosine_similarity(a, b), {0.96, -1});
  expect_values(pairwise_distance(a, b, 2, 0), {std::sqrt(2.0), 2});
  expect_values(pairwise_distance(a, b, 1, 0), {2, 2});
  expect_values(cosine_embedding_loss(a, b, numbers({1, -1}), 0, Reduction::none), {0.04, 0}, 1e-9);
  expect_values(margin_ranking_loss(numbers({1, 2}), numbers({2, 2}), numbers({1, -1}), 0.5, Reduction::none),
                {1.5, 0.5});
  expect_values(hinge_embedding_loss(numbers({0.3, 0.3}), numbers({1, -1}), 1, Reduction::none), {0.3, 0.7});
  expect_values(soft_margin_loss(numbers({2}), numbers({-1})), {std::log1p(std::exp(2.0))});
  expect_values(multi_margin_loss(numbers({0.1, 0.2, 0.7}, {1, 3}), classes({2})), {(0.4 + 0.5) / 3});
  expect_values(multi_margin_loss(numbers({0.1, 0.2, 0.7}), Tensor::from<std::int64_t>({2}, {}, device), 2),
                {(0.16 + 0.25) / 3});
  expect_values(
      triplet_margin_loss(numbers({0, 0}, {1, 2}), numbers({3, 4}, {1, 2}), numbers({0, 5.5}, {1, 2}), {.eps = 0}),
      {0.5});
  expect_values(multilabel_soft_margin_loss(numbers({0, 0}, {1, 2}), numbers({1, 0}, {1, 2})), {std::log(2.0)});
}

TEST(Images, ShuffleAndResize) {
  const Tensor x = numbers({0, 1, 2, 3, 4, 5, 6, 7}, {1, 4, 1, 2});
  expect_values(pixel_shuffle(x, 2), {0, 2, 1, 3, 4, 6, 5, 7});
  EXPECT_TRUE(equal(pixel_unshuffle(pixel_shuffle(x, 2), 2), x));
  expect_values(channel_shuffle(x, 2), {0, 1, 4, 5, 2, 3, 6, 7});
  const Tensor line = numbers({1, 2, 4}, {1, 1, 3});
  expect_values(interpolate(line, {.size = 6}), {1, 1, 2, 2, 4, 4});
  expect_values(interpolate(line, {.size = 2}), {1, 2});
  expect_values(interpolate(line, {.size = 2, .mode = Interpolation::nearest_exact}), {1, 4});
  expect_values(interpolate(line, {.size = 5, .mode = Interpolation::linear, .align_corners = true}),
                {1, 1.5, 2, 3, 4});
  expect_values(interpolate(line, {.scale_factor = 2.0, .mode = Interpolation::linear}), {1, 1.25, 1.75, 2.5, 3.5, 4});
  const Tensor image = numbers({1, 2, 3, 4}, {1, 1, 2, 2});
  expect_values(interpolate(image, {.size = {3, 3}, .mode = Interpolation::bilinear, .align_corners = true}),
                {1, 1.5, 2, 2, 2.5, 3, 3, 3.5, 4});
  EXPECT_THROW(interpolate(line, {}), ValueError);
}

TEST(Images, UnfoldAndFold) {
  const Tensor x = numbers({1, 2, 3, 4, 5, 6, 7, 8, 9}, {1, 1, 3, 3});
  expect_values(unfold(x, Size2(2)), {1, 2, 4, 5, 2, 3, 5, 6, 4, 5, 7, 8, 5, 6, 8, 9});
  // Each element as often as windows hold it.
  expect_values(fold(unfold(x, Size2(2)), 3, 2), {1, 4, 3, 8, 20, 12, 7, 16, 9});
  // A convolution as a product of matrices.
  const Tensor images = scattered_tensor({2, 3, 5, 4});
  const Tensor weight = scattered_tensor({4, 3, 3, 2}, 1);
  const Tensor columns = unfold(images, {3, 2}, {.dilation = {1, 2}, .padding = {1, 0}, .stride = {2, 1}});
  const Tensor y = conv2d(images, weight, {}, {.stride = {2, 1}, .padding = {1, 0}, .dilation = {1, 2}});
  EXPECT_TRUE(allclose(matmul(weight.reshape({4, 18}), columns).reshape(y.sizes()), y));
}

}  // namespace
}  // namespace russet
