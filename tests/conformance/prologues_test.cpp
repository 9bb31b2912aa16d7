// What a contraction reads is computed where it reads it, on devices that can: products, convolutions and their
// gradients of values that are never stored, held against the reference.
#include <gtest/gtest.h>
#include <russet/autograd.h>
#include <russet/nn_functional.h>
#include <russet/runtime.h>

#include <sstream>

#include "conformance/results.h"
#include "devices/tested.h"

namespace russet {
namespace {

using conformance::difference;
using conformance::Results;

const Device reference{DeviceType::reference};

/// How many prologues a step's description names. In that of a bundle stands how many members each part is about:
/// "bundle of 3: 2 matmul ... + prologue of input 0; 1 group ...". A second stage says again what the first one did.
int prologues_in(const std::string& description) {
  const bool bundle = description.starts_with("bundle");
  std::istringstream parts(bundle ? description.substr(description.find(": ") + 2) : description);
  int found = 0;
  for (std::string part; std::getline(parts, part, ';');) {
    if (part.find("results of") != std::string::npos) continue;
    const int members = bundle ? std::stoi(part) : 1;
    for (std::size_t at = 0; (at = part.find("prologue", at)) != std::string::npos; ++at) found += members;
  }
  return found;
}

class Prologues : public testing::TestWithParam<std::string>, protected conformance::NormalNumbers {
 protected:
  const Device device{GetParam()};

  static constexpr int none = 0;

