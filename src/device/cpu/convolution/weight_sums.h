#pragma once
// The inner loop of our weight gradients, compiled for each instruction set: a vector of sums for each output and tap
// stays in registers while vectors of x and of y's gradient g are loaded.
#include <cstdint>

namespace russet::cpu {

/// Most outputs and taps of one call.
inline constexpr int sums_outputs = 4;
inline constexpr int sums_taps = 8;

/// What one tap meets, and where its sums lie.
template <class Element>
struct SumsTap {
  const Element* x = nullptr;
  float* sums = nullptr;
};

/// For output o and tap t: sums += x_t[p * x_step + n] * g[o * g_row + p * g_step + n], over p < pixels. The numbers
/// n < lanes are images, whose products a vector of sums adds up, each in the lane that n falls on; or channels, which
/// have a sum each.
template <class Element>
struct WeightSums {
  const Element* g = nullptr;
  std::int64_t g_row = 0, g_step = 0, x_step = 0;
  std::int64_t pixels = 0;
  std::int64_t lanes = 0;     // at least vector_lanes()
  std::int64_t sums_row = 0;  // between the sums of outputs
  int outputs = 1, taps = 0;
  SumsTap<Element> tap[sums_taps];
};

/// Floats in a vector.
std::int64_t vector_lanes();
/// Lanes are images; at most 6 taps.
void add_image_products(const WeightSums<float>& sums);
inline constexpr int image_taps = 6;
/// Lanes are channels; one output. 16-bit elements are the bits of bfloat16.
void add_channel_products(const WeightSums<float>& sums);
void add_channel_products(const WeightSums<std::uint16_t>& sums);
/// totals[i] += all lanes of the i-th vector.
void add_lanes(const float* sums, std::int64_t count, float* totals);

}  // namespace russet::cpu
