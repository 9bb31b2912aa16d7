#pragma once
// What all devices say of values that an operator cannot compute with.
#include <cstdint>
#include <string_view>

namespace russet::ops {

/// Throws IndexError: "take: index 7 is out of range for dimension 1 of size 3 (number 4 of 12)". `place`: which of the
/// `count` entries of the index.
[[noreturn]] void throw_out_of_range(std::string_view function, std::int64_t index, int axis, std::int64_t size,
                                     std::int64_t place, std::int64_t count);

/// Throws ValueError: an integer was divided by 0.
[[noreturn]] void throw_division_by_zero(std::string_view function);

/// Throw LinAlgError: "cholesky: matrix 3 of 8 is not positive definite (its leading minor of order 2 is not)".
[[noreturn]] void throw_not_positive_definite(std::int64_t matrix, std::int64_t matrices, std::int64_t order);
[[noreturn]] void throw_singular(std::string_view function, std::int64_t matrix, std::int64_t matrices,
                                 std::int64_t pivot);
[[noreturn]] void throw_no_convergence(std::string_view function, std::int64_t matrix, std::int64_t matrices);

}  // namespace russet::ops
