// checkpoint(): gradients are those without it, and less is kept for backward.
#include <gtest/gtest.h>
#include <russet/russet.h>

#include <cmath>
#include <functional>
#include <stdexcept>

namespace russet {
namespace {

const Device cpu{DeviceType::cpu};

Tensor numbers(const Shape& shape, double frequency) {
  return sin(arange(numel(shape)).to(DType::float32) * frequency).reshape(shape).contiguous();
}

using Layer = std::function<Tensor(const Tensor&)>;
using Layers = std::vector<Layer>;

Tensor plainly(const Layer& layer, const Tensor& x) { return layer(x); }
Tensor checkpointed(const Layer& layer, const Tensor& x) {
  return checkpoint([&](const Tensor& in) { return layer(in); }, x);
}

/// When the forward pass is computed.
enum class Flush { when_the_loss_is_read, at_the_end_of_backward, in_one_plan };

struct Step {
  std::vector<std::vector<float>> gradients;
  std::size_t kept = 0;  // bytes in use between forward and backward
  std::size_t peak = 0;  // most bytes in use, beyond those before
  double operations = 0;
};

/// A step of layers whose parameters are `leaves`, from the same seed each time.
Step step(const Layers& layers, const std::vector<Tensor>& leaves, const Tensor& x,
          Tensor (*call)(const Layer&, const Tensor&), Flush flushes = Flush::when_the_loss_is_read) {
  manual_seed(11);
  synchronize();
  reset_peak_memory(cpu);
  const std::size_t before = memory_in_use(cpu);
  Step done;
  observe_plans(cpu, [&](const PlanSummary& plan) {
    for (const StepInfo& info : plan.steps) done.operations += info.operations;
  });
  const auto train = [&] {
    Tensor y = x;
    for (const Layer& layer : layers) y = call(layer, y);
    Tensor loss = mean(square(y.to(DType::float32)));
    y = Tensor();
    if (flushes == Flush::when_the_loss_is_read) {
      loss.item<float>();
      done.peak = peak_memory(cpu) - before;
      reset_peak_memory(cpu);  // gives the arena back
      done.kept = memory_in_use(cpu) - before;
    }
    loss.backward();
  };
  if (flushes == Flush::in_one_plan) {
    in_one_plan(train);
  } else {
    train();
  }
  synchronize();
  observe_plans(cpu, nullptr);
  done.peak = std::max(done.peak, peak_memory(cpu) - before);
  for (const Tensor& leaf : leaves) {
    done.gradients.push_back(leaf.grad().to_vector<float>());
    leaf.set_grad({});
  }
  return done;
}

void expect_close(const Step& found, const Step& expected, double tolerance = 1e-5) {
  ASSERT_EQ(found.gradients.size(), expected.gradients.size());
  for (std::size_t i = 0; i < found.gradients.size(); ++i) {
    double error = 0;
    double norm = 0;
    ASSERT_EQ(found.gradients[i].size(), expected.gradients[i].size());
    for (std::size_t j = 0; j < found.gradients[i].size(); ++j) {
      error += std::pow(found.gradients[i][j] - expected.gradients[i][j], 2);
      norm += std::pow(expected.gradients[i][j], 2);
    }
    EXPECT_GT(norm, 0) << "gradient " << i;
    EXPECT_LE(std::sqrt(error), tolerance * std::sqrt(norm)) << "gradient " << i;
  }
}

constexpr std::int64_t rows = 128;
constexpr std::int64_t width = 128;
constexpr std::size_t activation = rows * width * sizeof(float);

/// Layers of two products each, with dropout; they capture their weights.
struct Perceptron {
  Tensor x = numbers({rows, width}, 0.37).detach();
  std::vector<Tensor> leaves;
  Layers layers;

