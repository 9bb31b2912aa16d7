// Hooks and custom Functions see what PyTorch's see, in the same order (scripts/golden/hooks.py has the same
// scenarios).
#include <gtest/gtest.h>
#include <russet/autograd.h>
#include <russet/functional.h>
#include <russet/nn.h>
#include <russet/nn_functional.h>
#include <russet/operators.h>

#include "calls/golden.h"

namespace golden {
namespace {

using russet::DType;
using russet::NoGrad;
using russet::Tensor;
using russet::autograd::AutogradContext;
using russet::autograd::Function;
using russet::autograd::grad;
using russet::autograd::variable_list;
using Inputs = std::span<const Tensor>;
namespace nn = russet::nn;

struct Event {
  std::string name;
  variable_list values;
};
std::vector<Event>& events() {
  static std::vector<Event> all;
  return all;
}

void note(const std::string& name, const variable_list& values) {
  Event event{name, {}};
  for (const Tensor& value : values) event.values.push_back(value.defined() ? value.detach().clone() : value);
  events().push_back(event);
}

auto noting(const std::string& name) {
  return [name](const Tensor& gradient) { note(name, {gradient}); };
}

variable_list all_of(Inputs inputs, const variable_list& more = {}) {
  variable_list all(inputs.begin(), inputs.end());
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

Tensor leaf(const std::vector<double>& values) {
  return Tensor::from(values, {static_cast<std::int64_t>(values.size())}, {}, true);
}

Tensor row(const std::vector<double>& values, bool requires_grad) {
  return Tensor::from(values, {1, static_cast<std::int64_t>(values.size())}, {}, requires_grad);
}

/// Compares what was noted with what PyTorch noted.
void expect_noted(const std::string& scenario) {
  static const Json record = read_json("hooks.json.gz");
  const Json& expected = record.at(scenario);
  std::vector<std::string> names, expected_names;
  for (const Event& event : events()) names.push_back(event.name);
  for (const Json& event : expected) expected_names.push_back(event[0]);
  ASSERT_EQ(names, expected_names);
  for (std::size_t i = 0; i < names.size(); ++i) {
    const Json& values = expected[i][1];
    ASSERT_EQ(events()[i].values.size(), values.size()) << names[i];
    for (std::size_t j = 0; j < values.size(); ++j) {
      const Tensor& found = events()[i].values[j];
      ASSERT_EQ(found.defined(), !values[j].is_null()) << names[i] << ", value " << j << " of event " << i;
      if (!found.defined()) continue;
      EXPECT_EQ(difference(found.to_vector<double>(), numbers(values[j]), 1e-14), "") << names[i] << " at " << i;
    }
  }
}

class HooksAsInPyTorch : public testing::Test {
 protected:
  void SetUp() override { events().clear(); }
  void TearDown() override { events().clear(); }
};

TEST_F(HooksAsInPyTorch, Order) {
  const Tensor w1 = leaf({2, 3}), w2 = leaf({5, 7});
  const Tensor a = w1 * 2, b = a * w2, c = b * w1;
  w1.register_hook(noting("w1"));
  w2.register_hook(noting("w2"));
  a.register_hook(noting("a"));
  b.register_hook(noting("b"));
  c.register_hook(noting("c"));
  w2.register_post_accumulate_grad_hook([](const Tensor& p) { note("post w2", {p.grad()}); });
  w1.register_post_accumulate_grad_hook([](const Tensor& p) { note("post w1", {p.grad()}); });
  sum(c).backward();
  note("end", {w1.grad(), w2.grad()});
  expect_noted("order");
}

TEST_F(HooksAsInPyTorch, Replaced) {
  const Tensor x = leaf({1, 2});
  const Tensor y = x * 3;
  y.retain_grad();
  russet::HookHandle first = y.register_hook([](const Tensor& g) { return g * 10; });
  y.register_hook(noting("second"));
  y.register_hook([](const Tensor& g) { return g + 1; });
  x.register_hook([](const Tensor& g) { return g * 100; });
  const Tensor z = sum(y * y);
  z.backward({}, true);
  note("hooked", {x.grad(), y.grad()});
  first.remove();
  x.set_grad({});
  y.set_grad({});
  z.backward();
  note("one removed", {x.grad(), y.grad()});
  expect_noted("replaced");
}

TEST_F(HooksAsInPyTorch, Accumulated) {
  const Tensor x = leaf({1, 2});
  x.register_hook(noting("x"));
  x.register_post_accumulate_grad_hook([](const Tensor& p) { note("post", {p.grad()}); });
  for (int i = 0; i < 2; ++i) sum(x * x + x * 3).backward();
  note("x.grad", {x.grad()});
  expect_noted("accumulated");
}

TEST_F(HooksAsInPyTorch, StepInBackward) {
  const Tensor x = leaf({1, 2});
  x.register_post_accumulate_grad_hook([](const Tensor& p) {
    const NoGrad guard;
    p.sub_(p.grad(), 0.5);
    p.set_grad({});
  });
  for (int i = 0; i < 3; ++i) {
    sum(x * x).backward();
    note("x", {x});
  }
  EXPECT_FALSE(x.grad().defined());
  expect_noted("step_in_backward");
}

TEST_F(HooksAsInPyTorch, Written) {
  const Tensor v = leaf({1, 2});
  const Tensor t = v * 2;
  t.register_hook(noting("before"));
  t.retain_grad();
  t.mul_(3);
  t.register_hook(noting("after"));
  t[0].mul_(5);
  t.register_hook(noting("last"));
  sum(t).backward();
  note("end", {t.grad(), v.grad()});
  expect_noted("written");
}

TEST_F(HooksAsInPyTorch, Views) {
  const Tensor x = leaf({1, 2, 3, 4});
  const Tensor y = x * 1, whole = y.view({4}), part = y.slice(0, {1, 3}), inner = part.slice(0, {0, 1});
  x.register_hook(noting("x"));
  y.register_hook(noting("y"));
  whole.register_hook(noting("whole"));
  part.register_hook(noting("part"));
  inner.register_hook(noting("inner"));
  whole.retain_grad();
  sum(whole * 2 + y * 3).backward({}, true);
  note("whole", {whole.grad()});
  (sum(inner * 5 + part * 7)).backward();
  note("end", {x.grad()});
  expect_noted("views");
}

TEST_F(HooksAsInPyTorch, Chosen) {
  const Tensor x = leaf({1, 2});
  const Tensor y = x * 2;
  y.register_hook([](const Tensor& g) { return g * 10; });
  x.register_hook([](const Tensor& g) { return g * 100; });
  x.register_post_accumulate_grad_hook([](const Tensor&) { note("never", {}); });
  const Tensor z = sum(y * 3);
  note("of y", grad({z}, {y}, {}, {.retain_graph = true}));
  note("of x", grad({z}, {x}));
  expect_noted("chosen");
}

TEST_F(HooksAsInPyTorch, SecondOrder) {
  const Tensor x = leaf({1, 2});
  const Tensor y = x * x;
  y.register_hook(noting("y"));
  russet::HookHandle handle = y.register_hook([&](const Tensor& g) { return g * y; });
  x.register_hook([&](const Tensor& g) { return g * x; });
  const Tensor first = grad({sum(y * y)}, {x}, {}, {.create_graph = true})[0];
  note("first", {first});
  note("second", grad({sum(first)}, {x}));
  expect_noted("second_order");
  handle.remove();
}

TEST_F(HooksAsInPyTorch, Nested) {
  const Tensor x = leaf({1, 2}), w = leaf({3, 4});
  const Tensor y = x * 2;
  y.register_hook([&](const Tensor& g) {
    {
      const russet::SetGrad on(true);
      sum(w * w).backward();
    }
    note("inner", {w.grad()});
    return g * w.detach();
  });
  sum(y).backward();
  note("end", {x.grad(), w.grad()});
  expect_noted("nested");
}

struct Scale : Function<Scale> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, double factor) {
    ctx->saved_data["factor"] = factor;
    return x * factor;
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    note("Scale", gradients);
    return {gradients[0] * std::any_cast<double>(ctx->saved_data.at("factor")), Tensor()};
  }
};

struct Cube : Function<Cube> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x) {
    const Tensor y = x * x * x;
    ctx->save_for_backward({x, y});
    return y;
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    const variable_list saved = ctx->get_saved_variables();
    return {gradients[0] * 3 * saved[1] / saved[0]};
  }
};

