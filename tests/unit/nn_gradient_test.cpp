// First and second gradients of the neural network functions against finite differences in float64.
#include <gtest/gtest.h>
#include <russet/functional.h>
#include <russet/nn_functional.h>

#include "gradcheck.h"

namespace russet {
namespace {

using test::expect_gradients;
using test::scattered_tensor;
using Tensors = std::vector<Tensor>;

constexpr Device device = DeviceType::reference;

TEST(Gradients, Activations) {
  const std::vector<std::pair<const char*, std::function<Tensor(const Tensor&)>>> functions{
      {"relu", [](const Tensor& x) { return relu(x) * x; }},
      {"relu6", [](const Tensor& x) { return relu6(x) * x; }},
      {"leaky_relu", [](const Tensor& x) { return leaky_relu(x, 0.3) * x; }},
      {"elu", [](const Tensor& x) { return elu(x, 1.3); }},
      {"selu", [](const Tensor& x) { return selu(x); }},
      {"celu", [](const Tensor& x) { return celu(x, 0.7); }},
      {"gelu", [](const Tensor& x) { return gelu(x); }},
      {"gelu tanh", [](const Tensor& x) { return gelu(x, GeluApproximation::tanh); }},
      {"silu", [](const Tensor& x) { return silu(x); }},
      {"mish", [](const Tensor& x) { return mish(x); }},
      {"softplus", [](const Tensor& x) { return softplus(x, 1.5, 2); }},
      {"softsign", [](const Tensor& x) { return softsign(x); }},
      {"tanhshrink", [](const Tensor& x) { return tanhshrink(x); }},
      {"softshrink", [](const Tensor& x) { return softshrink(x) * x; }},
      {"hardshrink", [](const Tensor& x) { return hardshrink(x) * x; }},
      {"hardtanh", [](const Tensor& x) { return hardtanh(x) * x; }},
      {"hardsigmoid", [](const Tensor& x) { return hardsigmoid(x) * x; }},
      {"hardswish", [](const Tensor& x) { return hardswish(x); }},
      {"logsigmoid", [](const Tensor& x) { return logsigmoid(x); }},
      {"threshold", [](const Tensor& x) { return threshold(x, 0.2, 3) * x; }},
      {"softmin", [](const Tensor& x) { return softmin(x, 0); }},
  };
  for (const auto& entry : functions) {
    SCOPED_TRACE(entry.first);
    expect_gradients([&](const Tensors& x) { return entry.second(x[0]); }, {scattered_tensor({9}) * 4.0});
  }
  expect_gradients([](const Tensors& x) { return glu(x[0]); }, {scattered_tensor({2, 4})});
  expect_gradients([](const Tensors& x) { return prelu(x[0], x[1]); },
                   {scattered_tensor({2, 3, 2}), scattered_tensor({3}, 3)});
}

TEST(Gradients, Normalisations) {
  const Tensor x = scattered_tensor({3, 2, 2});
  const Tensor weight = scattered_tensor({2}, 1) + 1.5;
  const Tensor bias = scattered_tensor({2}, 2);
  expect_gradients([](const Tensors& t) { return batch_norm(t[0], {}, {}, t[1], t[2], {.training = true}); },
                   {x, weight, bias}, {.tolerance = 1e-5});
  expect_gradients([](const Tensors& t) { return batch_norm(t[0], {}, {}, {}, {}, {.training = true}); }, {x},
                   {.tolerance = 1e-5});
  expect_gradients([](const Tensors& t) { return batch_norm(t[0], {}, {}, {}, t[1], {.training = true}); }, {x, bias},
                   {.tolerance = 1e-5});
  const Tensor mean = scattered_tensor({2}, 4);
  const Tensor variance = scattered_tensor({2}, 5) + 2;
  expect_gradients([&](const Tensors& t) { return batch_norm(t[0], mean, variance, t[1], t[2]); }, {x, weight, bias});
  expect_gradients(
      [](const Tensors& t) {
        return layer_norm(t[0], {2, 2}, t[1], t[2]);
      },
      {x, scattered_tensor({2, 2}, 1) + 1.5, scattered_tensor({2, 2}, 2)}, {.tolerance = 1e-5});
  expect_gradients([](const Tensors& t) { return layer_norm(t[0], {4}); }, {scattered_tensor({2, 4})},
                   {.tolerance = 1e-5});
  expect_gradients([](const Tensors& t) { return group_norm(t[0], 2, t[1], t[2]); },
                   {scattered_tensor({2, 4, 2}), scattered_tensor({4}, 1), scattered_tensor({4}, 2)},
                   {.tolerance = 1e-5});
  expect_gradients([](const Tensors& t) { return instance_norm(t[0], {}, {}, t[1]); },
                   {scattered_tensor({2, 2, 3}), weight}, {.tolerance = 1e-5});
  expect_gradients([](const Tensors& t) { return rms_norm(t[0], {4}, t[1]); },
                   {scattered_tensor({2, 4}), scattered_tensor({4}, 1)});
  expect_gradients([](const Tensors& t) { return normalize(t[0]); }, {scattered_tensor({2, 3})});
}

TEST(Gradients, Pooling) {
  const Tensor x = scattered_tensor({1, 2, 5, 4});
  expect_gradients(
      [](const Tensors& t) {
        return max_pool2d(t[0] * t[0], {2, 3}, {.stride = 1, .dilation = {2, 1}});
      },
      {x});
  expect_gradients([](const Tensors& t) { return max_pool1d(t[0] * t[0], 2, {.stride = 3, .ceil_mode = true}); },
                   {scattered_tensor({1, 2, 7})});
  expect_gradients(
      [](const Tensors& t) {
        return avg_pool2d(t[0] * t[0], 3, {.stride = 2, .padding = 1, .ceil_mode = true, .count_include_pad = false});
      },
      {x});
  expect_gradients([](const Tensors& t) { return adaptive_avg_pool2d(t[0] * t[0], {2, 3}); }, {x});
  expect_gradients([](const Tensors& t) { return adaptive_max_pool2d(t[0] * t[0], {2, 3}); }, {x});
}

TEST(Gradients, Attention) {
  const Tensor q = scattered_tensor({2, 3, 2});
  const Tensor k = scattered_tensor({2, 4, 2}, 1);
  const Tensor v = scattered_tensor({2, 4, 3}, 2);
  expect_gradients([](const Tensors& t) { return scaled_dot_product_attention(t[0], t[1], t[2]); }, {q, k, v});
  expect_gradients(
      [](const Tensors& t) { return scaled_dot_product_attention(t[0], t[1], t[2], {}, {.is_causal = true}); },
      {q, k, v});
  expect_gradients([](const Tensors& t) { return scaled_dot_product_attention(t[0], t[1], t[2], t[3]); },
                   {q, k, v, scattered_tensor({3, 4}, 3)});
}

TEST(Gradients, MultiHeadAttention) {
  expect_gradients(
      [](const Tensors& t) {
        MultiHeadAttentionOptions options;
        options.num_heads = 2;
        options.in_proj_weight = t[1];
        options.in_proj_bias = t[2];
        options.out_proj_weight = t[3];
        return multi_head_attention_forward(t[0], t[0], t[0], options).output;
      },
      {scattered_tensor({2, 1, 4}), scattered_tensor({12, 4}, 1), scattered_tensor({12}, 2),
       scattered_tensor({4, 4}, 3)},
      {.second = false});
}

TEST(Gradients, CrossEntropy) {
  const Tensor x = scattered_tensor({3, 4}) * 2.0;
  const Tensor target = Tensor::from<std::int64_t>({1, -100, 3}, {3}, device);
  const Tensor weight = scattered_tensor({4}, 2) + 2;
  for (const double smoothing : {0.0, 0.2}) {
    for (const Tensor& w : {Tensor(), weight}) {
      const CrossEntropyOptions options{.weight = w, .label_smoothing = smoothing};
      expect_gradients([&](const Tensors& t) { return cross_entropy(t[0], target, options); }, {x});
    }
  }
  expect_gradients([&](const Tensors& t) { return cross_entropy(t[0], target, {.reduction = Reduction::none}); }, {x});
  expect_gradients([](const Tensors& t) { return cross_entropy(t[0], softmax(t[1], 1), {.label_smoothing = 0.1}); },
                   {x, scattered_tensor({3, 4}, 5)});
  expect_gradients([&](const Tensors& t) { return nll_loss(t[0] * t[0], target, {weight}); }, {x});
}

TEST(Gradients, LossesOfPairs) {
  const Tensor x = scattered_tensor({2, 3});
  const Tensor y = scattered_tensor({2, 3}, 3);
  const auto check = [&](auto&& loss) {
    expect_gradients([&](const Tensors& t) { return loss(t[0], t[1]); }, {x, y}, {.tolerance = 1e-5});
  };
  check([](const Tensor& a, const Tensor& b) { return mse_loss(a, b); });
  check([](const Tensor& a, const Tensor& b) { return l1_loss(a * a, b); });
  check([](const Tensor& a, const Tensor& b) { return smooth_l1_loss(a, b, Reduction::none, 0.7); });
  check([](const Tensor& a, const Tensor& b) { return huber_loss(a, b, Reduction::sum, 0.7); });
  check([](const Tensor& a, const Tensor& b) { return binary_cross_entropy(sigmoid(a), sigmoid(b)); });
  check([](const Tensor& a, const Tensor& b) { return binary_cross_entropy_with_logits(a, b); });
  check([](const Tensor& a, const Tensor& b) { return kl_div(a, softmax(b, 1)); });
  check([](const Tensor& a, const Tensor& b) { return kl_div(a, b, KlReduction::batchmean, true); });
  check([](const Tensor& a, const Tensor& b) { return poisson_nll_loss(a, b * b); });
  check([](const Tensor& a, const Tensor& b) { return gaussian_nll_loss(a, b, a * a + 1); });
  check([](const Tensor& a, const Tensor& b) { return cosine_similarity(a, b); });
  check([](const Tensor& a, const Tensor& b) { return pairwise_distance(a, b); });
  check([](const Tensor& a, const Tensor& b) { return triplet_margin_loss(a, b, a * b); });
  check([](const Tensor& a, const Tensor& b) { return soft_margin_loss(a, b); });
  const Tensor sign = Tensor::from({1.0, -1.0}, {2}, device);
  check([&](const Tensor& a, const Tensor& b) { return cosine_embedding_loss(a, b, sign); });
  check([&](const Tensor& a, const Tensor& b) { return multilabel_soft_margin_loss(a, sigmoid(b)); });
}

TEST(Gradients, EmbeddingAndImages) {
  const Tensor index = Tensor::from<std::int64_t>({2, 0, 2}, {3}, device);
  expect_gradients([&](const Tensors& t) { return embedding(index, t[0] * t[0]); }, {scattered_tensor({3, 2})});
  expect_gradients([](const Tensors& t) { return pixel_shuffle(t[0] * t[0], 2); }, {scattered_tensor({1, 4, 1, 2})});
  expect_gradients(
      [](const Tensors& t) {
        return interpolate(t[0] * t[0], {.size = {3, 5}, .mode = Interpolation::bilinear});
      },
      {scattered_tensor({1, 1, 2, 3})});
  expect_gradients(
      [](const Tensors& t) {
        return interpolate(t[0] * t[0], {.size = {4, 5}});
      },
      {scattered_tensor({1, 1, 2, 3})});
  expect_gradients([](const Tensors& t) { return unfold(t[0] * t[0], Size2(2), {.padding = 1}); },
                   {scattered_tensor({1, 1, 3, 2})});
  expect_gradients([](const Tensors& t) { return fold(t[0] * t[0], 3, 2); }, {scattered_tensor({1, 4, 4})});
}

}  // namespace
}  // namespace russet
