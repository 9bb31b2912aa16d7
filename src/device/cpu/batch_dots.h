#pragma once
// The inner loop of weight gradients with vectors along the batch, compiled for each instruction set.
#include <cstdint>

namespace russet::cpu {

/// Most outputs and taps of one call.
inline constexpr int dots_outputs = 4;
inline constexpr int dots_taps = 6;

/// What one tap meets, and where its sums lie: a vector for each output, `sums_row` apart.
struct DotsTap {
  const float* x = nullptr;
  float* sums = nullptr;
};

/// sums of (output o, tap t) += x_t[p * x_step + n] * g[o * g_row + p * g_step + n], over p < pixels and n < images,
/// each in the lane of a vector that n falls on.
struct Dots {
  const float* g = nullptr;
  std::int64_t g_row = 0, g_step = 0, x_step = 0;
  std::int64_t pixels = 0, images = 0;
  std::int64_t sums_row = 0;
  int outputs = 0, taps = 0;
  DotsTap tap[dots_taps];
};

/// Numbers in a vector of sums.
std::int64_t dots_lanes();
/// `images` is at least dots_lanes().
void add_dots(const Dots& dots);
/// totals[i] += all lanes of the i-th vector.
void sum_dots(const float* sums, std::int64_t count, float* totals);

}  // namespace russet::cpu