  explicit Perceptron(int count) {
    x.requires_grad_();
    leaves.push_back(x);
    for (int i = 0; i < count; ++i) {
      const Tensor w = (numbers({width, width}, 0.71 + 0.1 * i) * 0.1).detach().requires_grad_();
      const Tensor v = (numbers({width, width}, 0.53 + 0.1 * i) * 0.1).detach().requires_grad_();
      leaves.push_back(w);
      leaves.push_back(v);
      layers.emplace_back(
          [w, v](const Tensor& in) { return tanh(matmul(dropout(gelu(matmul(in, w)), 0.2, true), v)) + in; });
    }
    flush();
  }
};

TEST(Checkpoint, GradientsAreThoseWithout) {
  const Perceptron net(3);
  for (const Flush flushes : {Flush::when_the_loss_is_read, Flush::at_the_end_of_backward, Flush::in_one_plan}) {
    const Step expected = step(net.layers, net.leaves, net.x, plainly, flushes);
    expect_close(step(net.layers, net.leaves, net.x, checkpointed, flushes), expected);
  }
}

TEST(Checkpoint, KeepsInputsAlone) {
  const Perceptron net(4);
  const Step without = step(net.layers, net.leaves, net.x, plainly);
  const Step with = step(net.layers, net.leaves, net.x, checkpointed);
  // What each layer returns, of which the first input was there before.
  EXPECT_LE(with.kept, 4 * activation + 4096);
  EXPECT_GE(without.kept, 8 * activation);
  // Backward computes the two products of each layer again, and no more, beside the six that there are anyway.
  EXPECT_GE(with.operations, without.operations * 1.2);
  EXPECT_LE(with.operations, without.operations * 1.4);
}

TEST(Checkpoint, TakesLessMemoryInOnePlanToo) {
  const Perceptron net(8);
  const Step without = step(net.layers, net.leaves, net.x, plainly, Flush::in_one_plan);
  const Step with = step(net.layers, net.leaves, net.x, checkpointed, Flush::in_one_plan);
  EXPECT_LE(with.peak + 6 * activation, without.peak);
  EXPECT_LE(with.operations, without.operations * 1.4);
}

TEST(Checkpoint, OnePlanDoesNotJoinWhatIsComputedTwice) {
  Perceptron net(8);
  for (std::size_t i = 0; i < net.layers.size(); ++i) {
    const Tensor w = net.leaves[2 * i + 1];
    const Tensor v = net.leaves[2 * i + 2];
    net.layers[i] = [w, v](const Tensor& in) { return tanh(matmul(gelu(matmul(in, w)), v)) + in; };
  }
  const Step without = step(net.layers, net.leaves, net.x, plainly, Flush::in_one_plan);
  const Step with = step(net.layers, net.leaves, net.x, checkpointed, Flush::in_one_plan);
  EXPECT_LE(with.peak + 6 * activation, without.peak);
  EXPECT_GE(with.operations, without.operations * 1.2);
}

TEST(Checkpoint, RandomNumbersAreTheSameAgain) {
  const Tensor x = numbers({64, 64}, 0.31) + 2;
  const Tensor w = numbers({64, 64}, 0.47).detach().requires_grad_();
  const Tensor y = checkpoint([&](const Tensor& in) { return dropout(in, 0.5, true) * w; }, x);
  const std::vector<float> product = y.to_vector<float>();
  (void)randn({16});  // the generator goes on
  sum(y).backward();
  const std::vector<float> dropped = w.grad().to_vector<float>();
  const std::vector<float> factor = w.to_vector<float>();
  for (std::size_t i = 0; i < product.size(); ++i) ASSERT_EQ(product[i], dropped[i] * factor[i]) << i;
}

TEST(Checkpoint, FunctionsMayHaveSeveralInputsAndResults) {
  const Tensor a = numbers({32, 32}, 0.31).detach().requires_grad_();
  const Tensor b = numbers({32, 32}, 0.77).detach().requires_grad_();
  const auto function = [](const Tensor& x, const Tensor& y) {
    const Tensor product = matmul(exp(x), y);
    return std::vector<Tensor>{tanh(product), sum(product, DimList{0})};
  };
  const auto gradients = [&](const std::vector<Tensor>& results) {
    (sum(square(results[0])) + sum(results[1] * 0.1)).backward();
    std::vector<std::vector<float>> found{a.grad().to_vector<float>(), b.grad().to_vector<float>()};
    a.set_grad({});
    b.set_grad({});
    return found;
  };
  const Step expected{.gradients = gradients(function(a, b))};
  expect_close({.gradients = gradients(checkpoint(function, a, b))}, expected);
}

TEST(Checkpoint, Nests) {
  const Perceptron net(4);
  const Layers halves{
      [&](const Tensor& in) { return plainly(net.layers[1], checkpointed(net.layers[0], in)); },
      [&](const Tensor& in) { return checkpointed(net.layers[3], plainly(net.layers[2], in)); },
  };
  const Step expected = step(net.layers, net.leaves, net.x, plainly);
  const Step nested = step(halves, net.leaves, net.x, checkpointed);
  expect_close(nested, expected);
  EXPECT_LE(nested.kept, 2 * activation + 4096);
}

TEST(Checkpoint, UnderNoGradItIsACall) {
  const Perceptron net(1);
  const NoGrad no_grad;
  manual_seed(5);
  const std::vector<float> expected = net.layers[0](net.x).to_vector<float>();
  manual_seed(5);
  const Tensor y = checkpointed(net.layers[0], net.x);
  EXPECT_FALSE(y.requires_grad());
  EXPECT_EQ(y.to_vector<float>(), expected);
}

TEST(Checkpoint, TypesAreThoseOfTheForwardPass) {
  const Perceptron net(2);
  Layers layers;
  for (const Layer& layer : net.layers) {
    layers.emplace_back([&layer](const Tensor& in) {
      const Autocast autocast(DType::bfloat16);
      return layer(in).to(DType::float32);
    });
  }
  const Step expected = step(layers, net.leaves, net.x, plainly);
  // What runs after a product inside its kernel may change the last of bfloat16's eight bits.
  expect_close(step(layers, net.leaves, net.x, checkpointed), expected, 1e-2);
}

TEST(Checkpoint, OfATransformersLayer) {
  manual_seed(3);
  nn::TransformerEncoderLayer layer(64, 4);
  Tensor x = numbers({8, 32, 64}, 0.37).detach().requires_grad_();
  std::vector<Tensor> leaves{x};
  for (const Tensor& parameter : layer.parameters()) leaves.push_back(parameter);
  flush();
  const Layers layers{[&](const Tensor& in) { return layer(in); }};
  for (const Flush flushes : {Flush::when_the_loss_is_read, Flush::in_one_plan}) {
    const Step expected = step(layers, leaves, x, plainly, flushes);
    const Step found = step(layers, leaves, x, checkpointed, flushes);
    expect_close(found, expected);
    if (flushes == Flush::when_the_loss_is_read) {
      EXPECT_LT(found.kept * 4, expected.kept);
    }
  }
}

TEST(Checkpoint, GradientsCanBeDifferentiated) {
  const Tensor x = numbers({16, 16}, 0.37).detach().requires_grad_();
  const auto function = [](const Tensor& in) { return tanh(matmul(in, exp(in))); };
  const auto second = [&](const Tensor& y) {
    const Tensor first = autograd::grad({sum(square(y))}, {x}, {}, {.create_graph = true})[0];
    return autograd::grad({sum(square(first))}, {x})[0].to_vector<float>();
  };
  const Step expected{.gradients = {second(function(x))}};
  expect_close({.gradients = {second(checkpoint(function, x))}}, expected);
}

TEST(Checkpoint, BackwardMayRunTwice) {
  const Perceptron net(1);
  const auto twice = [&](Tensor (*call)(const Layer&, const Tensor&)) {
    manual_seed(5);
    const Tensor loss = sum(square(call(net.layers[0], net.x)));
    loss.backward({}, true);
    loss.backward();
    Step done;
    for (const Tensor& leaf : net.leaves) {
      done.gradients.push_back(leaf.grad().to_vector<float>());
      leaf.set_grad({});
    }
    return done;
  };
  const Step expected = twice(plainly);
  expect_close(twice(checkpointed), expected);
}

TEST(Checkpoint, EndsWhereTheFunctionThrows) {
  const Perceptron net(2);
  const auto fails = [&](const Tensor& in) -> Tensor {
    (void)net.layers[0](in);
    throw std::runtime_error("no");
  };
  EXPECT_THROW(checkpoint(fails, net.x), std::runtime_error);
  const Step without = step(net.layers, net.leaves, net.x, plainly);
  EXPECT_GE(without.kept, 4 * activation);
}

TEST(Checkpoint, RunningStatisticsAreUpdatedOnce) {
  nn::BatchNorm1d norm(16);
  const Tensor x = numbers({32, 16}, 0.37).detach().requires_grad_();
  sum(square(checkpoint([&](const Tensor& in) { return norm(in); }, x))).backward();
  EXPECT_EQ(norm.state_dict().at("num_batches_tracked").item<std::int64_t>(), 1);
}

}  // namespace
}  // namespace russet
