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

}  // namespace russet::ops
