// Hooks on tensors and modules: what goes wrong in them, and what becomes of the handles.
// tests/golden/hooks_test.cpp holds them against PyTorch.
#include <gtest/gtest.h>
#include <russet/russet.h>

#include <cmath>
#include <stdexcept>

namespace russet {
namespace {

using Inputs = std::span<const Tensor>;

Tensor leaf(const std::vector<float>& values) {
  return Tensor::from(values, {static_cast<std::int64_t>(values.size())}, {}, true);
}

std::vector<float> values_of(const Tensor& tensor) { return tensor.to_vector<float>(); }

using Floats = std::vector<float>;

TEST(TensorHooks, AreRefusedWhereNoGradientArrives) {
  const Tensor x = leaf({1, 2});
  const auto hook = [](const Tensor&) {};
  EXPECT_THROW(x.detach().register_hook(hook), AutogradError);
  EXPECT_THROW(x.detach().register_post_accumulate_grad_hook(hook), AutogradError);
  EXPECT_THROW((x * 2).register_post_accumulate_grad_hook(hook), AutogradError);
  EXPECT_THROW(x.register_hook(std::function<Tensor(const Tensor&)>()), ValueError);
  EXPECT_THROW(x.register_post_accumulate_grad_hook({}), ValueError);
  EXPECT_THROW(Tensor().register_hook(hook), ValueError);
}

TEST(TensorHooks, MayNotChangeShapeOrType) {
  const std::vector<std::function<Tensor(const Tensor&)>> wrong = {
      [](const Tensor& g) { return sum(g); },
      [](const Tensor& g) { return g.to(DType::float64); },
      [](const Tensor& g) { return g.to(Device("reference")); },
  };
  for (const auto& hook : wrong) {
    const Tensor x = leaf({1, 2});
    HookHandle on_leaf = x.register_hook(hook);
    const Tensor loss = sum(x * 2);
    EXPECT_THROW(loss.backward(), AutogradError);
    on_leaf.remove();
    loss.backward();
    EXPECT_EQ(values_of(x.grad()), (Floats{2, 2}));
  }
}

/// A network whose last hook throws, after the gradients of other leaves were added.
struct Fault {
  Tensor early = leaf({1, 2}), late = leaf({3, 4}), kept;
  Tensor loss;
  bool throws = true;

