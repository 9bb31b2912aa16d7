// Captured functions: calls that are not recorded do what recorded ones do, and what cannot run by itself is recorded.
#include <gtest/gtest.h>
#include <russet/russet.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

namespace russet {
namespace {

Tensor numbers(const Shape& shape, double scale = 0.01, std::int64_t start = 0) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < numel(shape); ++i) {
    values.push_back(static_cast<float>(scale * (((i + start) * 7919) % 101 - 50)));
  }
  return Tensor::from(values, shape);
}

std::vector<float> values_of(const Tensor& x) { return x.to_vector<float>(); }

/// A small network with statistics and dropout, and its training.
struct Training {
  explicit Training(double dropout = 0.5, double lr = 0.1)
      : net(nn::Linear(6, 8), nn::BatchNorm1d(8), nn::ReLU(), nn::Dropout(dropout), nn::Linear(8, 3)) {
    std::int64_t start = 0;
    const NoGrad guard;
    for (const Tensor& parameter : net.parameters()) {
      Tensor(parameter).copy_(numbers(parameter.sizes(), 0.02, start += 17));
    }
    optimizer = std::make_unique<optim::SGD>(net.parameters(), optim::SGDOptions{.lr = lr, .momentum = 0.9});
    manual_seed(3);
    flush();
  }

  std::vector<Tensor> step(const std::vector<Tensor>& inputs) {
    const Tensor loss = cross_entropy(net(inputs[0]), inputs[1]);
    loss.backward();
    optimizer->step();
    optimizer->zero_grad();
    return {loss.detach()};
  }

  std::vector<std::vector<float>> state() const {
    std::vector<std::vector<float>> all;
    for (const auto& entry : net.state_dict()) all.push_back(values_of(entry.second.to(DType::float32)));
    for (const auto& entry : optimizer->state_dict().tensors) all.push_back(values_of(entry.second));
    return all;
  }

  nn::Sequential net;
  std::unique_ptr<optim::SGD> optimizer;
};

std::vector<Tensor> batch(std::int64_t number, std::int64_t samples = 10) {
  std::vector<std::int64_t> classes;
  for (std::int64_t i = 0; i < samples; ++i) classes.push_back((i + number) % 3);
  return {numbers({samples, 6}, 0.03, number * 31), Tensor::from(classes, {samples})};
}

/// Trains one network by captured steps and one by recorded ones; `change` comes before a step of either.
void expect_alike(
    int steps, std::uint64_t replays, const std::function<void(Training&, int)>& change = {},
    const std::function<std::vector<Tensor>(int)>& data = [](int step) { return batch(step); }) {
  const auto train = [&](bool captures) {
    Training training;
    CapturedFunction captured([&](const std::vector<Tensor>& inputs) { return training.step(inputs); });
    std::vector<float> losses;
    for (int step = 0; step < steps; ++step) {
      if (change) change(training, step);
      std::vector<Tensor> results;
      if (captures) {
        results = captured(data(step));
      } else {
        in_one_plan([&] { results = training.step(data(step)); });
      }
      losses.push_back(static_cast<float>(results.front().item()));
    }
    if (captures) {
      EXPECT_EQ(captured.replays(), replays) << captured.why_recorded();
    }
    auto state = training.state();
    state.push_back(losses);
    state.push_back({static_cast<float>(training.optimizer->state_dict().numbers.at("0.step"))});
    state.push_back({static_cast<float>(default_generator(DeviceType::cpu).state().offset)});
    return state;
  };
  EXPECT_EQ(train(true), train(false));
}

// The first call makes the optimizer's tensors; the second and the third record the same.
TEST(CapturedFunction, ReplaysWhatItWouldRecord) { expect_alike(12, 9); }

