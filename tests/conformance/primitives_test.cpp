// Every primitive, every type, every layout: a device against the reference device, which computes in float64; and
// every gradient rule, and the rules of what it is written with, against differences.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <russet/autograd.h>
#include <russet/functional.h>

#include <cmath>

#include "autograd/rules.h"
#include "autograd/tape.h"
#include "conformance/cases.h"
#include "conformance/tested.h"
#include "unit/gradcheck.h"

namespace russet::conformance {
namespace {

const Device reference{DeviceType::reference};

Tensor run(const ops::OpRow& row, const std::vector<Tensor>& inputs, const graph::NodeInfo& given) {
  if (inputs.size() == 1) return autograd::apply(row.op, {inputs[0]}, given);
  if (inputs.size() == 2) return autograd::apply(row.op, {inputs[0], inputs[1]}, given);
  return autograd::apply(row.op, {inputs[0], inputs[1], inputs[2]}, given);
}

std::vector<Tensor> inputs_of(const Sample& sample, DType dtype, DType stored, Layout layout, Device device) {
  std::vector<Tensor> inputs;
  for (std::size_t i = 0; i < sample.inputs.size(); ++i) {
    inputs.push_back(make(sample.inputs[i], dtype, stored, layout, static_cast<int>(i), device));
  }
  return inputs;
}

/// Empty if the values agree within `bound` of the largest reference value, or of `scale` if that is larger (sums that
/// cancel), else what differs.
std::string difference(const Tensor& actual, const Tensor& expected, double bound, double scale = 0) {
  if (actual.sizes() != expected.sizes())
    return "shape " + to_string(actual.sizes()) + " not " + to_string(expected.sizes());
  const std::vector<double> a = actual.to_vector<double>();
  const std::vector<double> e = expected.to_vector<double>();
  double largest = scale;
  for (const double value : e) {
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  }
  for (std::size_t i = 0; i < a.size(); ++i) {
    const bool same =
        a[i] == e[i] || (std::isnan(a[i]) && std::isnan(e[i])) || std::abs(a[i] - e[i]) <= bound * largest;
    if (!same) return fmt::format("element {}: {} instead of {} (largest {})", i, a[i], e[i], largest);
  }
  return "";
}

/// Sums cancel: their error is relative to the terms' size, which grows with the root of their number.
double magnitude_of_terms(const ops::OpRow& row, const Sample& sample) {
  const bool sums = row.op == ops::Op::sum || row.op == ops::Op::cumsum || row.family == ops::Family::contraction;
  return sums ? sample.inputs[0].domain.high * std::sqrt(static_cast<double>(numel(sample.inputs[0].shape))) : 0;
}

bool rounds(DType dtype) { return is_floating(dtype) && dtype != DType::float64; }

class Primitives : public testing::TestWithParam<std::tuple<std::string, std::string>> {
 protected:
  const Device device{std::get<0>(GetParam())};
  const ops::OpRow& row = *ops::find(std::get<1>(GetParam()));
};

TEST_P(Primitives, ForwardAgreesWithTheReference) {
  for (int type = 0; type < dtype_count; ++type) {
    const auto dtype = static_cast<DType>(type);
    if (!has_type(device, dtype)) continue;
    // The oracle takes the same rounded numbers in float64; integers and booleans as they are.
    const DType exact = rounds(dtype) ? DType::float64 : dtype;
    for (const Sample& sample : samples(row, dtype)) {
      const bool to_number = row.op != ops::Op::cast || is_floating(sample.given.dtype);
      for (const Layout layout : layouts) {
        graph::NodeInfo given = sample.given;
        const Tensor actual = run(row, inputs_of(sample, dtype, dtype, layout, device), given);
        const DType oracle = to_number ? exact : dtype;
        const Tensor expected = run(row, inputs_of(sample, dtype, oracle, layout, reference), given);
        double bound = is_floating(actual.dtype()) ? tolerance(row, actual.dtype()) : 0;
        // Each factor of a product may add half an ulp, all in one direction where the factors are equal.
        if (row.op == ops::Op::prod && bound > 0) bound *= 1 + static_cast<double>(numel(sample.inputs[0].shape)) / 100;
        EXPECT_EQ(difference(actual, expected, bound, magnitude_of_terms(row, sample)), "")
            << row.name << " " << name_of(dtype) << " " << sample.name << " " << name_of(layout);
        if (HasFailure()) return;
      }
    }
  }
}

/// Weights of the outputs in the number that is differentiated.
Tensor weights(const Tensor& like, int seed, DType stored) {
  return make({like.sizes(), {0.5, 1.5}, {}}, DType::float32, stored, Layout::contiguous, seed, like.device());
}

struct Gradients {
  std::vector<Tensor> first;
  std::vector<Tensor> second;
};

/// Gradients of sum(w * f) for the floating inputs, and gradients of sum(v * those).
Gradients gradients(const ops::OpRow& row, const Sample& sample, DType stored, Layout layout, Device device) {
  std::vector<Tensor> inputs = inputs_of(sample, DType::float32, stored, layout, device);
  std::vector<Tensor> wanted;
  for (Tensor& input : inputs) {
    if (is_floating(input.dtype())) wanted.push_back(input.requires_grad_());
  }
  const Tensor y = run(row, inputs, sample.given);
  Gradients result;
  if (!y.requires_grad()) return result;
  // The weights are the result's gradient itself: no other operator's rule takes part in the first gradients.
  result.first = autograd::grad({y}, wanted, {weights(y, 40, y.dtype())}, {.create_graph = true, .allow_unused = true});
  Tensor total;
  for (std::size_t i = 0; i < result.first.size(); ++i) {
    const Tensor& g = result.first[i];
    if (!g.defined() || !g.requires_grad()) continue;
    const Tensor term = sum(g * weights(g, 50 + static_cast<int>(i), stored));
    total = total.defined() ? total + term : term;
  }
  if (total.defined()) result.second = autograd::grad({total}, wanted, {}, {.allow_unused = true});
  return result;
}

void expect_alike(const std::vector<Tensor>& actual, const std::vector<Tensor>& expected, double bound,
                  const std::string& where) {
  ASSERT_EQ(actual.size(), expected.size()) << where;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    ASSERT_EQ(actual[i].defined(), expected[i].defined()) << where << " input " << i;
    if (!actual[i].defined()) continue;
    EXPECT_EQ(difference(actual[i], expected[i], bound), "") << where << " input " << i;
  }
}

TEST_P(Primitives, GradientsAgreeWithTheReference) {
  if (!autograd::gradient_of(row.op)) return;
  for (const Sample& sample : samples(row, DType::float32)) {
    if (row.op == ops::Op::cast && !is_floating(sample.given.dtype)) continue;
    for (const Layout layout : layouts) {
      const Gradients actual = gradients(row, sample, DType::float32, layout, device);
      const Gradients expected = gradients(row, sample, DType::float64, layout, reference);
      const bool narrow = row.op == ops::Op::cast && size_of(sample.given.dtype) < 4;
      const double bound = narrow ? 1.0 / 128 : std::max(row.tolerance.float32, 1e-6) * 10;
      const std::string where = fmt::format("{} {} {}", row.name, sample.name, name_of(layout));
      expect_alike(actual.first, expected.first, bound, "gradient of " + where);
      expect_alike(actual.second, expected.second, bound, "second gradient of " + where);
      if (HasFailure()) return;
    }
  }
}

/// Whether any gradient is anything but zero: the sign of zero is nothing to notice.
bool any_nonzero(const std::vector<Tensor>& gradients) {
  for (const Tensor& gradient : gradients) {
    if (gradient.defined() && count_nonzero(gradient).item<std::int64_t>() > 0) return true;
  }
  return false;
}

TEST_P(Primitives, AFlippedGradientRuleIsNoticed) {
  if (!autograd::gradient_of(row.op)) return;
  bool noticed = false;
  bool matters = false;
  for (const Sample& sample : samples(row, DType::float32)) {
    if (row.op == ops::Op::cast && !is_floating(sample.given.dtype)) continue;
    const Gradients expected = gradients(row, sample, DType::float64, Layout::contiguous, reference);
    if (!any_nonzero(expected.first)) continue;
    matters = true;
    autograd::flip_gradient_rule(row.name);
    const Gradients actual = gradients(row, sample, DType::float32, Layout::contiguous, device);
    autograd::flip_gradient_rule("");
    for (std::size_t i = 0; i < actual.first.size(); ++i) {
      noticed |= actual.first[i].defined() && !difference(actual.first[i], expected.first[i], 1e-3).empty();
    }
    if (noticed) break;
  }
  EXPECT_EQ(noticed, matters) << row.name;
}

std::vector<std::string> names() {
  std::vector<std::string> result;
  for (const ops::OpRow& row : ops::table()) {
    if (row.inputs > 0) result.emplace_back(row.name);
  }
  return result;
}

INSTANTIATE_TEST_SUITE_P(Devices, Primitives,
                         testing::Combine(testing::ValuesIn(tested_devices()), testing::ValuesIn(names())),
                         [](const auto& info) { return std::get<0>(info.param) + "_" + std::get<1>(info.param); });

/// Whether differences say what the gradients are: not of casts that round, and not where writes meet in one place.
bool is_smooth(const ops::OpRow& row, const Sample& sample) {
  if (row.op == ops::Op::cast) return sample.given.dtype == DType::float64;
  return row.op != ops::Op::put || std::get<ops::Accumulate>(sample.given.attributes).value;
}

class Differences : public testing::TestWithParam<std::string> {};

TEST_P(Differences, AgreeWithGradientsOfGradients) {
  const ops::OpRow& row = *ops::find(GetParam());
  if (!autograd::gradient_of(row.op)) return;
  constexpr std::int64_t most = 130;  // elements: two evaluations each
  for (const Sample& sample : samples(row, DType::float64)) {
    const std::vector<Tensor> given = inputs_of(sample, DType::float64, DType::float64, Layout::contiguous, reference);
    std::vector<Tensor> leaves;
    std::int64_t elements = 0;
    for (const Tensor& input : given) {
      if (!is_floating(input.dtype())) continue;
      leaves.push_back(input);
      elements += input.numel();
    }
    if (elements > most || !is_smooth(row, sample)) continue;
    SCOPED_TRACE(fmt::format("{} {}", row.name, sample.name));
    const auto function = [&](const std::vector<Tensor>& at) {
      std::vector<Tensor> inputs;
      std::size_t next = 0;
      for (const Tensor& input : given) inputs.push_back(is_floating(input.dtype()) ? at[next++] : input);
      return run(row, inputs, sample.given);
    };
    test::expect_gradients(function, leaves, {.step = 1e-6, .tolerance = 1e-5});
  }
}

INSTANTIATE_TEST_SUITE_P(Table, Differences, testing::ValuesIn(names()), [](const auto& info) { return info.param; });

/// Sources and random numbers: the same bits on every device, normal ones within 2 ulp.
TEST(Sources, AreTheSameOnEveryDevice) {
  for (const ops::OpRow& row : ops::table()) {
    if (row.family != ops::Family::random && row.op != ops::Op::iota && row.op != ops::Op::constant) continue;
    for (const Shape& shape : {Shape{}, Shape{7}, Shape{3, 1000}, Shape{0, 2}}) {
      const auto on = [&](Device device) {
        graph::NodeInfo info;
        info.device = device;
        info.shape = shape;
        info.dtype = row.op == ops::Op::iota ? DType::int64 : DType::float32;
        info.argument = 5;
        if (row.family == ops::Family::random) info.attributes = ops::Seed{42};
        if (row.op == ops::Op::constant) info.attributes = ops::Number{2.5, 0};
        return autograd::apply(row.op, {}, info);
      };
      const double bound = row.op == ops::Op::normal ? 2.4e-7 : 0;
      for (const std::string& device : tested_devices()) {
        EXPECT_EQ(difference(on(Device(device)), on(reference), bound), "") << row.name << to_string(shape);
      }
    }
  }
}

}  // namespace
}  // namespace russet::conformance
