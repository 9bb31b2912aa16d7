// Every composite, in every type, laid out in every way, of odd, empty and no sizes: a device against the reference
// device; and every gradient, and gradient of a gradient, against differences in float64.
#include "conformance/composites.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <russet/runtime.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "autograd/rules.h"
#include "devices/tested.h"
#include "ops/table.h"

namespace russet::conformance {
namespace {

using golden::Sizes;
using test::Layout;

int& case_count() {
  static int count = 0;
  return count;
}

class Count : public testing::Environment {
  void TearDown() override { fmt::print("{} cases of {} composites\n", case_count(), composites().size()); }
};
const testing::Environment* const count = testing::AddGlobalTestEnvironment(new Count);

/// Of one result, relative to the largest of its values: some roundings, of which composites may have a few.
double tolerance(DType dtype) {
  switch (dtype) {
    case DType::float64: return 1e-13;
    case DType::float32: return 1e-5;
    case DType::float16: return 4.0 / 1024;
    case DType::bfloat16: return 4.0 / 128;
    default: return 0;
  }
}

/// Calls that are tested in one go.
struct Group {
  std::string device;
  std::string name;
  std::vector<const Composite*> calls;
};
void PrintTo(const Group& group, std::ostream* stream) { *stream << group.device << " " << group.name; }

/// Whether a call can be tested with inputs laid out so: a matrix whose rows are all the same cannot be inverted, and
/// its factors are what rounding makes them.
bool is_meaningful(const Composite& call, Layout layout) {
  return call.family != "linalg" || layout != Layout::expanded;
}

/// A function at a time; on a device that compiles kernels, parts of a family: calls that are recorded together share
/// kernels and compilations.
std::vector<Group> groups() {
  constexpr std::size_t part = 200;
  std::vector<Group> all;
  for (const std::string& device : tested_devices()) {
    if (!compiles_kernels(device)) {
      for (const auto& [name, calls] : composites()) {
        all.push_back({device, name, {}});
        for (const Composite& call : calls) all.back().calls.push_back(&call);
      }
      continue;
    }
    for (const std::string& family : families()) {
      const std::vector<const Composite*> calls = calls_of(family);
      for (std::size_t i = 0; i < calls.size(); i += part) {
        const auto end = calls.begin() + static_cast<std::ptrdiff_t>(std::min(i + part, calls.size()));
        all.push_back(
            {device, fmt::format("{}_{}", family, i / part), {calls.begin() + static_cast<std::ptrdiff_t>(i), end}});
      }
    }
  }
  return all;
}

double largest_of(const std::vector<Tensor>& tensors) {
  double largest = 0;
  for (const Tensor& tensor : tensors) {
    if (!tensor.defined()) continue;
    for (const double value : tensor.to_vector<double>()) largest = std::max(largest, std::abs(value));
  }
  return largest;
}

/// What the gradients of a call are held against besides their own size: 0, except for attention. A gradient of its
/// scores is p * (g v^T - delta), a difference of two sums that a device may compute apart (delta from the result, as
/// FlashAttention does). Where all keys or values are the same nothing is left of it but the roundings of those sums:
/// some ulps of what the other gradients are made of, which is what this gives with the bounds below (1e-6 and 1e-5 of
/// the largest).
double scale_of_gradients(const Composite& call, const std::vector<Tensor>& gradients) {
  const bool attention = call.name == "scaled_dot_product_attention" || call.name == "multi_head_attention_forward";
  return attention ? largest_of(gradients) / 50 : 0;
}

/// Second gradients of determinants are differences of products with inverses, of which nothing is left where the
/// matrix is one number: those are held against the first gradients.
double scale_of_second(const Composite& call, const std::vector<Tensor>& first, const std::vector<Tensor>& second) {
  return call.name == "det" ? largest_of(first) : scale_of_gradients(call, second);
}

class Composites : public testing::TestWithParam<Group> {
 protected:
  struct Task {
    const Composite* call;
    Making making;
  };

  Device device() const { return Device(GetParam().device); }
  const std::vector<const Composite*>& calls() const { return GetParam().calls; }
  bool together() const { return compiles_kernels(GetParam().device); }

  static std::string describe(const Task& task) {
    return fmt::format("{} {} {} sizes {}", task.call->text.substr(0, 300), name_of(task.making.floating),
                       name_of(task.making.layout), static_cast<int>(task.making.sizes));
  }