TEST(CapturedFunction, ChangedSettingsAreRecordedAnew) {
  expect_alike(12, 9 - 4, [](Training& training, int step) {
    if (step >= 6) training.optimizer->set_momentum(0.8, 0);  // once a change
    if (step == 9) manual_seed(8);
  });
  expect_alike(12, 9 - 4, [](Training& training, int step) {
    if (step == 6) training.net.eval();
    if (step == 9) training.net.train();
  });
  std::optional<nn::ModeScope> mode;
  expect_alike(12, 9 - 4, [&](Training& training, int step) {
    if (step == 6) mode.emplace(training.net, false);
    if (step == 9) mode.reset();
  });
  expect_alike(14, 11 - 2, [](Training& training, int step) {
    if (step == 6) training.net.parameters().front().requires_grad_(false);
  });
}

TEST(CapturedFunction, LearningRatesAreLookedUp) {
  expect_alike(12, 9, [](Training& training, int step) { training.optimizer->set_lr(0.1 + 0.01 * step); });
}

TEST(CapturedFunction, LiveNumbersAndEffectsAreOfEachCall) {
  double factor = 1;
  int before = 0;
  int after = 0;
  Tensor total = Tensor::cleared({2}, {});
  CapturedFunction add([&](const std::vector<Tensor>& inputs) {
    in_each_call([&] { ++before; }, [&] { ++after; });
    total.add_(inputs[0] * live_number([&] { return factor; }));
    return std::vector<Tensor>{};
  });
  Tensor wanted = Tensor::cleared({2}, {});
  for (int i = 0; i < 6; ++i) {
    factor = 1 + i;
    add({numbers({2}, 1, i)});
    wanted = wanted + numbers({2}, 1, i) * factor;
    EXPECT_EQ(values_of(total), values_of(wanted));
  }
  EXPECT_EQ(add.replays(), 4U) << add.why_recorded();
  EXPECT_EQ(before, 4);
  EXPECT_EQ(after, 4);
}

TEST(CapturedFunction, ReturnsNumbersThatNothingElseReads) {
  double number = 0;
  CapturedFunction made([&](const std::vector<Tensor>&) {
    return std::vector{live_number([&] { return number; }), rand({2}), randn({2})};
  });
  manual_seed(4);
  std::vector<std::vector<float>> found;
  for (number = 0; number < 5; ++number) {
    for (const Tensor& one : made()) found.push_back(values_of(one));
  }
  EXPECT_EQ(made.replays(), 3U) << made.why_recorded();
  manual_seed(4);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(found[3 * i], std::vector<float>{static_cast<float>(i)});
    EXPECT_EQ(found[3 * i + 1], values_of(rand({2})));
    EXPECT_EQ(found[3 * i + 2], values_of(randn({2})));
  }
}

TEST(CapturedFunction, EachShapeIsCapturedByItself) {
  expect_alike(16, 16 - 1 - 4, {}, [](int step) { return batch(step, step % 4 == 0 ? 5 : 10); });
}

TEST(CapturedFunction, TensorsThatTheProgramChangesAreLookedUp) {
  expect_alike(12, 9, [](Training& training, int step) {
    const NoGrad guard;
    if (step == 7) training.net.parameters()[0].mul_(0.5);
    if (step == 8) training.net.parameters()[1].copy_(numbers(training.net.parameters()[1].sizes(), 0.05));
  });
}

TEST(CapturedFunction, ValuesThatSomebodyHoldsStay) {
  std::vector<Tensor> held;
  std::vector<float> wanted;
  expect_alike(12, 9 - 4, [&](Training& training, int step) {
    if (step == 6) {
      held = {training.net.parameters()[0].detach() + 0};  // pending: computed before the step overwrites it
      wanted = values_of(training.net.parameters()[0]);
    }
    if (step == 7) {
      EXPECT_EQ(values_of(held[0]), wanted);
    }
    if (step == 8) (void)training.net.parameters()[0].data();  // visible outside: written where it is
  });
}

