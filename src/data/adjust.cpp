// Arithmetic in the order and the types of Pillow's Blend.c and Convert.c (float32 for factors, float64 where constants
// are double), so that results are the same bits as torchvision's.
#include <russet/data/adjust.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "data/luminance.h"

namespace russet::data {
namespace {

using io::Image;
using Pixel = std::array<std::uint8_t, 3>;

/// From `from` (factor 0) to `to` (factor 1), or beyond.
std::uint8_t blend(int from, int to, float factor) {
  const float mixed = static_cast<float>(from) + factor * static_cast<float>(to - from);
  return static_cast<std::uint8_t>(std::clamp(mixed, 0.0F, 255.0F));
}

/// Blends every sample with one level.
void blend_with(Image& image, int level, double factor) {
  std::array<std::uint8_t, 256> table{};
  for (int value = 0; value < 256; ++value) {
    table[static_cast<std::size_t>(value)] = blend(level, value, static_cast<float>(factor));
  }
  for (std::uint8_t& sample : image.pixels) sample = table[sample];
}

std::uint8_t clamped(double value) { return static_cast<std::uint8_t>(std::clamp(value, 0.0, 255.0)); }

/// Hue, saturation and value, each from 0 to 255.
Pixel to_hsv(const std::uint8_t* rgb) {
  const std::uint8_t largest = std::max({rgb[0], rgb[1], rgb[2]});
  const std::uint8_t smallest = std::min({rgb[0], rgb[1], rgb[2]});
  if (smallest == largest) return {0, 0, largest};
  const auto range = static_cast<float>(largest - smallest);
  const float saturation = range / static_cast<float>(largest);
  const float red = static_cast<float>(largest - rgb[0]) / range;
  const float green = static_cast<float>(largest - rgb[1]) / range;
  const float blue = static_cast<float>(largest - rgb[2]) / range;
  float hue = 0;
  if (rgb[0] == largest) {
    hue = blue - green;
  } else if (rgb[1] == largest) {
    hue = static_cast<float>(2.0 + red - blue);
  } else {
    hue = static_cast<float>(4.0 + green - red);
  }
  hue = static_cast<float>(std::fmod(hue / 6.0 + 1.0, 1.0));
  return {clamped(hue * 255.0), clamped(saturation * 255.0), largest};
}

void from_hsv(const Pixel& hsv, std::uint8_t* rgb) {
  const auto [hue, saturation, value] = hsv;
  if (saturation == 0) {
    std::fill_n(rgb, 3, value);
    return;
  }
  const double turn = hue * 6.0 / 255.0;  // from 0 to 6
  const auto sector = static_cast<int>(turn);
  const auto part = static_cast<float>(turn - sector);
  const auto share = static_cast<float>(saturation / 255.0);
  const auto level = [&](double lost) { return clamped(std::round(static_cast<double>(value) * (1.0 - lost))); };
  const std::uint8_t low = level(share);
  const std::uint8_t falling = level(share * part);
  const std::uint8_t rising = level(share * (1.0 - part));
  const std::array<Pixel, 6> sectors{{{value, rising, low},
                                      {falling, value, low},
                                      {low, value, rising},
                                      {low, falling, value},
                                      {rising, low, value},
                                      {value, low, falling}}};
  const Pixel& result = sectors[static_cast<std::size_t>(sector % 6)];
  std::copy(result.begin(), result.end(), rgb);
}

std::vector<float> gaussian(std::int64_t size, double sigma) {
  std::vector<float> weights;
  float total = 0;
  for (std::int64_t i = 0; i < size; ++i) {
    const float distance = (static_cast<float>(i) - static_cast<float>(size - 1) * 0.5F) / static_cast<float>(sigma);
    weights.push_back(std::exp(-0.5F * distance * distance));
    total += weights.back();
  }
  for (float& weight : weights) weight /= total;
  return weights;
}

/// Where position i of an axis of `size` lies, once mirrored at the first and the last.
std::int64_t mirrored(std::int64_t i, std::int64_t size) { return i < 0 ? -i : i < size ? i : 2 * (size - 1) - i; }

/// One row mixed along x: `out` has width * channels samples.
void blur_row(const std::uint8_t* row, std::int64_t width, int channels, const std::vector<float>& weights,
              float* out) {
  const auto reach = static_cast<std::int64_t>(weights.size()) / 2;
  std::fill_n(out, width * channels, 0.0F);
  for (std::int64_t x = 0; x < width; ++x, out += channels) {
    for (std::int64_t k = -reach; k <= reach; ++k) {
      const float weight = weights[static_cast<std::size_t>(k + reach)];
      const std::uint8_t* const pixel = row + mirrored(x + k, width) * channels;
      for (int c = 0; c < channels; ++c) out[c] += weight * static_cast<float>(pixel[c]);
    }
  }
}

}  // namespace

void adjust_brightness(Image& image, double factor) { blend_with(image, 0, factor); }

void adjust_contrast(Image& image, double factor) {
  std::int64_t sum = 0;
  const std::int64_t pixels = image.height * image.width;
  for (std::int64_t i = 0; i < pixels; ++i) {
    const std::uint8_t* const pixel = image.pixels.data() + i * image.channels;
    sum += image.channels == 3 ? luminance(pixel) : *pixel;
  }
  const double mean = static_cast<double>(sum) / static_cast<double>(std::max<std::int64_t>(pixels, 1));
  blend_with(image, static_cast<int>(mean + 0.5), factor);
}

void adjust_saturation(Image& image, double factor) {
  if (image.channels != 3) return;
  for (std::size_t i = 0; i < image.pixels.size(); i += 3) {
    std::uint8_t* const pixel = image.pixels.data() + i;
    const int grey = luminance(pixel);
    for (int c = 0; c < 3; ++c) pixel[c] = blend(grey, pixel[c], static_cast<float>(factor));
  }
}

void adjust_hue(Image& image, double factor) {
  if (image.channels != 3) return;
  const auto turn = static_cast<std::uint8_t>(static_cast<int>(factor * 255));
  for (std::size_t i = 0; i < image.pixels.size(); i += 3) {
    Pixel hsv = to_hsv(image.pixels.data() + i);
    hsv[0] = static_cast<std::uint8_t>(hsv[0] + turn);
    from_hsv(hsv, image.pixels.data() + i);
  }
}

void to_grayscale(Image& image) {
  if (image.channels != 3) return;
  for (std::size_t i = 0; i < image.pixels.size(); i += 3) {
    std::fill_n(image.pixels.data() + i, 3, luminance(image.pixels.data() + i));
  }
}

void gaussian_blur(Image& image, std::int64_t kernel_size, double sigma) {
  thread_local std::vector<float> along_x;
  thread_local std::vector<float> sums;
  const std::vector<float> weights = gaussian(kernel_size, sigma);
  const std::int64_t reach = kernel_size / 2;
  const std::int64_t samples = image.width * image.channels;
  along_x.resize(image.pixels.size());
  for (std::int64_t y = 0; y < image.height; ++y) {
    blur_row(image.row(y), image.width, image.channels, weights, along_x.data() + y * samples);
  }
  for (std::int64_t y = 0; y < image.height; ++y) {
    sums.assign(static_cast<std::size_t>(samples), 0.0F);
    for (std::int64_t k = -reach; k <= reach; ++k) {
      const float weight = weights[static_cast<std::size_t>(k + reach)];
      const float* const row = along_x.data() + mirrored(y + k, image.height) * samples;
      for (std::int64_t i = 0; i < samples; ++i) sums[static_cast<std::size_t>(i)] += weight * row[i];
    }
    std::uint8_t* const out = image.row(y);
    for (std::int64_t i = 0; i < samples; ++i) {
      out[i] = static_cast<std::uint8_t>(std::clamp(std::nearbyint(sums[static_cast<std::size_t>(i)]), 0.0F, 255.0F));
    }
  }
}

}  // namespace russet::data
