// Every composite, in every type, laid out in every way, of odd, empty and no sizes: a device against the reference
// device; and every gradient, and gradient of a gradient, against differences in float64.
#include "conformance/composites.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <set>

#include "autograd/rules.h"
#include "conformance/tested.h"
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

using Parameters = std::tuple<std::string, std::string>;

class Composites : public testing::TestWithParam<Parameters> {
 protected:
  Device device() const { return Device(std::get<0>(GetParam())); }
  const std::vector<Composite>& calls() const { return composites().at(std::get<1>(GetParam())); }
  /// Memory without values: nothing to compare.
  bool has_values() const { return !std::get<1>(GetParam()).starts_with("empty"); }

  /// Runs a call on both devices; they must end alike.
  void compare(const Composite& call, Making making) {
    ++case_count();
    making.device = device();
    const Outcome actual = outcome(call, making);
    making.device = DeviceType::reference;
    const Outcome expected = outcome(call, making);
    const std::string where = fmt::format("{} {} {} sizes {}", call.text.substr(0, 300), name_of(making.floating),
                                          name_of(making.layout), static_cast<int>(making.sizes));
    ASSERT_EQ(actual.error, expected.error) << where;
    ASSERT_EQ(actual.results.size(), expected.results.size()) << where;
    for (std::size_t i = 0; i < actual.results.size() && has_values(); ++i) {
      const Tensor& result = expected.results[i];
      const double bound = result.defined() ? tolerance(result.dtype()) : 0;
      EXPECT_EQ(difference(actual.results[i], result, bound), "") << "result " << i << " of " << where;
    }
  }
};

TEST_P(Composites, AgreeInEveryLayout) {
  for (const Composite& call : calls()) {
    for (const Layout layout : test::layouts) compare(call, {.floating = DType::float32, .layout = layout});
  }
}

TEST_P(Composites, AgreeInEveryType) {
  std::size_t turn = 0;
  for (const Composite& call : calls()) {
    for (int type = 0; type < dtype_count; ++type) {
      const auto dtype = static_cast<DType>(type);
      if (!has_type(device(), dtype)) continue;
      compare(call, {.floating = dtype});
      compare(call, {.floating = dtype, .layout = test::layouts[1 + turn++ % 3]});
    }
  }
}

TEST_P(Composites, AgreeInSizesOfAllKinds) {
  std::size_t turn = 0;
  for (const Composite& call : calls()) {
    for (const Sizes sizes : {Sizes::none_first, Sizes::none_last, Sizes::scalar, Sizes::odd}) {
      compare(call, {.floating = DType::float32, .sizes = sizes});
      compare(call, {.floating = DType::float32, .layout = test::layouts[1 + turn++ % 3], .sizes = sizes});
    }
  }
}

TEST_P(Composites, GradientsAgreeInEveryLayout) {
  for (const Composite& call : calls()) {
    if (call.text.find("\"g\"") == std::string::npos) continue;
    for (const Layout layout : test::layouts) {
      ++case_count();
      Making making{.floating = DType::float32, .device = device(), .layout = layout};
      const Gradients actual = gradients(call, making);
      making.device = DeviceType::reference;
      const Gradients expected = gradients(call, making);
      const std::string where = fmt::format("{} {}", call.text.substr(0, 300), name_of(layout));
      EXPECT_EQ(actual.error, expected.error) << where;
      ASSERT_EQ(actual.first.size(), expected.first.size()) << where;
      ASSERT_EQ(actual.second.size(), expected.second.size()) << where;
      for (std::size_t i = 0; i < actual.first.size(); ++i) {
        EXPECT_EQ(difference(actual.first[i], expected.first[i], 5e-5), "") << "gradient " << i << " of " << where;
        EXPECT_EQ(difference(actual.second[i], expected.second[i], 5e-4), "") << "second gradient of " << where;
      }
    }
  }
}

std::vector<std::string> names() {
  std::vector<std::string> result;
  for (const auto& [name, calls] : composites()) result.push_back(name);
  return result;
}

