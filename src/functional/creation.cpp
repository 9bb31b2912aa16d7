#include <fmt/format.h>
#include <russet/functional/comparison.h>
#include <russet/functional/creation.h>
#include <russet/functional/elementwise.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "functional/build.h"
#include "functional/progression.h"

namespace russet {
namespace {

Tensor with_options(const Tensor& result, bool requires_grad) {
  if (!requires_grad) return result;
  Tensor leaf = result;
  leaf.requires_grad_();
  return leaf;
}

void check_sizes(const char* function, const Shape& sizes) {
  for (const std::int64_t size : sizes) {
    if (size < 0) throw ShapeError(fmt::format("{}: the shape {} has a negative size", function, to_string(sizes)));
  }
}

// A number's own type as PyTorch chooses it for a new tensor.
DType inferred(const Scalar& value) { return value.kind() == DType::float64 ? DType::float32 : value.kind(); }

TensorOptions options_like(const Tensor& x, const InferredOptions& options) {
  return {options.dtype.value_or(x.dtype()), options.device.value_or(x.device()), options.requires_grad};
}

Tensor made_like(const Tensor& x, const Tensor& made, const InferredOptions& options) {
  return with_options(functional::laid_out_like(x, made), options.requires_grad);
}

Tensor constant_tensor(const char* function, double value, const Shape& sizes, const TensorOptions& options) {
  check_sizes(function, sizes);
  return with_options(functional::constant(value, options.dtype, options.device, sizes), options.requires_grad);
}

constexpr double too_long = 0x1p63;

// ceil((end - start) / step), exactly for integers.
std::int64_t range_length(const Scalar& start, const Scalar& end, const Scalar& step, bool integers) {
  if (step.to_double() == 0) throw ValueError("arange: the step is 0");
  if (!std::isfinite(start.to_double()) || !std::isfinite(end.to_double())) {
    throw ValueError(fmt::format("arange: no range from {} to {}", start.to_double(), end.to_double()));
  }
  const bool towards =
      step.to_double() > 0 ? end.to_double() >= start.to_double() : end.to_double() <= start.to_double();
  if (!towards) {
    throw ValueError(fmt::format("arange: a step of {} does not lead from {} to {}", step.to_double(),
                                 start.to_double(), end.to_double()));
  }
  if (!integers) {
    const double length = std::ceil((end.to_double() - start.to_double()) / step.to_double());
    if (length < too_long) return static_cast<std::int64_t>(length);
  } else {
    const __int128 distance = static_cast<__int128>(end.to_int64()) - start.to_int64();
    const __int128 length = distance / step.to_int64() + (distance % step.to_int64() != 0);
    if (length <= std::numeric_limits<std::int64_t>::max()) return static_cast<std::int64_t>(length);
  }
  throw ValueError(fmt::format("arange: from {} to {} by {} are too many numbers", start.to_double(), end.to_double(),
                               step.to_double()));
}

/// Whether numbers up to `bound` are computed without float64, which not every device has.
bool without_float64(DType dtype, double bound) {
  return is_floating(dtype) && dtype != DType::float64 && std::isfinite(bound);
}

// start to end, both included.
struct Line {
  double start, end;
  std::int64_t steps;

