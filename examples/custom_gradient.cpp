// A function with a gradient of one's own, and hooks: a small network learns with weights of four bits.
#include <russet/autograd.h>
#include <russet/functional.h>
#include <russet/nn.h>
#include <russet/nn_functional.h>
#include <russet/optim.h>

#include <cstdio>

using namespace russet;

/// Rounds to one of 15 levels between -limit and limit. Rounding has no slope: the gradient goes straight through, but
/// for weights beyond the limits, which it would only drive further out.
struct Quantized : autograd::Function<Quantized> {
  static Tensor forward(autograd::AutogradContext* ctx, const Tensor& weight, double limit) {
    ctx->save_for_backward({weight});
    ctx->saved_data["limit"] = limit;
    return weight.clamp(-limit, limit).mul(7 / limit).round() * (limit / 7);
  }
  static autograd::variable_list backward(autograd::AutogradContext* ctx, const autograd::variable_list& gradients) {
    const Tensor weight = ctx->get_saved_variables()[0];
    const auto limit = std::any_cast<double>(ctx->saved_data.at("limit"));
    return {gradients[0] * (weight.abs() <= limit).to(weight.dtype()), Tensor()};
  }
};

struct Net : nn::Module {
  Net()
      : inner(register_parameter("inner", randn({2, 64}))),
        outer(register_parameter("outer", randn({64, 1}) * 0.3)),
        norm(register_module("norm", nn::LayerNorm(64))) {}
  Tensor forward(const Tensor& x) override {
    return norm(x.matmul(Quantized::apply(inner, 2.0))).relu().matmul(Quantized::apply(outer, 1.0));
  }

  nn::Parameter inner, outer;
  nn::LayerNorm norm;
};

int main() {
  manual_seed(1);
  Net net;

  // A tensor hook: single gradients of the outer weights stay small.
  HookHandle clipping = net.outer.register_hook([](const Tensor& gradient) { return gradient.clamp(-0.1, 0.1); });
  // Module hooks: how many of the norm's outputs pass the ReLU, and the gradient that comes back. They keep values on
  // the device, and read them only when they are printed: reading computes at once all that is recorded.
  Tensor passing, coming_back;
  net.norm.register_forward_hook([&](nn::Module&, std::span<const Tensor>, const Tensor& output) {
    passing = (output > 0.0).to(DType::float32).mean().detach();
  });
  net.norm.register_full_backward_hook(
      [&](nn::Module&, std::span<const Tensor>, const Tensor& gradient) { coming_back = gradient.norm(); });

  auto optim = optim::Adam(net.parameters(), {.lr = 1e-2});
  for (int step = 0; step < 400; ++step) {
    if (step == 200) clipping.remove();
    const Tensor x = rand({256, 2}) * 4.0 - 2.0;
    const Tensor wanted = x.select(1, 0).sin() * x.select(1, 1);
    const Tensor loss = mse_loss(net(x).squeeze(1), wanted);
    optim.zero_grad();
    loss.backward();
    optim.step();
    if (step % 100 == 99) {
      std::printf("step %3d: loss %.4f, %.0f %% pass the ReLU, gradient behind it %.4f\n", step + 1, loss.item(),
                  100 * passing.item(), coming_back.item());
    }
  }

  // The gradient of a gradient: written with operators, a custom backward() is differentiated like any other.
  const Tensor w = Tensor::from<float>({0.3F, -2.5F}, {2}, {}, true);
  const Tensor slope = autograd::grad({Quantized::apply(w, 2.0).square().sum()}, {w}, {}, {.create_graph = true})[0];
  std::printf("slope %s\ncurvature %s\n", to_string(slope).c_str(),
              to_string(autograd::grad({slope.sum()}, {w})[0]).c_str());
  return 0;
}