// Tensors that hold a parameter's value, too, and are gone when the function ends (casts to its own type).
TEST(CapturedFunction, OverwritesMemoryInPlace) {
  constexpr std::int64_t width = 1 << 12;
  const Tensor w = numbers({width});
  const Tensor b = numbers({width});
  CapturedFunction step([&](const std::vector<Tensor>& inputs) {
    w.copy_(w * 0.5 + sum(layer_norm(inputs[0], {width}, w, b), 0));
    return std::vector<Tensor>{};
  });
  const Tensor x = numbers({2, width});
  step({x});
  const std::uint64_t allocations = counters().allocations;
  for (int i = 0; i < 6; ++i) step({x});
  EXPECT_EQ(step.replays(), 5U) << step.why_recorded();
  EXPECT_EQ(counters().allocations, allocations);
}

// Another tensor whose value is the same one: a copy that nothing had to make yet.
TEST(CapturedFunction, CopiesOfWhatItOverwritesStay) {
  const Tensor w = numbers({1 << 12});
  const Tensor copy = Tensor::cleared({1 << 12}, {});
  CapturedFunction step([&](const std::vector<Tensor>&) {
    w.copy_(w * 2 + 1);
    return std::vector<Tensor>{};
  });
  for (int i = 0; i < 8; ++i) {
    if (i == 5) copy.copy_(w);
    const std::vector<float> before = values_of(copy);
    step();
    EXPECT_EQ(values_of(copy), before) << i;
  }
  EXPECT_GE(step.replays(), 3U);
}

TEST(CapturedFunction, TensorsWithOneValueMayPart) {
  const Tensor a = numbers({4});
  const Tensor b = Tensor::cleared({4}, {});
  b.copy_(a);
  CapturedFunction both([&](const std::vector<Tensor>&) { return std::vector{a * 3 + b}; });
  for (int i = 0; i < 9; ++i) {
    if (i == 4) b.add_(1);
    if (i == 7) a.add_(1);
    EXPECT_EQ(values_of(both()[0]), values_of(a * 3 + b)) << i;
  }
  EXPECT_GE(both.replays(), 4U);
}

TEST(CapturedFunction, TensorsThatMoveToAnotherDeviceAreReadThere) {
  nn::Linear layer(4, 4);
  CapturedFunction twice([&](const std::vector<Tensor>&) { return std::vector{layer.weight.detach() * 2}; });
  const Tensor held = layer.weight.detach();  // keeps what the layer had before
  for (int i = 0; i < 8; ++i) {
    if (i == 4) layer.to(Device("reference"));
    const Tensor found = twice()[0];
    EXPECT_EQ(found.device(), layer.weight.device()) << i;
    EXPECT_EQ(values_of(found), values_of(layer.weight.detach() * 2)) << i;
  }
  EXPECT_EQ(twice.replays(), 4U) << twice.why_recorded();
}

TEST(CapturedFunction, TensorsThatItOnlyWritesMayMoveOrBecomeVisible) {
  nn::Linear layer(4, 4);
  const NoGrad no_grad;
  CapturedFunction write([&](const std::vector<Tensor>& inputs) {
    layer.weight.copy_(inputs[0] * 2);
    return std::vector<Tensor>{};
  });
  const float* seen = nullptr;
  for (int i = 0; i < 8; ++i) {
    if (i == 4) seen = static_cast<const float*>(static_cast<const void*>(layer.weight.data()));
    const Tensor x = numbers({4, 4}, 1, i);
    write({x});
    EXPECT_EQ(values_of(layer.weight), values_of(x * 2)) << i;
    if (seen != nullptr) {
      EXPECT_EQ(std::vector<float>(seen, seen + 16), values_of(x * 2)) << i;
    }
  }
  EXPECT_EQ(write.replays(), 2U) << write.why_recorded();
  layer.to(Device("reference"));
  write({numbers({4, 4}).to(Device("reference"))});
  EXPECT_EQ(values_of(layer.weight), values_of(numbers({4, 4}) * 2));
}

TEST(CapturedFunction, ResultsAreNewTensors) {
  const Tensor x = numbers({4});
  CapturedFunction doubled([&](const std::vector<Tensor>& inputs) { return std::vector{inputs[0] * 2 + x}; });
  std::vector<Tensor> results;
  for (int i = 0; i < 5; ++i) results.push_back(doubled({numbers({4}, 1, i)})[0]);
  EXPECT_EQ(doubled.replays(), 3U) << doubled.why_recorded();
  for (int i = 0; i < 5; ++i) EXPECT_EQ(values_of(results[i]), values_of(numbers({4}, 1, i) * 2 + x));
}

