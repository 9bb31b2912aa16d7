// What golden values and conformance do not show of the neural network functions: errors, random numbers, corners, and
// options that no recorded call has.
#include <gtest/gtest.h>
#include <russet/autograd.h>
#include <russet/functional.h>
#include <russet/nn_functional.h>

#include <algorithm>
#include <cmath>
#include <limits>

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

TEST(Convolution, ErrorsSayWhatIsWrong) {
  const Tensor x = scattered_tensor({1, 3, 4, 4});
  const Tensor weight = scattered_tensor({2, 3, 3, 3});
  EXPECT_THROW(conv2d(x, scattered_tensor({2, 3, 3})), ShapeError);
  EXPECT_THROW(conv2d(x, weight, {}, {.stride = 0}), ValueError);
  EXPECT_THROW(conv2d(x, weight, {}, {.stride = 2, .padding = "same"}), ValueError);
  EXPECT_THROW(conv2d(x, weight, {}, {.padding = "full"}), ValueError);
}

TEST(Convolution, ErrorsOfThreeAxesSayWhatIsWrong) {
  const Tensor x = scattered_tensor({1, 3, 4, 4, 4});
  const Tensor weight = scattered_tensor({2, 3, 3, 3, 3});
  EXPECT_THROW(conv3d(x, scattered_tensor({2, 3, 3, 3})), ShapeError);
  EXPECT_THROW(conv3d(x, scattered_tensor({2, 2, 3, 3, 3})), ShapeError);
  EXPECT_THROW(conv3d(x.narrow(2, 0, 2), weight), ShapeError);
  EXPECT_THROW(conv3d(x.narrow(4, 0, 2), weight), ShapeError);
  EXPECT_THROW(conv3d(x, weight, scattered_tensor({3})), ShapeError);
  EXPECT_THROW(conv3d(x, weight, {}, {.stride = {0, 1, 1}}), ValueError);
  EXPECT_THROW(conv3d(x, weight, {}, {.padding = {-1, 0, 0}}), ValueError);
  EXPECT_THROW(conv3d(x, weight, {}, {.dilation = {1, 0, 1}}), ValueError);
  EXPECT_THROW(conv3d(x, weight, {}, {.groups = 0}), ValueError);
  EXPECT_THROW(conv3d(x, weight, {}, {.stride = {2, 1, 1}, .padding = "same"}), ValueError);
  EXPECT_THROW(conv3d(x, weight, {}, {.padding = "full"}), ValueError);
}

TEST(Convolution, TransposedErrorsSayWhatIsWrong) {
  const Tensor x = scattered_tensor({1, 2, 4, 4, 4});
  const Tensor weight = scattered_tensor({2, 3, 3, 3, 3});
  EXPECT_THROW(conv_transpose3d(x, scattered_tensor({3, 2, 3, 3, 3})), ShapeError);
  EXPECT_THROW(conv_transpose3d(x, weight, scattered_tensor({2})), ShapeError);
  EXPECT_THROW(conv_transpose3d(x, weight, {}, {.padding = 6}), ShapeError);
  EXPECT_THROW(conv_transpose3d(x, weight, {}, {.stride = 2, .output_padding = {2, 0, 0}}), ValueError);
  EXPECT_THROW(conv_transpose3d(x, weight, {}, {.stride = 2, .output_padding = {0, 0, 2}}), ValueError);
  EXPECT_THROW(conv_transpose3d(x, weight, {}, {.output_padding = {-1, 0, 0}}), ValueError);
  EXPECT_THROW(conv_transpose3d(x, weight, {}, {.dilation = {0, 1, 1}}), ValueError);
  const Tensor line = scattered_tensor({1, 2, 4});
  EXPECT_THROW(conv_transpose1d(line, scattered_tensor({2, 3, 3}), {}, {.output_padding = 1}), ValueError);
  // Less than the dilation is enough.
  EXPECT_EQ(conv_transpose1d(line, scattered_tensor({2, 3, 3}), {}, {.output_padding = 1, .dilation = 2}).size(2), 9);
}

TEST(Convolution, OfThreeAxesIsOneSumOfEachWindow) {
  const Tensor x = scattered_tensor({2, 3, 5, 4, 4}).to(DType::bfloat16);
  const Tensor weight = scattered_tensor({2, 3, 3, 3, 3}).to(DType::bfloat16);
  const Tensor found = conv3d(x, weight, {}, {.padding = 1});
  EXPECT_TRUE(found.is_contiguous());
  const Tensor exact = conv3d(x.to(DType::float64), weight.to(DType::float64), {}, {.padding = 1});
  EXPECT_TRUE(equal(found, exact.to(DType::bfloat16)));
}