  /// Runs calls on the device and on the reference device, and gives both to `compare`. Where kernels are compiled,
  /// what is given here runs together, over inputs that are in memory before.
  template <class Compare>
  void run(std::vector<Task> tasks, void (Attempt::*record)(), Compare&& compare) {
    std::erase_if(tasks, [](const Task& task) { return !is_meaningful(*task.call, task.making.layout); });
    std::vector<Attempt> expected;
    expected.reserve(tasks.size());
    for (const Task& task : tasks) {
      Making making = task.making;
      making.device = DeviceType::reference;
      expected.emplace_back(*task.call, making);
      (expected.back().*record)();
      expected.back().read();
    }
    std::map<std::pair<Layout, Sizes>, test::Pool> pools;
    std::vector<Attempt> attempts;
    attempts.reserve(tasks.size());
    // What a kernel finds wrong is lost with all that ran beside it.
    std::vector<Attempt*> alone, side_by_side;
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      const bool shares = together() && !names_no_row(expected[i].error());
      Making making = tasks[i].making;
      making.device = device();
      if (shares) making.pool = &pools[{making.layout, making.sizes}];
      attempts.emplace_back(*tasks[i].call, making);
      if (!together()) {
        (attempts.back().*record)();
        attempts.back().read();
      }
      (shares ? side_by_side : alone).push_back(&attempts.back());
    }
    if (together()) {
      // Indices that are in memory are checked by the host; which are there must not depend on how fast the GPU is.
      start();
      synchronize();
      for (Attempt* attempt : side_by_side) (attempt->*record)();
      start();
      for (Attempt* attempt : alone) {
        (attempt->*record)();
        attempt->read();
      }
    }
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      ++case_count();
      attempts[i].read();
      compare(attempts[i], expected[i], tasks[i]);
      if (HasFatalFailure()) return;
    }
  }

  /// Starts what is recorded. What fails is said to those that read it.
  static void start() {
    try {
      flush();
    } catch (const Error&) {
    }
  }

  static bool names_no_row(const std::string& error) {
    return error.find(" is out of range for ") != std::string::npos;
  }

  /// GPUs have a value for what the others refuse (conformance/indices_test knows it).
  bool has_a_value_here(const std::string& error) const {
    return compiles_kernels(GetParam().device) && error.find("integer division by zero") != std::string::npos;
  }

  /// Results, or errors, must be alike.
  void compare_results(const std::vector<Task>& tasks) {
    run(tasks, &Attempt::record, [&](const Attempt& actual, const Attempt& expected, const Task& task) {
      const std::string where = describe(task);
      if (has_a_value_here(expected.error())) {
        EXPECT_EQ(actual.error(), "") << where;
        return;
      }
      ASSERT_EQ(actual.kind_of_error(), expected.kind_of_error())
          << where << ": " << actual.error() << " | " << expected.error();
      ASSERT_EQ(actual.results().size(), expected.results().size()) << where;
      for (std::size_t i = 0; i < actual.results().size() && task.call->has_values(); ++i) {
        const Tensor& result = expected.results()[i];
        const double bound = result.defined() ? tolerance(result.dtype()) : 0;
        EXPECT_EQ(difference(actual.results()[i], result, bound), "") << "result " << i << " of " << where;
      }
    });
  }

  void compare_gradients(const std::vector<Task>& tasks) {
    run(tasks, &Attempt::record_gradients, [](const Attempt& actual, const Attempt& expected, const Task& task) {
      const std::string where = describe(task);
      EXPECT_EQ(actual.error(), expected.error()) << where;
      ASSERT_EQ(actual.first().size(), expected.first().size()) << where;
      ASSERT_EQ(actual.second().size(), expected.second().size()) << where;
      const double first = scale_of_gradients(*task.call, expected.first());
      const double second = scale_of_second(*task.call, expected.first(), expected.second());
      for (std::size_t i = 0; i < actual.first().size(); ++i) {
        EXPECT_EQ(difference(actual.first()[i], expected.first()[i], 5e-5, first), "")
            << "gradient " << i << " of " << where;
        EXPECT_EQ(difference(actual.second()[i], expected.second()[i], 5e-4, second), "")
            << "second gradient of " << where;
      }
    });
  }

  /// Each call with one of the variants in turn, so that each is met by many calls; where calls run one by one, with
  /// the first one too.
  std::vector<Task> in_turn(const std::vector<Making>& variants) const {
    std::vector<Task> all;
    for (std::size_t i = 0; i < calls().size(); ++i) {
      for (std::size_t v = 0; v < variants.size(); ++v) {
        const bool turn = together() ? i % variants.size() == v : v == 0 || i % (variants.size() - 1) == v - 1;
        if (turn) all.push_back({calls()[i], variants[v]});
      }
    }
    return all;
  }
};

TEST_P(Composites, AgreeInEveryLayout) {
  std::vector<Task> tasks;
  for (const Composite* call : calls()) {
    for (const Layout layout : test::layouts) tasks.push_back({call, {.floating = DType::float32, .layout = layout}});
  }
  compare_results(tasks);
}

TEST_P(Composites, AgreeInEveryType) {
  for (int type = 0; type < dtype_count; ++type) {
    const auto dtype = static_cast<DType>(type);
    if (!has_type(device(), dtype) || (together() && dtype == DType::float32)) continue;
    std::vector<Making> variants;
    for (const Layout layout : test::layouts) variants.push_back({.floating = dtype, .layout = layout});
    compare_results(in_turn(variants));
  }
}

