#include "graph/index_check.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "graph/capture.h"
#include "graph/executor.h"
#include "graph/geometry.h"
#include "ops/failures.h"
#include "ops/table.h"

namespace russet::graph {
namespace {

using ops::Op;

/// Bounds of an integer value, both included.
struct Bounds {
  std::int64_t low, high;
};

/// Bounds of a result that follow from the operator alone, whatever its inputs hold. With graph_mutex() held.
std::optional<Bounds> bounds_of(const Node& node) {
  const auto up_to = [](std::int64_t count) { return Bounds{0, std::max<std::int64_t>(count, 1) - 1}; };
  const auto attributes = [&] { return std::get<ops::Axes>(node.attributes); };
  switch (node.op) {
    case Op::iota: return up_to(numel(node.shape));
    case Op::argsort:
      if (attributes().first == 0) return up_to(node.shape[std::countr_zero(attributes().mask)]);
      [[fallthrough]];
    case Op::argmax:
    case Op::argmin: {
      if (node.materialised()) return std::nullopt;
      const Shape& from = node.inputs()[0]->shape;
      const std::uint32_t mask = attributes().mask;
      return up_to(std::popcount(mask) == 1 ? from[std::countr_zero(mask)] : numel(from));
    }
    case Op::constant: {
      const std::int64_t number = std::get<ops::Number>(node.attributes).integer;
      return Bounds{number, number};
    }
    default: return std::nullopt;
  }
}

/// Whether a pending node only gives integers a wider type. With graph_mutex() held.
bool widens(const Node& node) {
  if (node.op != Op::cast) return false;
  const DType from = node.inputs()[0]->dtype;
  return is_integral(from) && is_integral(node.dtype) && size_of(node.dtype) > size_of(from);
}

/// A value through the view and the casts that lead to it.
struct Source {
  NodeRef base;
  Geometry geometry;  // the value's elements in the base's row-major order
  std::optional<Bounds> bounds;
};

Source source_of(const NodeRef& value) {
  Source source{value, Geometry::contiguous(value->shape), {}};
  bool viewed = false;
  const std::lock_guard lock(graph_mutex());
  while (source.base->state() == Node::State::pending) {
    const Node& node = *source.base;
    if (node.op == Op::strided && !viewed) {
      const auto& view = std::get<ops::View>(node.attributes);
      const std::int64_t offset = view.dynamic ? static_cast<std::int64_t>(node.argument) : view.offset;
      source.geometry = {node.shape, view.strides, offset};
      viewed = true;
    } else if (!widens(node)) {
      break;
    }
    source.base = NodeRef(node.inputs()[0]);
  }
  // Memory that is visible outside may hold anything by now.
  const bool is_exposed = source.base->materialised() && source.base->buffer()->pinned();
  if (!is_exposed && !source.base->failed()) source.bounds = bounds_of(*source.base);
  return source;
}

template <class Element>
std::optional<Stray> find_stray_of(const std::byte* memory, const Geometry& geometry, std::int64_t low,
                                   std::int64_t high, std::optional<std::int64_t> except) {
  constexpr auto bytes = static_cast<std::int64_t>(sizeof(Element));
  const Shape& sizes = geometry.sizes;
  const int last = sizes.rank() - 1;
  const std::int64_t row = last < 0 ? 1 : sizes[last];
  const std::int64_t step = last < 0 ? 0 : geometry.strides[last] * bytes;
  const std::int64_t count = numel(sizes);
  Dims index = Dims::filled(sizes.rank(), 0);
  const std::byte* begin = memory + geometry.offset * bytes;
  for (std::int64_t place = 0; place < count; place += row) {
    const std::byte* at = begin;
    for (std::int64_t i = 0; i < row; ++i, at += step) {
      Element element;
      std::memcpy(&element, at, sizeof(Element));
      const auto value = convert_element<std::int64_t>(element);
      if ((value < low || value >= high) && value != except) return Stray{value, place + i};
    }
    for (int axis = last - 1; axis >= 0; --axis) {
      const bool wraps = ++index[axis] == sizes[axis];
      begin += (wraps ? 1 - sizes[axis] : 1) * geometry.strides[axis] * bytes;
      if (!wraps) break;
      index[axis] = 0;
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<Stray> find_stray(const std::byte* memory, DType dtype, const Geometry& geometry, std::int64_t low,
                                std::int64_t high, std::optional<std::int64_t> except) {
  std::optional<Stray> found;
  visit_dtype(dtype, [&]<class Element>() {
    if constexpr (std::is_integral_v<Element>) {
      found = find_stray_of<Element>(memory, geometry, low, high, except);
    }
  });
  return found;
}

RangeCheck check_range(const NodeRef& value, std::int64_t low, std::int64_t high, std::optional<std::int64_t> except) {
  const Executor& executor = executor_of(value->device);
  if (!executor.runs()) return {.is_known = true};
  const Source source = source_of(value);
  const Node& base = *source.base;
  if (source.bounds && source.bounds->low >= low && source.bounds->high < high) return {.is_known = true};
  if (!base.materialised()) return {};
  const std::size_t bytes = static_cast<std::size_t>(numel(base.shape)) * size_of(base.dtype);
  const std::shared_ptr<const std::byte> memory = executor.peek(*base.buffer(), bytes);
  if (!memory) return {};
  const std::optional<Stray> stray = find_stray(memory.get(), base.dtype, source.geometry, low, high, except);
  if (Capture* const capture = Capture::current()) capture->note_range({source.geometry, low, high, except}, base);
  return {.is_known = !stray, .stray = stray};
}

bool check_indices(ops::Op op, std::span<const NodeRef> inputs, const ops::Indexing& indexing) {
  const Shape& array = inputs[0]->shape;
  std::size_t next = op == Op::take ? 1 : 2;
  bool all_known = true;
  for (int axis = 0; axis < indexing.axes; ++axis) {
    if (!indexing.is_by_tensor(axis)) continue;
    const NodeRef& index = inputs[next++];
    const RangeCheck range = check_range(index, indexing.from_end ? -array[axis] : 0, array[axis]);
    if (range.stray) {
      ops::throw_out_of_range(ops::row(op).name, range.stray->value, axis, array[axis], range.stray->place,
                              numel(index->shape));
    }
    all_known &= range.is_known;
  }
  return all_known;
}

}  // namespace russet::graph
