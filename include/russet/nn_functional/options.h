#pragma once
// Option types that several families share.
#include <concepts>
#include <cstdint>
#include <optional>

namespace russet {

/// One number for each of the last two axes; a single number stands for both.
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

/// What a loss makes of its terms: all of them, their mean, their sum.
enum class Reduction : std::uint8_t { none, mean, sum };

}  // namespace russet