  explicit Fault(bool reads) {
    const Tensor inner = exp(late);
    kept = inner * late;
    kept.retain_grad();
    loss = sum(kept * early * early);
    inner.register_hook([this, reads](const Tensor& gradient) {
      if (reads) gradient.to_vector<float>();
      if (throws) throw std::runtime_error("of the user");
    });
  }
};

TEST(TensorHooks, ThatThrowLeaveGraphAndGradientsAsTheyWere) {
  for (const bool reads : {false, true}) {
    SCOPED_TRACE(reads);
    Fault fault(reads);
    EXPECT_THROW(fault.loss.backward(), std::runtime_error);
    EXPECT_FALSE(fault.early.grad().defined());
    EXPECT_FALSE(fault.late.grad().defined());
    EXPECT_FALSE(fault.kept.grad().defined());
    fault.early.set_grad(Tensor::from<float>({10, 20}, {2}));
    const Tensor alias = fault.early.grad();
    EXPECT_THROW(fault.loss.backward(), std::runtime_error);
    EXPECT_EQ(values_of(alias), (Floats{10, 20}));
    in_one_plan([&] { EXPECT_THROW(fault.loss.backward({}, true), std::runtime_error); });
    EXPECT_THROW(fault.loss.backward({}, false, true), std::runtime_error);
    EXPECT_EQ(values_of(fault.early.grad()), (Floats{10, 20}));
    fault.throws = false;
    fault.loss.backward();
    const std::vector<double> late = {3, 4};
    for (std::size_t i = 0; i < 2; ++i) {
      const double e = std::exp(late[i]), x = static_cast<double>(i) + 1;
      EXPECT_NEAR(values_of(alias)[i], 10 * x + 2 * x * e * late[i], 1e-3);
      EXPECT_NEAR(values_of(fault.late.grad())[i], x * x * (e + e * late[i]), 1e-2);
    }
    EXPECT_THROW(fault.loss.backward(), AutogradError) << "freed now";
  }
}

TEST(TensorHooks, OfAFailedPassMayHaveSeenGradientsThatStay) {
  const Tensor x = leaf({1, 2}), w = leaf({3, 4});
  const Tensor y = x * 2;
  y.register_hook([](const Tensor&) { throw std::runtime_error("of the user"); });
  w.register_post_accumulate_grad_hook([](const Tensor&) {});
  EXPECT_THROW(sum(y * w).backward(), std::runtime_error);
  EXPECT_EQ(values_of(w.grad()), (Floats{2, 4}));
  EXPECT_FALSE(x.grad().defined());
}

TEST(TensorHooks, MayReadWhatTheyGet) {
  const Tensor x = leaf({1, 2});
  std::vector<float> seen;
  const Tensor y = x * 3;
  y.register_hook([&](const Tensor& gradient) { seen = values_of(gradient); });
  in_one_plan([&] { sum(y * y).backward(); });
  EXPECT_EQ(seen, (Floats{6, 12}));
  EXPECT_EQ(values_of(x.grad()), (Floats{18, 36}));
}

TEST(TensorHooks, StayWhenALeafRestsOrGetsOtherData) {
  Tensor x = leaf({1, 2});
  int count = 0;
  x.register_post_accumulate_grad_hook([&](const Tensor& present) {
    ++count;
    EXPECT_TRUE(present.shares_storage(x));
  });
  x.register_hook([](const Tensor& gradient) { return gradient * 2; });
  x.requires_grad_(false);
  x.requires_grad_(true);
  x.set_data(Tensor::from<float>({5, 6, 7}, {3}));
  sum(x * x).backward();
  EXPECT_EQ(count, 1);
  EXPECT_EQ(values_of(x.grad()), (Floats{20, 24, 28}));
}

TEST(TensorHooks, KeepTheirStateAndMayRemoveThemselves) {
  const Tensor x = leaf({1});
  HookHandle once;
  int runs = 0;
  std::vector<int> counts;
  once = x.register_hook([&](const Tensor&) {
    ++runs;
    once.remove();
  });
  x.register_hook([&counts, count = 0](const Tensor&) mutable { counts.push_back(++count); });
  for (int i = 0; i < 3; ++i) sum(x * 2).backward();
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(counts, (std::vector<int>{1, 2, 3}));
  once.remove();
  HookHandle nothing;
  nothing.remove();
}

TEST(TensorHooks, HandlesOutliveTheirTensor) {
  HookHandle handle;
  {
    const Tensor x = leaf({1});
    handle = x.register_hook([](const Tensor&) {});
  }
  handle.remove();
}

TEST(TensorHooks, SeeALeafThatIsItsOwnLoss) {
  const Tensor x = leaf({1});
  int runs = 0;
  x.register_hook([&](const Tensor& gradient) {
    ++runs;
    return gradient * 5;
  });
  x.backward();
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(values_of(x.grad()), Floats{5});
}

TEST(TensorHooks, SeeALeafOnceThoughSomeOfTheGraphHasNoGradient) {
  const Tensor x = leaf({1, 2});
  std::vector<Floats> seen;
  x.register_hook([&](const Tensor& gradient) { seen.push_back(values_of(gradient)); });
  const Tensor cut = where(gt(x, 5.0), x * 3, x * 4);
  sum(cut + x).backward();
  EXPECT_EQ(seen, (std::vector<Floats>{{5, 5}}));
}

TEST(RetainGrad, OfAViewThatShowsAllOfItsTensorIsItsOwn) {
  const Tensor x = leaf({1, 2});
  const Tensor y = x * 1;
  const Tensor whole = y.view({2});
  whole.retain_grad();
  sum(whole * 2 + y * 3).backward();
  EXPECT_EQ(values_of(whole.grad()), (Floats{2, 2}));
  EXPECT_FALSE(y.grad().defined());
  EXPECT_EQ(values_of(x.grad()), (Floats{5, 5}));
}

nn::Linear linear(float value) {
  nn::Linear module(2, 2, false);
  module.weight.detach().fill_(value);
  return module;
}

TEST(ModuleHooks, RunOnceHoweverTheModuleIsHeld) {
  nn::Linear first = linear(1);
  nn::AnyModule any(first);
  nn::Sequential net(any, nn::ReLU());
  int runs = 0;
  first.register_forward_hook([&](nn::Module& module, Inputs, const Tensor&) {
    ++runs;
    EXPECT_NE(dynamic_cast<nn::Linear*>(&module), nullptr);
  });
  const Tensor x = ones({1, 2});
  const auto runs_of = [&](const auto& call) {
    runs = 0;
    call();
    return runs;
  };
  EXPECT_EQ(runs_of([&] { first(x); }), 1);
  EXPECT_EQ(runs_of([&] { any(x); }), 1);
  EXPECT_EQ(runs_of([&] { any.forward(x); }), 1);
  EXPECT_EQ(runs_of([&] { any(std::span(&x, 1)); }), 1);
  EXPECT_EQ(runs_of([&] { static_cast<nn::Module&>(any)(x); }), 1);
  EXPECT_EQ(runs_of([&] { net(x); }), 1);
  EXPECT_EQ(runs_of([&] { nn::AnyModule(nn::Sequential(net))(x); }), 1);
  EXPECT_EQ(runs_of([&] { first.forward(x); }), 0);
}

TEST(ModuleHooks, RunOnModelsAndModulesOfSeveralInputs) {
  models::Model model = models::get_model("lenet5", {.in_channels = 1});
  int runs = 0;
  model.register_forward_hook([&](nn::Module&, Inputs, const Tensor&) { ++runs; });
  model(zeros({1, 1, 28, 28}));
  EXPECT_EQ(runs, 1);
  const auto counts_two = [&](nn::Module&, Inputs inputs, const Tensor&) {
    EXPECT_EQ(inputs.size(), 2U);
    ++runs;
  };
  nn::Bilinear bilinear(2, 2, 2);
  bilinear.register_forward_hook(counts_two);
  bilinear(ones({1, 2}), ones({1, 2}));
  nn::MSELoss loss;
  loss.register_forward_hook(counts_two);
  loss(ones({2}), ones({2}));
  nn::TransformerEncoderLayer layer(4, 2, {.dim_feedforward = 8});
  layer.register_forward_hook([&](nn::Module&, Inputs, const Tensor&) { ++runs; });
  layer(ones({3, 1, 4}));
  nn::TransformerEncoder encoder(layer, 2);  // whose layers have the hooks of the one that they are copies of
  encoder(ones({3, 1, 4}));
  nn::MultiheadAttention attention(4, 2);
  attention.register_forward_hook([&](nn::Module&, Inputs inputs, const Tensor& output) {
    EXPECT_EQ(inputs.size(), 3U);
    ++runs;
    return output * 0.0;
  });
  const Tensor x = ones({3, 1, 4});
  EXPECT_EQ(sum(attention(x, x, x).output).item(), 0);
  EXPECT_EQ(runs, 7);
}

TEST(ModuleHooks, AreRemovedAndCloned) {
  nn::Linear first = linear(1);
  int runs = 0;
  HookHandle handle = first.register_forward_hook([&](nn::Module&, Inputs, const Tensor&) { ++runs; });
  nn::Linear copy = nn::clone(first);
  handle.remove();
  first(ones({1, 2}));
  EXPECT_EQ(runs, 0);
  copy(ones({1, 2}));
  EXPECT_EQ(runs, 1);
}

TEST(ModuleHooks, OfBackwardSeeInputsThatWantNoGradientAsUndefined) {
  nn::Bilinear bilinear(2, 2, 2);
  const Tensor x = ones({1, 2}, {.requires_grad = true});
  int runs = 0;
  bilinear.register_full_backward_hook([&](nn::Module& module, Inputs inputs, const Tensor& output) {
    ++runs;
    EXPECT_TRUE(inputs[0].defined());
    EXPECT_FALSE(inputs[1].defined());
    EXPECT_EQ(output.sizes(), (Shape{1, 2}));
    EXPECT_EQ(module.parameters().size(), 2U);
  });
  sum(bilinear(x, ones({1, 2}))).backward();
  EXPECT_EQ(runs, 1);
  {
    const NoGrad guard;
    bilinear(x, ones({1, 2}));
  }
  EXPECT_EQ(runs, 1);
}

TEST(ModuleHooks, ThatThrowOrReturnTooFewLeaveTheModuleUsable) {
  nn::Linear module = linear(2);
  const Tensor x = ones({1, 2}, {.requires_grad = true});
  HookHandle handle =
      module.register_forward_hook([](nn::Module&, Inputs, const Tensor&) { throw std::runtime_error("of the user"); });
  EXPECT_THROW(module(x), std::runtime_error);
  handle.remove();
  handle = module.register_forward_pre_hook([](nn::Module&, Inputs) { return std::vector<Tensor>(2); });
  EXPECT_THROW(module(x), ValueError);
  handle.remove();
  handle =
      module.register_full_backward_hook([](nn::Module&, Inputs, const Tensor&) { return std::vector<Tensor>(2); });
  EXPECT_THROW(sum(module(x)).backward(), AutogradError);
  EXPECT_FALSE(x.grad().defined());
  EXPECT_FALSE(module.weight.grad().defined());
  handle.remove();
  sum(module(x)).backward();
  EXPECT_EQ(values_of(x.grad()), (Floats{4, 4}));
  EXPECT_THROW(module.register_forward_hook(nn::ForwardHook()), ValueError);
}

}  // namespace
}  // namespace russet