/// Four results: one is integer, one is declared to have no gradient.
struct Parts : Function<Parts> {
  static variable_list forward(AutogradContext* ctx, const Tensor& a, const Tensor& b) {
    ctx->save_for_backward({a, b});
    const Tensor constant = a - b;
    ctx->mark_non_differentiable({constant});
    return {a * b, gt(a, b).to(DType::int64), constant, a + b};
  }
  static variable_list backward(AutogradContext* ctx, variable_list g) {
    note("Parts", {g[0], g[2], g[3]});
    const variable_list saved = ctx->get_saved_variables();
    return {g[0] * saved[1] + g[3], g[0] * saved[0] + g[3]};
  }
};

struct Unmaterialized : Function<Unmaterialized> {
  static variable_list forward(AutogradContext* ctx, const Tensor& a, const Tensor& b) {
    ctx->set_materialize_grads(false);
    return {a * 2, b * 3};
  }
  static variable_list backward(AutogradContext*, variable_list g) {
    note("Unmaterialized", g);
    return {g[0].defined() ? g[0] * 2 : g[0], g[1].defined() ? g[1] * 3 : g[1]};
  }
};

struct Same : Function<Same> {
  static Tensor forward(AutogradContext*, const Tensor& x) { return x; }
  static variable_list backward(AutogradContext*, const variable_list& g) { return {g[0] * 10}; }
};

