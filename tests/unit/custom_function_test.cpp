// Functions with gradients of the user's own: against finite differences, and what goes wrong in them.
// tests/golden/hooks_test.cpp holds them against PyTorch.
#include <gtest/gtest.h>
#include <russet/russet.h>

#include "unit/gradcheck.h"

namespace russet {
namespace {

using autograd::AutogradContext;
using autograd::Function;
using autograd::variable_list;

/// tanh from its result.
struct Tanh : Function<Tanh> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x) {
    const Tensor y = tanh(x);
    ctx->save_for_backward({y});
    return y;
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    const Tensor y = ctx->get_saved_variables()[0];
    return {gradients[0] * (1.0 - y * y)};
  }
};

/// Product and quotient of broadcast tensors. The gradient of b is left for the engine to sum.
struct ProductAndQuotient : Function<ProductAndQuotient> {
  static variable_list forward(AutogradContext* ctx, const Tensor& a, const Tensor& b) {
    const Tensor quotient = a / b;
    ctx->save_for_backward({a, b, quotient});
    return {a * b, quotient};
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& g) {
    const variable_list saved = ctx->get_saved_variables();
    const Tensor &a = saved[0], &b = saved[1], &quotient = saved[2];
    return {g[0] * b + g[1] / b, g[0] * a - g[1] * quotient / b};
  }
};

/// The sum of a list, each number times `factor`, and of one more that may be missing.
struct WeightedSum : Function<WeightedSum> {
  static Tensor forward(AutogradContext* ctx, const std::string&, const std::vector<Tensor>& list, double factor,
                        const std::optional<Tensor>& more) {
    ctx->saved_data["factor"] = factor;
    ctx->saved_data["count"] = list.size();
    EXPECT_FALSE(ctx->needs_input_grad(0));
    for (std::size_t i = 0; i < list.size(); ++i) EXPECT_EQ(ctx->needs_input_grad(i + 1), list[i].requires_grad());
    Tensor total = list[0] * factor;
    for (std::size_t i = 1; i < list.size(); ++i) total = total + list[i] * factor;
    return more ? total + *more : total;
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& g) {
    const auto count = std::any_cast<std::size_t>(ctx->saved_data.at("count"));
    variable_list result(count + 3);
    for (std::size_t i = 1; i <= count; ++i) result[i] = g[0] * std::any_cast<double>(ctx->saved_data.at("factor"));
    result[count + 2] = ctx->needs_input_grad(count + 2) ? g[0] : Tensor();
    return result;
  }
};

/// The transposed argument: a view of it.
struct Transposed : Function<Transposed> {
  static Tensor forward(AutogradContext*, const Tensor& x) { return x.t(); }
  static variable_list backward(AutogradContext*, const variable_list& g) { return {g[0].t()}; }
};

/// x + 1 in place.
struct Incremented : Function<Incremented> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x) {
    x.add_(1);
    ctx->mark_dirty({x});
    return x;
  }
  static variable_list backward(AutogradContext*, variable_list g) { return g; }
};

/// What a test makes of one argument.
struct Lambda : Function<Lambda> {
  using Backward = std::function<variable_list(AutogradContext*, const variable_list&)>;
  static Tensor forward(AutogradContext* ctx, const Tensor& x, const Backward& backward) {
    ctx->saved_data["backward"] = backward;
    ctx->save_for_backward({x});
    return x * 2;
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& g) {
    return std::any_cast<Backward>(ctx->saved_data.at("backward"))(ctx, g);
  }
};

TEST(CustomFunction, HasGradientsOfGradients) {
  test::expect_gradients([](const auto& x) { return Tanh::apply(x[0]) * x[0]; }, {test::scattered_tensor({2, 3})});
}

TEST(CustomFunction, OfSeveralResultsSumsOverBroadcastAxes) {
  const auto both = [](const std::vector<Tensor>& x) {
    const variable_list results = ProductAndQuotient::apply(x[0], x[1]);
    return results[0] * results[1] + results[0];
  };
  test::expect_gradients(both, {test::scattered_tensor({2, 3}, 1), test::scattered_tensor({3}, 2) + 3});
}

TEST(CustomFunction, TakesListsNumbersAndWhatMayBeMissing) {
  const auto total = [](const std::vector<Tensor>& x) {
    const std::vector<Tensor> list = {x[0], test::scattered_tensor({3}, 3), x[1]};
    return WeightedSum::apply("name", list, 2.5, x[0]) + WeightedSum::apply("name", list, 0.5, std::nullopt);
  };
  test::expect_gradients(total, {test::scattered_tensor({3}, 1), test::scattered_tensor({3}, 2)});
}

TEST(CustomFunction, MayReturnAView) {
  test::expect_gradients([](const auto& x) { return Transposed::apply(x[0]) * Transposed::apply(x[0] * 2); },
                         {test::scattered_tensor({2, 3})});
  const Tensor x = ones({2, 3}, {.requires_grad = true});
  const Tensor y = Transposed::apply(x);
  EXPECT_TRUE(y.shares_storage(x));
  EXPECT_THROW(y.add_(1), AutogradError);
}

TEST(CustomFunction, MayWriteToItsArgument) {
  const auto program = [](const std::vector<Tensor>& x) {
    const Tensor y = x[0] * x[0];
    Incremented::apply(y[0]);
    return Incremented::apply(y) * y;
  };
  test::expect_gradients(program, {test::scattered_tensor({2, 3})});
  const Tensor leaf = ones({2}, {.requires_grad = true});
  EXPECT_THROW(Incremented::apply(leaf), AutogradError);
  EXPECT_THROW(Incremented::apply(leaf[0]), AutogradError);
  const Tensor plain = zeros({2});
  EXPECT_EQ(Incremented::apply(plain).state(), plain.state());
  EXPECT_FALSE(plain.requires_grad());
}