  /// Runs the program on the device, where at least so many prologues must be seen, or none, and on the reference; says
  /// what differs.
  std::string differ(const std::function<Results(Device)>& program, int prologues, double bound) {
    restart();
    int found = 0;
    observe_plans(device, [&](const PlanSummary& plan) {
      for (const StepInfo& step : plan.steps) {
        found += prologues_in(step.detail);
      }
    });
    const Results actual = program(device);
    flush();
    observe_plans(device, nullptr);
    const bool wrong = found < prologues || (prologues == none && found > 0);
    if (conformance::fuses_contractions(GetParam()) && wrong) {
      return fmt::format("{} prologues instead of {}", found, prologues);
    }
    restart();
    return difference(actual, program(reference), bound);
  }
};

double bound_of(DType type) { return type == DType::float32 ? 1e-5 : type == DType::float16 ? 4e-3 : 3e-2; }

TEST_P(Prologues, OfBothFactorsOfAProduct) {
  struct Size {
    std::int64_t rows, depth, columns;
  };
  // Kernels differ in nothing but the type, and each is compiled.
  DType half = DType::bfloat16;
  for (const Size size : {Size{64, 40, 64}, Size{70, 21, 40}, Size{8, 300, 9}, Size{3, 33, 2}}) {
    half = half == DType::float16 ? DType::bfloat16 : DType::float16;
    for (const DType type : {DType::float32, half}) {
      const auto program = [&](Device on) {
        const Tensor a = numbers({size.rows, size.depth}, on, type);
        const Tensor b = numbers({size.depth, size.columns}, on, type);
        const Tensor scale = numbers({size.depth}, on, type);
        const Tensor shift = numbers({size.rows, 1}, on, type);
        const Tensor bias = numbers({size.columns}, on, type);
        flush();
        const Tensor y = matmul(relu(a * scale + shift), b * b);
        return Results{relu(y + bias)};
      };
      EXPECT_EQ(differ(program, 2, bound_of(type)), "")
          << size.rows << " x " << size.depth << " x " << size.columns << " in " << name_of(type);
    }
  }
}

TEST_P(Prologues, OfBatches) {
  const auto program = [&](Device on) {
    const Tensor a = numbers({2, 3, 9, 20}, on);
    const Tensor b = numbers({2, 1, 20, 11}, on);
    const Tensor scale = numbers({3, 1, 1}, on);
    flush();
    return Results{matmul(exp(a * scale), relu(b))};
  };
  EXPECT_EQ(differ(program, 2, 1e-5), "");
}

// Heads of attention: what is read lies in another order than it is computed in, and one factor is transposed.
TEST_P(Prologues, ThroughViews) {
  const auto program = [&](Device on) {
    const Tensor x = numbers({2, 9, 24}, on).requires_grad_();
    const Tensor q = numbers({24}, on);
    const Tensor k = numbers({24}, on);
    const Tensor w = numbers({24, 10}, on);
    flush();
    const auto heads = [](const Tensor& all) { return all.reshape({2, 9, 3, 8}).transpose(1, 2); };
    const Tensor scores = matmul(heads(x * q), heads(exp(x + k)).transpose(2, 3));
    const Tensor y = matmul(matmul(scores, heads(relu(x))).transpose(1, 2).reshape({2, 9, 24}), w);
    return Results{y, matmul((x * k).transpose(1, 2), y * y), autograd::grad({mean(y * y)}, {x})[0]};
  };
  // The heads in three forward products and in their three gradients, w's factor, both of the last product, y's
  // gradient.
  EXPECT_EQ(differ(program, 10, 2e-5), "");
}

struct Layer {
  Shape x, weight;
  Conv2dOptions options;
};

const Layer layers[] = {
    {{2, 8, 12, 13}, {40, 8, 3, 3}, {.padding = 1}},
    {{2, 9, 11, 10}, {17, 9, 3, 3}, {.stride = 2, .padding = 1}},
    {{4, 16, 8, 8}, {72, 16, 1, 1}, {}},
    {{2, 12, 9, 9}, {20, 12, 1, 1}, {.stride = 2}},
    {{2, 8, 9, 7}, {12, 4, 3, 3}, {.padding = 2, .dilation = 2, .groups = 2}},
    {{2, 6, 9, 7}, {6, 1, 3, 3}, {.padding = 1, .groups = 6}},
};

// At the border of the window lie zeros, not what the prologue would make of zeros.
TEST_P(Prologues, OfConvolutions) {
  bool both = false;
  for (const Layer& layer : layers) {
    both = !both;
    for (const DType type : {DType::float32, DType::bfloat16}) {
      if (!both && type != DType::float32) continue;
      const auto program = [&](Device on) {
        const Tensor x = numbers(layer.x, on, type);
        const Tensor w = numbers(layer.weight, on, type);
        const Tensor scale = numbers({layer.x[1], 1, 1}, on, type);
        flush();
        return Results{conv2d(relu(x * scale + 1), w, {}, layer.options)};
      };
      EXPECT_EQ(differ(program, 1, bound_of(type)), "") << to_string(layer.weight) << " in " << name_of(type);
    }
  }
}

TEST_P(Prologues, OfTheGradientsOfConvolutions) {
  for (const Layer& layer : layers) {
    const auto program = [&](Device on) {
      const Tensor x = numbers(layer.x, on).requires_grad_();
      const Tensor w = numbers(layer.weight, on).requires_grad_();
      const Tensor scale = numbers({layer.x[1], 1, 1}, on);
      flush();
      const Tensor y = conv2d(exp(x * scale), w, {}, layer.options);
      const auto gradients = autograd::grad({mean(y * y * y)}, {x, w});
      return Results{gradients[0], gradients[1]};
    };
    // The convolution and its weight's gradient.
    EXPECT_EQ(differ(program, 2, 2e-5), "") << to_string(layer.weight);
  }
}

TEST_P(Prologues, OfANormalisedLayerOfANetwork) {
  const auto program = [&](Device on) {
    const Tensor x = numbers({4, 8, 10, 9}, on).requires_grad_();
    const Tensor w = numbers({16, 8, 3, 3}, on).requires_grad_();
    const Tensor v = numbers({24, 16, 3, 3}, on).requires_grad_();
    const Tensor gamma = numbers({16}, on).requires_grad_();
    const Tensor beta = numbers({16}, on).requires_grad_();
    flush();
    const Tensor h = batch_norm(conv2d(x, w, {}, {.padding = 1}), {}, {}, gamma, beta, {.training = true});
    const Tensor y = conv2d(relu(h), v, {}, {.padding = 1});
    mean(y * y * y).backward();
    return Results{y, x.grad(), w.grad(), v.grad(), gamma.grad(), beta.grad()};
  };
  // The second convolution and its weight's gradient, and both gradients of the first.
  EXPECT_EQ(differ(program, 4, 2e-4), "");
}

// A pool finds its maxima, and their gradients' places, among what is computed where it reads it.
TEST_P(Prologues, OfPools) {
  const auto program = [&](Device on) {
    const Tensor x = numbers({2, 5, 11, 9}, on).requires_grad_();
    const Tensor scale = numbers({5, 1, 1}, on);
    flush();
    const Tensor y = max_pool2d(relu(x * scale), 3, {.stride = 2, .padding = 1});
    return Results{y, autograd::grad({sum(y * y)}, {x})[0]};
  };
  // Both inputs of the pool, and its gradient's.
  EXPECT_EQ(differ(program, 3, 1e-5), "");
}

// Others read what a contraction computes: it stores that, once, whatever its tiles and parts of the depth.
TEST_P(Prologues, ThatStoreFactorsOfProducts) {
  struct Size {
    Shape left, right;
  };
  // Of the last the product reads the left factor as a matrix, through a view: that one is not stored on the way.
  const Size sizes[] = {{{64, 40}, {40, 200}},
                        {{70, 21}, {21, 40}},
                        {{9, 3000}, {3000, 70}},
                        {{2, 3, 9, 20}, {2, 3, 20, 80}},
                        {{4, 33, 17}, {17, 70}}};
  const auto program = [&](Device on) {
    std::vector<std::array<Tensor, 3>> inputs;
    for (const Size& size : sizes) {
      inputs.push_back({numbers(size.left, on), numbers(size.right, on), numbers({size.left.back()}, on)});
    }
    flush();
    Results results;
    for (const auto& [a, b, scale] : inputs) {
      const Tensor left = relu(a * scale);
      const Tensor right = b * b;
      for (const Tensor& result : {matmul(left, right), left, left <= 0, right}) results.push_back(result);
    }
    return results;
  };
  EXPECT_EQ(differ(program, 9, 1e-5), "");
}

TEST_P(Prologues, ThatStoreWhatConvolutionsRead) {
  const Layer whole[] = {{{4, 16, 8, 8}, {72, 16, 1, 1}, {}}, {{2, 12, 9, 7}, {80, 6, 1, 1}, {.groups = 2}}};
  const auto program = [&](Device on) {
    std::vector<std::array<Tensor, 4>> inputs;
    for (const Layer& layer : whole) {
      inputs.push_back({numbers(layer.x, on).requires_grad_(), numbers(layer.x, on),
                        numbers(layer.weight, on).requires_grad_(), numbers({layer.x[1], 1, 1}, on)});
    }
    flush();
    Results results;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const auto& [x, shortcut, w, scale] = inputs[i];
      const Tensor sum = relu(x * scale + shortcut);
      const Tensor y = conv2d(sum, w, {}, whole[i].options);
      const auto gradients = autograd::grad({mean(y * y * y) + mean(sum)}, {x, w});
      for (const Tensor& result : {y, sum, gradients[0], gradients[1]}) results.push_back(result);
    }
    return results;
  };
  // One a convolution, and one a gradient.
  EXPECT_EQ(differ(program, 6, 2e-5), "");
}

// Windows read elements several times, or not at all; so do batches that share a factor.
TEST_P(Prologues, ThatWouldStoreElementsTwiceOrNeverAreNone) {
  const Layer shared[] = {{{2, 8, 12, 13}, {40, 8, 3, 3}, {.padding = 1}},
                          {{2, 12, 9, 9}, {20, 12, 1, 1}, {.stride = 2}},
                          {{2, 12, 3, 3}, {20, 12, 1, 1}, {.stride = 2, .padding = 1}},
                          {{2, 8, 9, 9}, {16, 8, 3, 3}, {.stride = 3}}};
  const auto program = [&](Device on) {
    std::vector<std::array<Tensor, 2>> inputs;
    for (const Layer& layer : shared) inputs.push_back({numbers(layer.x, on), numbers(layer.weight, on)});
    const Tensor a = numbers({1, 9, 20}, on);
    const Tensor b = numbers({5, 20, 11}, on);
    flush();
    Results results;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const Tensor factor = relu(inputs[i][0] + 1);
      results.push_back(conv2d(factor, inputs[i][1], {}, shared[i].options));
      results.push_back(factor);
    }
    const Tensor factor = a * 2;
    results.push_back(matmul(factor, b));
    results.push_back(factor);
    return results;
  };
  EXPECT_EQ(differ(program, none, 1e-5), "");
}

