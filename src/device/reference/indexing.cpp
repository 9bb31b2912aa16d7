// Elements by index. An index outside its axis is an IndexError.
#include "ops/indexing.h"
#include "device/reference/kernels.h"
#include "graph/strided.h"
#include "ops/failures.h"

namespace russet::reference {
namespace {

/// Where in the array, in row-major order, each place of the index begins to take or put; `first`: the first index
/// tensor.
std::vector<std::int64_t> places(const PrimitiveRun& primitive, const Shape& array, int first) {
  const auto& indexing = primitive.attribute<ops::Indexing>();
  const std::int64_t count = numel(indexing.lead);
  std::vector<std::int64_t> places(static_cast<std::size_t>(count), 0);
  const Strides array_strides = contiguous_strides(array);
  for (int axis = 0; axis < indexing.axes; ++axis) {
    const std::int64_t size = array[axis];
    if (!indexing.is_by_tensor(axis)) {
      Strides along = Strides::filled(indexing.lead.rank(), 0);
      along[indexing.sources[static_cast<std::size_t>(axis)]] = array_strides[axis];
      walk(indexing.lead, along, [&](std::int64_t i, std::int64_t at) { places[static_cast<std::size_t>(i)] += at; });
      continue;
    }
    const Array<std::int64_t> index = primitive.input<std::int64_t>(first++);
    const Strides strides = graph::broadcast_strides(index.shape, contiguous_strides(index.shape), indexing.lead);
    walk(indexing.lead, strides, [&](std::int64_t i, std::int64_t at) {
      const std::int64_t position = ops::named_position(index[at], size, indexing.from_end);
      if (position < 0) ops::throw_out_of_range(ops::row(primitive.op()).name, index[at], axis, size, i, count);
      places[static_cast<std::size_t>(i)] += position * array_strides[axis];
    });
  }
  return places;
}

/// How many elements each entry of the index takes or puts.
std::int64_t elements_of_a_place(const PrimitiveRun& primitive, const Shape& array) {
  std::int64_t size = 1;
  for (int axis = primitive.attribute<ops::Indexing>().axes; axis < array.rank(); ++axis) size *= array[axis];
  return size;
}

template <class T>
void take(const PrimitiveRun& primitive) {
  const Array<T> x = primitive.input<T>(0);
  const std::vector<std::int64_t> from = places(primitive, x.shape, 1);
  const std::int64_t size = elements_of_a_place(primitive, x.shape);
  Array<T> result(primitive.output_shape());
  for (std::size_t i = 0; i < from.size(); ++i) {
    for (std::int64_t j = 0; j < size; ++j) result[static_cast<std::int64_t>(i) * size + j] = x[from[i] + j];
  }
  primitive.output(result);
}

template <class T>
void put(const PrimitiveRun& primitive) {
  Array<T> result = primitive.input<T>(0);
  const Array<T> values = primitive.input<T>(1);
  const std::vector<std::int64_t> to = places(primitive, result.shape, 2);
  const std::int64_t size = elements_of_a_place(primitive, result.shape);
  const bool accumulate = primitive.attribute<ops::Indexing>().accumulates;
  for (std::size_t i = 0; i < to.size(); ++i) {
    for (std::int64_t j = 0; j < size; ++j) {
      T& element = result[to[i] + j];
      const T value = values[static_cast<std::int64_t>(i) * size + j];
      element = accumulate ? plus(element, value) : value;
    }
  }
  primitive.output(result);
}

}  // namespace

void run_indexing(const PrimitiveRun& primitive) {
  by_kind(primitive.output_type(), [&]<class T>(T) {
    if (primitive.op() == ops::Op::take) {
      take<T>(primitive);
    } else {
      put<T>(primitive);
    }
  });
}

}  // namespace russet::reference
