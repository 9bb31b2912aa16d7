#pragma once
// Gradients against central differences in float64: first ones against differences of values, second ones against
// differences of first gradients.
#include <gtest/gtest.h>
#include <russet/autograd.h>
#include <russet/functional.h>

#include <cmath>
#include <functional>
#include <vector>

namespace russet::test {

using Function = std::function<Tensor(const std::vector<Tensor>&)>;

struct GradCheck {
  bool second = true;
  double step = 1e-6;
  double tolerance = 1e-6;
  Device device = DeviceType::reference;
};

/// Numbers between -1 and 1 without pattern, the same on every run; none nearer than `gap` to 0.
inline std::vector<double> scattered(std::int64_t count, int seed = 0, double gap = 0.05) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < count; ++i) {
    const double turn = std::fmod(0.6180339887498949 * static_cast<double>(i + 1) + 0.37 * seed, 1.0);
    const double value = 2 * turn - 1;
    values.push_back(value < 0 ? value * (1 - gap) - gap : value * (1 - gap) + gap);
  }
  return values;
}

inline Tensor scattered_tensor(const Shape& shape, int seed = 0, Device device = DeviceType::reference) {
  return Tensor::from(scattered(numel(shape), seed), shape, device);
}

namespace detail {

using Values = std::vector<std::vector<double>>;

struct Problem {
  const Function& function;
  const std::vector<Tensor>& inputs;
  GradCheck options;

  std::vector<Tensor> tensors(const Values& values) const {
    std::vector<Tensor> result;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      result.push_back(Tensor::from(values[i], inputs[i].sizes(), options.device, true));
    }
    return result;
  }

  // One number that all elements of the result reach, each with a weight of its own.
  Tensor scalar(const std::vector<Tensor>& at) const {
    const Tensor y = function(at);
    return sum(y * scattered_tensor(y.sizes(), 7, options.device));
  }

  double value(const Values& values) const { return scalar(tensors(values)).item(); }

  Tensor directional(const std::vector<Tensor>& at) const {
    const std::vector<Tensor> gradients =
        autograd::grad({scalar(at)}, at, {}, {.create_graph = true, .allow_unused = true});
    Tensor total = zeros({}, {DType::float64, options.device});
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      if (!gradients[i].defined()) continue;
      total = total + sum(gradients[i] * scattered_tensor(at[i].sizes(), 11 + static_cast<int>(i), options.device));
    }
    return total;
  }

  double slope(const Values& values) const { return directional(tensors(values)).item(); }
};

template <class Value>
void compare(const char* what, const Problem& problem, Values values, const std::vector<Tensor>& gradients,
             Value&& value) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::vector<double> found =
        gradients[i].defined() ? gradients[i].to_vector<double>() : std::vector<double>(values[i].size(), 0.0);
    ASSERT_EQ(found.size(), values[i].size()) << what << " of input " << i;
    for (std::size_t j = 0; j < values[i].size(); ++j) {
      const double kept = values[i][j];
      values[i][j] = kept + problem.options.step;
      const double above = value(values);
      values[i][j] = kept - problem.options.step;
      const double below = value(values);
      values[i][j] = kept;
      const double expected = (above - below) / (2 * problem.options.step);
      EXPECT_NEAR(found[j], expected, problem.options.tolerance * (1 + std::abs(expected)))
          << what << " of input " << i << ", element " << j;
    }
  }
}

}  // namespace detail

/// `inputs` are float64; `function` must be smooth around them.
inline void expect_gradients(const Function& function, const std::vector<Tensor>& inputs, GradCheck options = {}) {
  const detail::Problem problem{function, inputs, options};
  detail::Values values;
  for (const Tensor& input : inputs) values.push_back(input.to_vector<double>());
  {
    const std::vector<Tensor> at = problem.tensors(values);
    const std::vector<Tensor> gradients = autograd::grad({problem.scalar(at)}, at, {}, {.allow_unused = true});
    detail::compare("gradient", problem, values, gradients, [&](const auto& v) { return problem.value(v); });
  }
  if (!options.second) return;
  const std::vector<Tensor> at = problem.tensors(values);
  const Tensor directional = problem.directional(at);
  std::vector<Tensor> gradients(at.size());
  if (directional.requires_grad()) gradients = autograd::grad({directional}, at, {}, {.allow_unused = true});
  detail::compare("second gradient", problem, values, gradients, [&](const auto& v) { return problem.slope(v); });
}

}  // namespace russet::test
