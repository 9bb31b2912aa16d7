// Operators whose result's shape depends on data: they wait for their input.
#include <fmt/format.h>
#include <russet/functional/comparison.h>
#include <russet/functional/creation.h>
#include <russet/functional/indexing.h>
#include <russet/functional/movement.h>
#include <russet/functional/ordering.h>
#include <russet/functional/reduction.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include "functional/scan.h"

namespace russet {
namespace {

using Integers = std::vector<std::int64_t>;

void require_values(const char* function, const Tensor& x) {
  if (x.device().type != DeviceType::null) return;
  throw DeviceError(fmt::format("{}: the result's shape depends on values, and the null device has none", function));
}

Tensor on(Device device, const Integers& values, const Shape& sizes) {
  return Tensor::from(std::span<const std::int64_t>(values), sizes, device);
}

}  // namespace

Tensor nonzero(const Tensor& x) {
  require_values("nonzero", x);
  const std::vector<std::byte> holds = functional::truth(x).to_bytes();
  const int rank = x.dim();
  Integers found;
  Dims place = Dims::filled(rank, 0);
  for (const std::byte value : holds) {
    if (value != std::byte{0}) found.insert(found.end(), place.begin(), place.end());
    for (int axis = rank - 1; axis >= 0; --axis) {
      if (++place[axis] < x.sizes()[axis]) break;
      place[axis] = 0;
    }
  }
  const auto count = rank == 0 ? static_cast<std::int64_t>(holds.front() != std::byte{0})
                               : static_cast<std::int64_t>(found.size()) / rank;
  return on(x.device(), found, {count, rank});
}

Tensor masked_select(const Tensor& x, const Tensor& mask) {
  if (mask.dtype() != DType::boolean) {
    throw TypeError(fmt::format("masked_select: the mask is bool, not {}", name_of(mask.dtype())));
  }
  require_values("masked_select", mask);
  const std::vector<Tensor> both = broadcast_tensors({x, mask});
  const Tensor places = nonzero(both[1].flatten()).flatten();
  return index_select(both[0].flatten(), 0, places);
}

Tensor one_hot(const Tensor& x, std::int64_t classes) {
  functional::require_index_type("one_hot", x);
  std::int64_t count = classes;
  if (classes == -1) {
    require_values("one_hot", x);
    if (x.numel() == 0) throw ValueError("one_hot: the number of classes does not follow from no elements: pass it");
    count = amax(x).item<std::int64_t>() + 1;
  }
  if (count < 1) throw ValueError(fmt::format("one_hot: {} classes", count));
  // Written by position rather than compared with each class: a class out of range is an error, not a row of zeros.
  Shape sizes = x.sizes();
  sizes.push_back(count);
  return scatter(functional::constant(0, DType::int64, x.device(), sizes), -1, x.unsqueeze(-1), 1);
}

namespace {

/// Rows of `width` values, one behind the other.
template <class T>
struct Rows {
  std::vector<T> values;
  std::int64_t count;
  std::size_t width;

  std::span<const T> operator[](std::int64_t row) const {
    return std::span(values).subspan(static_cast<std::size_t>(row) * width, width);
  }
};

/// NaN counts as larger than every number.
template <class T>
bool precedes(T left, T right) {
  return right != right ? left == left : left < right;
}

/// Positions of rows in ascending order.
template <class T>
Integers sorted_positions(const Rows<T>& rows) {
  Integers order(static_cast<std::size_t>(rows.count));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    const auto left = rows[a];
    const auto right = rows[b];
    return std::lexicographical_compare(left.begin(), left.end(), right.begin(), right.end(), precedes<T>);
  });
  return order;
}

/// Where each distinct row first stands, and what unique_with_counts answers besides.
struct Distinct {
  Integers first;
  Integers inverse;
  Integers counts;
};

template <class T>
Distinct distinct(const Rows<T>& rows) {
  Distinct result;
  result.inverse.resize(static_cast<std::size_t>(rows.count));
  std::int64_t previous = -1;
  for (const std::int64_t position : sorted_positions(rows)) {
    // Rows with a NaN are distinct, as in PyTorch.
    if (previous < 0 || !std::ranges::equal(rows[previous], rows[position])) {
      result.first.push_back(position);
      result.counts.push_back(0);
    }
    ++result.counts.back();
    result.inverse[static_cast<std::size_t>(position)] = static_cast<std::int64_t>(result.first.size()) - 1;
    previous = position;
  }
  return result;
}

