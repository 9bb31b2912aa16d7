// Optimizers: groups, state, what is refused, and that a changing rate compiles nothing.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <russet/autograd.h>
#include <russet/functional.h>
#include <russet/nn.h>
#include <russet/optim.h>
#include <russet/runtime.h>

#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <set>

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

TEST(Optim, GroupsCanBeAdded) {
  const Tensor p = parameter(1);
  const Tensor q = parameter(1);
  const Tensor r = parameter(1);
  optim::SGD sgd({p}, {.lr = 0.5, .momentum = 0.25});
  optim::StepLR schedule(sgd, {.step_size = 2, .gamma = 0.5});
  set_gradient(p, 1);
  sgd.step();
  schedule.step();
  sgd.set_lr(0.125);
  sgd.add_param_group({q});
  EXPECT_EQ(sgd.lr(1), 0.5);  // of the constructor, not of today
  EXPECT_EQ(sgd.momentum(1), 0.25);
  sgd.add_param_group({{r}, {.lr = 2}});
  EXPECT_THROW(sgd.add_param_group({q}), ValueError);
  EXPECT_THROW(sgd.add_param_group({{parameter(1)}, {.lr = -1}}), ValueError);
  EXPECT_EQ(sgd.num_groups(), 3U);
  for (const Tensor& parameter : {p, q, r}) set_gradient(parameter, 1);
  sgd.step();
  EXPECT_EQ(q[0].item(), 0.5);
  EXPECT_EQ(r[0].item(), -1);
  schedule.step();
  EXPECT_EQ(schedule.get_last_lr(), (std::vector<double>{0.0625, 0.25, 1}));
  EXPECT_TRUE(sgd.state_dict().tensors.contains("1.momentum_buffer"));
  EXPECT_EQ(sgd.initial_lr(2), 2);
}

TEST(Optim, RefusesWhatMakesNoSense) {
  const Tensor p = parameter(1);
  EXPECT_THROW(optim::SGD({p}, {.lr = -1}), ValueError);
  EXPECT_THROW(optim::SGD({p}, {.lr = 1, .nesterov = true}), ValueError);
  EXPECT_THROW(optim::SGD(std::vector<Tensor>{}), ValueError);
  EXPECT_THROW(optim::SGD({p, p}), ValueError);
  EXPECT_THROW(optim::SGD({p * 2.0}), ValueError);
  EXPECT_THROW(optim::Adam({p}, {.betas = {1, 0.9}}), ValueError);
  EXPECT_THROW(optim::Adam({p}, {.lr = std::nan("")}), ValueError);
  EXPECT_THROW(optim::AdamW({p}, {.weight_decay = -1}), ValueError);
  EXPECT_THROW(optim::Adadelta({p}, {.rho = 1.1}), ValueError);
  EXPECT_THROW(optim::Adafactor({p}, {.beta2_decay = 0.1}), ValueError);
  EXPECT_THROW(optim::Adafactor({p}, {.d = 0.5}), ValueError);
  EXPECT_THROW(optim::Adafactor({p}, {.eps = {-1e-3, 1e-3}}), ValueError);
  EXPECT_THROW(optim::Adagrad({p}, {.lr_decay = -1}), ValueError);
  EXPECT_THROW(optim::Adagrad({p}, {.initial_accumulator_value = -1}), ValueError);
  EXPECT_THROW(optim::Adamax({p}, {.eps = -1}), ValueError);
  EXPECT_THROW(optim::ASGD({p}, {.lr = -1}), ValueError);
  EXPECT_THROW(optim::LARS({p}, {.trust_coefficient = -1}), ValueError);
  EXPECT_THROW(optim::LBFGS({p}, {.history_size = 0}), ValueError);
  EXPECT_THROW(optim::Muon({p}), ValueError);  // a vector
  EXPECT_THROW(optim::NAdam({p}, {.momentum_decay = -1}), ValueError);
  EXPECT_THROW(optim::RAdam({p}, {.betas = {0.9, 1}}), ValueError);
  EXPECT_THROW(optim::RMSprop({p}, {.alpha = -1}), ValueError);
  EXPECT_THROW(optim::Rprop({p}, {.etas = {0.5, 0.9}}), ValueError);
  EXPECT_THROW(optim::make_optimizer({.name = "rprop", .weight_decay = 1}, {p}), ValueError);
  try {
    optim::make_optimizer({.name = "odd"}, {p});
    FAIL();
  } catch (const ValueError& error) {
    for (const std::string& name : optim::list_optimizers()) {
      EXPECT_NE(std::string(error.what()).find(name), std::string::npos) << error.what();
    }
  }
  optim::Adagrad adagrad({p});
  EXPECT_EQ(adagrad.momentum(), std::nullopt);
  EXPECT_THROW(adagrad.set_momentum(0.5, 0), ValueError);
}

