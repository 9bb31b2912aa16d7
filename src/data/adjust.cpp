#include <russet/data/adjust.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "data/pixels.h"
#include "data/rows.h"

namespace russet::data {
namespace {

using io::Image;

/// Weights that a sum of bytes in float32 does not show are left out at the ends, so there may be fewer than `size`.
std::vector<float> gaussian(std::int64_t size, double sigma) {
  constexpr float negligible = 1e-9F;
  std::vector<float> weights;
  float total = 0;
  for (std::int64_t i = 0; i < size; ++i) {
    const float distance = (static_cast<float>(i) - static_cast<float>(size - 1) * 0.5F) / static_cast<float>(sigma);
    weights.push_back(std::exp(-0.5F * distance * distance));
    total += weights.back();
  }
  for (float& weight : weights) weight /= total;
  const auto first = std::find_if(weights.begin(), weights.end(), [](float weight) { return weight >= negligible; });
  const std::ptrdiff_t lost = first - weights.begin();
  return {first, weights.end() - lost};
}

/// Where position i of an axis of `size` lies, once mirrored at the first and the last.
std::int64_t mirrored(std::int64_t i, std::int64_t size) { return i < 0 ? -i : i < size ? i : 2 * (size - 1) - i; }

/// The samples of a row as numbers, with `reach` mirrored pixels on both sides.
void read_mirrored(const std::uint8_t* row, std::int64_t width, int channels, std::int64_t reach, float* out) {
  float* const inside = out + reach * channels;
  for (std::int64_t i = 0; i < width * channels; ++i) inside[i] = static_cast<float>(row[i]);
  for (std::int64_t x = 1; x <= reach; ++x) {
    std::copy_n(inside + x * channels, channels, inside - x * channels);
    std::copy_n(inside + (width - 1 - x) * channels, channels, inside + (width - 1 + x) * channels);
  }
}

}  // namespace

void adjust_brightness(Image& image, double factor) { pixels::blend(image.pixels, 0, static_cast<float>(factor)); }

void adjust_contrast(Image& image, double factor) {
  const std::int64_t sum = image.channels == 3 ? pixels::sum_of_luminance(image.pixels)
                                               : std::reduce(image.pixels.begin(), image.pixels.end(), std::int64_t{0});
  const std::int64_t count = std::max<std::int64_t>(image.height * image.width, 1);
  const double mean = static_cast<double>(sum) / static_cast<double>(count);
  pixels::blend(image.pixels, static_cast<int>(mean + 0.5), static_cast<float>(factor));
}

void adjust_saturation(Image& image, double factor) {
  if (image.channels == 3) pixels::blend_with_luminance(image.pixels, static_cast<float>(factor));
}

void adjust_hue(Image& image, double factor) {
  if (image.channels == 3) pixels::turn_hues(image.pixels, static_cast<std::uint8_t>(static_cast<int>(factor * 255)));
}

void to_grayscale(Image& image) {
  if (image.channels == 3) pixels::set_to_luminance(image.pixels);
}

void gaussian_blur(Image& image, std::int64_t kernel_size, double sigma) {
  thread_local std::vector<float> row;
  thread_local std::vector<float> along_x;
  const std::vector<float> weights = gaussian(kernel_size, sigma);
  const auto reach = static_cast<std::int64_t>(weights.size()) / 2;
  const std::int64_t samples = image.width * image.channels;
  const std::int64_t stride = samples + rows::slack;
  row.resize(static_cast<std::size_t>(stride + 2 * reach * image.channels));
  along_x.resize(static_cast<std::size_t>(image.height * stride));
  std::vector<const float*> inputs(weights.size());
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    inputs[k] = row.data() + static_cast<std::int64_t>(k) * image.channels;
  }
  for (std::int64_t y = 0; y < image.height; ++y) {
    read_mirrored(image.row(y), image.width, image.channels, reach, row.data());
    rows::mix(weights, inputs.data(), samples, along_x.data() + y * stride);
  }
  for (std::int64_t y = 0; y < image.height; ++y) {
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      inputs[k] = along_x.data() + mirrored(y + static_cast<std::int64_t>(k) - reach, image.height) * stride;
    }
    rows::mix(weights, inputs.data(), samples, image.row(y));
  }
}

}  // namespace russet::data
