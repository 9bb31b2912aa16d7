#pragma once
// Addresses and attributes of a step's operands, and arithmetic that wraps.
#include <russet/error.h>
#include <algorithm>
#include <cmath>
#include <cstring>

#include "compile/step.h"
#include "ops/table.h"

namespace russet::cpu {

/// Offset of an access in elements, with its run-time part.
inline std::int64_t start_of(const compile::Access& access, const compile::Bindings& bindings) {
  if (access.offset_argument < 0) return access.offset;
  return access.offset + static_cast<std::int64_t>(bindings.arguments[access.offset_argument]);
}

/// Address of element (0, 0, ...) of an access.
inline std::byte* address(const compile::Access& access, const compile::Bindings& bindings) {
  return bindings.slots[access.slot] + start_of(access, bindings) * static_cast<std::int64_t>(size_of(access.dtype));
}

template <class T>
T* address_as(const compile::Access& access, const compile::Bindings& bindings) {
  return reinterpret_cast<T*>(address(access, bindings));
}

/// The attributes of a step; every step of the operator has them.
template <class Attribute>
const Attribute& attribute(const compile::Primitive& primitive) {
  if (const auto* found = std::get_if<Attribute>(&primitive.attributes)) return *found;
  throw InternalError(std::string(ops::row(primitive.op).name) + ": the step lacks its attributes");
}

inline const Shape& input_sizes(const compile::Primitive& primitive, int i) {
  return primitive.inputs[static_cast<std::size_t>(i)].sizes;
}
inline const compile::Access& input_access(const compile::Primitive& primitive, int i) {
  return primitive.inputs[static_cast<std::size_t>(i)].access;
}

/// The type in which a contraction, a pool or a cumulative sum adds up: float32 for 16-bit types, int64 for integers.
template <class Element>
using SumType =
    std::conditional_t<std::is_same_v<Element, double>, double,
                       std::conditional_t<std::is_same_v<Element, float> || std::is_same_v<Element, float16> ||
                                              std::is_same_v<Element, bfloat16>,
                                          float, std::int64_t>>;

/// Integers wrap around.
template <class T>
T wrapping_add(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  } else {
    return a + b;
  }
}
template <class T>
T wrapping_multiply(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
  } else {
    return a * b;
  }
}

/// Whether `a` exceeds `b` when NaN counts as larger than all.
template <class T>
bool exceeds(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    return a > b || (std::isnan(a) && !std::isnan(b));
  } else {
    return a > b;
  }
}

/// Calls visit(at, at_others...) for each index of `sizes` in row-major order; every stride list gives one position.
template <class Visitor, class... StrideLists>
void walk(const Shape& sizes, Visitor&& visit, const StrideLists&... strides) {
  constexpr std::size_t lists = sizeof...(strides);
  const std::array<const Strides*, lists> steps{&strides...};
  std::array<std::int64_t, lists> at{};
  Dims index = Dims::filled(sizes.rank(), 0);
  for (std::int64_t left = numel(sizes); left > 0; --left) {
    std::apply(visit, at);
    for (int axis = sizes.rank() - 1; axis >= 0; --axis) {
      const bool wraps = ++index[axis] == sizes[axis];
      const std::int64_t moves = wraps ? 1 - sizes[axis] : 1;
      for (std::size_t list = 0; list < lists; ++list) at[list] += moves * (*steps[list])[axis];
      if (!wraps) break;
      index[axis] = 0;
    }
  }
}

}  // namespace russet::cpu
