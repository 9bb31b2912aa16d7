#pragma once
// The inner loop of depthwise weight gradients, compiled for each instruction set.
#include <cstdint>

namespace russet::cpu {

/// sums[j][c] += sum over p < pixels of x[p * x_step + j * tap_step + c] * g[p * g_step + c] for j < taps, c <
/// channels; rows of sums are `channels` apart.
template <class Element>
struct DepthwiseRow {
  const Element* x;
  const Element* g;
  float* sums;
  std::int64_t pixels, channels, taps;
  std::int64_t x_step, tap_step, g_step;
};

void add_depthwise_row(const DepthwiseRow<float>& row);
/// Elements are the bits of bfloat16.
void add_depthwise_row(const DepthwiseRow<std::uint16_t>& row);

}  // namespace russet::cpu