TEST(CapturedFunction, ResultsThatAreKeptElsewhereAreWritten) {
  Tensor mean = Tensor::cleared({3}, {});
  CapturedFunction update([&](const std::vector<Tensor>& inputs) {
    mean.copy_(mean * 0.5 + inputs[0]);
    return std::vector{mean};
  });
  Tensor wanted = Tensor::cleared({3}, {});
  for (int i = 0; i < 6; ++i) {
    const Tensor x = numbers({3}, 1, i);
    wanted = wanted * 0.5 + x;
    EXPECT_EQ(values_of(update({x})[0]), values_of(wanted));
    EXPECT_EQ(values_of(mean), values_of(wanted));
  }
  EXPECT_EQ(update.replays(), 4U) << update.why_recorded();
  mean = numbers({3}, 2);
  EXPECT_EQ(values_of(update({wanted})[0]), values_of(numbers({3}, 2) * 0.5 + wanted));
  EXPECT_EQ(values_of(mean), values_of(numbers({3}, 2) * 0.5 + wanted));
}

TEST(CapturedFunction, GradientsAddUp) {
  Tensor w = numbers({4});
  w.requires_grad_();
  const Tensor x = numbers({4}, 0.5);
  CapturedFunction add([&](const std::vector<Tensor>&) {
    sum(w * w * x).backward();
    return std::vector<Tensor>{};
  });
  Tensor wanted = Tensor::cleared({4}, {});
  for (int i = 0; i < 6; ++i) {
    add();
    wanted = wanted + w.detach() * x * 2;
    EXPECT_TRUE(allclose(w.grad(), wanted)) << i;
  }
  EXPECT_GE(add.replays(), 3U) << add.why_recorded();
  const Tensor held = w.grad();
  const std::vector<float> before = values_of(held);
  w.set_grad(numbers({4}, 3));
  add();
  EXPECT_TRUE(allclose(w.grad(), numbers({4}, 3) + w.detach() * x * 2));
  EXPECT_EQ(values_of(held), before);
}

// Then the function makes gradients anew in each call, which only recording it does.
TEST(CapturedFunction, GradientsThatTheProgramDropsAreMadeAnew) {
  Tensor w = numbers({4});
  w.requires_grad_();
  CapturedFunction backward([&](const std::vector<Tensor>& inputs) {
    sum(w * w * inputs[0]).backward();
    return std::vector<Tensor>{};
  });
  for (int i = 0; i < 6; ++i) {
    const Tensor x = numbers({4}, 1, i);
    backward({x});
    ASSERT_TRUE(w.grad().defined()) << i;
    EXPECT_TRUE(allclose(w.grad(), w.detach() * x * 2)) << i;
    w.set_grad({});
  }
}

TEST(CapturedFunction, GradientsThatItDropsFirstAreItsOwn) {
  Tensor w = numbers({4});
  w.requires_grad_();
  CapturedFunction backward([&](const std::vector<Tensor>& inputs) {
    w.set_grad({});
    sum(w * w * inputs[0]).backward();
    return std::vector<Tensor>{};
  });
  for (int i = 0; i < 6; ++i) {
    const Tensor x = numbers({4}, 1, i);
    backward({x});
    EXPECT_TRUE(allclose(w.grad(), w.detach() * x * 2)) << i;
  }
  EXPECT_EQ(backward.replays(), 4U) << backward.why_recorded();
}

TEST(CapturedFunction, TensorsThatTheProgramReplacesAreReadAnew) {
  Tensor x = numbers({4});
  const Tensor y = numbers({4}, 2);
  CapturedFunction sums([&](const std::vector<Tensor>&) { return std::vector{x + y}; });
  for (int i = 0; i < 12; ++i) {
    if (i % 4 == 0) x = numbers({4}, 1, i);
    EXPECT_EQ(values_of(sums()[0]), values_of(x + y)) << i;
  }
  EXPECT_EQ(sums.replays(), 6U);
}