  double bound() const { return std::abs(start) + std::abs(end); }
  double step() const { return steps > 1 ? (end - start) / static_cast<double>(steps - 1) : 0; }
  /// From both ends, as PyTorch computes it: symmetric, and exact at the ends. `from(first, positions)` gives what lies
  /// so many steps from `first`.
  template <class From>
  auto halves(Device device, From&& from) const {
    const Tensor position = functional::iota({steps}, device);
    const Tensor first_half = position < functional::constant(std::max<std::int64_t>(steps / 2, steps == 1), position);
    return std::tuple(first_half, from(start, position),
                      from(end, position - functional::constant(steps - 1, position)));
  }
};

Tensor in_float64(const Line& line, Device device) {
  const auto value = [&](double number) { return functional::number(number, DType::float64, device); };
  const auto [first_half, rising, falling] = line.halves(device, [&](double first, const Tensor& positions) {
    return value(first) + functional::cast(positions, DType::float64) * value(line.step());
  });
  return where(first_half, rising, falling);
}

functional::TwoParts in_two_parts(const Line& line, Device device) {
  const auto [first_half, rising, falling] = line.halves(device, [&](double first, const Tensor& positions) {
    return functional::progression(first, line.step(), positions, line.bound());
  });
  return {where(first_half, rising.head, falling.head), where(first_half, rising.rest, falling.rest)};
}

}  // namespace

Tensor empty(const Shape& sizes, const TensorOptions& options) {
  check_sizes("empty", sizes);
  return with_options(functional::uninitialised(sizes, options.dtype, options.device), options.requires_grad);
}
Tensor zeros(const Shape& sizes, const TensorOptions& options) { return constant_tensor("zeros", 0, sizes, options); }
Tensor ones(const Shape& sizes, const TensorOptions& options) { return constant_tensor("ones", 1, sizes, options); }

Tensor full(const Shape& sizes, Scalar value, const InferredOptions& options) {
  check_sizes("full", sizes);
  const DType dtype = options.dtype.value_or(inferred(value));
  return with_options(functional::held_number("full", value, dtype, options.device.value_or(Device()), sizes),
                      options.requires_grad);
}
Tensor scalar_tensor(Scalar value, const InferredOptions& options) { return full({}, value, options); }

Tensor empty_like(const Tensor& x, const InferredOptions& options) {
  const TensorOptions known = options_like(x, options);
  return made_like(x, functional::uninitialised(x.sizes(), known.dtype, known.device), options);
}
Tensor zeros_like(const Tensor& x, const InferredOptions& options) {
  const TensorOptions known = options_like(x, options);
  return made_like(x, functional::constant(0, known.dtype, known.device, x.sizes()), options);
}
Tensor ones_like(const Tensor& x, const InferredOptions& options) {
  const TensorOptions known = options_like(x, options);
  return made_like(x, functional::constant(1, known.dtype, known.device, x.sizes()), options);
}
Tensor full_like(const Tensor& x, Scalar value, const InferredOptions& options) {
  const TensorOptions known = options_like(x, options);
  return made_like(x, functional::held_number("full_like", value, known.dtype, known.device, x.sizes()), options);
}

Tensor arange(Scalar end, const InferredOptions& options) { return arange(0, end, 1, options); }
Tensor arange(Scalar start, Scalar end, const InferredOptions& options) { return arange(start, end, 1, options); }
Tensor arange(Scalar start, Scalar end, Scalar step, const InferredOptions& options) {
  const auto is_integer = [](const Scalar& number) { return number.kind() != DType::float64; };
  const bool integers = is_integer(start) && is_integer(end) && is_integer(step);
  const DType dtype = options.dtype.value_or(integers ? DType::int64 : DType::float32);
  const Device device = options.device.value_or(Device());
  if (is_integral(dtype)) {
    for (const Scalar& bound : {start, end}) functional::require_held("arange", bound, DType::int64);
  }
  const std::int64_t length = range_length(start, end, step, integers);
  const Tensor positions = functional::iota({length}, device);
  const double bound = std::abs(start.to_double()) + static_cast<double>(length) * std::abs(step.to_double());
  if (!integers && without_float64(dtype, bound)) {
    const auto [head, rest] = functional::progression(start.to_double(), step.to_double(), positions, bound);
    return with_options(functional::cast(head + rest, dtype), options.requires_grad);
  }
  // Computed in int64 or float64 and rounded once.
  const DType exact = integers ? DType::int64 : DType::float64;
  Tensor values = functional::cast(positions, exact);
  if (step.to_double() != 1) values = values * functional::number(step, exact, device);
  if (start.to_double() != 0) values = values + functional::number(start, exact, device);
  return with_options(functional::cast(values, dtype), options.requires_grad);
}

Tensor linspace(Scalar start, Scalar end, std::int64_t steps, const TensorOptions& options) {
  if (steps < 0) throw ValueError(fmt::format("linspace: the number of steps is {}", steps));
  const Line line{start.to_double(), end.to_double(), steps};
  if (!without_float64(options.dtype, line.bound())) {
    return with_options(functional::cast(in_float64(line, options.device), options.dtype), options.requires_grad);
  }
  const auto [head, rest] = in_two_parts(line, options.device);
  return with_options(functional::cast(head + rest, options.dtype), options.requires_grad);
}

Tensor logspace(Scalar start, Scalar end, std::int64_t steps, double base, const TensorOptions& options) {
  if (steps < 0) throw ValueError(fmt::format("logspace: the number of steps is {}", steps));
  const Line line{start.to_double(), end.to_double(), steps};
  if (!without_float64(options.dtype, line.bound())) {
    const Tensor powers = pow(Scalar(base), in_float64(line, options.device));
    return with_options(functional::cast(powers, options.dtype), options.requires_grad);
  }
  // base^(head + rest): what the exponent lacks in digits would be missing from those of large powers.
  const auto [head, rest] = in_two_parts(line, options.device);
  const double slope = base > 0 && std::isfinite(base) ? std::log(base) : 0;
  const Tensor powers =
      pow(Scalar(base), head) * (rest * functional::number(slope, DType::float32, options.device) + 1);
  return with_options(functional::cast(powers, options.dtype), options.requires_grad);
}

Tensor eye(std::int64_t rows, std::optional<std::int64_t> columns, const TensorOptions& options) {
  const std::int64_t width = columns.value_or(rows);
  check_sizes("eye", {rows, width});
  const Tensor row = functional::iota_along(0, 2, rows, options.device);
  const Tensor column = functional::iota_along(1, 2, width, options.device);
  return with_options(functional::cast(autograd::apply(ops::Op::eq, {row, column}), options.dtype),
                      options.requires_grad);
}

namespace {

/// Rows and columns of the places of a matrix that `holds(column - row)`, row by row.
template <class Holds>
Tensor places(const char* function, std::int64_t rows, std::int64_t columns, Device device, Holds&& holds) {
  check_sizes(function, {rows, columns});
  std::vector<std::int64_t> found[2];
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < columns; ++column) {
      if (!holds(column - row)) continue;
      found[0].push_back(row);
      found[1].push_back(column);
    }
  }
  const auto count = static_cast<std::int64_t>(found[0].size());
  found[0].insert(found[0].end(), found[1].begin(), found[1].end());
  return Tensor::from(found[0], {2, count}, device);
}

}  // namespace

Tensor tril_indices(std::int64_t rows, std::int64_t columns, std::int64_t offset, Device device) {
  return places("tril_indices", rows, columns, device, [=](std::int64_t diagonal) { return diagonal <= offset; });
}
Tensor triu_indices(std::int64_t rows, std::int64_t columns, std::int64_t offset, Device device) {
  return places("triu_indices", rows, columns, device, [=](std::int64_t diagonal) { return diagonal >= offset; });
}

}  // namespace russet
