// docs/operators.md: written from the table of functions, what the recorded calls of each record, and what devices say
// of those primitives. RUSSET_WRITE_DOCS=1 writes the page; else it must be what is there.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <russet/operators.h>
#include <russet/runtime.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include "autograd/rules.h"
#include "conformance/composites.h"
#include "graph/node.h"
#include "graph/tensor_state.h"
#include "ops/table.h"

namespace russet::conformance {
namespace {

constexpr const char* page = RUSSET_SOURCE_DIR "/docs/operators.md";

/// What a function is made of, seen in its calls.
struct Made {
  std::set<std::string> primitives;
  std::set<std::string, std::less<>> rules;
  bool has_gradient = false;
};

/// Operators that every function may record besides what it computes: numbers, conversions, views made contiguous.
bool is_plumbing(ops::Op op) {
  return op == ops::Op::leaf || op == ops::Op::scalar || op == ops::Op::constant || op == ops::Op::cast ||
         op == ops::Op::strided;
}

void collect(const graph::NodeRef& root, std::set<std::string>& primitives) {
  std::set<const graph::Node*> seen;
  std::vector<const graph::Node*> open{root.get()};
  while (!open.empty()) {
    const graph::Node* const node = open.back();
    open.pop_back();
    if (node->materialised() || !seen.insert(node).second) continue;
    primitives.insert(std::string(ops::row(node->op).name));
    for (const graph::NodeRef& input : node->inputs()) {
      if (input) open.push_back(input.get());
    }
  }
}

void observe(const Composite& call, Made& made) {
  const golden::Making making{.floating = DType::float32, .device = DeviceType::cpu};
  const golden::Call arguments(call.record, making);
  synchronize();
  autograd::watch_gradient_rules(&made.rules);
  const Results results = call.function(arguments);
  for (const Tensor& result : results) {
    if (!result.defined()) continue;
    collect(graph::value_of(result), made.primitives);
    made.has_gradient |= result.requires_grad();
  }
  autograd::watch_gradient_rules(nullptr);
}

Made made_of(const golden::FunctionRow& row) {
  Made made;
  std::vector<std::string> names{std::string(row.name), fmt::format("Tensor.{}", row.name)};
  for (const std::string& name : names) {
    const auto found = composites().find(name);
    if (found == composites().end()) continue;
    for (const Composite& call : found->second) {
      try {
        observe(call, made);
      } catch (const Error&) {
        // A call that is made to fail says nothing of how the function is computed.
      }
    }
  }
  return made;
}

/// "primitive", or "composite".
std::string kind_of(const golden::FunctionRow& row, const Made& made) {
  std::set<std::string> computed;
  for (const std::string& name : made.primitives) {
    if (!is_plumbing(ops::find(name)->op)) computed.insert(name);
  }
  return computed == std::set<std::string>{std::string(row.name)} ? "primitive" : "composite";
}

/// "native" if the device computes every primitive itself; else those that it does not.
std::string support(const Made& made, Device device) {
  std::vector<std::string> others;
  for (const std::string& name : made.primitives) {
    if (name == "leaf") continue;
    if (operator_support(name, device).native.empty()) others.push_back(name);
  }
  return others.empty() ? "native" : fmt::format("on the CPU: {}", fmt::join(others, ", "));
}

std::string forms_of(const golden::FunctionRow& row) {
  using golden::Overload;
  std::vector<std::string> forms;
  if (row.has(&Overload::method)) forms.push_back(row.name.ends_with('_') ? "in place" : "method");
  if (row.has(&Overload::in_place)) forms.push_back("in place");
  for (const std::string_view alias : row.aliases) forms.push_back(fmt::format("`{}`", alias));
  return fmt::format("{}", fmt::join(forms, ", "));
}

/// Vertical bars would end a table's cell.
std::string cell(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '|') result += '\\';
    result += c;
  }
  return result;
}

std::string written_page() {
  std::string text =
      "# Functions\n\n"
      "Every public function, by family, from the table in `src/functional/table`. Written by "
      "`tests/conformance/operators_page_test.cpp`, which also checks that it is up to date; "
      "`RUSSET_WRITE_DOCS=1` makes it write the page.\n\n"
      "A *primitive* is an operator that devices know (`russet ops` lists them); a *composite* is written with "
      "primitives. *Gradient*: whether its result takes part in backward passes. *cpu* and *mps* say whether "
      "the device itself computes all primitives that the function records.\n";
  std::string_view family;
  for (const golden::FunctionRow& row : golden::function_table()) {
    if (row.family != family) {
      family = row.family;
      text += fmt::format(
          "\n## {}\n\n| PyTorch's name | parameters | forms | kind | gradient | cpu | mps | |\n"
          "|---|---|---|---|---|---|---|---|\n",
          family);
    }
    const Made made = made_of(row);
    text += fmt::format("| `{}` | {} | {} | {} | {} | {} | {} | {} |\n", row.python_name, cell(row.parameters),
                        forms_of(row), kind_of(row, made), made.has_gradient ? "yes" : "no",
                        support(made, DeviceType::cpu), support(made, DeviceType::mps), cell(row.documentation));
  }
  return text;
}

TEST(OperatorsPage, IsUpToDate) {
  const auto all = devices();
  const auto mps =
      std::find_if(all.begin(), all.end(), [](const DeviceInfo& info) { return info.device.type == DeviceType::mps; });
  ASSERT_NE(mps, all.end());
  if (!mps->available) GTEST_SKIP() << "there is no device mps to ask: " << mps->reason;
  const std::string expected = written_page();
  if (std::getenv("RUSSET_WRITE_DOCS") != nullptr) std::ofstream(page) << expected;
  std::ifstream file(page);
  std::stringstream found;
  found << file.rdbuf();
  EXPECT_EQ(found.str(), expected) << "run this test with RUSSET_WRITE_DOCS=1";
}

}  // namespace
}  // namespace russet::conformance