// Who writes to memory that is visible outside may do so once a call has returned.
TEST(CapturedFunction, WhatIsVisibleOutsideIsReadBeforeACallReturns) {
  const Tensor w = numbers({4});
  CapturedFunction sums([&](const std::vector<Tensor>& inputs) { return std::vector{inputs[0] + w}; });
  for (int i = 0; i < 8; ++i) {
    if (i == 5) (void)w.data();
    const Tensor x = numbers({4}, 1, i);
    EXPECT_EQ(values_of(sums({x})[0]), values_of(x + w));
  }
  EXPECT_EQ(sums.replays(), 3U) << sums.why_recorded();
}

TEST(CapturedFunction, OtherModesAreRecordedAnew) {
  const Tensor w = numbers({3, 3});
  CapturedFunction product([&](const std::vector<Tensor>& inputs) { return std::vector{matmul(inputs[0], w)}; });
  const Tensor x = numbers({3, 3}, 0.5);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(product({x})[0].dtype(), DType::float32);
  {
    const Autocast scope(DType::bfloat16);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(product({x})[0].dtype(), DType::bfloat16);
  }
  EXPECT_EQ(product({x})[0].dtype(), DType::float32);
  EXPECT_EQ(product({x.t()})[0].to_vector<float>(), values_of(matmul(x.t(), w)));
  EXPECT_EQ(product({x})[0].to_vector<float>(), values_of(matmul(x, w)));
  EXPECT_GE(product.replays(), 6U);
}

TEST(CapturedFunction, GradModeIsASetting) {
  const Tensor x = numbers({4});
  CapturedFunction asks([&](const std::vector<Tensor>&) { return std::vector{x * (is_grad_enabled() ? 2 : 3)}; });
  for (int i = 0; i < 4; ++i) EXPECT_EQ(values_of(asks()[0]), values_of(x * 2));
  const NoGrad no_grad;
  for (int i = 0; i < 4; ++i) EXPECT_EQ(values_of(asks()[0]), values_of(x * 3));
}

TEST(CapturedFunction, PartsOfABatchDrawTheirOwnNumbers) {
  CapturedFunction draws([](const std::vector<Tensor>&) { return std::vector{rand({2, 3})}; });
  manual_seed(6);
  for (int i = 0; i < 4; ++i) draws();
  const Generator::State state = default_generator(DeviceType::cpu).state();
  const Tensor whole = rand({4, 3});
  default_generator(DeviceType::cpu).set_state(state);
  const RandomPart second(2, 2);
  EXPECT_EQ(values_of(draws()[0]), values_of(whole.narrow(0, 2, 2)));
}

TEST(CapturedFunction, IndicesAreLookedAtInEachCall) {
  const Tensor table = numbers({5, 2});
  CapturedFunction look_up([&](const std::vector<Tensor>& inputs) { return std::vector{embedding(inputs[0], table)}; });
  const auto ids = [](std::int64_t a, std::int64_t b) { return Tensor::from<std::int64_t>({a, b}, {2}); };
  for (int i = 0; i < 4; ++i) look_up({ids(i, 1)});
  EXPECT_EQ(look_up.replays(), 2U) << look_up.why_recorded();
  EXPECT_THROW(look_up({ids(1, 5)}), IndexError);
  EXPECT_EQ(values_of(look_up({ids(4, 0)})[0]), values_of(embedding(ids(4, 0), table)));
  expect_alike(10, 7, {}, [](int step) { return batch(step); });
  Training training;
  CapturedFunction step([&](const std::vector<Tensor>& inputs) { return training.step(inputs); });
  for (int i = 0; i < 5; ++i) step(batch(i));
  const auto before = values_of(training.net.parameters()[0]);
  std::vector<Tensor> bad = batch(5);
  bad[1][2].fill_(7);
  EXPECT_THROW(step(bad), IndexError);
  EXPECT_EQ(values_of(training.net.parameters()[0]), before);
  for (int i = 0; i < 4; ++i) step(batch(i));
  EXPECT_TRUE(step.why_recorded().empty()) << step.why_recorded();
}

