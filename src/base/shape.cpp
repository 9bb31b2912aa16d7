#include <fmt/format.h>
#include <russet/error.h>
#include <russet/shape.h>

namespace russet {

void throw_rank_error(std::size_t rank) {
  throw ShapeError(fmt::format("a tensor has at most {} dimensions, not {}", max_rank, rank));
}

void throw_size_error(const Dims& shape) {
  throw ShapeError(fmt::format("a tensor of sizes {} has too many elements: 2^63 or more", to_string(shape)));
}

std::string to_string(const Dims& dims) { return fmt::format("[{}]", fmt::join(dims.begin(), dims.end(), ", ")); }

Shape broadcast(const Shape& a, const Shape& b) {
  if (a == b) return a;
  const bool a_is_longer = a.rank() >= b.rank();
  Shape result = a_is_longer ? a : b;
  const Shape& shorter = a_is_longer ? b : a;
  const int missing = result.rank() - shorter.rank();
  for (int axis = 0; axis < shorter.rank(); ++axis) {
    std::int64_t& size = result[missing + axis];
    const std::int64_t other = shorter[axis];
    if (size == other || other == 1) continue;
    if (size != 1) {
      throw ShapeError(fmt::format("shapes {} and {} do not broadcast: dimension {} from the end has sizes {} and {}",
                                   to_string(a), to_string(b), shorter.rank() - axis, a_is_longer ? size : other,
                                   a_is_longer ? other : size));
    }
    size = other;
  }
  return result;
}

int wrap_axis(std::int64_t axis, int rank) {
  const int range = std::max(rank, 1);
  if (axis < -range || axis >= range) {
    throw IndexError(fmt::format("dimension {} is out of range: a tensor of {} dimensions takes {} to {}", axis, rank,
                                 -range, range - 1));
  }
  return static_cast<int>(axis < 0 ? axis + range : axis);
}

}  // namespace russet
