#pragma once
// Sizes and strides: short lists of 64-bit numbers that live inline.
#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

namespace russet {

/// The largest number of axes of a tensor.
inline constexpr int max_rank = 8;

class Dims;
[[noreturn]] void throw_rank_error(std::size_t rank);
[[noreturn]] void throw_size_error(const Dims& shape);

/// An inline list of at most max_rank numbers. Throws ShapeError beyond that.
class Dims {
 public:
  constexpr Dims() = default;
  constexpr Dims(std::initializer_list<std::int64_t> values) : Dims(std::span(values.begin(), values.size())) {}
  explicit constexpr Dims(std::span<const std::int64_t> values) {
    for (const std::int64_t value : values) push_back(value);
  }
  /// The same number `rank` times.
  static constexpr Dims filled(int rank, std::int64_t value) {
    if (rank > max_rank) throw_rank_error(static_cast<std::size_t>(rank));
    Dims dims;
    for (; dims.rank_ < rank; ++dims.rank_) dims[dims.rank_] = value;
    return dims;
  }

  constexpr int rank() const { return rank_; }
  constexpr std::size_t size() const { return static_cast<std::size_t>(rank_); }
  constexpr bool empty() const { return rank_ == 0; }
  constexpr std::int64_t& operator[](int axis) { return values_[static_cast<std::size_t>(axis)]; }
  constexpr std::int64_t operator[](int axis) const { return values_[static_cast<std::size_t>(axis)]; }
  constexpr std::int64_t back() const { return values_[static_cast<std::size_t>(rank_ - 1)]; }
  constexpr auto begin() { return values_.begin(); }
  constexpr auto end() { return values_.begin() + rank_; }
  constexpr auto begin() const { return values_.begin(); }
  constexpr auto end() const { return values_.begin() + rank_; }
  constexpr operator std::span<const std::int64_t>() const { return {values_.data(), size()}; }

  constexpr void push_back(std::int64_t value) {
    if (rank_ == max_rank) throw_rank_error(size() + 1);
    values_[static_cast<std::size_t>(rank_++)] = value;
  }
  constexpr void pop_back() { --rank_; }
  constexpr void insert(int axis, std::int64_t value) {
    push_back(value);
    std::rotate(begin() + axis, end() - 1, end());
  }
  constexpr void erase(int axis) {
    std::copy(begin() + axis + 1, end(), begin() + axis);
    pop_back();
  }
  // A loop of its own: std::equal calls memcmp, which takes longer for so few numbers.
  constexpr bool operator==(const Dims& other) const {
    if (rank_ != other.rank_) return false;
    for (int axis = 0; axis < rank_; ++axis) {
      if ((*this)[axis] != other[axis]) return false;
    }
    return true;
  }

 private:
  std::array<std::int64_t, max_rank> values_{};
  int rank_ = 0;
};

using Shape = Dims;
using Strides = Dims;

/// The number of elements of a shape (1 for a scalar). Throws ShapeError if it, or what it would be if axes of size 0
/// had one element, does not fit 63 bits.
constexpr std::int64_t numel(const Shape& shape) {
  std::int64_t count = 1;
  bool is_empty = false;
  for (const std::int64_t size : shape) {
    is_empty |= size == 0;
    if (size != 0 && __builtin_mul_overflow(count, size, &count)) throw_size_error(shape);
  }
  return is_empty ? 0 : count;
}

/// Strides, in elements, of a contiguous (row-major) tensor; axes of size 0 count as 1, as in PyTorch.
constexpr Strides contiguous_strides(const Shape& shape) {
  Strides strides = Strides::filled(shape.rank(), 1);
  for (int axis = shape.rank() - 2; axis >= 0; --axis) {
    strides[axis] = strides[axis + 1] * std::max<std::int64_t>(shape[axis + 1], 1);
  }
  return strides;
}

/// "[2, 3]".
std::string to_string(const Dims& dims);

/// The shape of an elementwise result of these shapes (NumPy's rule). Throws ShapeError.
Shape broadcast(const Shape& a, const Shape& b);

/// `axis` counted from the end when negative. Throws IndexError outside [-rank, rank); a scalar counts as rank 1.
int wrap_axis(std::int64_t axis, int rank);

}  // namespace russet
