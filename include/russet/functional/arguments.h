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

/// One number for each of the last three dimensions; a single number stands for all.
struct Size3 {
  std::int64_t depth = 0;
  std::int64_t height = 0;
  std::int64_t width = 0;

  template <std::integral T>
  constexpr Size3(T all)
      : depth(static_cast<std::int64_t>(all)),
        height(static_cast<std::int64_t>(all)),
        width(static_cast<std::int64_t>(all)) {}
  constexpr Size3(std::int64_t depth, std::int64_t height, std::int64_t width)
      : depth(depth), height(height), width(width) {}
  constexpr bool operator==(const Size3&) const = default;

  /// Without the depth.
  constexpr Size2 plane() const { return {height, width}; }
};

/// A Size2 or Size3 that may be left out: `{.stride = 2}`, `{.stride = {2, 1}}`.
template <class Sizes>
struct OptionalSizes : std::optional<Sizes> {
  constexpr OptionalSizes() = default;
  constexpr OptionalSizes(Sizes sizes) : std::optional<Sizes>(sizes) {}
  template <std::integral... T>
  requires std::constructible_from<Sizes, T...>
  constexpr OptionalSizes(T... each) : std::optional<Sizes>(Sizes(static_cast<std::int64_t>(each)...)) {}
};
using OptionalSize2 = OptionalSizes<Size2>;
using OptionalSize3 = OptionalSizes<Size3>;

/// Zeros around the input: numbers, or "same" (the output has the input's size; stride 1) or "valid" (none).
template <class Sizes>
class BasicConvPadding {
 public:
  template <std::integral... T>
  requires std::constructible_from<Sizes, T...>
  constexpr BasicConvPadding(T... each) : sizes_(static_cast<std::int64_t>(each)...) {}
  constexpr BasicConvPadding(Sizes sizes) : sizes_(sizes) {}
  /// Throws ValueError for another word.
  BasicConvPadding(const char* name) : BasicConvPadding(std::string_view(name)) {}
  BasicConvPadding(std::string_view name);

  constexpr bool is_same() const { return same_; }
  constexpr Sizes sizes() const { return sizes_; }

 private:
  Sizes sizes_{0};
  bool same_ = false;
};
using ConvPadding = BasicConvPadding<Size2>;
using ConvPadding3 = BasicConvPadding<Size3>;

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
