// Bilinear scaling with antialiasing in two passes of 8-bit fixed point, coefficient by coefficient as Pillow's
// src/libImaging/Resample.c, so that results are the same bits as torchvision's on images of Pillow 13.
#include <russet/data/transforms.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "data/rows.h"

namespace russet::data {
namespace {

/// Of a stretch of `length` inputs from `begin` on; at its ends it may show a part of an input.
rows::Filter filter_for(double begin, double length, std::int64_t input, std::int64_t output) {
  const double scale = length / static_cast<double>(output);
  const double stretch =
      std::max(scale, 1.0);  // the filter's support is 1 input pixel, or 1 output pixel when shrinking
  rows::Filter filter;
  filter.taps = static_cast<std::int64_t>(std::ceil(stretch)) * 2 + 1;
  filter.values.resize(static_cast<std::size_t>(output * filter.taps));
  std::vector<double> raw(static_cast<std::size_t>(filter.taps));
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
      filter.values[static_cast<std::size_t>(i * filter.taps + k)] =
          static_cast<std::int32_t>(0.5 + weight * (1 << rows::Filter::precision_bits));
    }
    filter.first.push_back(first);
    filter.count.push_back(last - first);
  }
  return filter;
}

/// What a stretch of an axis is made of.
struct Stretch {
  std::int64_t first;  // input
  std::int64_t count;  // inputs that it shows, or a part of them
  double begin;        // within the first
  double length;

  bool becomes(std::int64_t output) const { return begin == 0 && length == static_cast<double>(output); }
  rows::Filter filter(std::int64_t output) const { return filter_for(begin, length, count, output); }
};

Stretch stretch_of(double begin, double length, std::int64_t size) {
  const auto first = std::clamp<std::int64_t>(static_cast<std::int64_t>(std::floor(begin)), 0, size - 1);
  const auto last = std::clamp<std::int64_t>(static_cast<std::int64_t>(std::ceil(begin + length)), first + 1, size);
  return {first, last - first, begin - static_cast<double>(first), length};
}

using rows::Window;

Window<std::uint8_t> whole(Image& image) {
  return {image.pixels.data(), image.width * image.channels, image.height, image.width, image.channels};
}
Window<const std::uint8_t> read_only(const Window<std::uint8_t>& window) {
  return {window.pixels, window.stride, window.height, window.width, window.channels};
}

}  // namespace

void resize_bilinear(const Image& source, double top, double left, double height, double width, Image& target) {
  thread_local Image middle;  // scaled along one axis
  const int channels = source.channels;
  const Stretch x = stretch_of(left, width, source.width);
  const Stretch y = stretch_of(top, height, source.height);
  const Window<const std::uint8_t> box{source.row(y.first) + x.first * channels, source.width * channels, y.count,
                                       x.count, channels};
  const Window<std::uint8_t> result = whole(target);
  const bool scale_x = !x.becomes(target.width);
  const bool scale_y = !y.becomes(target.height);
  if (!scale_x && !scale_y) {
    for (std::int64_t line = 0; line < box.height; ++line) {
      std::copy_n(box.pixels + line * box.stride, box.width * channels, target.row(line));
    }
  } else if (!scale_y) {
    rows::scale_along_x(x.filter(target.width), box, result);
  } else if (!scale_x) {
    rows::scale_along_y(y.filter(target.height), box, result);
  } else if (box.height - target.height > std::max<std::int64_t>(2 * (box.width - target.width), 0)) {
    // Along which axis Pillow 13 scales first, its results tell; older ones always begin with x.
    middle.resize(target.height, box.width, channels);
    rows::scale_along_y(y.filter(target.height), box, whole(middle));
    rows::scale_along_x(x.filter(target.width), read_only(whole(middle)), result);
  } else {
    middle.resize(box.height, target.width, channels);
    rows::scale_along_x(x.filter(target.width), box, whole(middle));
    rows::scale_along_y(y.filter(target.height), read_only(whole(middle)), result);
  }
}

}  // namespace russet::data
