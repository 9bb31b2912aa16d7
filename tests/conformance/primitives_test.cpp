// Every primitive, every type, every layout: a device against the reference device, which computes in float64; and
// every gradient rule, and the rules of what it is written with, against differences.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <russet/autograd.h>
#include <russet/functional.h>
#include <russet/runtime.h>

#include <cmath>
#include <map>

#include "autograd/rules.h"
#include "autograd/tape.h"
#include "compile/step.h"
#include "conformance/cases.h"
#include "devices/tested.h"
#include "runtime/device.h"
#include "unit/gradcheck.h"

namespace russet::conformance {
namespace {

const Device reference{DeviceType::reference};

Tensor run(const ops::OpRow& row, const std::vector<Tensor>& inputs, const graph::NodeInfo& given) {
  return autograd::apply_many(row.op, inputs, graph::NodeInfo(given));
}

std::vector<Tensor> inputs_of(const Sample& sample, DType dtype, DType stored, Layout layout, Device device,
                              test::Pool* pool = nullptr) {
  std::vector<Tensor> inputs;
  for (std::size_t i = 0; i < sample.inputs.size(); ++i) {
    inputs.push_back(make(sample.inputs[i], dtype, stored, layout, static_cast<int>(i), device, pool));
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

/// What gradients are relative to where they cancel. Distances from a mean: the elements, where all are equal.
/// Gradients of an attention's scores: p * (g v^T - delta), where all keys are the same; the terms are of about 1, and
/// roundings are some ulps of them, here 1e-6.
double magnitude_of_gradient(const ops::OpRow& row, const Sample& sample) {
  if (row.family == ops::Family::attention) return 0.01;
  // Products with inverses, of which nothing is left in the second gradient where the matrix is one number.
  if (row.op == ops::Op::lu) return 1;
  return row.op == ops::Op::squared_deviations ? sample.inputs[0].domain.high : 0;
}

/// Whether a device without a kernel for the operator computes it with others.
bool is_decomposed(const ops::OpRow& row, Device device, DType dtype) {
  return row.family == ops::Family::attention && !runtime::driver_of(device.type)->target().has_attention(dtype);
}

/// Of attention in 16 bits where products and a softmax compute it: each of them rounds what it gives. These are the
/// scores, the probabilities, the gradient of the scores, and the result; of the logsumexp, which is in float32, the
/// scores.
double decomposed_tolerance(const ops::OpRow& row, DType dtype) {
  const int roundings = row.op == ops::Op::attention_logsumexp ? 1 : 4;
  return roundings * tolerance(row, dtype);
}

/// Of attention in 16 bits on tensor cores, whose factors have 16 bits: the probabilities, or the gradient of the
/// scores, and the result.
bool is_on_tensor_cores(const ops::OpRow& row, Device device, DType dtype) {
  return row.family == ops::Family::attention && row.op != ops::Op::attention_logsumexp &&
         device.type == DeviceType::cuda && size_of(dtype) < 4;
}

bool rounds(DType dtype) { return is_floating(dtype) && dtype != DType::float64; }

/// Operators that are tested in one go.
struct Group {
  std::string device;
  std::string name;
  std::vector<const ops::OpRow*> rows;
};
void PrintTo(const Group& group, std::ostream* stream) { *stream << group.device << " " << group.name; }

std::string name_of(ops::Family family) {
  switch (family) {
    case ops::Family::elementwise: return "elementwise";
    case ops::Family::reduction: return "reductions";
    case ops::Family::contraction: return "contractions";
    case ops::Family::window: return "windows";
    case ops::Family::indexing: return "indexing";
    case ops::Family::ordering: return "ordering";
    case ops::Family::movement: return "movement";
    case ops::Family::attention: return "attention";
    case ops::Family::linalg: return "linalg";
    default: return "others";
  }
}

/// One by one; a family at a time on a device that compiles kernels: operators that are recorded together, on the same
/// inputs, share kernels and compilations.
std::vector<Group> groups() {
  std::vector<Group> all;
  for (const std::string& device : tested_devices()) {
    std::map<std::string, std::vector<const ops::OpRow*>> named;
    for (const ops::OpRow& row : ops::table()) {
      // GPUs have no kernels for these: composites_test runs them on the CPU, where that is allowed.
      if (row.family == ops::Family::linalg && compiles_kernels(device)) continue;
      if (row.inputs > 0) named[compiles_kernels(device) ? name_of(row.family) : std::string(row.name)].push_back(&row);
    }
    for (auto& [name, rows] : named) all.push_back({device, name, std::move(rows)});
  }
  return all;
}

/// An operator on one sample.
struct Case {
  const ops::OpRow* row;
  Sample sample;
  DType dtype;
  Layout layout;

  std::string describe() const {
    return fmt::format("{} {} {} {}", row->name, russet::name_of(dtype), sample.name, name_of(layout));
  }
};

/// A pool is for one layout.
using Pools = std::map<Layout, test::Pool>;

class Primitives : public testing::TestWithParam<Group> {
 protected:
  const Device device{GetParam().device};
  const bool together = compiles_kernels(GetParam().device);

  /// The group's cases of a type in all layouts, in lots that are recorded together: each alone, or all, since layouts
  /// and shapes share kernels.
  std::vector<std::vector<Case>> lots(DType dtype, bool with_gradients) const {
    std::vector<std::vector<Case>> lots;
    for (const ops::OpRow* row : GetParam().rows) {
      if (with_gradients && !autograd::gradient_of(row->op)) continue;
      const std::vector<Sample> all = samples(*row, dtype);
      // Each is made of dozens of operators, which are tested themselves: small samples show that they are the right
      // ones. Attention's own kernels, those of its gradients among them, are compared forward, on all samples.
      const bool composed = with_gradients && row->family == ops::Family::attention;
      for (std::size_t i = 0; i < all.size(); ++i) {
        if (together && composed && numel(all[i].inputs[0].shape) > 100) continue;
        if (row->op == ops::Op::cast && !has_type(device, all[i].given.dtype)) continue;
        // The gradient of a cast to whole numbers is none.
        if (with_gradients && row->op == ops::Op::cast && !is_floating(all[i].given.dtype)) continue;
        // The rows of an expanded matrix are all the same: it cannot be inverted, and its factors are what rounding
        // makes them. A batch of matrices is expanded along its first axis.
        const bool matrix = row->family == ops::Family::linalg && all[i].inputs[0].shape.rank() == 2;
        for (const Layout layout : layouts) {
          if (matrix && layout == Layout::expanded) continue;
          // float32 is tested in all layouts; where kernels are compiled, a sample of another type in one of them in
          // turn, and so are attention's gradients.
          const bool turn =
              (i + static_cast<std::size_t>(dtype)) % std::size(layouts) == static_cast<std::size_t>(layout);
          if (together && (dtype != DType::float32 || composed) && !turn) continue;
          if (lots.empty() || !together) lots.emplace_back();
          lots.back().push_back({row, all[i], dtype, layout});
        }
      }
    }
    return lots;
  }
};

TEST_P(Primitives, ForwardAgreesWithTheReference) {
  const auto compare = [this](const Case& c, const Tensor& actual) {
    // The oracle takes the same rounded numbers in float64; integers and booleans as they are.
    const bool to_number = c.row->op != ops::Op::cast || is_floating(c.sample.given.dtype);
    const DType oracle = to_number && rounds(c.dtype) ? DType::float64 : c.dtype;
    const Tensor expected = run(*c.row, inputs_of(c.sample, c.dtype, oracle, c.layout, reference), c.sample.given);
    double bound = is_floating(actual.dtype()) ? tolerance(*c.row, actual.dtype()) : 0;
    if (is_decomposed(*c.row, device, c.dtype) && size_of(c.dtype) < 4) bound = decomposed_tolerance(*c.row, c.dtype);
    if (is_on_tensor_cores(*c.row, device, c.dtype)) bound *= 2;
    // Each factor of a product may add half an ulp, all in one direction where the factors are equal.
    if (c.row->op == ops::Op::prod && bound > 0)
      bound *= 1 + static_cast<double>(numel(c.sample.inputs[0].shape)) / 100;
    EXPECT_EQ(difference(actual, expected, bound, magnitude_of_terms(*c.row, c.sample)), "") << c.describe();
  };
  for (int type = 0; type < dtype_count; ++type) {
    const auto dtype = static_cast<DType>(type);
    if (!has_type(device, dtype)) continue;
    for (const std::vector<Case>& lot : lots(dtype, false)) {
      Pools pools;
      std::vector<std::vector<Tensor>> inputs;
      for (const Case& c : lot) inputs.push_back(inputs_of(c.sample, dtype, dtype, c.layout, device, &pools[c.layout]));
      synchronize();  // the operators read what is in memory, in its layout; the host checks indices there
      std::vector<Tensor> results;
      for (std::size_t i = 0; i < lot.size(); ++i) {
        results.push_back(run(*lot[i].row, inputs[i], lot[i].sample.given));
      }
      flush();
      for (std::size_t i = 0; i < lot.size(); ++i) compare(lot[i], results[i]);
      if (HasFailure()) return;
    }
  }
}

/// Weights of the outputs in the number that is differentiated.
Tensor weights(const Tensor& like, int seed, DType stored, test::Pool* pool) {
  return make({like.sizes(), {0.5, 1.5}, {}}, DType::float32, stored, Layout::contiguous, seed, like.device(), pool);
}

struct Gradients {
  std::vector<Tensor> first;
  std::vector<Tensor> second;
};

/// Gradients of sum(w * f) for the floating inputs, and gradients of sum(v * those).
Gradients gradients(const ops::OpRow& row, const Sample& sample, const std::vector<Tensor>& inputs, DType stored,
                    test::Pool* pool = nullptr) {
  std::vector<Tensor> wanted;
  for (const Tensor& input : inputs) {
    if (is_floating(input.dtype())) wanted.push_back(Tensor(input).requires_grad_());
  }
  const Tensor y = run(row, inputs, sample.given);
  Gradients result;
  if (!y.requires_grad()) return result;
  // The weights are the result's gradient itself: no other operator's rule takes part in the first gradients.
  result.first =
      autograd::grad({y}, wanted, {weights(y, 40, y.dtype(), pool)}, {.create_graph = true, .allow_unused = true});
  Tensor total;
  for (std::size_t i = 0; i < result.first.size(); ++i) {
    const Tensor& g = result.first[i];
    if (!g.defined() || !g.requires_grad()) continue;
    const Tensor term = sum(g * weights(g, 50 + static_cast<int>(i), stored, pool));
    total = total.defined() ? total + term : term;
  }
  if (total.defined()) result.second = autograd::grad({total}, wanted, {}, {.allow_unused = true});
  return result;
}

Gradients gradients(const ops::OpRow& row, const Sample& sample, DType stored, Layout layout, Device device) {
  return gradients(row, sample, inputs_of(sample, DType::float32, stored, layout, device), stored);
}

void expect_alike(const std::vector<Tensor>& actual, const std::vector<Tensor>& expected, double bound, double scale,
                  const std::string& where) {
  ASSERT_EQ(actual.size(), expected.size()) << where;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    ASSERT_EQ(actual[i].defined(), expected[i].defined()) << where << " input " << i;
    if (!actual[i].defined()) continue;
    EXPECT_EQ(difference(actual[i], expected[i], bound, scale), "") << where << " input " << i;
  }
}

TEST_P(Primitives, GradientsAgreeWithTheReference) {
  const auto compare = [](const Case& c, const Gradients& actual) {
    const Gradients expected = gradients(*c.row, c.sample, DType::float64, c.layout, reference);
    const bool narrow = c.row->op == ops::Op::cast && size_of(c.sample.given.dtype) < 4;
    const double bound = narrow ? 1.0 / 128 : std::max(c.row->tolerance.float32, 1e-6) * 10;
    const double scale = magnitude_of_gradient(*c.row, c.sample);
    expect_alike(actual.first, expected.first, bound, scale, "gradient of " + c.describe());
    expect_alike(actual.second, expected.second, bound, scale, "second gradient of " + c.describe());
  };
  for (const std::vector<Case>& lot : lots(DType::float32, true)) {
    Pools pools;
    std::vector<std::vector<Tensor>> inputs;
    for (const Case& c : lot) {
      inputs.push_back(inputs_of(c.sample, DType::float32, DType::float32, c.layout, device, &pools[c.layout]));
    }
    synchronize();
    std::vector<Gradients> found;
    for (std::size_t i = 0; i < lot.size(); ++i) {
      found.push_back(gradients(*lot[i].row, lot[i].sample, inputs[i], DType::float32, &pools[lot[i].layout]));
    }
    flush();
    for (std::size_t i = 0; i < lot.size(); ++i) compare(lot[i], found[i]);
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, Primitives, testing::ValuesIn(groups()),
                         [](const auto& info) { return info.param.device + "_" + info.param.name; });

/// Whether any gradient is anything but zero: the sign of zero is nothing to notice.
bool any_nonzero(const std::vector<Tensor>& gradients) {
  for (const Tensor& gradient : gradients) {
    if (gradient.defined() && count_nonzero(gradient).item<std::int64_t>() > 0) return true;
  }
  return false;
}

/// That the comparison notices a wrong rule. Rules know no devices.
class FlippedRules : public testing::TestWithParam<std::string> {};

TEST_P(FlippedRules, AreNoticed) {
  const ops::OpRow& row = *ops::find(GetParam());
  const Device device("cpu");
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

INSTANTIATE_TEST_SUITE_P(Table, FlippedRules, testing::ValuesIn(names()), [](const auto& info) { return info.param; });

/// Whether differences say what the gradients are: not of casts that round, and not where writes meet in one place.
bool is_smooth(const ops::OpRow& row, const Sample& sample) {
  if (row.op == ops::Op::cast) return sample.given.dtype == DType::float64;
  return row.op != ops::Op::put || std::get<ops::Indexing>(sample.given.attributes).accumulates;
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
        return autograd::apply(row.op, {}, std::move(info));
      };
      const double bound = row.op == ops::Op::normal ? 2.4e-7 : 0;
      for (const std::string& device : tested_devices()) {
        EXPECT_EQ(difference(on(Device(device)), on(reference), bound), "") << row.name << to_string(shape);
      }
    }
  }
}

/// A kernel that takes four elements of a row at a time draws them together where four neighbours come from one block
/// of random numbers: not in slices that begin elsewhere, nor in every second column.
TEST(Sources, AreDrawnAloneWhereNeighboursAreOfSeveralBlocks) {
  const auto on = [&](Device device) {
    manual_seed(11);
    const Tensor x = ones({6, 8}, {.device = device});
    flush();
    std::vector<Tensor> results;
    const auto drawn = [&](std::int64_t columns) { return rand({6, columns}, {.device = device}); };
    results.push_back(drawn(8) + x);
    results.push_back(drawn(12).slice(1, {1, 9}) + x);
    results.push_back(drawn(10).slice(1, {0, 8}) + x);
    results.push_back(drawn(16).slice(1, {4, 12}) + x);
    results.push_back(drawn(8).flip({1}) + x);
    flush();
    return results;
  };
  const std::vector<Tensor> expected = on(reference);
  for (const std::string& device : tested_devices()) {
    const std::vector<Tensor> actual = on(Device(device));
    for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(difference(actual[i], expected[i], 0), "") << i;
  }
}

}  // namespace
}  // namespace russet::conformance
