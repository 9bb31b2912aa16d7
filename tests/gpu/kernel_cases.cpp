#include "gpu/kernel_cases.h"

#include <fmt/format.h>

#include <cmath>

#include "ops/attention.h"
#include "ops/table.h"

namespace russet::gputest {

using ops::Op;
using ops::Window;

/// Half an ulp of the type, and what float32 sums lose.
double tolerance(DType type) {
  switch (type) {
    case DType::float32: return 1e-5;
    case DType::float16: return 1e-5 + 1.0 / 2048;
    case DType::bfloat16: return 1e-5 + 1.0 / 256;
    default: return 0;
  }
}

namespace {

Fill fill_for(DType type) {
  if (type == DType::boolean) return {0, 1, true};
  if (type == DType::uint8) return {0, 9, true};
  return {-2, 2, !is_floating(type)};
}

}  // namespace

Array array(DType type, const Shape& sizes, Layout layout) { return {type, sizes, layout, fill_for(type)}; }

Case product(DType type, const Shape& left, const Shape& right, const Shape& result, Layout left_layout,
             Layout right_layout) {
  Case one;
  one.name = fmt::format("matmul {} {} x {} {} {}", name_of(type), to_string(left), to_string(right),
                         name_of(left_layout), name_of(right_layout));
  one.op = Op::matmul;
  one.inputs = {array(type, left, left_layout), array(type, right, right_layout)};
  one.output = array(type, result);
  one.tolerance = tolerance(type);
  one.scale = std::sqrt(static_cast<double>(left.back()));
  return one;
}

/// The convolution and both gradients.
void add_convolutions(std::vector<Case>& cases, DType type, const ConvolutionShape& s, Layout layout) {
  const auto extent = [&](std::int64_t large, std::int64_t kernel, std::size_t axis) {
    return ops::window_output(large, kernel, s.window.stride[axis], s.window.padding[axis],
                              s.window.padding_after[axis], s.window.dilation[axis]);
  };
  const Shape x{s.images, s.inputs, s.height, s.width};
  const Shape weight{s.outputs, s.inputs / s.window.groups, s.kernel_height, s.kernel_width};
  const Shape y{s.images, s.outputs, extent(s.height, s.kernel_height, 0), extent(s.width, s.kernel_width, 1)};
  Case one;
  one.attributes = s.window;
  one.tolerance = tolerance(type);
  const auto add = [&](Op op, const Shape& first, const Shape& second, const Shape& result, double terms) {
    one.op = op;
    one.name =
        fmt::format("{} {} x {} y {} w {} stride {} padding {} {}", ops::row(op).name, name_of(type), to_string(x),
                    to_string(y), to_string(weight), s.window.stride[0], s.window.padding[0], name_of(layout));
    one.inputs = {array(type, first, layout),
                  array(type, second, op == Op::convolution_weight ? layout : Layout::contiguous)};
    one.output = array(type, result, op == Op::convolution_weight ? Layout::contiguous : layout);
    one.scale = std::sqrt(terms);
    cases.push_back(one);
  };
  const double area = static_cast<double>(s.kernel_height * s.kernel_width);
  add(Op::convolution, x, weight, y, area * static_cast<double>(weight[1]));
  add(Op::convolution_input, y, weight, x, area * static_cast<double>(s.outputs));
  add(Op::convolution_weight, x, y, weight, static_cast<double>(y[0] * y[2] * y[3]));
}

void add_updates(std::vector<Case>& cases, DType type) {
  const std::size_t first = cases.size();
  cases.push_back(product(type, {70, 47}, {47, 75}, {70, 75}, Layout::contiguous, Layout::contiguous));
  cases.push_back(product(type, {20, 1500}, {1500, 70}, {20, 70}, Layout::contiguous, Layout::reversed));
  cases.push_back(product(type, {5, 30}, {30, 3}, {5, 3}, Layout::contiguous, Layout::contiguous));
  add_convolutions(cases, type, {2, 9, 12, 11, 17, 3, 3, {.padding = {1, 1}, .padding_after = {1, 1}}},
                   Layout::contiguous);
  for (std::size_t i = first; i < cases.size(); ++i) cases[i].updates = true;
}

void add_storing(std::vector<Case>& cases, DType type) {
  const std::size_t first = cases.size();
  cases.push_back(product(type, {70, 47}, {47, 75}, {70, 75}, Layout::contiguous, Layout::contiguous));
  cases.push_back(product(type, {33, 47}, {47, 35}, {33, 35}, Layout::flipped, Layout::reversed));
  cases.push_back(product(type, {20, 1500}, {1500, 70}, {20, 70}, Layout::contiguous, Layout::contiguous));
  cases.push_back(product(type, {2, 9, 20}, {2, 20, 80}, {2, 9, 80}, Layout::contiguous, Layout::contiguous));
  add_convolutions(cases, type, {2, 16, 5, 7, 72, 1, 1, {.kernel = {1, 1}}}, Layout::channels_last);
  for (std::size_t i = first; i < cases.size(); ++i) cases[i].prologues = cases[i].storing = true;
}

namespace {

Shape pooled(const Shape& x, const Window& window) {
  Shape y = x;
  for (int axis = 0; axis < 2; ++axis) {
    const auto i = static_cast<std::size_t>(axis);
    y[2 + axis] = ops::window_output(x[2 + axis], window.kernel[i], window.stride[i], window.padding[i],
                                     window.padding_after[i], window.dilation[i]);
  }
  return y;
}

}  // namespace

void add_pools_with_positions(std::vector<Case>& cases, DType type, const Shape& x, const Window& window,
                              Layout layout) {
  const Shape y = pooled(x, window);
  Case one;
  one.attributes = window;
  one.tolerance = tolerance(type);
  Array image = array(type, x, layout);
  image.fill.whole = true;
  image.fill.nan_share = 0.1;
  const double taps = static_cast<double>(window.kernel[0]) * window.kernel[1];
  const Array positions{DType::uint8, y, layout, {0, taps - 1, true}};
  one.op = Op::max_pool;
  one.name = fmt::format("max_pool with positions {} {} {}", name_of(type), to_string(x), name_of(layout));
  one.inputs = {image, image};
  one.output = array(type, y, layout);
  one.companions = {{Op::argmax, positions, {0}}};
  cases.push_back(one);
  set_margin(cases.back(), 8);
  cases.back().companions[0].output.margin = 8;
  one.op = Op::max_unpool;
  one.name = fmt::format("max_unpool by positions {} {} {}", name_of(type), to_string(x), name_of(layout));
  one.companions.clear();
  one.inputs = {positions, array(type, y, layout)};
  one.output = array(type, x, layout);
  cases.push_back(one);
  set_margin(cases.back(), 8);
}

void add_pools(std::vector<Case>& cases, DType type, const Shape& x, const Window& window, Layout layout,
               bool maxima_only) {
  const Shape y = pooled(x, window);
  Case one;
  one.attributes = window;
  one.tolerance = tolerance(type);
  const auto add = [&](Op op, std::vector<Shape> inputs, const Shape& result) {
    one.op = op;
    one.name = fmt::format("{} {} {} kernel {} stride {} {}", ops::row(op).name, name_of(type), to_string(x),
                           window.kernel[0], window.stride[0], name_of(layout));
    one.inputs.clear();
    for (const Shape& shape : inputs) one.inputs.push_back(array(type, shape, layout));
    // Few different numbers, so that windows have several maxima, and NaN among them.
    if (op == Op::max_pool || op == Op::max_unpool) one.inputs[0].fill.whole = true;
    if (is_floating(type) && op == Op::max_pool) one.inputs[0].fill.nan_share = 0.1;
    one.output = array(type, result, layout);
    cases.push_back(one);
  };
  add(Op::max_pool, {x, x}, y);
  add(Op::max_unpool, {x, y}, x);
  if (maxima_only) return;
  for (const int bias_axis : {-1, 1}) {
    if (bias_axis >= 0 && !is_floating(type)) return;
    one.bias_axis = bias_axis;
    add(Op::sum_pool, {x}, y);
    add(Op::sum_unpool, {y}, x);
  }
}

Case by_index(Op op, DType type, const Shape& x, const ops::Indexing& indexing, const std::vector<Shape>& index,
              Layout layout, DType index_type) {
  Shape along = indexing.lead;
  for (int axis = indexing.axes; axis < x.rank(); ++axis) along.push_back(x[axis]);
  Case one;
  one.op = op;
  one.attributes = indexing;
  one.name = fmt::format("{} {} {} lead {} {}{}", ops::row(op).name, name_of(type), to_string(x),
                         to_string(indexing.lead), name_of(layout), indexing.accumulates ? " adding" : "");
  one.inputs = {array(type, x, layout)};
  if (op == Op::put) one.inputs.push_back(array(type, along, layout));
  auto sizes = index.begin();
  for (int axis = 0; axis < indexing.axes; ++axis) {
    if (!indexing.is_by_tensor(axis)) continue;
    one.name += fmt::format(" index {}", to_string(*sizes));
    const auto size = static_cast<double>(x[axis]);
    one.inputs.push_back({index_type, *sizes++, layout, {indexing.from_end ? -size : 0, size - 1, true}});
  }
  one.output = array(type, op == Op::put ? x : along, layout);
  one.tolerance = indexing.accumulates ? tolerance(type) : 0;
  return one;
}

Case rows_by_index(Op op, DType type, const Shape& x, const Shape& index, Layout layout, bool adds) {
  return by_index(op, type, x, {.lead = index, .accumulates = adds}, {index}, layout);
}

void add_indexing(std::vector<Case>& cases, DType type, Layout layout) {
  constexpr std::int8_t tensor = ops::Indexing::by_tensor;
  for (const bool adds : {false, true}) {
    const auto add = [&](const Shape& x, ops::Indexing indexing, const std::vector<Shape>& index, DType index_type) {
      indexing.accumulates = adds;
      if (!adds) cases.push_back(by_index(Op::take, type, x, indexing, index, layout, index_type));
      cases.push_back(by_index(Op::put, type, x, indexing, index, layout, index_type));
    };
    // gather and scatter; index_select on the middle axis; two tensors that broadcast; a mask of axes.
    add({4, 7, 5}, {.lead = {3, 9, 5}, .axes = 3, .sources = {0, tensor, 2}}, {{3, 9, 5}}, DType::int64);
    add({4, 7, 5}, {.lead = {4, 11}, .axes = 2, .sources = {0, tensor}}, {{11}}, DType::int32);
    add({4, 7, 5}, {.lead = {6, 3}, .axes = 2, .sources = {tensor, tensor}, .from_end = true}, {{6, 1}, {3}},
        DType::int64);
    add({4, 7, 5}, {.lead = {6, 7}, .axes = 3, .sources = {tensor, 1, tensor}, .from_end = true}, {{6, 1}, {6, 1}},
        DType::int16);
  }
}

namespace {

/// An operator of attention, and what its kernel computes along.
Case attention_of(DType type, const AttentionShape& s, Layout layout, Op op, const std::vector<Op>& companions) {
  const auto sized = [&](std::int64_t rows, std::int64_t columns) {
    Shape shape = s.batch;
    shape.push_back(rows);
    shape.push_back(columns);
    return shape;
  };
  const auto result_of = [&](Op op) {
    switch (op) {
      case Op::attention: return array(type, sized(s.rows, s.values), layout);
      case Op::attention_logsumexp: return array(DType::float32, sized(s.rows, 1), layout);
      case Op::attention_query_gradient: return array(type, sized(s.rows, s.width), layout);
      case Op::attention_key_gradient: return array(type, sized(s.columns, s.width), layout);
      default: return array(type, sized(s.columns, s.values), layout);
    }
  };
  ops::Attention attributes{.scale = 0.8 / std::sqrt(static_cast<double>(s.width)),
                            .dropout = op == Op::attention_logsumexp ? 0 : s.dropout,
                            .causal = s.causal,
                            .masked = s.mask.has_value()};
  const ops::AttentionInputs at = ops::attention_inputs(op, attributes);
  Case one;
  one.op = op;
  one.name = fmt::format("{}{} {} {} {}x{} of {} and {}{}{}{}", ops::row(op).name,
                         companions.empty() ? "" : fmt::format(" and {} more", companions.size()), name_of(type),
                         to_string(s.batch), s.rows, s.columns, s.width, s.values, s.causal ? " causal" : "",
                         s.mask ? " masked" : "", s.dropout > 0 ? " dropout" : "");
  one.attributes = attributes;
  one.tolerance = tolerance(type);
  one.inputs.resize(static_cast<std::size_t>(at.count));
  const auto set = [&](int place, Array given) {
    if (place >= 0) one.inputs[static_cast<std::size_t>(place)] = std::move(given);
  };
  set(at.query, array(type, sized(s.rows, s.width), layout));
  set(at.key, array(type, sized(s.columns, s.width), layout));
  set(at.value, array(type, sized(s.columns, s.values), layout));
  set(at.gradient, array(type, sized(s.rows, s.values), layout));
  set(at.logsumexp, {DType::float32, sized(s.rows, 1), layout, {2, 4}});
  set(at.delta, array(DType::float32, sized(s.rows, 1), layout));
  if (s.mask) set(at.mask, array(s.additive ? DType::float32 : DType::boolean, *s.mask, layout));
  set(at.uniform, {DType::float32, sized(s.rows, s.columns), Layout::contiguous, {0, 1}});
  if (s.draws && at.uniform >= 0) one.drawn = 5;
  one.output = result_of(op);
  for (const Op companion : companions) {
    const bool statistics = companion == Op::attention_logsumexp;
    std::vector<int> places{at.query, at.key};
    if (companion == Op::attention_query_gradient) places.push_back(at.value);
    if (!statistics) places.insert(places.end(), {at.gradient, at.logsumexp});
    if (companion == Op::attention_query_gradient) places.push_back(at.delta);
    if (at.mask >= 0) places.push_back(at.mask);
    if (!statistics && at.uniform >= 0) places.push_back(at.uniform);
    one.companions.push_back({companion, result_of(companion), {}});
    for (const int place : places) one.companions.back().inputs.push_back(static_cast<std::size_t>(place));
  }
  return one;
}

}  // namespace

void add_attentions(std::vector<Case>& cases, DType type, const AttentionShape& s, Layout layout) {
  const auto add = [&](Op op, const std::vector<Op>& companions) {
    cases.push_back(attention_of(type, s, layout, op, companions));
  };
  add(Op::attention, {});
  add(Op::attention_logsumexp, {});
  add(Op::attention, {Op::attention_logsumexp});
  add(Op::attention_query_gradient, {});
  add(Op::attention_key_gradient, {});
  add(Op::attention_value_gradient, {});
  add(Op::attention_key_gradient, {Op::attention_value_gradient});
}

Case attention_gradients_at_once(DType type, const AttentionShape& s) {
  return attention_of(type, s, Layout::contiguous, Op::attention_key_gradient,
                      {Op::attention_value_gradient, Op::attention_query_gradient});
}

Case along_axis(Op op, DType type, const Shape& x, int axis, Layout layout, bool descending, std::int64_t first) {
  Case one;
  one.op = op;
  one.name = fmt::format("{} {} {} axis {} {}", ops::row(op).name, name_of(type), to_string(x), axis, name_of(layout));
  one.attributes = ops::Axes{1U << axis, descending, first};
  one.inputs = {array(type, x, layout)};
  Shape sizes = x;
  if (first != 0) sizes[axis] = first;
  one.output = array(op == Op::argsort ? DType::int64 : is_floating(type) ? type : DType::int64, sizes);
  if (op == Op::argsort) {
    one.inputs[0].fill = {type == DType::uint8 || type == DType::boolean ? 0.0 : -9.0,
                          type == DType::boolean ? 1.0 : 9.0, true};
    if (is_floating(type)) one.inputs[0].fill.nan_share = 0.05;
  } else {
    one.tolerance = tolerance(type);
    one.scale = std::sqrt(static_cast<double>(x.empty() ? 1 : x[axis]));
  }
  return one;
}

void set_margin(Case& one, std::int64_t margin) {
  for (Array& input : one.inputs) input.margin = margin;
  one.output.margin = margin;
  for (Companion& companion : one.companions) companion.output.margin = margin;
}

void put_on_tensor_cores(Case& one) {
  one.fragments = true;
  one.tolerance *= 2;
}

void put_on_tensor_cores_in_vectors_too(std::vector<Case>& cases) {
  for (Case& one : cases) put_on_tensor_cores(one);
  const std::size_t count = cases.size();
  for (std::size_t i = 0; i < count; ++i) {
    cases.push_back(cases[i]);
    set_margin(cases.back(), 8);
  }
}

void put_on_warpgroups(Case& one) {
  one.warpgroups = true;
  one.tolerance *= 2;
}

void put_on_samples(std::vector<Case>& cases) {
  std::erase_if(cases, [](const Case& one) { return one.op == Op::convolution_weight; });
  for (Case& one : cases) one.by_samples = true;
}

}  // namespace russet::gputest