INSTANTIATE_TEST_SUITE_P(Devices, Composites,
                         testing::Combine(testing::ValuesIn(tested_devices()), testing::ValuesIn(names())),
                         [](const auto& info) { return std::get<0>(info.param) + "_" + std::get<1>(info.param); });

/// Whether differences say what the gradients are: not at chosen values (kinks and poles), not where a function rounds
/// to another type, and not for rows of an embedding that are to stay as they are or are limited.
bool is_smooth(const std::string& name, const Composite& call) {
  if (name.starts_with("to_") || (name.starts_with("embedding") && call.arguments.size() > 2)) return false;
  const auto chosen = [](const golden::Json& tensor) {
    return tensor.is_object() && tensor.contains("g") && tensor.contains("v");
  };
  return std::none_of(call.arguments.begin(), call.arguments.end(), chosen);
}

class Differences : public testing::TestWithParam<std::string> {};

TEST_P(Differences, AgreeWithGradientsOfGradients) {
  for (const Composite& call : composites().at(GetParam())) {
    if (call.text.find("\"g\"") == std::string::npos || !is_smooth(GetParam(), call)) continue;
    ++case_count();
    EXPECT_EQ(differ_from_differences(call), "") << call.text.substr(0, 400);
  }
}

INSTANTIATE_TEST_SUITE_P(Table, Differences, testing::ValuesIn(names()), [](const auto& info) { return info.param; });

/// The composites' own gradient rules that a call runs; primitives' are flipped in primitives_test.
std::set<std::string, std::less<>> rules_of(const Composite& call) {
  std::set<std::string, std::less<>> names;
  autograd::watch_gradient_rules(&names);
  gradients(call, {.floating = DType::float64, .device = DeviceType::reference});
  autograd::watch_gradient_rules(nullptr);
  std::erase_if(names, [](const std::string& name) { return ops::find(name) != nullptr; });
  return names;
}

TEST(Composites, FlippedGradientRulesAreNoticed) {
  std::set<std::string> rules;
  std::set<std::string> noticed;
  for (const auto& [name, calls] : composites()) {
    for (const Composite& call : calls) {
      if (call.text.find("\"g\"") == std::string::npos || !is_smooth(name, call)) continue;
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

/// Names of the functions that a header declares.
std::set<std::string> declared_in(const std::string& path) {
  static const std::regex declaration(R"(^(?:inline )?(?:const Tensor&|[A-Za-z:]+(?:<[\w, ]+>)?) (\w+)\(.*)");
  std::ifstream file(path);
  std::set<std::string> names;
  for (std::string line; std::getline(file, line);) {
    std::smatch match;
    if (std::regex_match(line, match, declaration)) names.insert(match[1]);
  }
  return names;
}

TEST(Composites, AllPublicFunctionsAreCalled) {
  // Called by PyTorch's names, or through another function.
  const std::map<std::string, std::string> otherwise = {{"stddev", "std"}, {"unique_with_counts", "unique"}};
  std::size_t functions = 0;
  for (const char* header :
       {"functional/comparison", "functional/creation", "functional/elementwise", "functional/indexing",
        "functional/matmul", "functional/movement", "functional/ordering", "functional/random", "functional/reduction",
        "nn_functional/activation", "nn_functional/attention", "nn_functional/convolution", "nn_functional/dropout",
        "nn_functional/image", "nn_functional/loss", "nn_functional/normalization", "nn_functional/pooling"}) {
    const auto names = declared_in(fmt::format("{}/include/russet/{}.h", RUSSET_SOURCE_DIR, header));
    EXPECT_GE(names.size(), 2) << header;
    functions += names.size();
    for (const std::string& name : names) {
      const auto other = otherwise.find(name);
      EXPECT_TRUE(composites().contains(other == otherwise.end() ? name : other->second))
          << name << " of russet/" << header << ".h is called nowhere: add a line to calls.jsonl, and to tests/calls "
          << "how to call it";
    }
  }
  EXPECT_GT(functions, 280);
}

}  // namespace
}  // namespace russet::conformance
