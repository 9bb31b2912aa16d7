// Optimizers: groups, state, what is refused, and that a changing rate compiles nothing.
#include <gtest/gtest.h>
#include <russet/autograd.h>
#include <russet/functional.h>
#include <russet/nn.h>
#include <russet/optim.h>
#include <russet/runtime.h>

#include <cmath>
#include <memory>

namespace russet {
namespace {

constexpr Device device{DeviceType::reference};

Tensor parameter(double value) { return Tensor::from<double>({value, -value}, {2}, device, true); }

void set_gradient(const Tensor& x, double value) { x.set_grad(Tensor::from<double>({value, value}, {2}, device)); }

TEST(Optim, AClosureComputesTheGradientsInGradMode) {
  const Tensor p = parameter(1);
  optim::SGD sgd({p}, {.lr = 0.5});
  const NoGrad guard;
  const Tensor loss = sgd.step([&] {
    sgd.zero_grad();
    const Tensor value = sum(p * p);
    value.backward();
    return value;
  });
  EXPECT_EQ(loss.item(), 2);
  EXPECT_EQ(p.to_vector<double>(), (std::vector<double>{0, 0}));  // 1 - 0.5 * 2
}

TEST(Optim, GroupsHaveTheirOwnOptions) {
  const Tensor p = parameter(1);
  const Tensor q = parameter(1);
  const Tensor unused = parameter(1);
  optim::SGD sgd({{{p, unused}, {.lr = 0.5}}, {{q}, {.lr = 0.25}}});
  set_gradient(p, 1);
  set_gradient(q, 1);
  sgd.step();
  EXPECT_EQ(p[0].item(), 0.5);
  EXPECT_EQ(q[0].item(), 0.75);
  EXPECT_EQ(unused[0].item(), 1);
  sgd.zero_grad();
  EXPECT_FALSE(p.grad().defined());
  sgd.set_lr(0.125);
  EXPECT_EQ(sgd.lr(1), 0.125);
}

TEST(Optim, RefusesWhatMakesNoSense) {
  const Tensor p = parameter(1);
  EXPECT_THROW(optim::SGD({p}, {.lr = -1}), ValueError);
  EXPECT_THROW(optim::SGD({p}, {.lr = 1, .nesterov = true}), ValueError);
  EXPECT_THROW(optim::SGD(std::vector<Tensor>{}), ValueError);
  EXPECT_THROW(optim::SGD({p, p}), ValueError);
  EXPECT_THROW(optim::SGD({p * 2.0}), ValueError);
  EXPECT_THROW(optim::Adam({p}, {.betas = {1, 0.9}}), ValueError);
}

TEST(Optim, StateThatDoesNotFitIsRefusedWhole) {
  const Tensor p = parameter(1);
  optim::SGD sgd({p}, {.lr = 0.5, .momentum = 0.9});
  set_gradient(p, 1);
  sgd.step();
  optim::OptimizerState state = sgd.state_dict();
  EXPECT_TRUE(state.tensors.contains("0.momentum_buffer"));
  EXPECT_EQ(state.numbers.at("0.step"), 1);
  state.numbers.erase("group.0.lr");
  state.numbers["7.step"] = 1;
  state.tensors.insert("0.momentum_buffer", zeros({3}));
  sgd.set_lr(0.1);
  try {
    sgd.load_state_dict(state);
    FAIL();
  } catch (const ValueError& error) {
    const std::string message = error.what();
    for (const char* part : {"missing: group.0.lr", "unexpected: 7.step", "0.momentum_buffer ([3]"}) {
      EXPECT_NE(message.find(part), std::string::npos) << message;
    }
  }
  EXPECT_EQ(sgd.lr(), 0.1);
}

TEST(Optim, ResumesBitForBit) {
  const auto run = [](int pause) {
    Tensor p = parameter(1);
    std::unique_ptr<optim::Optimizer> optimizer =
        std::make_unique<optim::AdamW>(std::vector<Tensor>{p}, optim::AdamWOptions{.amsgrad = true});
    for (int step = 0; step < 6; ++step) {
      if (step == pause) {
        const optim::OptimizerState state = optimizer->state_dict();
        p = p.detach().clone();
        p.requires_grad_();
        optimizer =
            std::make_unique<optim::AdamW>(std::vector<Tensor>{p}, optim::AdamWOptions{.lr = 7, .amsgrad = true});
        optimizer->load_state_dict(state);
      }
      set_gradient(p, std::sin(step));
      optimizer->step();
    }
    return p.to_bytes();
  };
  EXPECT_EQ(run(3), run(-1));
}

TEST(Optim, SchedulesRestore) {
  const Tensor p = parameter(1);
  optim::SGD sgd({p}, {.lr = 1});
  optim::StepLR schedule(sgd, {.step_size = 2, .gamma = 0.5});
  for (int i = 0; i < 5; ++i) schedule.step();
  EXPECT_EQ(sgd.lr(), 0.25);
  optim::SGD other({p}, {.lr = 1});
  optim::StepLR resumed(other, {.step_size = 2, .gamma = 0.5});
  resumed.load_state_dict(schedule.state_dict());
  EXPECT_EQ(other.lr(), 0.25);
  resumed.step();
  EXPECT_EQ(other.lr(), 0.125);
}

TEST(Optim, OneCycleEnds) {
  const Tensor p = parameter(1);
  optim::SGD sgd({p}, {.lr = 1, .momentum = 0.9});
  optim::OneCycleLR schedule(sgd, {.max_lr = 1, .total_steps = 3});
  for (int i = 0; i < 3; ++i) schedule.step();
  EXPECT_THROW(schedule.step(), ValueError);
}

template <class Optimizer, class Options>
void expect_replay(const Options& options) {
  const nn::NewModules place(device);
  nn::Sequential net(nn::Linear(4, 8), nn::ReLU(), nn::Linear(8, 2));
  Optimizer optimizer(net.parameters(), options);
  optim::CosineAnnealingLR schedule(optimizer, {.T_max = 20});
  const Tensor x = randn({16, 4}, {.device = device});
  std::uint64_t compiled = 0;
  for (int step = 0; step < 12; ++step) {
    optimizer.zero_grad();
    sum(net(x)).backward();
    optim::clip_grad_norm_(net.parameters(), 1 + step);
    optimizer.step();
    schedule.step();
    if (step == 2) compiled = counters().plans_compiled;
  }
  EXPECT_EQ(counters().plans_compiled, compiled) << why_compiled();
}

TEST(Optim, ChangingNumbersCompileNothing) {
  expect_replay<optim::SGD, optim::SGDOptions>({.lr = 0.1, .momentum = 0.9, .weight_decay = 0.1});
  expect_replay<optim::Adam, optim::AdamOptions>({.amsgrad = true});
  expect_replay<optim::AdamW, optim::AdamWOptions>({});
}

}  // namespace
}  // namespace russet