TEST(CapturedFunction, WhatFailsLeavesTheRest) {
  Tensor kept = numbers({4});
  Tensor written = numbers({2});
  const Tensor table = numbers({5});
  CapturedFunction step([&](const std::vector<Tensor>& inputs) {
    kept.copy_(kept + 1);
    written.copy_(index_select(table, 0, inputs[0] + 0));  // the host cannot see the sum
    return std::vector<Tensor>{};
  });
  const auto ids = [](std::int64_t a, std::int64_t b) { return Tensor::from<std::int64_t>({a, b}, {2}); };
  for (int i = 0; i < 5; ++i) step({ids(i, 1)});
  EXPECT_EQ(step.replays(), 3U) << step.why_recorded();
  const std::vector<float> before = values_of(written);
  EXPECT_THROW(step({ids(2, 9)}), IndexError);
  EXPECT_EQ(values_of(written), before);
  step({ids(3, 3)});
  EXPECT_EQ(values_of(written), values_of(index_select(table, 0, ids(3, 3))));
}

TEST(CapturedFunction, NumbersThatCannotBeHadLeaveEverything) {
  Tensor total = Tensor::cleared({2}, {});
  bool fails = false;
  CapturedFunction add([&](const std::vector<Tensor>&) {
    total.add_(live_number([&] {
      if (fails) throw ValueError("no number");
      return 2.0;
    }));
    return std::vector<Tensor>{};
  });
  for (int i = 0; i < 4; ++i) add();
  fails = true;
  EXPECT_THROW(add(), ValueError);
  EXPECT_EQ(values_of(total), std::vector<float>(2, 8));
  fails = false;
  add();
  EXPECT_EQ(values_of(total), std::vector<float>(2, 10));
  EXPECT_EQ(add.replays(), 3U);
}

TEST(CapturedFunction, UpdatesThatFailAreNotCounted) {
  Tensor w = numbers({2});
  w.requires_grad_();
  const Tensor table = numbers({5});
  optim::SGD optimizer({w}, {.lr = 0.1});
  CapturedFunction step([&](const std::vector<Tensor>& inputs) {
    sum(index_select(table, 0, inputs[0] + 0) * w).backward();
    optimizer.step();
    optimizer.zero_grad();
    return std::vector<Tensor>{};
  });
  const auto ids = [](std::int64_t a, std::int64_t b) { return Tensor::from<std::int64_t>({a, b}, {2}); };
  for (int i = 0; i < 5; ++i) step({ids(i, 1)});
  const std::vector<float> before = values_of(w.detach());
  EXPECT_THROW(step({ids(2, 9)}), IndexError);
  EXPECT_EQ(step.replays(), 3U) << step.why_recorded();
  EXPECT_EQ(values_of(w.detach()), before);
  EXPECT_EQ(optimizer.state_dict().numbers.at("0.step"), 5);
  step({ids(3, 2)});
  EXPECT_EQ(optimizer.state_dict().numbers.at("0.step"), 6);
}

TEST(CapturedFunction, WhatFailsHasDrawnItsRandomNumbers) {
  const auto offset_after_failure = [](bool captures) {
    manual_seed(2);
    const Tensor table = numbers({5});
    const auto pick = [&](const std::vector<Tensor>& inputs) {
      return std::vector{index_select(table, 0, inputs[0] + 0) + rand({2})};
    };
    CapturedFunction captured(pick);
    for (int i = 0; i < 5; ++i) {
      const Tensor ids = Tensor::from<std::int64_t>({1, i == 4 ? 9 : 2}, {2});
      const auto call = [&] {
        if (captures) {
          captured({ids});
        } else {
          in_one_plan([&] { (void)pick({ids})[0].to_vector<float>(); });
        }
      };
      if (i == 4) {
        EXPECT_THROW(call(), IndexError);
      } else {
        call();
      }
    }
    return default_generator(DeviceType::cpu).state().offset;
  };
  EXPECT_EQ(offset_after_failure(true), offset_after_failure(false));
}