TEST(Pooling, UnpoolingGivesSizesThatPoolToTheInput) {
  const Tensor x = scattered_tensor({1, 2, 4, 5, 4});
  const auto [values, indices] = max_pool3d_with_indices(x, 2);
  const Tensor found = max_unpool3d(values, indices, 2, {.output_size = Size3(4, 5, 4)});
  EXPECT_TRUE(equal(found, where(found != 0, x, zeros_like(x))));
  EXPECT_EQ(sum(found != 0).item(), 2 * 2 * 2 * 2);
  EXPECT_THROW(max_unpool3d(values, indices, 2, {.output_size = Size3(4, 6, 4)}), ValueError);
  EXPECT_THROW(max_unpool1d(numbers({1, 2}, {1, 2}), classes({0, 2}), 2), ShapeError);
}

TEST(Pooling, AdaptiveMaximaOfTheSameSizeAreACopy) {
  const Tensor x = scattered_tensor({1, 2, 3, 3});
  EXPECT_FALSE(adaptive_max_pool2d(x, 3).shares_storage(x));
  EXPECT_FALSE(adaptive_max_pool3d(x, {2, 3, 3}).shares_storage(x));
}

TEST(Pooling, CeilModeStartsNoWindowInThePadding) {
  // PyTorch: size 5, window 2, stride 3, padding 1: starts -1, 2 and, only if allowed, 5.
  EXPECT_EQ(max_pool1d(scattered_tensor({1, 5}), 2, {.stride = 3, .padding = 1, .ceil_mode = true}).size(-1), 2);
  EXPECT_EQ(max_pool1d(scattered_tensor({1, 6}), 2, {.stride = 3, .padding = 1, .ceil_mode = true}).size(-1), 3);
}

TEST(Pooling, AveragesOfWindowsThatAreCutCountTheirPadding) {
  const Tensor x = numbers({1, 2, 3, 4, 5, 6}, {1, 1, 6});
  expect_values(avg_pool1d(x, 4, {.stride = 3, .padding = 1, .ceil_mode = true}), {1.5, 4.5, 3});
}

TEST(Normalisation, ErrorsSayWhatIsWrong) {
  const Tensor x = numbers({1, 2, 3, 4}, {2, 2});
  EXPECT_THROW(batch_norm(x, {}, {}), ValueError);
  EXPECT_THROW(batch_norm(x.narrow(0, 0, 1), {}, {}, {}, {}, {.training = true}), ValueError);
  EXPECT_THROW(batch_norm(x, numbers({1}), numbers({1})), ShapeError);
  EXPECT_THROW(group_norm(scattered_tensor({1, 4, 2}), 3), ValueError);
}

TEST(Normalisation, LowerPrecisionIsComputedInFloat32) {
  // Squares beyond float16's range.
  const Tensor x = numbers({1000, 2000, 3000, 4000}, {1, 4}).to(DType::float16);
  const Tensor y = layer_norm(x, {4});
  EXPECT_EQ(y.dtype(), DType::float16);
  expect_values(y, {-1.3416407865, -0.4472135955, 0.4472135955, 1.3416407865}, 1e-3);
}

TEST(Activations, SoftplusIsLinearAboveItsThreshold) {
  expect_values(softplus(numbers({0, 2.5, 3.5, 40}), 2, 6),
                {std::log(2.0) / 2, std::log1p(std::exp(5.0)) / 2, 3.5, 40});
}

TEST(Activations, GluNeedsAnEvenSize) { EXPECT_THROW(glu(numbers({1, 2, 3})), ShapeError); }

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

