// Norms of vectors and matrices, and condition numbers.
#include <fmt/format.h>

#include <russet/functional/comparison.h>
#include <russet/functional/elementwise.h>
#include <russet/functional/linalg.h>
#include <russet/functional/movement.h>
#include <russet/functional/reduction.h>

#include <cmath>
#include <limits>
#include <variant>

#include "functional/linalg_detail.h"

namespace russet {

using functional::constant;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// A norm by its name or its number.
using Order = std::variant<double, std::string_view>;

Tensor in_type(const char* function, const Tensor& x, std::optional<DType> dtype) {
  const Tensor result = dtype ? functional::cast(x, *dtype) : x;
  functional::require_floating(function, result);
  return result;
}

/// The two dimensions of matrices, as numbers from 0.
std::pair<int, int> matrix_axes(const char* function, const Tensor& x, const DimList& dim) {
  if (dim.dims().rank() != 2) throw ShapeError(fmt::format("{}: takes two dimensions", function));
  if (x.dim() < 2) {
    throw ShapeError(fmt::format("{}: takes matrices (at least 2 dimensions), not {}", function, to_string(x.sizes())));
  }
  dim.mask(x.dim());  // throws for dimensions that are out of range, or named twice
  const auto wrapped = [&](std::int64_t axis) { return static_cast<int>(axis < 0 ? axis + x.dim() : axis); };
  return {wrapped(dim.dims()[0]), wrapped(dim.dims()[1])};
}

/// A result without the last two dimensions, for x whose `rows` and `columns` were moved there.
Tensor closed(const Tensor& result, std::pair<int, int> axes, bool keepdim) {
  if (!keepdim) return result;
  const auto [low, high] = std::minmax(axes.first, axes.second);
  return result.unsqueeze(low).unsqueeze(high);
}

Tensor spectral_norm(const Tensor& x, std::pair<int, int> axes, const Order& order, bool keepdim) {
  const Tensor values = functional::singular_values(movedim(x, {axes.first, axes.second}, {-2, -1}));
  if (std::holds_alternative<std::string_view>(order)) return closed(sum(values, -1), axes, keepdim);
  return closed(std::get<double>(order) > 0 ? amax(values, -1) : amin(values, -1), axes, keepdim);
}

/// The largest or smallest of the sums of |x| along an axis.
Tensor norm_of_sums(const Tensor& x, int summed, int chosen, bool largest, bool keepdim) {
  const Tensor sums = sum(abs(x), summed, true);
  const Tensor kept = largest ? amax(sums, chosen, true) : amin(sums, chosen, true);
  return keepdim ? kept
                 : functional::without_axes(
                       kept, (1U << static_cast<unsigned>(summed)) | (1U << static_cast<unsigned>(chosen)));
}

Tensor matrix_norm(const Tensor& x, const Order& order, const DimList& dim, bool keepdim) {
  const std::pair<int, int> axes = matrix_axes("linalg_matrix_norm", x, dim);
  if (const auto* name = std::get_if<std::string_view>(&order)) {
    if (*name == "fro") return norm(x, 2, dim, keepdim);
    if (*name == "nuc") return spectral_norm(x, axes, order, keepdim);
    throw ValueError(fmt::format("linalg_matrix_norm: no norm is called \"{}\"; there are \"fro\" and \"nuc\"", *name));
  }
  const double number = std::get<double>(order);
  if (std::abs(number) == 2) return spectral_norm(x, axes, order, keepdim);
  if (std::abs(number) == 1) return norm_of_sums(x, axes.first, axes.second, number > 0, keepdim);
  if (std::abs(number) == infinity) return norm_of_sums(x, axes.second, axes.first, number > 0, keepdim);
  throw ValueError(
      fmt::format("linalg_matrix_norm: the order of a matrix norm is 1, 2 or infinity, or its negative, "
                  "not {}",
                  number));
}

/// Whether x, and the dimensions that are named, mean matrices.
bool means_matrices(const Tensor& x, const DimList& dim) {
  const int named = dim.dims().rank();
  if (named > 2 || (named == 0 && x.dim() > 2)) {
    throw ShapeError("linalg_norm: with an order, one dimension (vectors) or two (matrices) are named");
  }
  return named == 2 || (named == 0 && x.dim() == 2);
}

/// The ratio of the largest and the smallest singular value.
Tensor spectral_condition(const Tensor& a, bool smallest_first) {
  functional::require_matrices("linalg_cond", a);
  const Tensor values = functional::singular_values(a);
  const Tensor largest = amax(values, -1);
  const Tensor smallest = amin(values, -1);
  return smallest_first ? smallest / largest : largest / smallest;
}

/// norm(A) norm(A^-1). A singular matrix, for which an identity is inverted, has an infinite condition number.
Tensor condition_number(const Tensor& a, const Order& order) {
  functional::require_square("linalg_cond", a);
  const std::int64_t n = a.size(-1);
  const Tensor lu = functional::factored(ops::Op::lu, a.detach()).narrow(-2, 0, n);
  const Tensor pivots = diagonal(lu, 0, -2, -1);
  const Tensor singular = any(eq(pivots, constant(0, pivots)), -1);
  const Tensor safe = where(singular.unsqueeze(-1).unsqueeze(-1), functional::identity(n, a), a);
  const Tensor both = matrix_norm(a, order, {-2, -1}, false) * matrix_norm(inverse(safe), order, {-2, -1}, false);
  return where(singular, constant(infinity, both), both);
}

}  // namespace

Tensor linalg_vector_norm(const Tensor& x, double ord, const DimList& dim, bool keepdim, std::optional<DType> dtype) {
  return norm(in_type("linalg_vector_norm", x, dtype), ord, dim, keepdim);
}

Tensor linalg_matrix_norm(const Tensor& a, std::string_view ord, const DimList& dim, bool keepdim,
                          std::optional<DType> dtype) {
  return matrix_norm(in_type("linalg_matrix_norm", a, dtype), ord, dim, keepdim);
}
Tensor linalg_matrix_norm(const Tensor& a, double ord, const DimList& dim, bool keepdim, std::optional<DType> dtype) {
  return matrix_norm(in_type("linalg_matrix_norm", a, dtype), ord, dim, keepdim);
}

Tensor linalg_norm(const Tensor& a, std::optional<double> ord, const DimList& dim, bool keepdim,
                   std::optional<DType> dtype) {
  const Tensor x = in_type("linalg_norm", a, dtype);
  if (!ord) return norm(x, 2, dim, keepdim);
  if (!means_matrices(x, dim)) return norm(x, *ord, dim, keepdim);
  return matrix_norm(x, *ord, dim.dims().empty() ? DimList{-2, -1} : dim, keepdim);
}
Tensor linalg_norm(const Tensor& a, std::string_view ord, const DimList& dim, bool keepdim,
                   std::optional<DType> dtype) {
  const Tensor x = in_type("linalg_norm", a, dtype);
  if (!means_matrices(x, dim)) {
    throw ValueError(fmt::format("linalg_norm: \"{}\" is a norm of matrices: name two dimensions", ord));
  }
  return matrix_norm(x, ord, dim.dims().empty() ? DimList{-2, -1} : dim, keepdim);
}

Tensor linalg_cond(const Tensor& a, std::optional<double> p) {
  if (!p || std::abs(*p) == 2) return spectral_condition(a, p && *p < 0);
  return condition_number(a, *p);
}
Tensor linalg_cond(const Tensor& a, std::string_view p) { return condition_number(a, p); }

}  // namespace russet