/// Expects that calls of the function are recorded, however many there are, for a reason with this in it.
void expect_recorded(const std::string& why, const CapturedFunction::Function& function,
                     const std::vector<Tensor>& inputs = {}) {
  SCOPED_TRACE(why);
  CapturedFunction captured(function);
  for (int i = 0; i < 40; ++i) captured(inputs);
  EXPECT_EQ(captured.replays(), 0U);
  EXPECT_NE(captured.why_recorded().find(why), std::string::npos) << captured.why_recorded();
}

TEST(CapturedFunction, SaysWhyItRecords) {
  using Tensors = std::vector<Tensor>;
  const Tensor x = numbers({4});
  expect_recorded("reads a value", [&](const Tensors&) { return Tensors{x * sum(x).item()}; });
  expect_recorded("reads a value", [&](const Tensors& in) { return Tensors{x * in[0].item()}; }, {numbers({1})});
  expect_recorded("reads a value", [&](const Tensors& in) { return Tensors{x * in[0].to_vector<float>()[1]}; },
                  {numbers({2})});
  expect_recorded("reads a value",
                  [&](const Tensors& in) {
                    return Tensors{x * *static_cast<const float*>(static_cast<const void*>(in[0].data()))};
                  },
                  {numbers({2})});
  expect_recorded("from the host", [&](const Tensors&) { return Tensors{x + numbers({4})}; });
  expect_recorded("its inputs", [&](const Tensors& in) { return Tensors{Tensor(in[0]).add_(1)}; }, {numbers({2})});
  expect_recorded("computes nothing", [&](const Tensors&) { return Tensors{x}; });
  expect_recorded("does not compute", [&](const Tensors&) { return Tensors{x + 1, x}; });
  const Device reference("reference");
  const Tensor y = x.to(reference);
  const Tensor z = numbers({4});
  expect_recorded("several devices", [&](const Tensors&) {
    y.add_(1);
    z.add_(1);
    return Tensors{};
  });
  const Tensor table = numbers({5, 2});
  const Tensor ids = Tensor::from<std::int64_t>({1, 4}, {2});
  expect_recorded("does not read", [&](const Tensors&) {
    (void)embedding(ids, table);
    return Tensors{x + 1};
  });
  Tensor w = numbers({4});
  w.requires_grad_();
  expect_recorded("requires a gradient", [&](const Tensors&) { return Tensors{w * x}; });
}

TEST(CapturedFunction, SaysWhyItRecordsRandomNumbers) {
  using Tensors = std::vector<Tensor>;
  const Tensor x = numbers({4});
  Generator own(5);
  expect_recorded("generator of its own", [&](const Tensors&) { return Tensors{rand({4}, {}, &own) + x}; });
  expect_recorded("seeds a generator", [&](const Tensors&) {
    manual_seed(3);
    return Tensors{rand({4}) + x};
  });
  expect_recorded("another device's", [&](const Tensors&) {
    (void)rand({4}, {.device = Device("reference")});
    return Tensors{x + 1};
  });
  int calls = 0;
  expect_recorded("other work", [&](const Tensors&) {
    const Tensor drawn = rand({4});
    if (++calls % 2 == 0) (void)rand({4});
    return Tensors{drawn + x};
  });
  expect_recorded("other work", [&](const Tensors&) {
    const Tensor first = rand({4});
    const Tensor second = rand({4});
    return Tensors{(++calls % 2 == 0 ? first : second) + x};
  });
}

