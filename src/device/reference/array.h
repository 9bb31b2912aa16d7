#pragma once
// Dense arrays of double or int64 that the interpreter computes on, and how operands of any type become one.
#include <russet/dtype.h>
#include <russet/shape.h>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

namespace russet::reference {

/// Row-major and without gaps. T is double for floating types, std::int64_t for the others.
template <class T>
struct Array {
  Shape shape;
  std::vector<T> values;

  explicit Array(const Shape& shape, T value = T{})
      : shape(shape), values(static_cast<std::size_t>(numel(shape)), value) {}
  T& operator[](std::int64_t position) { return values[static_cast<std::size_t>(position)]; }
  const T& operator[](std::int64_t position) const { return values[static_cast<std::size_t>(position)]; }
};

/// Calls visit(position, at) for each index of `sizes` in row-major order: its position in that order, and
/// index . strides.
template <class Visitor>
void walk(const Shape& sizes, const Strides& strides, Visitor&& visit) {
  const std::int64_t count = numel(sizes);
  Dims index = Dims::filled(sizes.rank(), 0);
  std::int64_t at = 0;
  for (std::int64_t position = 0; position < count; ++position) {
    visit(position, at);
    for (int axis = sizes.rank() - 1; axis >= 0; --axis) {
      at += strides[axis];
      if (++index[axis] < sizes[axis]) break;
      at -= strides[axis] * sizes[axis];
      index[axis] = 0;
    }
  }
}

template <class T, class Element>
T load_element(const std::byte* address) {
  if constexpr (std::is_same_v<Element, bool>) {
    return *address != std::byte{0} ? T{1} : T{0};
  } else {
    Element element;
    std::memcpy(&element, address, sizeof(Element));
    return convert_element<T>(element);
  }
}

/// Converts to the element's type. 16-bit types round from float32, as every executor does.
template <class Element, class T>
void store_element(std::byte* address, T value) {
  if constexpr (std::is_same_v<Element, bool>) {
    *address = static_cast<std::byte>(value != T{0});
  } else {
    const auto element = convert_element<Element>(value);
    std::memcpy(address, &element, sizeof(Element));
  }
}

}  // namespace russet::reference
