#pragma once
// Rows mixed by weights, in vectors: what blurs and scaling are made of.
#include <cstdint>
#include <span>
#include <vector>

namespace russet::data::rows {

/// The sum of weights[k] * inputs[k][i], in this order, for `count` places. May read and write up to `slack` places
/// more.
inline constexpr std::int64_t slack = 64;
void mix(std::span<const float> weights, const float* const* inputs, std::int64_t count, float* out);
/// The same, rounded to bytes (halves to the even one). Writes no more than `count`.
void mix(std::span<const float> weights, const float* const* inputs, std::int64_t count, std::uint8_t* out);

/// Which inputs each output of a scaled axis mixes, and with which weights, in fixed point.
struct Filter {
  static constexpr int precision_bits = 32 - 8 - 2;

  std::int64_t taps = 0;               // room for each output
  std::vector<std::int64_t> first{};   // first input
  std::vector<std::int64_t> count{};   // number of inputs
  std::vector<std::int32_t> values{};  // taps for each output

  std::int64_t outputs() const { return static_cast<std::int64_t>(first.size()); }
};

/// A rectangle of pixels within rows of `stride` bytes.
template <class Byte>
struct Window {
  Byte* pixels;
  std::int64_t stride;
  std::int64_t height;
  std::int64_t width;
  int channels;  // 1 or 3
};

/// Scales along x: to a window of equal height, and of filter.outputs() pixels in width.
void scale_along_x(const Filter& filter, const Window<const std::uint8_t>& from, const Window<std::uint8_t>& to);
/// Scales along y: to a window of equal width, and of filter.outputs() pixels in height.
void scale_along_y(const Filter& filter, const Window<const std::uint8_t>& from, const Window<std::uint8_t>& to);

}  // namespace russet::data::rows
