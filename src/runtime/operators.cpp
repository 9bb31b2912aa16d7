// The public view of the operator table, and what devices answer when they are asked for a kernel.
#include <fmt/format.h>
#include <russet/error.h>
#include <russet/operators.h>

#include <algorithm>
#include <array>
#include <optional>

#include "ops/table.h"
#include "runtime/device.h"

namespace russet {
namespace {

using ops::Family;
using ops::Op;
using ops::OpRow;

constexpr std::array<std::string_view, 11> family_names{"source",      "random",    "elementwise", "reduction",
                                                        "contraction", "movement",  "indexing",    "window",
                                                        "ordering",    "attention", "linalg"};
constexpr std::array<std::string_view, 10> type_rules{"as stated",
                                                      "any type; the same",
                                                      "any but bool; the same",
                                                      "floating types; the same",
                                                      "integers and bool; the same",
                                                      "any type; bool",
                                                      "any type; the same, bool and integers become int64",
                                                      "any type; int64",
                                                      "floating types; float32, or float64",
                                                      "float32 and float64; the same"};
constexpr std::array<std::string_view, 4> autocast_rules{"as it comes", "in the lower precision", "in float32",
                                                         "in the widest type of the inputs"};

/// A small example of an operator: inputs, attributes, and the result where the caller states it.
struct Example {
  std::vector<ops::Description> inputs;
  ops::Attributes attributes;
  ops::Description given;
};

ops::Window window_of(Op op) {
  ops::Window window;
  const bool pooling = ops::row(op).family == Family::window;
  if (pooling) window.kernel = {2, 2};
  if (pooling) window.stride = {2, 2};
  return window;
}

Example contraction_example(Op op, DType type) {
  const ops::Description x{type, {2, 4, 8, 8}};
  const ops::Description weight{type, {4, 4, 3, 3}};
  const ops::Description y{type, {2, 4, 6, 6}};
  switch (op) {
    case Op::convolution: return {{x, weight}, window_of(op), {}};
    case Op::convolution_input: return {{y, weight}, window_of(op), x};
    case Op::convolution_weight: return {{x, y}, window_of(op), weight};
    default: return {{{type, {4, 8}}, {type, {8, 4}}}, {}, {}};
  }
}

Example window_example(Op op, DType type) {
  const ops::Description x{type, {2, 4, 8, 8}};
  const ops::Description y{type, {2, 4, 4, 4}};
  switch (op) {
    case Op::max_pool: return {{x, x}, window_of(op), {}};
    case Op::max_unpool: return {{x, y}, window_of(op), {}};
    case Op::sum_unpool: return {{y}, window_of(op), x};
    default: return {{x}, window_of(op), {}};
  }
}

Example movement_example(Op op, DType type) {
  const ops::Description x{type, {4, 8}};
  const ops::View view{{1, 8}, 0, false};
  if (op == Op::strided) return {{x}, view, {type, {8, 4}}};
  return {{x, {type, {8, 4}}}, view, {}};
}

Example indexing_example(Op op, DType type) {
  const ops::Description x{type, {4, 8}};
  const ops::Description index{DType::int64, {3}};
  const ops::Description values{type, {3, 8}};
  const ops::Indexing rows{.lead = index.shape};
  if (op == Op::take) return {{x, index}, rows, {}};
  return {{x, values, index}, rows, {}};
}

Example elementwise_example(const OpRow& row, DType type) {
  Example example;
  example.inputs.assign(static_cast<std::size_t>(row.inputs), {type, {4, 8}});
  if (row.op == Op::where) example.inputs[0].dtype = DType::boolean;
  example.given = {type, {4, 8}};
  return example;
}

Example attention_example(Op op, DType type) {
  const ops::Description values{type, {2, 16, 32}};
  const ops::Description rows{type == DType::float64 ? type : DType::float32, {2, 16, 1}};
  const ops::Attention attributes{.scale = 0.25};
  switch (op) {
    case Op::attention: return {{values, values, values}, attributes, {}};
    case Op::attention_logsumexp: return {{values, values}, attributes, {}};
    case Op::attention_value_gradient: return {{values, values, values, rows}, attributes, {}};
    default: return {{values, values, values, values, rows, rows}, attributes, {}};
  }
}

Example example_of(const OpRow& row, DType type) {
  switch (row.family) {
    case Family::source:
      return {{}, row.op == Op::constant ? ops::Attributes(ops::Number{}) : ops::Attributes(), {type, {4, 8}}};
    case Family::random: return {{}, ops::Seed{}, {type, {4, 8}}};
    case Family::elementwise: return elementwise_example(row, type);
    case Family::reduction: return {{{type, {4, 8}}}, ops::Axes{2, false}, {}};
    case Family::ordering: return {{{type, {4, 8}}}, ops::Axes{2, false}, {}};
    case Family::contraction: return contraction_example(row.op, type);
    case Family::movement: return movement_example(row.op, type);
    case Family::indexing: return indexing_example(row.op, type);
    case Family::attention: return attention_example(row.op, type);
    case Family::linalg: {
      const ops::Description matrix{type, {8, 8}};
      if (row.op == Op::solve_triangular) return {{matrix, {type, {8, 4}}}, ops::Linalg{}, {}};
      return {{matrix}, ops::Linalg{}, {}};
    }
    case Family::window: break;
  }
  return window_example(row.op, type);
}

compile::Operand operand(std::int32_t slot, const ops::Description& description) {
  return {{slot, description.dtype, 0, -1, contiguous_strides(description.shape)}, description.shape};
}

/// The step of an example, or nothing if the operator does not take the type.
std::optional<compile::Primitive> step_of(const OpRow& row, DType type) {
  const Example example = example_of(row, type);
  if (row.family == Family::random && type != (row.op == Op::random_bits ? DType::int64 : DType::float32)) return {};
  std::vector<const ops::Description*> inputs;
  for (const ops::Description& input : example.inputs) inputs.push_back(&input);
  compile::Primitive step;
  step.op = row.op;
  step.attributes = example.attributes;
  step.argument = row.has_argument ? 0 : -1;
  for (const ops::Description& input : example.inputs) {
    step.inputs.push_back(operand(static_cast<std::int32_t>(step.inputs.size()), input));
  }
  try {
    step.output = operand(static_cast<std::int32_t>(inputs.size()),
                          ops::infer(row.op, inputs, example.attributes, example.given));
  } catch (const TypeError&) {
    return {};
  }
  return step;
}

/// Values that the runtime binds: no device computes them.
bool is_bound(Op op) { return op == Op::leaf || op == Op::scalar || op == Op::constant || op == Op::empty; }

}  // namespace

std::vector<OperatorInfo> operators() {
  std::vector<OperatorInfo> result;
  for (const OpRow& row : ops::table()) {
    result.push_back({std::string(row.name), std::string(family_names.at(static_cast<std::size_t>(row.family))),
                      row.inputs, std::string(type_rules.at(static_cast<std::size_t>(row.type))),
                      std::string(autocast_rules.at(static_cast<std::size_t>(row.autocast))),
                      std::string(row.documentation)});
  }
  return result;
}

OperatorSupport operator_support(std::string_view name, Device device) {
  const OpRow* row = ops::find(name);
  if (row == nullptr) {
    throw ValueError(fmt::format("there is no operator \"{}\"; `russet ops` lists them", name));
  }
  const runtime::DeviceDriver& driver = runtime::require_driver(device);
  OperatorSupport support;
  const std::vector<DType> types = driver.properties().dtypes;
  if (is_bound(row->op)) {
    support.native = types;
    support.kernel = "bound by the runtime";
    return support;
  }
  for (const DType type : types) {
    const std::optional<compile::Primitive> step = step_of(*row, type);
    if (!step) continue;
    const compile::Target& target = driver.target();
    if (row->family == Family::attention && target.runs_groups() && !target.has_attention(type)) {
      if (!target.computes(type)) continue;
      support.kernel = "products and a softmax";
      support.native.push_back(type);
      continue;
    }
    try {
      const std::unique_ptr<compile::Kernel> made = target.compile(*step);
      const std::string kernel = made->name();
      if (!made->fallback_reason().empty()) {
        support.reason = made->fallback_reason();
        continue;
      }
      if (support.native.empty() || type == DType::float32) support.kernel = kernel;
      support.native.push_back(type);
    } catch (const Error& error) {
      support.reason = error.what();
    }
  }
  return support;
}

}  // namespace russet