// Where the host goes elsewhere in each call.
TEST(CapturedFunction, SaysWhyItRecordsOtherTensorsAndNumbers) {
  using Tensors = std::vector<Tensor>;
  const Tensor x = numbers({4});
  int calls = 0;
  expect_recorded("other work", [&](const Tensors&) { return Tensors{x * ++calls}; });
  const Tensor y = numbers({4}, 2);
  expect_recorded("other work", [&](const Tensors&) { return Tensors{++calls % 2 == 0 ? x * y : x + y}; });
  expect_recorded("other work", [&](const Tensors&) {
    const Tensor a = x + 1;
    const Tensor b = x + 2;
    return ++calls % 2 == 0 ? Tensors{a, b} : Tensors{b, a};
  });
  expect_recorded("other work", [&](const Tensors&) {
    return Tensors{x + (++calls % 2 == 0 ? live_number([] { return 0.0; }) : scalar_tensor(0.0))};
  });
  Tensor last = numbers({4});
  expect_recorded("gone", [&](const Tensors&) {
    last = last * 0.5 + x;
    return Tensors{};
  });
  std::vector<Tensor> all;
  for (int i = 0; i < 50; ++i) all.push_back(numbers({4}, 1, i));
  expect_recorded("other work",
                  [&](const Tensors&) { return Tensors{all[static_cast<std::size_t>(++calls) % 50] + 1}; });
  std::vector<Tensor> kept;
  expect_recorded("leaves a new tensor behind", [&](const Tensors&) {
    kept.push_back(x + 1);
    return Tensors{};
  });
  expect_recorded("leaves a new tensor behind", [&](const Tensors&) {
    kept.push_back(x + 2);
    return Tensors{kept.back()};
  });
  EXPECT_EQ(values_of(kept[3]), values_of(kept[4]));
  expect_recorded("in memory already", [&](const Tensors&) {
    last.copy_(x);
    return Tensors{x + 1};
  });
}

TEST(CapturedFunction, WhatItThrowsIsThrown) {
  bool fails = false;
  const Tensor x = numbers({4});
  CapturedFunction function([&](const std::vector<Tensor>& inputs) {
    if (fails) throw ValueError("no");
    return std::vector{inputs[0] + x};
  });
  fails = true;
  EXPECT_THROW(function({x}), ValueError);
  fails = false;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(values_of(function({x})[0]), values_of(x * 2));
  EXPECT_EQ(function.replays(), 1U);
  EXPECT_THROW(function({Tensor()}), ValueError);
}

TEST(CapturedFunction, WithinOtherWorkItIsAPartOfIt) {
  const Tensor x = numbers({4});
  CapturedFunction inner([&](const std::vector<Tensor>& inputs) { return std::vector{inputs[0] + x}; });
  CapturedFunction outer([&](const std::vector<Tensor>& inputs) { return std::vector{inner(inputs)[0] * 2}; });
  for (int i = 0; i < 4; ++i) EXPECT_EQ(values_of(outer({x})[0]), values_of(x * 4));
  EXPECT_EQ(inner.replays(), 0U);
  EXPECT_EQ(outer.replays(), 2U);
}

TEST(CapturedFunction, OtherThreadsReadWhatItWrites) {
  const Tensor total = Tensor::cleared({1000}, {});
  CapturedFunction count([&](const std::vector<Tensor>&) {
    total.add_(1);
    return std::vector<Tensor>{};
  });
  count();
  std::atomic<bool> done{false};
  std::thread reader([&] {
    float last = 0;
    while (!done) {
      const std::vector<float> seen = values_of(total);
      EXPECT_EQ(seen, std::vector<float>(1000, seen[0]));
      EXPECT_GE(seen[0], last);
      last = seen[0];
    }
  });
  for (int i = 1; i < 300; ++i) count();
  done = true;
  reader.join();
  EXPECT_EQ(values_of(total), std::vector<float>(1000, 300));
}

TEST(CapturedFunction, TheMemoryLimitHoldsInEachCall) {
  const Tensor x = numbers({1 << 16});
  CapturedFunction grow([&](const std::vector<Tensor>& inputs) { return std::vector{exp(inputs[0]) + x}; });
  for (int i = 0; i < 3; ++i) grow({x});
  {
    const MemoryLimit limit(memory_in_use({}) + 1000, Device());
    EXPECT_THROW(grow({x}), OutOfMemoryError);
  }
  EXPECT_EQ(values_of(grow({x})[0]), values_of(exp(x) + x));
}

}  // namespace
}  // namespace russet