struct Doubled : Function<Doubled> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x) {
    x.mul_(2);
    ctx->mark_dirty({x});
    ctx->save_for_backward({x});
    return x;
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& g) {
    note("Doubled", {g[0], ctx->get_saved_variables()[0]});
    return {g[0] * 2};
  }
};

TEST_F(HooksAsInPyTorch, Custom) {
  Tensor x = leaf({1, 2});
  Tensor y = Scale::apply(x, 3.0);
  y.register_hook(noting("y"));
  sum(y * y).backward();
  note("Scale.grad", {x.grad()});
  x = leaf({2, 3});
  y = Cube::apply(x);
  y.register_hook(noting("cube"));
  const Tensor first = grad({sum(y)}, {x}, {}, {.create_graph = true})[0];
  const Tensor second = grad({sum(first)}, {x}, {}, {.create_graph = true})[0];
  note("Cube", {first, second, grad({sum(second)}, {x})[0]});
  expect_noted("custom");
}

TEST_F(HooksAsInPyTorch, SeveralResults) {
  const Tensor a = leaf({1, 2}), b = leaf({3, 4});
  const variable_list parts = Parts::apply(a, b);
  const Tensor product = parts[0], total = parts[3];
  EXPECT_FALSE(parts[1].requires_grad());
  EXPECT_FALSE(parts[2].requires_grad());
  russet::HookHandle handle = product.register_hook(noting("product"));
  total.register_hook(noting("total"));
  total.retain_grad();
  sum(product + product * total).backward({}, true);
  note("end", {a.grad(), b.grad(), total.grad()});
  note("of total", grad({sum(product) + sum(total) * 2}, {product, total}, {}, {.retain_graph = true}));
  handle.remove();
  sum(total).backward();
  note("end", {a.grad(), b.grad()});
  sum(Unmaterialized::apply(a, b)[1]).backward();
  note("end", {a.grad(), b.grad()});
  expect_noted("several_results");
}

TEST_F(HooksAsInPyTorch, ArgumentsReturned) {
  const Tensor x = leaf({1, 2});
  const Tensor y = Same::apply(x);
  EXPECT_NE(y.state(), x.state());
  EXPECT_TRUE(y.shares_storage(x));
  sum(y * 3 + x).backward();
  note("end", {x.grad()});
  const Tensor plain = x.detach();
  EXPECT_NE(Same::apply(plain).state(), plain.state());
  expect_noted("arguments_returned");
}

TEST_F(HooksAsInPyTorch, ArgumentsWritten) {
  const Tensor x = leaf({1, 2});
  const Tensor y = x * 5;
  y.register_hook(noting("before"));
  EXPECT_EQ(Doubled::apply(y).state(), y.state());
  y.register_hook(noting("after"));
  sum(y * y).backward();
  note("root", {x.grad(), y});
  x.set_grad({});
  Tensor base = x * 1;
  const Tensor part = base.slice(0, {0, 1});
  Doubled::apply(part);
  base.register_hook(noting("base"));
  part.register_hook(noting("part"));
  sum(base * 3).backward();
  note("view", {x.grad(), base});
  x.set_grad({});
  base = russet::zeros({2}, {DType::float64});
  base.slice(0, {1, 2}).copy_(Scale::apply(x.slice(0, {0, 1}), 4.0));
  Doubled::apply(base);
  sum(base).backward();
  note("written later", {x.grad(), base});
  expect_noted("arguments_written");
}

