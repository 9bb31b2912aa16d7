#pragma once
// Types of the functions' arguments.
#include <russet/shape.h>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>

namespace russet {

/// Dimensions that a function works on: a number or a list; for reductions an empty list means all.
class DimList {
 public:
  DimList() = default;
  template <std::integral T>
  requires(!std::same_as<T, bool>) DimList(T dim) : dims_{static_cast<std::int64_t>(dim)} {}
  DimList(std::initializer_list<std::int64_t> dims) : dims_(dims) {}
  DimList(const Dims& dims) : dims_(dims) {}
  const Dims& dims() const { return dims_; }
  /// Bit i is set for dimension i of `rank`. Throws IndexError out of range, ValueError for one named twice.
  std::uint32_t mask(int rank) const;

 private:
  Dims dims_;
};

/// One number for each of the last two dimensions; a single number stands for both.
struct Size2 {
  std::int64_t height = 0;
  std::int64_t width = 0;

  template <std::integral T>
  constexpr Size2(T both) : height(static_cast<std::int64_t>(both)), width(static_cast<std::int64_t>(both)) {}
  constexpr Size2(std::int64_t height, std::int64_t width) : height(height), width(width) {}
  constexpr bool operator==(const Size2&) const = default;
};

/// A Size2 that may be left out: `{.stride = 2}`, `{.stride = {2, 1}}`.
struct OptionalSize2 : std::optional<Size2> {
  constexpr OptionalSize2() = default;
  constexpr OptionalSize2(Size2 sizes) : std::optional<Size2>(sizes) {}
  template <std::integral T>
  constexpr OptionalSize2(T both) : std::optional<Size2>(Size2(both)) {}
  constexpr OptionalSize2(std::int64_t height, std::int64_t width) : std::optional<Size2>(Size2(height, width)) {}
};

/// Zeros around the input: numbers, or "same" (the output has the input's size; stride 1) or "valid" (none).
class ConvPadding {
 public:
  template <std::integral T>
  constexpr ConvPadding(T both) : sizes_(both) {}
  constexpr ConvPadding(std::int64_t height, std::int64_t width) : sizes_(height, width) {}
  constexpr ConvPadding(Size2 sizes) : sizes_(sizes) {}
  /// Throws ValueError for another word.
  ConvPadding(const char* name) : ConvPadding(std::string_view(name)) {}
  ConvPadding(std::string_view name);

  constexpr bool is_same() const { return same_; }
  constexpr Size2 sizes() const { return sizes_; }

 private:
  Size2 sizes_{0};
  bool same_ = false;
};

/// Python's slice: elements start, start + step, ... below stop. Negative numbers count from the end.
struct Slice {
  std::optional<std::int64_t> start{};
  std::optional<std::int64_t> stop{};
  std::int64_t step = 1;
};
/// A new dimension of size 1 in an index.
struct NewAxis {};
/// All dimensions that the other indices leave over.
struct Ellipsis {};

}  // namespace russet
