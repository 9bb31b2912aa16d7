// Rows by index. An index outside the rows is an IndexError.
#include <fmt/format.h>

#include "device/reference/kernels.h"

namespace russet::reference {
namespace {

std::int64_t row_size(const Shape& shape) {
  std::int64_t size = 1;
  for (int axis = 1; axis < shape.rank(); ++axis) size *= shape[axis];
  return size;
}

Array<std::int64_t> checked_index(const Call& call) {
  Array<std::int64_t> index = call.input<std::int64_t>(1);
  const std::int64_t rows = call.input_shape(0)[0];
  for (std::size_t i = 0; i < index.values.size(); ++i) {
    if (index.values[i] >= 0 && index.values[i] < rows) continue;
    throw IndexError(fmt::format("{}: index {} (number {} of {}) is out of range for {} rows", ops::row(call.op()).name,
                                 index.values[i], i, index.values.size(), rows));
  }
  return index;
}

template <class T>
void take(const Call& call) {
  const Array<std::int64_t> index = checked_index(call);
  const Array<T> x = call.input<T>(0);
  const std::int64_t size = row_size(x.shape);
  Array<T> result(call.output_shape());
  for (std::size_t i = 0; i < index.values.size(); ++i) {
    for (std::int64_t j = 0; j < size; ++j) {
      result[static_cast<std::int64_t>(i) * size + j] = x[index.values[i] * size + j];
    }
  }
  call.output(result);
}

template <class T>
void put(const Call& call) {
  const Array<std::int64_t> index = checked_index(call);
  const bool accumulate = call.attribute<ops::Accumulate>().value;
  Array<T> result = call.input<T>(0);
  const Array<T> values = call.input<T>(2);
  const std::int64_t size = row_size(result.shape);
  for (std::size_t i = 0; i < index.values.size(); ++i) {
    for (std::int64_t j = 0; j < size; ++j) {
      T& element = result[index.values[i] * size + j];
      const T value = values[static_cast<std::int64_t>(i) * size + j];
      element = accumulate ? plus(element, value) : value;
    }
  }
  call.output(result);
}

}  // namespace

void run_indexing(const Call& call) {
  by_kind(call.output_type(), [&]<class T>(T) {
    if (call.op() == ops::Op::take) {
      take<T>(call);
    } else {
      put<T>(call);
    }
  });
}

}  // namespace russet::reference
