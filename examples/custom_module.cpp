// A module of one's own: a residual block with a learned gate, fitted to a function of two numbers.
#include <russet/functional.h>
#include <russet/nn.h>
#include <russet/nn_functional.h>
#include <russet/optim.h>

#include <cstdio>

using namespace russet;

struct Block : nn::Module {
  explicit Block(std::int64_t width)
      : norm(register_module("norm", nn::LayerNorm(width))),
        fc1(register_module("fc1", nn::Linear(width, 2 * width))),
        fc2(register_module("fc2", nn::Linear(2 * width, width))),
        gate(register_parameter("gate", zeros({width}))) {}
  Tensor forward(const Tensor& x) override { return x + gate * fc2(gelu(fc1(norm(x)))); }

  nn::LayerNorm norm;
  nn::Linear fc1, fc2;
  nn::Parameter gate;
};

int main() {
  manual_seed(1);
  auto net = nn::Sequential(nn::Linear(2, 32), Block(32), Block(32), nn::Linear(32, 1));
  std::printf("%s", nn::to_string(net).c_str());

  auto optim = optim::AdamW(net.parameters(), {.lr = 3e-3});
  optim::CosineAnnealingLR schedule(optim, {.T_max = 500});
  for (int step = 0; step < 500; ++step) {
    const Tensor x = rand({256, 2}) * 4.0 - 2.0;
    const Tensor wanted = sin(x.select(1, 0) * 2.0) * x.select(1, 1);
    const Tensor loss = mse_loss(net(x).squeeze(1), wanted);
    optim.zero_grad();
    loss.backward();
    optim::clip_grad_norm_(net.parameters(), 1.0);
    optim.step();
    schedule.step();
    if (step % 100 == 99) std::printf("step %3d: loss %.5f\n", step + 1, loss.item());
  }
  return 0;
}
