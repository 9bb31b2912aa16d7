// Bilinear scaling with antialiasing in two passes of 8-bit fixed point, coefficient by coefficient as Pillow's
// src/libImaging/Resample.c, so that results are the same bits as torchvision's on Pillow images.
#include <russet/data/transforms.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace russet::data {
namespace {

constexpr int precision_bits = 32 - 8 - 2;

/// For each output position: which inputs it mixes, and with which weights.
struct Weights {
  std::int64_t taps = 0;             // room for each output
  std::vector<std::int64_t> first;   // first input
  std::vector<std::int64_t> count;   // number of inputs
  std::vector<std::int32_t> values;  // taps for each output, fixed point
};

/// Of a stretch of `length` inputs from `begin` on; at its ends it may show a part of an input.
Weights weights_for(double begin, double length, std::int64_t input, std::int64_t output) {
  const double scale = length / static_cast<double>(output);
  const double stretch =
      std::max(scale, 1.0);  // the filter's support is 1 input pixel, or 1 output pixel when shrinking
  Weights weights;
  weights.taps = static_cast<std::int64_t>(std::ceil(stretch)) * 2 + 1;
  weights.values.resize(static_cast<std::size_t>(output * weights.taps));
  std::vector<double> raw(static_cast<std::size_t>(weights.taps));
  for (std::int64_t i = 0; i < output; ++i) {
    const double center = begin + (static_cast<double>(i) + 0.5) * scale;
    const auto first = std::max<std::int64_t>(static_cast<std::int64_t>(center - stretch + 0.5), 0);
    const auto last = std::min(static_cast<std::int64_t>(center + stretch + 0.5), input);
    double total = 0;
    for (std::int64_t k = 0; k < last - first; ++k) {
      const double distance = std::abs((static_cast<double>(k + first) - center + 0.5) * (1.0 / stretch));
      raw[static_cast<std::size_t>(k)] = distance < 1.0 ? 1.0 - distance : 0.0;
      total += raw[static_cast<std::size_t>(k)];
    }
    for (std::int64_t k = 0; k < last - first; ++k) {
      const double weight = raw[static_cast<std::size_t>(k)] / total;
      weights.values[static_cast<std::size_t>(i * weights.taps + k)] =
          static_cast<std::int32_t>(0.5 + weight * (1 << precision_bits));
    }
    weights.first.push_back(first);
    weights.count.push_back(last - first);
  }
  return weights;
}

std::uint8_t rounded(std::int32_t sum) { return static_cast<std::uint8_t>(std::clamp(sum >> precision_bits, 0, 255)); }

template <int channels>
void scale_row(const std::uint8_t* source, const Weights& weights, std::int64_t width, std::uint8_t* target) {
  for (std::int64_t x = 0; x < width; ++x, target += channels) {
    const std::int32_t* const weight = weights.values.data() + x * weights.taps;
    const std::uint8_t* pixel = source + weights.first[static_cast<std::size_t>(x)] * channels;
    std::int32_t sums[channels];
    std::fill_n(sums, channels, 1 << (precision_bits - 1));
    for (std::int64_t k = 0; k < weights.count[static_cast<std::size_t>(x)]; ++k, pixel += channels) {
      for (int c = 0; c < channels; ++c) sums[c] += pixel[c] * weight[k];
    }
    for (int c = 0; c < channels; ++c) target[c] = rounded(sums[c]);
  }
}

/// Mixes rows of `samples` bytes.
void scale_columns(const std::uint8_t* source, std::int64_t samples, const Weights& weights, std::int64_t y,
                   std::uint8_t* target, std::vector<std::int32_t>& sums) {
  sums.assign(static_cast<std::size_t>(samples), 1 << (precision_bits - 1));
  for (std::int64_t k = 0; k < weights.count[static_cast<std::size_t>(y)]; ++k) {
    const std::uint8_t* const row = source + (weights.first[static_cast<std::size_t>(y)] + k) * samples;
    const std::int32_t weight = weights.values[static_cast<std::size_t>(y * weights.taps + k)];
    for (std::int64_t i = 0; i < samples; ++i) sums[static_cast<std::size_t>(i)] += row[i] * weight;
  }
  for (std::int64_t i = 0; i < samples; ++i) target[i] = rounded(sums[static_cast<std::size_t>(i)]);
}

}  // namespace

namespace {

/// What a stretch of an axis is made of.
struct Stretch {
  std::int64_t first;  // input
  std::int64_t count;  // inputs that it shows, or a part of them
  double begin;        // within the first
  double length;

  bool becomes(std::int64_t output) const { return begin == 0 && length == static_cast<double>(output); }
  Weights weights(std::int64_t output) const { return weights_for(begin, length, count, output); }
};

Stretch stretch_of(double begin, double length, std::int64_t size) {
  const auto first = std::clamp<std::int64_t>(static_cast<std::int64_t>(std::floor(begin)), 0, size - 1);
  const auto last = std::clamp<std::int64_t>(static_cast<std::int64_t>(std::ceil(begin + length)), first + 1, size);
  return {first, last - first, begin - static_cast<double>(first), length};
}

}  // namespace

void resize_bilinear(const Image& source, double top, double left, double height, double width, Image& target) {
  thread_local Image middle;  // scaled along x only
  thread_local std::vector<std::int32_t> sums;
  const int channels = source.channels;
  const Stretch x = stretch_of(left, width, source.width);
  const Stretch y = stretch_of(top, height, source.height);
  const bool scale_x = !x.becomes(target.width);
  const bool scale_y = !y.becomes(target.height);
  Image& after_x = scale_y ? middle : target;
  if (scale_y) middle.resize(y.count, target.width, channels);
  const Weights along_x = scale_x ? x.weights(target.width) : Weights{};
  for (std::int64_t line = 0; line < y.count; ++line) {
    const std::uint8_t* const row = source.row(y.first + line) + x.first * channels;
    if (!scale_x) {
      std::copy_n(row, x.count * channels, after_x.row(line));
    } else if (channels == 3) {
      scale_row<3>(row, along_x, target.width, after_x.row(line));
    } else {
      scale_row<1>(row, along_x, target.width, after_x.row(line));
    }
  }
  if (!scale_y) return;
  const Weights along_y = y.weights(target.height);
  for (std::int64_t line = 0; line < target.height; ++line) {
    scale_columns(middle.pixels.data(), target.width * channels, along_y, line, target.row(line), sums);
  }
}

}  // namespace russet::data
