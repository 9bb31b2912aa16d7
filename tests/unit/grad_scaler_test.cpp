// GradScaler: what it does to gradients and its scale, and what is refused.
#include <gtest/gtest.h>
#include <russet/autograd.h>
#include <russet/functional.h>
#include <russet/optim.h>

#include <cmath>
#include <limits>

namespace russet {
namespace {

constexpr Device device{DeviceType::reference};

Tensor parameter() { return Tensor::from<float>({1, -1}, {2}, device, true); }

Tensor factors(float first, float second) { return Tensor::from<float>({first, second}, {2}, device); }

TEST(GradScaler, UnscalesWhatItScaled) {
  const Tensor p = parameter();
  optim::SGD sgd({p}, {.lr = 1});
  amp::GradScaler scaler({.init_scale = 1024});
  scaler.scale(sum(p * factors(0.25F, 0.5F))).backward();
  EXPECT_EQ(p.grad().to_vector<float>(), (std::vector<float>{256, 512}));
  scaler.unscale_(sgd);
  EXPECT_EQ(p.grad().to_vector<float>(), (std::vector<float>{0.25, 0.5}));
  scaler.step(sgd);
  EXPECT_EQ(p.to_vector<float>(), (std::vector<float>{0.75, -1.5}));
  scaler.update();
  EXPECT_EQ(scaler.get_scale(), 1024);
}

TEST(GradScaler, BacksOffAndGrows) {
  const Tensor p = parameter();
  optim::SGD sgd({p}, {.lr = 1});
  amp::GradScaler scaler({.init_scale = 8, .growth_interval = 2});
  std::vector<double> scales;
  for (const float number : {1.0F, std::numeric_limits<float>::infinity(), std::nanf(""), 1.0F, 1.0F, 1.0F, 1.0F}) {
    sgd.zero_grad();
    scaler.scale(sum(p * factors(number, 1))).backward();
    scaler.step(sgd);
    scaler.update();
    scales.push_back(scaler.get_scale());
  }
  EXPECT_EQ(scales, (std::vector<double>{8, 4, 2, 2, 4, 4, 8}));
  EXPECT_EQ(p[1].item(), -6);
}

TEST(GradScaler, TheScaleStaysFinite) {
  const Tensor p = parameter();
  optim::SGD sgd({p}, {.lr = 1});
  amp::GradScaler scaler({.init_scale = 0x1p127, .growth_interval = 1});
  scaler.scale(sum(p * factors(0x1p-127F, 0))).backward();
  scaler.step(sgd);
  scaler.update();
  EXPECT_EQ(scaler.get_scale(), 0x1p127);
  scaler.update(3);
  EXPECT_EQ(scaler.get_scale(), 3);
}

TEST(GradScaler, RefusesWhatMakesNoSense) {
  using amp::GradScaler;
  EXPECT_THROW(GradScaler({.growth_factor = 1}), ValueError);
  EXPECT_THROW(GradScaler({.backoff_factor = 1}), ValueError);
  const Tensor p = parameter();
  optim::SGD sgd({p}, {.lr = 1});
  GradScaler scaler;
  EXPECT_THROW(scaler.unscale_(sgd), ValueError);
  EXPECT_THROW(scaler.step(sgd), ValueError);
  EXPECT_THROW(scaler.update(), ValueError);
  const Tensor scaled = scaler.scale(sum(p));
  EXPECT_THROW(scaler.update(), ValueError);
  EXPECT_THROW(scaler.step(sgd), ValueError);  // no gradient
  scaler.update(8);
  scaled.backward();
  scaler.unscale_(sgd);
  EXPECT_THROW(scaler.unscale_(sgd), ValueError);
  scaler.step(sgd);
  EXPECT_THROW(scaler.step(sgd), ValueError);
  EXPECT_THROW(scaler.unscale_(sgd), ValueError);
  EXPECT_THROW(scaler.load_state_dict({{"scale", 1}}), ValueError);
  const Tensor half = parameter().to(DType::float16).detach().requires_grad_();
  optim::SGD of_half({half}, {.lr = 1});
  scaler.scale(sum(half)).backward();
  EXPECT_THROW(scaler.unscale_(of_half), ValueError);
  optim::LBFGS lbfgs({p});
  EXPECT_THROW(scaler.step(lbfgs), ValueError);
}

TEST(GradScaler, OneThatIsNotEnabledDoesNothing) {
  const Tensor p = parameter();
  optim::SGD sgd({p}, {.lr = 1});
  amp::GradScaler scaler({.enabled = false});
  scaler.scale(sum(p)).backward();
  scaler.unscale_(sgd);
  scaler.step(sgd);
  scaler.update();
  EXPECT_EQ(p.to_vector<float>(), (std::vector<float>{0, -2}));
  EXPECT_EQ(scaler.get_scale(), 1);
  EXPECT_TRUE(scaler.state_dict().empty());
}

}  // namespace
}  // namespace russet