TEST(Optim, SchedulesRefuseWhatMakesNoSense) {
  const Tensor p = parameter(1);
  optim::SGD sgd({p}, {.lr = 1});
  optim::SGD other({p}, {.lr = 1});
  optim::Adagrad adagrad({p});
  using Schedules = std::vector<std::shared_ptr<optim::LRScheduler>>;
  const auto step = [](optim::Optimizer& of) { return std::make_shared<optim::StepLR>(of, optim::StepLROptions{}); };
  const auto plateau = std::make_shared<optim::ReduceLROnPlateau>(sgd);
  EXPECT_THROW(optim::ConstantLR(sgd, {.factor = 1.5}), ValueError);
  EXPECT_THROW(optim::LinearLR(sgd, {.start_factor = 0}), ValueError);
  EXPECT_THROW(optim::LinearLR(sgd, {.end_factor = 2}), ValueError);
  EXPECT_THROW(optim::CyclicLR(sgd, {.base_lr = {1, 2, 3}, .max_lr = 1}), ValueError);
  EXPECT_THROW(optim::CyclicLR(adagrad, {.base_lr = 1, .max_lr = 2}), ValueError);
  EXPECT_THROW(optim::OneCycleLR(adagrad, {.max_lr = 2, .total_steps = 4}), ValueError);
  EXPECT_THROW(optim::OneCycleLR(sgd, {.max_lr = 2}), ValueError);
  EXPECT_THROW(optim::OneCycleLR(sgd, {.max_lr = 2, .total_steps = 4, .pct_start = 2}), ValueError);
  EXPECT_THROW(optim::ReduceLROnPlateau(sgd, {.factor = 1}), ValueError);
  EXPECT_THROW(optim::SWALR(sgd, {.swa_lr = 1, .anneal_epochs = -1}), ValueError);
  EXPECT_THROW(optim::LambdaLR(sgd, std::vector<optim::LambdaLR::Factor>{}), ValueError);
  EXPECT_THROW(optim::ChainedScheduler(Schedules{}), ValueError);
  EXPECT_THROW(optim::ChainedScheduler(Schedules{step(sgd), step(other)}), ValueError);
  EXPECT_THROW(optim::ChainedScheduler(Schedules{step(sgd), plateau}), ValueError);
  EXPECT_THROW(optim::SequentialLR(sgd, Schedules{step(sgd)}, {3}), ValueError);
  EXPECT_THROW(optim::SequentialLR(sgd, Schedules{step(sgd), step(other)}, {3}), ValueError);
  optim::LRScheduler& base = *plateau;
  EXPECT_THROW(base.step(), ValueError);
  optim::OptimizerState state = step(sgd)->state_dict();
  state.numbers.erase("lr.0");
  EXPECT_THROW(step(sgd)->load_state_dict(state), ValueError);
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

/// Every optimizer, with the options that make it keep most.
using Make = std::function<std::unique_ptr<optim::Optimizer>(std::vector<Tensor>)>;
template <class Made, class Options>
Make making(const Options& options) {
  return [options](std::vector<Tensor> parameters) { return std::make_unique<Made>(std::move(parameters), options); };
}
const std::map<std::string, Make> optimizers{
    {"adadelta", making<optim::Adadelta, optim::AdadeltaOptions>({.weight_decay = 0.1})},
    {"adafactor", making<optim::Adafactor, optim::AdafactorOptions>({.weight_decay = 0.1})},
    {"adagrad", making<optim::Adagrad, optim::AdagradOptions>({.lr_decay = 0.1, .initial_accumulator_value = 0.1})},
    {"adam", making<optim::Adam, optim::AdamOptions>({.amsgrad = true})},
    {"adamax", making<optim::Adamax, optim::AdamaxOptions>({.weight_decay = 0.1})},
    {"adamw", making<optim::AdamW, optim::AdamWOptions>({.amsgrad = true})},
    {"asgd", making<optim::ASGD, optim::ASGDOptions>({.lr = 0.1, .lambd = 0.1, .t0 = 2})},
    {"lars", making<optim::LARS, optim::LARSOptions>({.lr = 1, .weight_decay = 0.1, .nesterov = true})},
    {"muon", making<optim::Muon, optim::MuonOptions>({})},
    {"nadam", making<optim::NAdam, optim::NAdamOptions>({.weight_decay = 0.1, .decoupled_weight_decay = true})},
    {"radam", making<optim::RAdam, optim::RAdamOptions>({.weight_decay = 0.1, .decoupled_weight_decay = true})},
    {"rmsprop", making<optim::RMSprop, optim::RMSpropOptions>({.momentum = 0.5, .centered = true})},
    {"rprop", making<optim::Rprop, optim::RpropOptions>({})},
    {"sgd", making<optim::SGD, optim::SGDOptions>({.lr = 0.1, .momentum = 0.9, .weight_decay = 0.1})},
};

TEST(Optim, EveryNameMakesAnOptimizerThatIsTestedHere) {
  for (const std::string& name : optim::list_optimizers()) {
    EXPECT_TRUE(optimizers.contains(name)) << name;
    const auto made = optim::make_optimizer(optim::usual_choice(name), {parameter(1)});
    EXPECT_EQ(made->lr(), optim::usual_choice(name).lr) << name;
  }
}

Tensor matrix(DType dtype) {
  return Tensor::from<double>({1, -2, 3, 0.5, -0.25, 2}, {2, 3}, device).to(dtype).detach().clone().requires_grad_();
}

TEST(Optim, ResumesBitForBit) {
  for (const auto& [name, make] : optimizers) {
    for (const DType dtype : {DType::float64, DType::float32, DType::bfloat16}) {
      const auto run = [&, &make = make](int pause) {
        Tensor p = matrix(dtype);
        std::unique_ptr<optim::Optimizer> optimizer = make({p});
        for (int step = 0; step < 8; ++step) {
          if (step == pause) {
            const optim::OptimizerState state = optimizer->state_dict();
            EXPECT_EQ(state.numbers.at("0.step"), step);
            p = p.detach().clone();
            p.requires_grad_();
            optimizer = make({p});
            optimizer->set_lr(7);
            optimizer->load_state_dict(state);
          }
          p.set_grad((matrix(dtype).detach() + std::sin(step)).to(dtype));
          optimizer->step();
        }
        return p.to_bytes();
      };
      EXPECT_EQ(run(3), run(-1)) << name << " " << name_of(dtype);
      EXPECT_EQ(run(6), run(-1)) << name << " " << name_of(dtype);
    }
  }
}

/// What a parameter and its state hold after eight steps of which some are skipped, or not called at all. The second
/// parameter has no gradient in step 3.
std::string after_steps(const Make& make, DType dtype, const std::set<int>& skipped, bool call_skipped) {
  const std::vector<Tensor> p{matrix(dtype), matrix(dtype)};
  const std::unique_ptr<optim::Optimizer> optimizer = make(p);
  for (int step = 0; step < 8; ++step) {
    const bool skip = skipped.contains(step);
    if (skip && !call_skipped) continue;
    for (const Tensor& each : p) {
      const double number = skip ? std::numeric_limits<double>::quiet_NaN() : std::sin(step);
      each.set_grad((matrix(dtype).detach() + number).to(dtype));
    }
    if (step == 3) p[1].set_grad({});
    optimizer->step_unless(Tensor::from<float>({skip ? 1.0F : 0.0F}, {}, device));
  }
  std::string text;
  const auto add = [&](const std::string& name, const Tensor& tensor) {
    text += name;
    for (const double value : tensor.to_vector<double>()) text += fmt::format(" {}", value);
    text += "\n";
  };
  add("p0", p[0]);
  add("p1", p[1]);
  const optim::OptimizerState state = optimizer->state_dict();
  for (const auto& [name, tensor] : state.tensors) add(name, tensor);
  for (const auto& [name, number] : state.numbers) text += fmt::format("{} {}\n", name, number);
  return text;
}

TEST(Optim, AStepThatIsSkippedHasNotHappened) {
  for (const auto& [name, make] : optimizers) {
    for (const DType dtype : {DType::float64, DType::float32, DType::bfloat16}) {
      SCOPED_TRACE(name + " " + std::string(name_of(dtype)));
      const std::string whole = after_steps(make, dtype, {}, true);
      for (const std::set<int>& skipped : {std::set<int>{0}, std::set<int>{4}, std::set<int>{0, 1, 3, 5}}) {
        const std::string found = after_steps(make, dtype, skipped, true);
        EXPECT_EQ(found, after_steps(make, dtype, skipped, false));
        EXPECT_NE(found, whole);
      }
    }
  }
}

TEST(Optim, StepsAreCountedOnTheDeviceAsOnTheHost) {
  for (const auto& [name, make] : optimizers) {
    const auto run = [&, &make = make](bool on_device) {
      const Tensor p = matrix(DType::float64);
      const std::unique_ptr<optim::Optimizer> optimizer = make({p});
      for (int step = 0; step < 12; ++step) {
        p.set_grad(matrix(DType::float64).detach() + std::sin(step));
        if (on_device && step % 6 < 4) {
          optimizer->step_unless(Tensor::from<float>({0}, {}, device));
        } else {
          optimizer->step();
        }
      }
      return p;
    };
    EXPECT_TRUE(allclose(run(true), run(false), 1e-11, 1e-11)) << name;
  }
}

TEST(Optim, LBFGSResumesBitForBit) {
  for (const auto search : {optim::LineSearch::none, optim::LineSearch::strong_wolfe}) {
    const auto run = [&](int pause) {
      Tensor p = parameter(1);
      const optim::LBFGSOptions options{.lr = 0.5, .max_iter = 3, .history_size = 4, .line_search_fn = search};
      auto optimizer = std::make_unique<optim::LBFGS>(std::vector<Tensor>{p}, options);
      for (int step = 0; step < 5; ++step) {
        if (step == pause) {
          const optim::OptimizerState state = optimizer->state_dict();
          p = p.detach().clone();
          p.requires_grad_();
          optimizer = std::make_unique<optim::LBFGS>(std::vector<Tensor>{p}, optim::LBFGSOptions{});
          optimizer->load_state_dict(state);
        }
        optimizer->step([&] {
          optimizer->zero_grad();
          const Tensor loss = sum(exp(p) - p * 0.5) + sum(p * p * p * p);
          loss.backward();
          return loss;
        });
      }
      return p.to_bytes();
    };
    EXPECT_EQ(run(2), run(-1));
  }
}

TEST(Optim, LBFGSAsksForAClosureAndOneGroup) {
  const Tensor p = parameter(1);
  optim::LBFGS lbfgs({p});
  EXPECT_THROW(lbfgs.step(), ValueError);
  optim::OptimizerState state = lbfgs.state_dict();
  state.numbers.erase("lbfgs.t");
  EXPECT_THROW(lbfgs.load_state_dict(state), ValueError);
  lbfgs.add_param_group({parameter(1)});
  EXPECT_THROW(lbfgs.step([&] { return sum(p); }), ValueError);
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

/// Whole steps as one plan each: nothing is read in between, and from the third on nothing is compiled.
TEST(Optim, ChangingNumbersCompileNothingAndNothingIsRead) {
  for (const auto& [name, make] : optimizers) {
    SCOPED_TRACE(name);
    const nn::NewModules place(device);
    nn::Sequential net(nn::Linear(4, 8, name != "muon"), nn::ReLU(), nn::Linear(8, 2, name != "muon"));
    const auto optimizer = make(net.parameters());
    optim::CosineAnnealingLR schedule(*optimizer, {.T_max = 20});
    const Tensor x = randn({16, 4}, {.device = device});
    flush();
    Counters before;
    for (int step = 0; step < 12; ++step) {
      if (step == 2) before = counters();
      in_one_plan([&] {
        sum(net(x)).backward();
        optim::clip_grad_norm_(net.parameters(), 1 + step);
        optimizer->step();
        optimizer->zero_grad();
      });
      schedule.step();
    }
    EXPECT_EQ(counters().plans_compiled, before.plans_compiled) << why_compiled();
    EXPECT_EQ(counters().cache_hits, before.cache_hits + 10);
  }
}

TEST(Optim, CapturedStepsUpdateAlike) {
  for (const auto& [name, make] : optimizers) {
    SCOPED_TRACE(name);
    const auto train = [&, &make = make](bool captures) {
      const Tensor p = matrix(DType::float64);
      const std::unique_ptr<optim::Optimizer> optimizer = make({p});
      CapturedFunction step([&](const std::vector<Tensor>& inputs) {
        p.set_grad(inputs[0] * p.detach());
        optimizer->step();
        p.set_grad({});
        return std::vector<Tensor>{};
      });
      for (int i = 0; i < 10; ++i) {
        const Tensor x = matrix(DType::float64).detach() + std::sin(i);
        optimizer->set_lr(0.01 / (i + 1));
        if (captures) {
          step({x});
        } else {
          p.set_grad(x * p.detach());
          optimizer->step();
        }
      }
      EXPECT_EQ(step.replays(), captures ? 7U : 0U) << step.why_recorded();
      const optim::OptimizerState state = optimizer->state_dict();
      EXPECT_EQ(state.numbers.at("0.step"), 10);
      p.set_grad(matrix(DType::float64).detach());
      optimizer->step();  // counts on the host again
      EXPECT_EQ(optimizer->state_dict().numbers.at("0.step"), 11);
      return p.detach();
    };
    EXPECT_EQ(train(true).to_vector<double>(), train(false).to_vector<double>());
  }
}

TEST(Optim, AveragesReplay) {
  const nn::NewModules place(device);
  const nn::Sequential net(nn::Linear(4, 8), nn::BatchNorm1d(8));
  optim::AveragedModel averaged(net, {.avg_fn = optim::get_ema_avg_fn(0.9)});
  flush();
  Counters before;
  for (int step = 0; step < 6; ++step) {
    if (step == 2) before = counters();
    averaged.update_parameters(net);
  }
  EXPECT_EQ(counters().plans_compiled, before.plans_compiled) << why_compiled();
  EXPECT_EQ(averaged.n_averaged.item(), 6);
  EXPECT_THROW(averaged.update_parameters(nn::Linear(4, 8)), ValueError);
  EXPECT_THROW(optim::get_ema_avg_fn(1.5), ValueError);
  // The copy is of its own.
  const NoGrad guard;
  Tensor(net.parameters()[0]).zero_();
  EXPECT_NE(sum(abs(averaged.parameters()[0])).item(), 0);
}

}  // namespace
}  // namespace russet