/// Of the slices along `axis`.
Distinct distinct_of(const Tensor& x, int axis) {
  const std::int64_t count = x.size(axis);
  const std::int64_t width = count > 0 ? x.numel() / count : 0;
  if (count > 0 && width == 0) {
    throw ShapeError(
        fmt::format("unique: slices of {} along dimension {} have no elements", to_string(x.sizes()), axis));
  }
  const Tensor rows = movedim(x, axis, 0);
  const auto size = static_cast<std::size_t>(width);
  if (is_floating(x.dtype())) return distinct(Rows<double>{rows.to_vector<double>(), count, size});
  return distinct(Rows<std::int64_t>{rows.to_vector<std::int64_t>(), count, size});
}

}  // namespace

UniqueResult unique_with_counts(const Tensor& x, std::optional<std::int64_t> dim) {
  require_values("unique", x);
  const Tensor lines = dim && x.dim() > 0 ? x.detach() : x.detach().flatten();
  const int axis = dim ? wrap_axis(*dim, x.dim()) : 0;
  const Distinct found = distinct_of(lines, axis);
  const auto count = static_cast<std::int64_t>(found.first.size());
  return {index_select(lines, axis, on(x.device(), found.first, {count})),
          on(x.device(), found.inverse, dim ? Shape{lines.size(axis)} : x.sizes()),
          on(x.device(), found.counts, {count})};
}

Tensor unique(const Tensor& x, std::optional<std::int64_t> dim) { return unique_with_counts(x, dim).output; }

UniqueResult unique_consecutive_with_counts(const Tensor& x, std::optional<std::int64_t> dim) {
  require_values("unique_consecutive", x);
  const Tensor lines = dim && x.dim() > 0 ? x.detach() : x.detach().flatten();
  const int axis = dim ? wrap_axis(*dim, x.dim()) : 0;
  const std::int64_t size = lines.size(axis);
  Integers first;
  Integers inverse;
  std::vector<std::byte> differs;  // from the one before, for all but the first
  if (size > 1) {
    const Tensor slices = movedim(lines, axis, 0).reshape({size, lines.numel() / size});
    differs = any(functional::differs_from_before(slices, 0), 1).to_bytes();
  }
  for (std::int64_t i = 0; i < size; ++i) {
    if (i == 0 || differs[static_cast<std::size_t>(i) - 1] != std::byte{0}) first.push_back(i);
    inverse.push_back(static_cast<std::int64_t>(first.size()) - 1);
  }
  Integers counts;
  for (std::size_t i = 0; i < first.size(); ++i) {
    counts.push_back((i + 1 < first.size() ? first[i + 1] : size) - first[i]);
  }
  const auto count = static_cast<std::int64_t>(first.size());
  return {index_select(lines, axis, on(x.device(), first, {count})),
          on(x.device(), inverse, dim ? Shape{size} : x.sizes()), on(x.device(), counts, {count})};
}

Tensor unique_consecutive(const Tensor& x, std::optional<std::int64_t> dim) {
  return unique_consecutive_with_counts(x, dim).output;
}

Tensor bincount(const Tensor& x, const Tensor& weights, std::int64_t minlength) {
  functional::require_index_type("bincount", x);
  require_values("bincount", x);
  if (x.dim() != 1) throw ShapeError(fmt::format("bincount: takes a vector, not {}", to_string(x.sizes())));
  if (minlength < 0) throw ValueError(fmt::format("bincount: minlength is {}", minlength));
  std::int64_t count = minlength;
  if (x.numel() > 0) {
    const auto values = x.to_vector<std::int64_t>();
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    if (*least < 0) throw ValueError(fmt::format("bincount: takes no negative numbers; there is {}", *least));
    count = std::max(count, *most + 1);
  }
  Tensor amounts = functional::constant(1, DType::int64, x.device(), x.sizes());
  if (weights.defined())
    amounts = weights.dtype() == DType::float32 ? weights : functional::cast(weights, DType::float64);
  const Tensor none = functional::constant(0, amounts, {count});
  return x.numel() == 0 ? none : scatter_add(none, 0, x, amounts);
}

}  // namespace russet