nn::Linear linear(double value) {
  const nn::NewModules place(russet::Device{}, DType::float64);
  nn::Linear module(2, 2, false);
  module.weight.detach().fill_(value);
  return module;
}

TEST_F(HooksAsInPyTorch, ForwardHooks) {
  nn::Linear m = linear(2);
  m.register_forward_pre_hook([](nn::Module&, Inputs inputs) { note("pre", all_of(inputs)); });
  russet::HookHandle handle =
      m.register_forward_pre_hook([](nn::Module&, Inputs inputs) { return variable_list{inputs[0] * 10}; });
  m.register_forward_pre_hook([](nn::Module&, Inputs inputs) { note("pre of tens", all_of(inputs)); });
  m.register_forward_hook([](nn::Module&, Inputs in, const Tensor& out) { note("forward", all_of(in, {out})); });
  m.register_forward_hook([](nn::Module&, Inputs, const Tensor& out) { return out + 1; });
  m.register_forward_hook(
      [](nn::Module&, Inputs in, const Tensor& out) { note("forward of one more", all_of(in, {out})); });
  const Tensor x = leaf({1, 2}).unsqueeze(0);
  m(x);
  handle.remove();
  const Tensor called = m(x);
  note("result", {called, m.forward(x)});
  expect_noted("forward_hooks");
}

void backward_hooks(bool with_inputs) {
  nn::Linear m = linear(3);
  m.register_full_backward_pre_hook([](nn::Module&, const Tensor& output) { note("backward pre", {output}); });
  m.register_full_backward_pre_hook([](nn::Module&, const Tensor& output) { return output * 7; });
  m.register_full_backward_hook([](nn::Module&, Inputs in, const Tensor& out) { note("backward", all_of(in, {out})); });
  if (with_inputs) {
    m.register_full_backward_hook([](nn::Module&, Inputs in, const Tensor&) { return variable_list{in[0] * 10}; });
    m.register_full_backward_hook(
        [](nn::Module&, Inputs in, const Tensor& out) { note("backward of tens", all_of(in, {out})); });
  }
  m.weight.register_hook(noting("weight"));
  m.register_forward_hook([](nn::Module&, Inputs, const Tensor& out) { return out * 2; });
  const Tensor x = row({1, 2}, with_inputs);
  if (with_inputs) x.register_hook(noting("x"));
  sum(m(x)).backward();
  note("end", {m.weight.grad(), x.grad()});
}

TEST_F(HooksAsInPyTorch, BackwardHooks) {
  backward_hooks(true);
  expect_noted("backward_hooks");
}

TEST_F(HooksAsInPyTorch, BackwardHooksWithoutInputs) {
  backward_hooks(false);
  expect_noted("backward_hooks_without_inputs");
}

TEST_F(HooksAsInPyTorch, ModulesInModules) {
  nn::Linear first = linear(1), second = linear(2);
  nn::Sequential net(first, nn::ReLU(), second, first);
  const auto watch = [](nn::Module& module, const std::string& name) {
    module.register_forward_hook([name](nn::Module&, Inputs in, const Tensor& out) { note(name, all_of(in, {out})); });
    module.register_full_backward_hook(
        [name](nn::Module&, Inputs in, const Tensor& out) { note(name + " back", all_of(in, {out})); });
  };
  watch(net, "net");
  watch(first, "first");
  watch(net[1].get(), "relu");
  watch(second, "second");
  const Tensor x = row({1, 2}, true);
  sum(net(x)).backward();
  note("end", {x.grad(), first.weight.grad(), second.weight.grad()});
  const Tensor slope = grad({sum(square(net(x)))}, {x}, {}, {.create_graph = true})[0];
  note("second", grad({sum(slope)}, {x}));
  expect_noted("modules_in_modules");
}

}  // namespace
}  // namespace golden