TEST(Dropout, StochasticDepthDropsWholeSamplesOrAll) {
  const Tensor x = ones({400, 2, 3}, {DType::float64, device});
  Generator generator(3);
  const Tensor rows = stochastic_depth(x, 0.2, StochasticDepthMode::row, true, &generator);
  std::size_t dropped = 0;
  for (const double sum_of_row : sum(rows, {1, 2}).to_vector<double>()) {
    EXPECT_TRUE(sum_of_row == 0 || std::abs(sum_of_row - 7.5) < 1e-12) << sum_of_row;
    dropped += sum_of_row == 0 ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(dropped), 80, 30);
  std::size_t batches_dropped = 0;
  for (int i = 0; i < 100; ++i) {
    const double all = sum(stochastic_depth(x, 0.2, StochasticDepthMode::batch, true, &generator)).item();
    EXPECT_TRUE(all == 0 || std::abs(all - 3000) < 1e-9) << all;
    batches_dropped += all == 0 ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(batches_dropped), 20, 16);
  EXPECT_TRUE(equal(stochastic_depth(x, 0.2, StochasticDepthMode::row, false), x));
  expect_values(sum(stochastic_depth(x, 1.0, StochasticDepthMode::batch)), {0});
  EXPECT_THROW(stochastic_depth(x, -0.1, StochasticDepthMode::row), ValueError);
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

TEST(Attention, ARowThatMayLookNowhereIsZero) {
  const Tensor q = scattered_tensor({3, 4});
  const Tensor k = scattered_tensor({5, 4}, 1);
  const Tensor v = scattered_tensor({5, 2}, 2);
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

TEST(Losses, CrossEntropyChecksItsTargets) {
  const Tensor x = numbers({1, 2, 3, 0, -1, 4, 2, 2, 2}, {3, 3});
  expect_values(cross_entropy(x, classes({-100, -100, -100})), {std::nan("")});
  for (const std::int64_t wrong : {3, -1}) {
    EXPECT_THROW(cross_entropy(x, classes({0, wrong, 1})).item(), IndexError);
    EXPECT_THROW(nll_loss(x, classes({0, wrong, 1})).item(), IndexError);
  }
  EXPECT_THROW(cross_entropy(x, x, {.label_smoothing = 2}), ValueError);
}

TEST(Losses, BinaryCrossEntropyOfACertainErrorIsBounded) {
  expect_values(binary_cross_entropy(numbers({0.25, 1, 0}), numbers({1, 0, 0}), {}, Reduction::none),
                {std::log(4.0), 100, 0});
}

TEST(Losses, MultiMarginOfASingleSample) {
  expect_values(multi_margin_loss(numbers({0.1, 0.2, 0.7}), Tensor::from<std::int64_t>({2}, {}, device), 2),
                {(0.16 + 0.25) / 3});
}

TEST(Images, InterpolationNeedsASizeOrAFactor) {
  EXPECT_THROW(interpolate(numbers({1, 2, 4}, {1, 1, 3}), {}), ValueError);
}

// A mean that float32 puts just below a pixel's value is that value.
TEST(Images, ResizedPixelsAreRounded) {
  const Device cpu = DeviceType::cpu;
  const Tensor all = arange(0, 256, 1, {DType::uint8, cpu}).reshape({1, 256, 1, 1});
  for (const Interpolation mode : {Interpolation::bilinear, Interpolation::bicubic}) {
    for (const bool antialias : {false, true}) {
      for (const std::int64_t size : {3, 5, 7, 13, 16}) {
        const Tensor resized =
            interpolate(all.expand({1, 256, 9, 11}), {.size = Size2(size, 5), .mode = mode, .antialias = antialias});
        EXPECT_EQ(resized.dtype(), DType::uint8);
        EXPECT_TRUE(equal(resized, all.expand({1, 256, size, 5}))) << size << " " << antialias;
      }
    }
  }
  const Tensor pair = Tensor::from<std::uint8_t>({1, 2, 10, 20}, {1, 2, 1, 2}, cpu);
  expect_values(interpolate(pair, {.size = Size2(1, 1), .mode = Interpolation::bilinear}), {2, 15});
}

// The cubic overshoots beside a step: there pixels end at their type's limits instead of coming round.
TEST(Images, ResizedPixelsStayWithinTheirType) {
  const Tensor step = Tensor::from<std::uint8_t>({0, 0, 0, 255, 255, 255}, {1, 1, 1, 6}, DeviceType::cpu);
  const InterpolateOptions options{.size = Size2(1, 13), .mode = Interpolation::bicubic};
  const V exact = interpolate(step.to(DType::float32), options).to_vector<double>();
  EXPECT_LT(*std::min_element(exact.begin(), exact.end()), -1);
  EXPECT_GT(*std::max_element(exact.begin(), exact.end()), 256);
  V expected;
  for (const double value : exact) expected.push_back(std::clamp(std::floor(value + 0.5), 0.0, 255.0));
  expect_values(interpolate(step, options), expected);
}

}  // namespace
}  // namespace russet
