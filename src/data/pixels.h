#pragma once
// Loops over the pixels of an image, in vectors. Pixels are RGB, interleaved.
#include <array>
#include <cstdint>
#include <span>

namespace russet::data::pixels {

using Samples = std::span<std::uint8_t>;
using ConstSamples = std::span<const std::uint8_t>;
/// What a sample becomes, by its value.
using Table = std::array<float, 256>;

/// Each sample of any number of channels, from `level` (factor 0) to itself (factor 1), or beyond.
void blend(Samples samples, int level, float factor);
/// The same, from the luminance of its pixel.
void blend_with_luminance(Samples rgb, float factor);
std::int64_t sum_of_luminance(ConstSamples rgb);
/// Every pixel becomes its luminance, three times.
void set_to_luminance(Samples rgb);
/// Adds `turn` to every hue, of which 256 are a whole turn.
void turn_hues(Samples rgb, std::uint8_t turn);
/// The pixels in reverse order.
void reverse(Samples rgb);
/// Sample c of pixel i, by table c, to out[c * pixels + i].
void to_planes(ConstSamples rgb, const std::array<const Table*, 3>& tables, float* out);

}  // namespace russet::data::pixels
