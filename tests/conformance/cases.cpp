#include "conformance/cases.h"

#include <fmt/format.h>
#include <russet/functional.h>

#include <cmath>

#include "base/philox.h"
#include "calls/golden.h"
#include "ops/attention.h"

namespace russet::conformance {
namespace {

using ops::Family;
using ops::Op;
using ops::TypeRule;

bool takes(const ops::OpRow& row, DType dtype) {
  switch (row.type) {
    case TypeRule::wide:
    case TypeRule::floating: return is_floating(dtype);
    case TypeRule::precise: return dtype == DType::float32 || dtype == DType::float64;
    case TypeRule::integral: return !is_floating(dtype);
    case TypeRule::numeric: return dtype != DType::boolean;
    default: return true;
  }
}

Domain domain_of(Op op, std::size_t input, DType dtype) {
  if (dtype == DType::boolean) return {0, 1, true};
  const bool whole = !is_floating(dtype);
  const double low = dtype == DType::uint8 ? 0 : -5;
  switch (op) {
    case Op::log:
    case Op::sqrt:
    case Op::rsqrt: return {0.2, 4};
    case Op::log1p: return {-0.7, 3};
    case Op::asin:
    case Op::acos: return {-0.9, 0.9};
    case Op::tan: return {-1.2, 1.2};
    case Op::div: return {-3, 3, false, input == 1 ? 0.5 : 0.0};
    case Op::floor_divide:
    case Op::fmod: return {whole ? low : -5, 5, whole, input == 1 ? 0.6 : 0.0};
    case Op::pow:
      if (whole) return {input == 1 ? 0.0 : low, 4, true};
      return input == 0 ? Domain{0.3, 2} : Domain{-2, 2};
    case Op::shift_left:
    case Op::shift_right: return {0, 6, true};
    case Op::abs:
    case Op::sign: return {whole ? low : -3, 3, whole, 0.1};
    case Op::cumprod:
    case Op::prod: return whole ? Domain{low, 3, true} : Domain{-1.5, 1.5, false, 0.3};
    case Op::convolution:
    case Op::convolution_input:
    case Op::convolution_weight:
    case Op::matmul: return {whole ? low : -1, whole ? 5 : 1.0, whole};
    default: return {whole ? low : -2.5, whole ? 5 : 2.5, whole};
  }
}

graph::NodeInfo with(ops::Attributes attributes, Shape shape = {}) {
  graph::NodeInfo info;
  info.attributes = std::move(attributes);
  info.shape = shape;
  return info;
}

std::vector<Sample> elementwise(const ops::OpRow& row, DType dtype) {
  const std::vector<std::vector<Shape>> shapes = {
      {{3, 4, 5}, {3, 4, 5}, {3, 4, 5}}, {{7, 33}, {33}, {7, 1}}, {{1, 5}, {6, 1}, {6, 5}},    {{}, {}, {}},
      {{2, 0, 3}, {2, 0, 3}, {3}},       {{4099}, {4099}, {}},    {{2, 3, 1, 5}, {4, 1}, {5}},
  };
  std::vector<Sample> result;
  for (const std::vector<Shape>& chosen : shapes) {
    Sample sample;
    for (int i = 0; i < row.inputs; ++i) {
      const auto at = static_cast<std::size_t>(i);
      Input input{chosen[at], domain_of(row.op, at, dtype), {}};
      if (row.op == Op::where && i == 0) input = {chosen[at], {0, 1, true}, DType::boolean};
      sample.inputs.push_back(input);
      sample.name += to_string(chosen[at]);
    }
    if (row.op != Op::cast) {
      result.push_back(sample);
      continue;
    }
    for (int to = 0; to < dtype_count; ++to) {
      sample.given.dtype = static_cast<DType>(to);
      result.push_back(sample);
      result.back().name += fmt::format(" to {}", name_of(sample.given.dtype));
    }
  }
  return result;
}

std::vector<Sample> reductions(const ops::OpRow& row, DType dtype) {
  std::vector<Sample> result;
  const bool position = row.op == Op::argmax || row.op == Op::argmin;
  const bool needs_elements = position || row.op == Op::amax || row.op == Op::amin;
  const std::vector<std::pair<Shape, std::vector<std::uint32_t>>> cases = {
      {{3, 4, 5}, {1, 2, 4, 3, 5, 6, 7}},
      {{2, 17, 1, 3}, {2, 4, 5, 15}},
      {{}, {0}},
      {{5000}, {1}},
      {{0, 3}, {1, 2}},
      {{33, 40}, {1, 2, 3}},
      {{2, 3, 4, 5}, {13, 2}},
  };
  for (const auto& [shape, masks] : cases) {
    for (const std::uint32_t mask : masks) {
      std::int64_t reduced = 1;
      int axes = 0;
      for (int axis = 0; axis < shape.rank(); ++axis) {
        if (!((mask >> axis) & 1U)) continue;
        reduced *= shape[axis];
        ++axes;
      }
      if (needs_elements && reduced == 0) continue;
      if (position && axes > 1 && axes < shape.rank()) continue;
      Domain domain = domain_of(row.op, 0, dtype);
      if (row.op == Op::prod && reduced > 20) domain = {0.999, 1.001, domain.whole};
      result.push_back(
          {fmt::format("{} over {:b}", to_string(shape), mask), {{shape, domain, {}}}, with(ops::Axes{mask})});
    }
  }
  return result;
}

std::vector<Sample> products(DType dtype) {
  const Domain domain = domain_of(Op::matmul, 0, dtype);
  std::vector<Sample> result;
  const std::pair<Shape, Shape> cases[] = {
      {{3, 4}, {4, 5}}, {{1, 7}, {7, 1}},       {{33, 65}, {65, 17}},         {{2, 3, 4}, {2, 4, 5}},
      {{5, 1}, {1, 3}}, {{2, 3, 4}, {1, 4, 2}}, {{2, 1, 3, 4}, {1, 3, 4, 2}}, {{3, 0}, {0, 2}},
      {{0, 4}, {4, 2}},
  };
  for (const auto& [a, b] : cases) {
    result.push_back({to_string(a) + to_string(b), {{a, domain, {}}, {b, domain, {}}}, {}});
  }
  return result;
}

struct Convolution {
  Shape x;
  Shape weight;
  ops::Window window;
};

std::vector<Convolution> convolutions() {
  std::vector<Convolution> cases = {
      {{2, 3, 7, 6}, {4, 3, 3, 3}, {}}, {{1, 4, 9, 9}, {6, 2, 3, 2}, {}},  {{2, 4, 8, 8}, {4, 1, 5, 5}, {}},
      {{2, 3, 5, 5}, {8, 3, 1, 1}, {}}, {{1, 2, 10, 7}, {3, 2, 3, 3}, {}}, {{1, 16, 6, 6}, {32, 16, 3, 3}, {}},
  };
  cases[0].window.padding = cases[0].window.padding_after = {1, 1};
  cases[1].window.groups = 2;
  cases[1].window.stride = {2, 2};
  cases[1].window.padding = {1, 0};
  cases[1].window.padding_after = {0, 1};
  cases[2].window.groups = 4;
  cases[2].window.padding = cases[2].window.padding_after = {2, 2};
  cases[3].window.stride = {2, 2};
  cases[4].window.dilation = {2, 2};
  cases[4].window.padding = cases[4].window.padding_after = {2, 2};
  cases[5].window.padding = cases[5].window.padding_after = {1, 1};
  return cases;
}

Shape output_of(const Convolution& c) {
  Shape result{c.x[0], c.weight[0]};
  for (std::size_t i = 0; i < 2; ++i) {
    const int axis = static_cast<int>(i) + 2;
    result.push_back(ops::window_output(c.x[axis], c.weight[axis], c.window.stride[i], c.window.padding[i],
                                        c.window.padding_after[i], c.window.dilation[i]));
  }
  return result;
}

std::vector<Sample> convolutions(Op op, DType dtype) {
  const Domain domain = domain_of(op, 0, dtype);
  std::vector<Sample> result;
  for (const Convolution& c : convolutions()) {
    const Shape y = output_of(c);
    const std::string name = to_string(c.x) + to_string(c.weight);
    if (op == Op::convolution) result.push_back({name, {{c.x, domain, {}}, {c.weight, domain, {}}}, with(c.window)});
    if (op == Op::convolution_input) {
      result.push_back({name, {{y, domain, {}}, {c.weight, domain, {}}}, with(c.window, c.x)});
    }
    if (op == Op::convolution_weight)
      result.push_back({name, {{c.x, domain, {}}, {y, domain, {}}}, with(c.window, c.weight)});
  }
  return result;
}

std::vector<Sample> windows(Op op, DType dtype) {
  const Domain domain = domain_of(op, 0, dtype);
  std::vector<Sample> result;
  for (int i = 0; i < 3; ++i) {
    const Shape x = i == 2 ? Shape{1, 16, 5, 4} : Shape{2, 3, 7, 6};
    ops::Window window;
    window.kernel = i == 1 ? std::array<std::int32_t, 2>{3, 3} : std::array<std::int32_t, 2>{2, 2};
    window.stride = {2, 2};
    if (i == 1) window.padding = window.padding_after = {1, 1};
    if (i == 2) window.stride = {1, 1};
    Shape y{x[0], x[1]};
    for (std::size_t d = 0; d < 2; ++d) {
      y.push_back(ops::window_output(x[static_cast<int>(d) + 2], window.kernel[d], window.stride[d], window.padding[d],
                                     window.padding_after[d], 1));
    }
    const std::string name = fmt::format("{} window {}", to_string(x), window.kernel[0]);
    if (op == Op::max_pool) result.push_back({name, {{x, domain, {}}, {x, domain, {}}}, with(window)});
    if (op == Op::max_unpool) result.push_back({name, {{x, domain, {}}, {y, domain, {}}}, with(window)});
    if (op == Op::sum_pool) result.push_back({name, {{x, domain, {}}}, with(window)});
    if (op == Op::sum_unpool) result.push_back({name, {{y, domain, {}}}, with(window, x)});
  }
  return result;
}

std::vector<Sample> indexing(Op op, DType dtype) {
  constexpr std::int8_t tensor = ops::Indexing::by_tensor;
  const Domain domain = domain_of(op, 0, dtype);
  const auto index = [](const Shape& sizes, double low, double high, DType type = DType::int64) {
    return Input{sizes, {low, high, true}, type};
  };
  struct Form {
    std::string name;
    Shape x;
    ops::Indexing indexing;
    std::vector<Input> index;
  };
  const std::vector<Form> forms{
      {"rows", {6, 3}, {.lead = {4, 2}}, {index({4, 2}, 0, 5)}},
      {"elements", {6}, {.lead = {4, 2}}, {index({4, 2}, 0, 5, DType::int32)}},
      {"none", {6, 3}, {.lead = {0}}, {index({0}, 0, 5)}},
      {"along an axis", {3, 4, 2}, {.lead = {3, 5, 2}, .axes = 3, .sources = {0, tensor, 2}}, {index({3, 5, 2}, 0, 3)}},
      {"on an axis", {3, 4, 2}, {.lead = {3, 6}, .axes = 2, .sources = {0, tensor}}, {index({6}, 0, 3)}},
      {"two tensors",
       {3, 4, 2},
       {.lead = {5, 2}, .axes = 2, .sources = {tensor, tensor}, .from_end = true},
       {index({5, 1}, -3, 2), index({2}, -4, 3)}},
      {"four tensors",
       {2, 3, 2, 4},
       {.lead = {7}, .axes = 4, .sources = {tensor, tensor, tensor, tensor}},
       {index({7}, 0, 1), index({7}, 0, 2), index({7}, 0, 1), index({7}, 0, 3)}},
  };
  std::vector<Sample> result;
  for (const bool accumulates : {false, true}) {
    if (op == Op::take && accumulates) break;
    for (const Form& form : forms) {
      Shape along = form.indexing.lead;
      for (int axis = form.indexing.axes; axis < form.x.rank(); ++axis) along.push_back(form.x[axis]);
      std::vector<Input> inputs{{form.x, domain, {}}};
      if (op == Op::put) inputs.push_back({along, domain, {}});
      inputs.insert(inputs.end(), form.index.begin(), form.index.end());
      ops::Indexing indexing = form.indexing;
      indexing.accumulates = accumulates;
      result.push_back({op == Op::put ? fmt::format("{}, accumulates {}", form.name, accumulates) : form.name,
                        std::move(inputs), with(indexing)});
    }
  }
  return result;
}

std::vector<Sample> ordering(Op op, DType dtype) {
  const Domain domain = domain_of(op, 0, dtype);
  std::vector<Sample> result;
  for (const auto& [shape, axis] :
       {std::pair(Shape{4, 9}, 1), std::pair(Shape{5, 3, 2}, 0), std::pair(Shape{0, 3}, 1)}) {
    result.push_back(
        {fmt::format("{} axis {}", to_string(shape), axis), {{shape, domain, {}}}, with(ops::Axes{1U << axis})});
    if (op == Op::argsort) {
      result.push_back({fmt::format("{} axis {} descending", to_string(shape), axis),
                        {{shape, domain, {}}},
                        with(ops::Axes{1U << axis, true})});
      if (shape[axis] < 2) continue;
      result.push_back({fmt::format("{} axis {} first", to_string(shape), axis),
                        {{shape, domain, {}}},
                        with(ops::Axes{1U << axis, axis == 0, 2})});
    }
  }
  return result;
}

/// Matrices that can be factored well: their entries are small against their diagonals, whose own differ.
std::vector<Sample> factorisations(Op op) {
  const Domain matrix{-1, 1, false, 0, 4};
  const Domain right{-1, 1};
  const bool tall_and_wide = op == Op::qr || op == Op::svd;
  std::vector<Shape> shapes{{3, 3}, {1, 1}, {2, 4, 4}, {2, 3, 2, 2}, {0, 3, 3}, {2, 0, 0}, {17, 17}};
  if (tall_and_wide) shapes.insert(shapes.end(), {{5, 3}, {3, 5}, {2, 4, 2}, {20, 9}, {0, 3}, {3, 0}});
  std::vector<Sample> result;
  for (const Shape& shape : shapes) {
    const auto add = [&](const ops::Linalg& wanted, const char* what) {
      Sample sample{to_string(shape) + what, {{shape, matrix, {}}}, with(wanted)};
      if (op == Op::solve_triangular) {
        Shape sizes = shape;
        sizes[sizes.rank() - 1] = 2;
        sample.inputs.push_back({sizes, right, {}});
      }
      result.push_back(std::move(sample));
    };
    add({}, "");
    if (op == Op::eigh || op == Op::svd) add({.vectors = false}, " values");
    if (op == Op::lu) add({.invertible = true}, " invertible");
    if (op != Op::solve_triangular) continue;
    add({.upper = true}, " upper");
    if (shape.back() < 17) add({.unit = true}, " unit");  // no large diagonal: the solution of a large one grows
  }
  return result;
}

struct AttentionShape {
  Shape query;
  std::int64_t columns;
  std::int64_t values;
  ops::Attention attributes{};
  std::optional<Shape> mask{};
  bool additive = false;
};

std::vector<AttentionShape> attention_shapes() {
  return {
      {{1, 3, 2}, 4, 3, {.scale = 0.7}},
      {{1, 3, 2}, 4, 3, {.scale = 1.3, .dropout = 0.4}},
      {{1, 4, 2}, 3, 2, {.scale = 1, .causal = true}},
      {{3, 2}, 5, 2, {.scale = -0.5, .masked = true}, Shape{3, 5}},
      {{1, 3, 2}, 3, 2, {.scale = 1, .masked = true}, Shape{1, 1, 3}, true},
      {{2, 3, 17, 20}, 35, 9, {.scale = 0.2, .dropout = 0.25, .masked = true}, Shape{2, 1, 1, 35}},
      {{2, 40, 33}, 21, 40, {.scale = 0.17, .causal = true, .masked = true}, Shape{1, 40, 21}, true},
      {{1, 2, 9, 130}, 11, 5, {.scale = 0.1, .dropout = 0.5}},
  };
}

std::vector<Sample> attentions(Op op, DType dtype) {
  const Domain domain{-1, 1};
  std::vector<Sample> result;
  for (const AttentionShape& s : attention_shapes()) {
    ops::Attention attributes = s.attributes;
    if (op == Op::attention_logsumexp) attributes.dropout = 0;
    const ops::AttentionInputs at = ops::attention_inputs(op, attributes);
    const int rank = s.query.rank();
    const auto sized = [&](std::int64_t rows, std::int64_t columns) {
      Shape shape = s.query;
      shape[rank - 2] = rows;
      shape[rank - 1] = columns;
      return shape;
    };
    const std::int64_t rows = s.query[rank - 2];
    std::vector<Input> inputs(static_cast<std::size_t>(at.count));
    const auto set = [&](int place, Input input) {
      if (place >= 0) inputs[static_cast<std::size_t>(place)] = std::move(input);
    };
    set(at.query, {s.query, domain});
    set(at.key, {sized(s.columns, s.query.back()), domain});
    set(at.value, {sized(s.columns, s.values), domain});
    set(at.gradient, {sized(rows, s.values), domain});
    set(at.logsumexp, {sized(rows, 1), {1, 2}, {}, true});
    set(at.delta, {sized(rows, 1), domain, {}, true});
    if (at.mask >= 0 && s.additive) set(at.mask, {*s.mask, domain, {}, true});
    if (at.mask >= 0 && !s.additive) set(at.mask, {*s.mask, {0, 1, true}, DType::boolean});
    set(at.uniform, {sized(rows, s.columns), {0, 1}, dtype == DType::float64 ? DType::float64 : DType::float32});
    result.push_back({fmt::format("{} of {}{}{}{}", to_string(s.query), s.columns, attributes.causal ? " causal" : "",
                                  attributes.masked ? (s.additive ? " added mask" : " mask") : "",
                                  attributes.dropout > 0 ? " dropout" : ""),
                      inputs, with(attributes)});
  }
  return result;
}

std::vector<Sample> movement(Op op, DType dtype) {
  const Domain domain = domain_of(op, 0, dtype);
  const std::pair<Shape, ops::View> views[] = {
      {{5, 4}, {{1, 5}, 0, false}},   {{4, 2}, {{5, 2}, 1, false}}, {{20}, {{1}, 0, false}},
      {{2, 3}, {{10, -1}, 4, false}}, {{3, 2}, {{0, 1}, 2, false}}, {{}, {{}, 7, false}},
      {{0, 3}, {{1, 1}, 0, false}},   {{3, 3}, {{5, 1}, 1, false}},
  };
  std::vector<Sample> result;
  for (const auto& [shape, view] : views) {
    if (op == Op::strided) {
      Sample sample{to_string(shape), {{{4, 5}, domain, {}}}, with(view, shape)};
      result.push_back(sample);
    } else if (shape != Shape{3, 2}) {
      result.push_back({to_string(shape), {{{4, 5}, domain, {}}, {shape, domain, {}}}, with(view)});
    }
  }
  return result;
}

/// What `diagonal` adds to an element of matrices of these sizes.
double added_at(const Domain& domain, const Shape& sizes, std::int64_t position) {
  if (domain.diagonal == 0) return 0;
  const std::int64_t column = position % sizes.back();
  const std::int64_t row = position / sizes.back() % sizes[sizes.rank() - 2];
  if (row != column) return 0;
  const auto size = static_cast<double>(std::min(sizes.back(), sizes[sizes.rank() - 2]));
  return domain.diagonal * std::max(1.0, std::sqrt(size) / 2) * (1 + static_cast<double>(row) / size);
}

double value_at(const Domain& domain, int seed, std::int64_t position) {
  const double share = base::uniform_at(static_cast<std::uint64_t>(seed) + 1, 77, static_cast<std::uint64_t>(position));
  double value = domain.low + share * (domain.high - domain.low);
  if (domain.whole) value = std::floor(domain.low + share * (domain.high - domain.low + 1));
  if (std::abs(value) < domain.away_from)
    value = domain.whole ? 1 : (value < 0 ? value - domain.away_from : value + domain.away_from);
  return value;
}

}  // namespace

std::vector<Sample> samples(const ops::OpRow& row, DType dtype) {
  if (!takes(row, dtype)) return {};
  switch (row.family) {
    case Family::elementwise: return elementwise(row, dtype);
    case Family::reduction: return reductions(row, dtype);
    case Family::contraction: return row.op == Op::matmul ? products(dtype) : convolutions(row.op, dtype);
    case Family::window: return windows(row.op, dtype);
    case Family::indexing: return indexing(row.op, dtype);
    case Family::ordering: return ordering(row.op, dtype);
    case Family::movement: return movement(row.op, dtype);
    case Family::attention: return attentions(row.op, dtype);
    case Family::linalg: return factorisations(row.op);
    default: return {};
  }
}

Tensor make(const Input& input, DType dtype, DType stored, Layout layout, int seed, Device device, test::Pool* pool) {
  if (input.dtype) dtype = stored = *input.dtype;
  if (input.wide && size_of(stored) < 4) stored = DType::float32;
  const Domain& d = input.domain;
  const std::string key = pool == nullptr
                              ? ""
                              : fmt::format("{} {} {} {} {} {} {} {} {}", to_string(input.shape), d.low, d.high,
                                            d.whole, d.away_from, d.diagonal, name_of(dtype), name_of(stored), seed);
  return test::take(pool, key, [&] {
    std::vector<double> values;
    for (std::int64_t i = 0; i < numel(input.shape); ++i) {
      const double value = value_at(d, seed, i) + added_at(d, input.shape, i);
      visit_dtype(dtype,
                  [&]<class Element>() { values.push_back(convert_element<double>(convert_element<Element>(value))); });
    }
    return test::laid_out(golden::given(values, input.shape, stored, device), layout);
  });
}

double tolerance(const ops::OpRow& row, DType dtype) {
  switch (dtype) {
    case DType::bfloat16: return 1.0 / 128;
    case DType::float16: return 1.0 / 1024;
    case DType::float32: return std::max(row.tolerance.float32, 2.5e-7);
    case DType::float64: return std::max(row.tolerance.float64, 5e-16);
    default: return 0;
  }
}

}  // namespace russet::conformance
