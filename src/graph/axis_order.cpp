#include "graph/axis_order.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace russet::graph {
namespace {

using Operands = std::span<const Geometry* const>;

/// The axes from the innermost outwards, sorted by insertion with comparisons that may leave the order open: `compare`
/// says 1 if its first axis belongs outside the second, -1 inside, 0 if it cannot tell.
template <class Compare>
Dims sorted_axes(int rank, Compare compare) {
  Dims order = Dims::filled(rank, 0);
  for (int i = 0; i < rank; ++i) order[i] = rank - 1 - i;
  for (int i = 1; i < rank; ++i) {
    int moved = i;
    for (int other = i - 1; other >= 0; --other) {
      const int comparison = compare(static_cast<int>(order[other]), static_cast<int>(order[moved]));
      if (comparison < 0) break;
      if (comparison == 0) continue;
      std::swap(order[other], order[moved]);
      moved = other;
    }
  }
  return order;
}

Strides strides_in(const Dims& order, const Shape& sizes) {
  Strides strides = Strides::filled(sizes.rank(), 1);
  std::int64_t next = 1;
  for (const std::int64_t entry : order) {
    const int axis = static_cast<int>(entry);
    strides[axis] = next;
    next *= std::max<std::int64_t>(sizes[axis], 1);
  }
  return strides;
}

/// The stride of an operand along an axis of the result, 0 where it is broadcast.
std::int64_t stride_at(const Geometry& operand, const Shape& sizes, int axis) {
  const int own = axis - (sizes.rank() - operand.sizes.rank());
  if (own < 0 || (operand.sizes[own] == 1 && sizes[axis] != 1)) return 0;
  return operand.strides[own];
}

Dims iteration_order(const Shape& sizes, Operands operands) {
  return sorted_axes(sizes.rank(), [&](int a, int b) {
    for (const Geometry* operand : operands) {
      const std::int64_t stride_a = stride_at(*operand, sizes, a);
      const std::int64_t stride_b = stride_at(*operand, sizes, b);
      if (stride_a == 0 || stride_b == 0) continue;
      if (stride_a != stride_b) return stride_a < stride_b ? -1 : 1;
      if (sizes[a] > sizes[b]) return 1;
    }
    return 0;
  });
}

/// Row-major with what contiguous_strides says for axes of size 1, too.
bool is_plain(const Geometry& geometry) {
  std::int64_t expected = 1;
  for (int axis = geometry.sizes.rank() - 1; axis >= 0; --axis) {
    if (geometry.strides[axis] != expected) return false;
    expected *= std::max<std::int64_t>(geometry.sizes[axis], 1);
  }
  return true;
}

constexpr std::int64_t channels_last[] = {1, 3, 2, 0};  // from the innermost axis outwards

bool is_channels_last(const Geometry& geometry) {
  std::int64_t expected = 1;
  for (const std::int64_t entry : channels_last) {
    const int axis = static_cast<int>(entry);
    if (geometry.sizes[axis] != 1 && geometry.strides[axis] != expected) return false;
    expected *= geometry.sizes[axis];
  }
  return true;
}

template <class Holds>
bool all_of(Operands operands, Holds holds) {
  return std::all_of(operands.begin(), operands.end(), [&](const Geometry* operand) { return holds(*operand); });
}

}  // namespace

bool is_dense(const Geometry& geometry) {
  if (is_contiguous(geometry)) return true;
  std::int64_t expected = 1;
  const Dims order = memory_order(geometry.strides);
  for (int i = order.rank() - 1; i >= 0; --i) {
    const int axis = static_cast<int>(order[i]);
    if (geometry.sizes[axis] == 1) continue;
    if (geometry.strides[axis] != expected) return false;
    expected *= geometry.sizes[axis];
  }
  return true;
}

bool are_plain(Operands inputs) { return all_of(inputs, is_plain); }

// The order of the cases is TensorIterator's: operands of one shape that agree are not sorted.
Strides result_strides(const Shape& sizes, Operands inputs) {
  if (are_plain(inputs) || numel(sizes) == 0) return contiguous_strides(sizes);
  if (all_of(inputs, [&](const Geometry& input) { return input.sizes == sizes; })) {
    if (all_of(inputs, is_contiguous)) return contiguous_strides(sizes);
    if (sizes.rank() == 4 && all_of(inputs, is_channels_last)) return strides_in(Dims(channels_last), sizes);
    const Strides& first = inputs.front()->strides;
    if (all_of(inputs, [&](const Geometry& input) { return is_dense(input) && input.strides == first; })) return first;
  }
  return strides_in(iteration_order(sizes, inputs), sizes);
}

Strides copy_strides(const Geometry& geometry) {
  if (numel(geometry.sizes) == 0) return contiguous_strides(geometry.sizes);
  if (is_dense(geometry)) return geometry.strides;
  const Geometry* const only = &geometry;
  return strides_in(iteration_order(geometry.sizes, {&only, 1}), geometry.sizes);
}

Dims memory_order(const Strides& strides) {
  Dims order = Dims::filled(strides.rank(), 0);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    return strides[static_cast<int>(a)] > strides[static_cast<int>(b)];
  });
  return order;
}

Geometry reordered(const Geometry& geometry, const Dims& order) {
  const int missing = order.rank() - geometry.sizes.rank();
  Geometry result{Shape::filled(order.rank(), 1), Strides::filled(order.rank(), 0), geometry.offset};
  for (int i = 0; i < order.rank(); ++i) {
    const int own = static_cast<int>(order[i]) - missing;
    if (own < 0) continue;
    result.sizes[i] = geometry.sizes[own];
    result.strides[i] = geometry.strides[own];
  }
  return result;
}

}  // namespace russet::graph