TEST(CustomFunction, RefusesAWrittenArgumentThatIsNoResult) {
  struct Forgetful : Function<Forgetful> {
    static Tensor forward(AutogradContext* ctx, const Tensor& x) {
      ctx->mark_dirty({x});
      return x.add_(1) * 2;
    }
    static variable_list backward(AutogradContext*, variable_list g) { return g; }
  };
  const Tensor x = ones({2}, {.requires_grad = true});
  EXPECT_THROW(Forgetful::apply(x * 1), AutogradError);
}

TEST(CustomFunction, StaysOffTheTapeWhereNobodyWantsAGradient) {
  const Tensor x = ones({2}, {.requires_grad = true});
  EXPECT_FALSE(Tanh::apply(x.detach()).requires_grad());
  const NoGrad guard;
  EXPECT_FALSE(Tanh::apply(x).requires_grad());
}

TEST(CustomFunction, KeepsTheValuesThatItSaved) {
  const Tensor x = Tensor::from<float>({0.5, -0.25}, {2}, {}, true);
  const Tensor y = x * 1;
  const Tensor z = Tanh::apply(y);
  const Tensor expected = autograd::grad({sum(z)}, {x}, {}, {.retain_graph = true})[0];
  const Tensor loss = sum(z);
  {
    const NoGrad guard;
    z.mul_(100);
    y.zero_();
  }
  EXPECT_EQ(autograd::grad({loss}, {x})[0].to_vector<float>(), expected.to_vector<float>());
}

TEST(CustomFunction, IsFreedByBackward) {
  const Tensor x = ones({2}, {.requires_grad = true});
  const Tensor y = sum(Tanh::apply(x));
  y.backward({}, true);
  y.backward();
  EXPECT_THROW(y.backward(), AutogradError);
  // One that saved nothing can be differentiated again.
  const Tensor z = Transposed::apply(x.view({1, 2}));
  z.backward(ones({2, 1}), true);
  z.backward(ones({2, 1}));
  z.backward(ones({2, 1}));
}

/// How often backward() of a leaf of ones({2, 3}) fails, and that it leaves no gradient.
template <class Failure>
void expect_failure(const Lambda::Backward& backward) {
  const Tensor x = ones({2, 3}, {.requires_grad = true});
  const Tensor loss = sum(Lambda::apply(x * 1, backward) + x);
  EXPECT_THROW(loss.backward(), Failure);
  EXPECT_FALSE(x.grad().defined());
  EXPECT_THROW(loss.backward(), Failure) << "the same error again: nothing was freed";
}

TEST(CustomFunction, RefusesGradientsThatDoNotFit) {
  using Gradients = const variable_list&;
  expect_failure<AutogradError>([](AutogradContext*, Gradients) { return variable_list{}; });
  expect_failure<AutogradError>([](AutogradContext*, Gradients g) { return variable_list{g[0]}; });
  expect_failure<AutogradError>([](AutogradContext*, Gradients g) { return variable_list{g[0], g[0]}; });
  expect_failure<AutogradError>([](AutogradContext*, Gradients g) { return variable_list{g[0], {}, g[0]}; });
  expect_failure<ShapeError>([](AutogradContext*, Gradients g) { return variable_list{sum(g[0]), {}}; });
  expect_failure<ShapeError>([](AutogradContext*, Gradients g) { return variable_list{g[0].t(), {}}; });
  expect_failure<DeviceError>([](AutogradContext*, Gradients g) {
    return variable_list{g[0].to(Device("reference")), {}};
  });
  expect_failure<std::bad_alloc>([](AutogradContext*, Gradients) -> variable_list { throw std::bad_alloc(); });
}

TEST(CustomFunction, TakesSurplusUndefinedGradientsAndOtherTypes) {
  const Tensor x = ones({2}, {.requires_grad = true});
  const auto backward = [](AutogradContext*, const variable_list& g) {
    return variable_list{g[0].to(DType::float64), {}, {}, {}};
  };
  sum(Lambda::apply(x, backward)).backward();
  EXPECT_EQ(x.grad().dtype(), DType::float32);
}

TEST(CustomFunction, RunsWhatItReadsInBackwardAtOnce) {
  const Tensor x = ones({2}, {.requires_grad = true});
  double seen = 0;
  const auto backward = [&](AutogradContext* ctx, const variable_list& g) {
    seen = sum(g[0] * ctx->get_saved_variables()[0]).item();
    return variable_list{g[0] * seen, {}};
  };
  in_one_plan([&] { sum(Lambda::apply(x * 3, backward)).backward(); });
  EXPECT_EQ(seen, 6);
  EXPECT_EQ(x.grad().to_vector<float>(), (std::vector<float>{18, 18}));
}

TEST(CustomFunction, GivesAnArgumentsGradientAlsoToWhoAsksForOneResult) {
  const Tensor a = ones({2}, {.requires_grad = true}), b = ones({2}, {.requires_grad = true});
  const variable_list results = ProductAndQuotient::apply(a, b);
  EXPECT_THROW(autograd::grad({sum(results[0])}, {results[1]}, {}, {.retain_graph = true}), AutogradError);
  const Tensor of_a = autograd::grad({sum(results[1])}, {a})[0];
  EXPECT_EQ(of_a.to_vector<float>(), (std::vector<float>{1, 1}));
}

}  // namespace
}  // namespace russet