// What the same plan stores of numbers and positions is loaded by epilogues, and computed again by prologues.
TEST_P(Prologues, OfNumbersThatAreStoredToo) {
  const auto program = [&](Device on) {
    const Tensor a = numbers({64, 40}, on);
    const Tensor b = numbers({40, 64}, on);
    const Tensor image = numbers({2, 8, 12, 13}, on);
    const Tensor weight = numbers({16, 8, 3, 3}, on);
    flush();
    const TensorOptions options{DType::float32, on};
    const InferredOptions counted{.dtype = DType::float32, .device = on};
    const Tensor scale = empty({40}, options).fill_(0.5);
    const Tensor shift = arange(64, counted).reshape({64, 1});
    const Tensor bias = empty({64}, options).fill_(0.25);
    const Tensor channels = arange(17, counted).narrow(0, 1, 16);
    const Tensor y = relu(matmul(relu(a * scale + shift), b) + bias);
    const Tensor constant = matmul(a, empty({40, 9}, options).fill_(3)) * 2.0;
    return Results{y, relu(conv2d(image + 1, weight, channels)), scale, shift, bias, channels, constant};
  };
  EXPECT_EQ(differ(program, 1, 1e-5), "");
}

INSTANTIATE_TEST_SUITE_P(Devices, Prologues, testing::ValuesIn(conformance::tested_devices()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace russet
