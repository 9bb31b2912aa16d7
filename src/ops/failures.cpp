#include "ops/failures.h"

#include <fmt/format.h>
#include <russet/error.h>

namespace russet::ops {

void throw_out_of_range(std::string_view function, std::int64_t index, int axis, std::int64_t size, std::int64_t place,
                        std::int64_t count) {
  throw IndexError(fmt::format("{}: index {} is out of range for dimension {} of size {} (number {} of {})", function,
                               index, axis, size, place, count));
}

void throw_division_by_zero(std::string_view function) {
  throw ValueError(fmt::format("{}: integer division by zero. Replace the zeros, or divide floats", function));
}

namespace {

std::string named_matrix(std::int64_t matrix, std::int64_t matrices) {
  return matrices == 1 ? "the matrix" : fmt::format("matrix {} of {}", matrix, matrices);
}

}  // namespace

void throw_not_positive_definite(std::int64_t matrix, std::int64_t matrices, std::int64_t order) {
  throw LinAlgError(fmt::format("cholesky: {} is not positive definite (its leading minor of order {} is not)",
                                named_matrix(matrix, matrices), order));
}

void throw_singular(std::string_view function, std::int64_t matrix, std::int64_t matrices, std::int64_t pivot) {
  throw LinAlgError(
      fmt::format("{}: {} is singular (pivot {} is zero). linalg_lstsq and linalg_pinv take such matrices", function,
                  named_matrix(matrix, matrices), pivot));
}

void throw_no_convergence(std::string_view function, std::int64_t matrix, std::int64_t matrices) {
  throw LinAlgError(fmt::format("{}: the iteration did not converge for {}. Does it hold NaN or infinity?", function,
                                named_matrix(matrix, matrices)));
}

}  // namespace russet::ops