TEST_P(Composites, AgreeInSizesOfAllKinds) {
  std::vector<Task> tasks;
  for (const Sizes sizes : {Sizes::none_first, Sizes::none_last, Sizes::scalar, Sizes::odd}) {
    std::vector<Making> variants;
    for (const Layout layout : test::layouts) {
      variants.push_back({.floating = DType::float32, .layout = layout, .sizes = sizes});
    }
    for (const Task& task : in_turn(variants)) tasks.push_back(task);
  }
  compare_results(tasks);
}

TEST_P(Composites, GradientsAgreeInEveryLayout) {
  std::vector<Task> tasks;
  for (const Composite* call : calls()) {
    if (!call->has_gradient()) continue;
    for (const Layout layout : test::layouts) tasks.push_back({call, {.floating = DType::float32, .layout = layout}});
  }
  compare_gradients(tasks);
}

/// A test's name has letters, digits and underscores.
std::string as_test_name(std::string name) {
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Devices, Composites, testing::ValuesIn(groups()),
                         [](const auto& info) { return as_test_name(info.param.device + "_" + info.param.name); });

std::vector<std::string> names() {
  std::vector<std::string> result;
  for (const auto& [name, calls] : composites()) result.push_back(name);
  return result;
}

/// Whether differences say what the gradients are: not at chosen values (kinks and poles), not where a function rounds
/// to another type, not for rows of an embedding that are to stay as they are or are limited, and not for ctc_loss,
/// whose gradient is, as PyTorch's, that of the log_softmax before it.
bool is_smooth(const std::string& name, const Composite& call) {
  const golden::Json& arguments = call.record.at("a");
  if (name == "ctc_loss" || name.starts_with("to_") || (name.starts_with("embedding") && arguments.size() > 2))
    return false;
  const auto chosen = [](const golden::Json& tensor) {
    return tensor.is_object() && tensor.contains("g") && tensor.contains("v");
  };
  return std::none_of(arguments.begin(), arguments.end(), chosen);
}

class Differences : public testing::TestWithParam<std::string> {};

TEST_P(Differences, AgreeWithGradientsOfGradients) {
  for (const Composite& call : composites().at(GetParam())) {
    if (!call.has_gradient() || !is_smooth(GetParam(), call)) continue;
    ++case_count();
    EXPECT_EQ(differ_from_differences(call), "") << call.text.substr(0, 400);
  }
}

INSTANTIATE_TEST_SUITE_P(Table, Differences, testing::ValuesIn(names()),
                         [](const auto& info) { return as_test_name(info.param); });

/// The composites' own gradient rules that a call runs; primitives' are flipped in primitives_test.
std::set<std::string, std::less<>> rules_of(const Composite& call) {
  std::set<std::string, std::less<>> names;
  autograd::watch_gradient_rules(&names);
  Attempt(call, {.floating = DType::float64, .device = DeviceType::reference}).record_gradients();
  autograd::watch_gradient_rules(nullptr);
  std::erase_if(names, [](const std::string& name) { return ops::find(name) != nullptr; });
  return names;
}

TEST(Composites, FlippedGradientRulesAreNoticed) {
  std::set<std::string> rules;
  std::set<std::string> noticed;
  for (const auto& [name, calls] : composites()) {
    for (const Composite& call : calls) {
      if (!call.has_gradient() || !is_smooth(name, call)) continue;
      for (const std::string& rule : rules_of(call)) {
        rules.insert(rule);
        if (noticed.contains(rule)) continue;
        autograd::flip_gradient_rule(rule);
        if (!differ_from_differences(call).empty()) noticed.insert(rule);
        autograd::flip_gradient_rule("");
      }
    }
  }
  EXPECT_EQ(rules, noticed);
  EXPECT_GE(rules.size(), 30);
}

TEST(Composites, EveryRowIsCalled) {
  for (const golden::FunctionRow& row : golden::function_table()) {
    const std::string name(row.name);
    EXPECT_TRUE(composites().contains(name) || composites().contains("Tensor." + name))
        << row.python_name << " has a row in src/functional/table and is called nowhere: add a line to calls.jsonl";
  }
  EXPECT_GT(golden::function_table().size(), 280);
}

TEST(Composites, EveryPublicFunctionHasARow) {
  // The headers of functions are made from the table; what is written by hand holds types and C++'s operators.
  if (!std::filesystem::exists(RUSSET_SOURCE_DIR)) GTEST_SKIP() << "the sources are elsewhere";
  std::set<std::string> by_hand;
  for (const auto& entry : std::filesystem::directory_iterator(RUSSET_SOURCE_DIR "/include/russet/functional")) {
    by_hand.insert(entry.path().filename());
  }
  EXPECT_EQ(by_hand, (std::set<std::string>{"arguments.h", "overloads.h"}));
}

}  // namespace
}  // namespace russet::conformance
