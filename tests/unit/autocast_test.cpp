// The autocast policy: which type each function gives within a scope.
#include <gtest/gtest.h>
#include <russet/autograd.h>
#include <russet/functional.h>
#include <russet/nn_functional.h>

#include "gradcheck.h"

namespace russet {
namespace {

constexpr Device device = DeviceType::reference;

Tensor single(const Shape& shape, int seed = 0) { return test::scattered_tensor(shape, seed).to(DType::float32); }

TEST(Autocast, ScopesNestAndEnd) {
  EXPECT_FALSE(is_autocast_enabled());
  {
    const Autocast outer;
    EXPECT_TRUE(is_autocast_enabled());
    EXPECT_EQ(autocast_type(), DType::bfloat16);
    {
      const Autocast inner(DType::float16);
      EXPECT_EQ(autocast_type(), DType::float16);
      const Autocast off(DType::float16, false);
      EXPECT_FALSE(is_autocast_enabled());
    }
    EXPECT_TRUE(is_autocast_enabled());
    EXPECT_EQ(autocast_type(), DType::bfloat16);
  }
  EXPECT_FALSE(is_autocast_enabled());
  EXPECT_THROW(Autocast(DType::float32), ValueError);
}

TEST(Autocast, ContractionsRunInTheLowerType) {
  const Tensor x = single({2, 4, 4});
  const Tensor image = single({1, 2, 4, 4});
  const Tensor kernel = single({3, 2, 3, 3}, 1);
  for (const DType type : {DType::bfloat16, DType::float16}) {
    const Autocast scope(type);
    EXPECT_EQ(matmul(x, x).dtype(), type);
    EXPECT_EQ(linear(x, single({3, 4}), single({3})).dtype(), type);
    EXPECT_EQ(conv2d(image, kernel, single({3})).dtype(), type);
    EXPECT_EQ(conv1d(x, single({3, 4, 2})).dtype(), type);
    EXPECT_EQ(conv_transpose2d(image, single({2, 3, 3, 3})).dtype(), type);
    EXPECT_EQ(scaled_dot_product_attention(x, x, x).dtype(), type);
    EXPECT_EQ(prelu(x, single({4})).dtype(), type);
  }
  EXPECT_EQ(matmul(x, x).dtype(), DType::float32);
}

TEST(Autocast, SensitiveFunctionsRunInFloat32) {
  const Tensor x = single({3, 4}).to(DType::bfloat16);
  const Tensor target = Tensor::from<std::int64_t>({1, 0, 3}, {3}, device);
  const Autocast scope;
  EXPECT_EQ(exp(x).dtype(), DType::float32);
  EXPECT_EQ(log(abs(x)).dtype(), DType::float32);
  EXPECT_EQ(pow(x, x).dtype(), DType::float32);
  EXPECT_EQ(sum(x).dtype(), DType::float32);
  EXPECT_EQ(softmax(x, 1).dtype(), DType::float32);
  EXPECT_EQ(log_softmax(x, 1).dtype(), DType::float32);
  EXPECT_EQ(norm(x).dtype(), DType::float32);
  EXPECT_EQ(reciprocal(x).dtype(), DType::float32);
  EXPECT_EQ(softplus(x).dtype(), DType::float32);
  EXPECT_EQ(cumsum(x, 1).dtype(), DType::float32);
  EXPECT_EQ(logsumexp(x, {1}).dtype(), DType::float32);
  EXPECT_EQ(cosine_similarity(x, x).dtype(), DType::float32);
  EXPECT_EQ(cdist(x, x).dtype(), DType::float32);
  EXPECT_EQ(cross_entropy(x, target).dtype(), DType::float32);
  EXPECT_EQ(nll_loss(x, target).dtype(), DType::float32);
  EXPECT_EQ(mse_loss(x, x).dtype(), DType::float32);
  EXPECT_EQ(binary_cross_entropy_with_logits(x, x).dtype(), DType::float32);
}

TEST(Autocast, OthersFollowTheirInputs) {
  const Tensor low = single({3, 4}).to(DType::bfloat16);
  const Tensor high = single({3, 4});
  const Tensor weight = single({4});
  const Autocast scope;
  EXPECT_EQ(relu(low).dtype(), DType::bfloat16);
  EXPECT_EQ(gelu(low).dtype(), DType::bfloat16);
  EXPECT_EQ((low + high).dtype(), DType::float32);
  EXPECT_EQ((low + low).dtype(), DType::bfloat16);
  EXPECT_EQ(layer_norm(low, {4}, weight, weight).dtype(), DType::bfloat16);
  EXPECT_EQ(batch_norm(low, {}, {}, weight, weight, {.training = true}).dtype(), DType::bfloat16);
  EXPECT_EQ(dropout(low, 0.5).dtype(), DType::bfloat16);
  EXPECT_EQ(dot(weight, weight).dtype(), DType::float32);
  // float64 stays out of it.
  const Tensor wide = high.to(DType::float64);
  EXPECT_EQ(matmul(wide, wide.t()).dtype(), DType::float64);
  EXPECT_EQ(exp(wide).dtype(), DType::float64);
}

TEST(Autocast, GradientsReachFloat32Parameters) {
  Tensor weight = single({3, 4}, 1);
  weight.requires_grad_();
  const Tensor x = single({2, 4});
  const Tensor exact = autograd::grad({sum(linear(x, weight))}, {weight})[0];
  Tensor loss;
  {
    const Autocast scope;
    loss = sum(linear(x, weight));
  }
  const Tensor found = autograd::grad({loss}, {weight})[0];
  EXPECT_EQ(found.dtype(), DType::float32);
  EXPECT_TRUE(allclose(found, exact, 1e-2, 1e-2));
}

}  // namespace
}  // namespace russet
