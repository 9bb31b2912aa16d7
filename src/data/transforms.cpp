#include <fmt/format.h>
#include <russet/data/adjust.h>
#include <russet/data/transforms.h>
#include <russet/error.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>
#include <utility>

#include "data/luminance.h"
#include "data/pixels.h"

namespace russet::data {
namespace {

void require(bool holds, std::string_view message) {
  if (!holds) throw ValueError(std::string(message));
}

// What each transform asks of its numbers.

void check(const Resize& t) { require(t.height > 0 && t.width >= 0, "Resize: sizes must be positive"); }
void check(const CenterCrop& t) { require(t.size > 0, "CenterCrop: the size must be positive"); }
void check(const Pad& t) { require(t.pixels >= 0, "Pad: the number of pixels must not be negative"); }
void check(const RandomCrop& t) {
  require(t.size > 0 && t.padding >= 0, "RandomCrop: the size must be positive and the padding not negative");
}
void require_probability(double probability, std::string_view name) {
  require(probability >= 0 && probability <= 1, fmt::format("{}: a probability is within [0, 1]", name));
}

/// Of the random rectangles of a transform.
template <class T>
void check_rectangle(const T& t, std::string_view name) {
  require(
      0 < t.min_area && t.min_area <= t.max_area && t.max_area <= 1 && 0 < t.min_ratio && t.min_ratio <= t.max_ratio,
      fmt::format("{}: areas must be within (0, 1], ratios positive, the smaller one first", name));
}

void check(const RandomResizedCrop& t) {
  require(t.size > 0, "RandomResizedCrop: the size must be positive");
  check_rectangle(t, "RandomResizedCrop");
}
void check(const RandomHorizontalFlip& t) { require_probability(t.probability, "RandomHorizontalFlip"); }
void check(const ColorJitter& t) {
  require_probability(t.probability, "ColorJitter");
  require(t.brightness >= 0 && t.contrast >= 0 && t.saturation >= 0 && t.hue >= 0 && t.hue <= 0.5 &&
              std::isfinite(t.brightness + t.contrast + t.saturation),
          "ColorJitter: brightness, contrast, saturation and hue must not be negative, and hue at most 0.5");
}
void check(const RandomGrayscale& t) { require_probability(t.probability, "RandomGrayscale"); }
void check(const GaussianBlur& t) {
  require_probability(t.probability, "GaussianBlur");
  require(t.kernel_size > 0 && t.kernel_size % 2 == 1, "GaussianBlur: the kernel's size must be odd and positive");
  require(0 < t.min_sigma && t.min_sigma <= t.max_sigma && std::isfinite(t.max_sigma),
          "GaussianBlur: sigmas must be positive, the smaller one first");
}
void check(const RandomErasing& t) {
  require_probability(t.probability, "RandomErasing");
  check_rectangle(t, "RandomErasing");
}
void check(const Channels& t) { require(t.count == 1 || t.count == 3, "Channels: 1 or 3"); }
void check(const Apply& t) { require(static_cast<bool>(t.function), "Apply: the function is empty"); }
void check(const ToFloat&) {}
void check(const Normalize& t) {
  require(!t.mean.empty() && t.mean.size() == t.std.size(),
          "Normalize: as many numbers in mean as in std, at least one");
  require(std::none_of(t.std.begin(), t.std.end(), [](float d) { return !(d > 0); }),
          "Normalize: std must be positive");
}

// What size each transform makes of a size.

ImageSize result_of(const Resize& t, ImageSize size) {
  if (t.width > 0) return {t.height, t.width, size.channels};
  const std::int64_t shorter = std::min(size.height, size.width);
  const auto scaled = [&](std::int64_t side) {
    return side == shorter
               ? t.height
               : static_cast<std::int64_t>(static_cast<double>(t.height * side) / static_cast<double>(shorter));
  };
  return {scaled(size.height), scaled(size.width), size.channels};
}
ImageSize result_of(const CenterCrop& t, ImageSize size) { return {t.size, t.size, size.channels}; }
ImageSize result_of(const Pad& t, ImageSize size) {
  return {size.height + 2 * t.pixels, size.width + 2 * t.pixels, size.channels};
}
ImageSize result_of(const RandomCrop& t, ImageSize size) {
  if (std::min(size.height, size.width) + 2 * t.padding < t.size) {
    throw ValueError(fmt::format("RandomCrop: {} pixels do not fit an image of {} x {}. Resize or pad it before?",
                                 t.size, size.height + 2 * t.padding, size.width + 2 * t.padding));
  }
  return {t.size, t.size, size.channels};
}
ImageSize result_of(const RandomResizedCrop& t, ImageSize size) { return {t.size, t.size, size.channels}; }
ImageSize result_of(const GaussianBlur& t, ImageSize size) {
  if (t.kernel_size / 2 >= std::min(size.height, size.width)) {
    throw ValueError(fmt::format("GaussianBlur: a kernel of {} is too large for an image of {} x {}", t.kernel_size,
                                 size.height, size.width));
  }
  return size;
}
ImageSize result_of(const Channels& t, ImageSize size) { return {size.height, size.width, t.count}; }
template <class Same>
ImageSize result_of(const Same&, ImageSize size) {
  return size;
}

/// The size that `transform` makes, once it is known to be no larger than any image may be.
template <class T>
ImageSize checked_result_of(const T& transform, ImageSize size) {
  size = result_of(transform, size);
  constexpr std::int64_t limit = io::ImageLimits{}.max_pixels;
  if (size.height < 1 || size.width < 1 || size.width > limit / size.height) {
    throw ValueError(fmt::format("a transform makes an image of {} x {} pixels", size.height, size.width));
  }
  return size;
}

/// Copies the window at (top, left), which may reach beyond the image: black there.
void copy_window(const Image& image, std::int64_t top, std::int64_t left, Image& window) {
  const std::int64_t first = std::clamp<std::int64_t>(-left, 0, window.width);
  const std::int64_t last = std::clamp<std::int64_t>(image.width - left, first, window.width);
  for (std::int64_t y = 0; y < window.height; ++y) {
    std::uint8_t* const row = window.row(y);
    const bool inside = top + y >= 0 && top + y < image.height;
    if (!inside || first > 0 || last < window.width) std::fill_n(row, window.width * window.channels, std::uint8_t{0});
    if (!inside) continue;
    std::copy_n(image.row(top + y) + (left + first) * image.channels, (last - first) * image.channels,
                row + first * image.channels);
  }
}

// What each transform does: from `image` to `out`, whose size is set. Returns whether the result is in `out`; else it
// is in `image`.

bool run(const Resize&, Image& image, Image& out, Random&) {
  if (image.height == out.height && image.width == out.width) return false;
  resize_bilinear(image, 0, 0, image.height, image.width, out);
  return true;
}

bool run(const CenterCrop&, Image& image, Image& out, Random&) {
  // Halves go to the even number, as Python's round() has it; padding goes, when odd, to the right.
  const auto start = [](std::int64_t have, std::int64_t want) {
    return have >= want ? static_cast<std::int64_t>(std::nearbyint(static_cast<double>(have - want) / 2.0))
                        : -((want - have) / 2);
  };
  copy_window(image, start(image.height, out.height), start(image.width, out.width), out);
  return true;
}

bool run(const Pad& t, Image& image, Image& out, Random&) {
  copy_window(image, -t.pixels, -t.pixels, out);
  return true;
}

std::int64_t draw(Random& random, std::int64_t count) {
  return static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(count)));
}

bool run(const RandomCrop& t, Image& image, Image& out, Random& random) {
  const std::int64_t top = draw(random, image.height + 2 * t.padding - t.size + 1) - t.padding;
  const std::int64_t left = draw(random, image.width + 2 * t.padding - t.size + 1) - t.padding;
  copy_window(image, top, left, out);
  return true;
}

/// The sides of a rectangle: a share of `area` between the limits, with a ratio whose logarithm is uniform.
struct Sides {
  std::int64_t first;
  std::int64_t second;  // the ratio is first / second
};
template <class Limits>
Sides random_sides(const Limits& t, std::int64_t area, Random& random) {
  const double chosen = static_cast<double>(area) * random.uniform(t.min_area, t.max_area);
  const double ratio = std::exp(random.uniform(std::log(t.min_ratio), std::log(t.max_ratio)));
  return {static_cast<std::int64_t>(std::nearbyint(std::sqrt(chosen * ratio))),
          static_cast<std::int64_t>(std::nearbyint(std::sqrt(chosen / ratio)))};
}

DrawnCrop draw(const RandomResizedCrop& t, std::int64_t full_height, std::int64_t full_width, Random& random) {
  for (int attempt = 0; attempt < 10; ++attempt) {
    const auto [width, height] = random_sides(t, full_height * full_width, random);
    if (width < 1 || width > full_width || height < 1 || height > full_height) continue;
    const std::int64_t top = draw(random, full_height - height + 1);
    const std::int64_t left = draw(random, full_width - width + 1);
    return {top, left, height, width};
  }
  // The largest box in the middle with a ratio that is allowed.
  const double ratio = static_cast<double>(full_width) / static_cast<double>(full_height);
  std::int64_t width = full_width;
  std::int64_t height = full_height;
  if (ratio < t.min_ratio) height = std::llround(static_cast<double>(width) / t.min_ratio);
  if (ratio > t.max_ratio) width = std::llround(static_cast<double>(height) * t.max_ratio);
  height = std::clamp<std::int64_t>(height, 1, full_height);
  width = std::clamp<std::int64_t>(width, 1, full_width);
  return {(full_height - height) / 2, (full_width - width) / 2, height, width};
}

/// Scales the rectangle to `out`, from an image of 1 / reduction of the size that it was drawn for.
void crop(const DrawnCrop& drawn, const Image& image, Image& out) {
  const auto scaled = [&](std::int64_t x) { return static_cast<double>(x) / drawn.reduction; };
  resize_bilinear(image, scaled(drawn.top), scaled(drawn.left), scaled(drawn.height), scaled(drawn.width), out);
}

bool run(const RandomResizedCrop& t, Image& image, Image& out, Random& random) {
  crop(draw(t, image.height, image.width, random), image, out);
  return true;
}

bool run(const RandomHorizontalFlip& t, Image& image, Image&, Random& random) {
  if (!random.chance(t.probability)) return false;
  for (std::int64_t y = 0; y < image.height; ++y) {
    const std::span row(image.row(y), static_cast<std::size_t>(image.width * image.channels));
    if (image.channels == 3) {
      pixels::reverse(row);
    } else {
      std::reverse(row.begin(), row.end());
    }
  }
  return false;
}

bool run(const ColorJitter& t, Image& image, Image&, Random& random) {
  if (!random.chance(t.probability)) return false;
  struct Quality {
    double range;
    double middle;
    void (*adjust)(Image&, double);
  };
  const std::array<Quality, 4> qualities{{{t.brightness, 1, adjust_brightness},
                                          {t.contrast, 1, adjust_contrast},
                                          {t.saturation, 1, adjust_saturation},
                                          {t.hue, 0, adjust_hue}}};
  std::array<std::int64_t, 4> order{0, 1, 2, 3};
  random.shuffle(order);
  for (const std::int64_t place : order) {
    const auto& [range, middle, adjust] = qualities[static_cast<std::size_t>(place)];
    if (range == 0) continue;
    const double low = middle == 0 ? -range : std::max(middle - range, 0.0);
    adjust(image, random.uniform(low, middle + range));
  }
  return false;
}

bool run(const RandomGrayscale& t, Image& image, Image&, Random& random) {
  if (random.chance(t.probability)) to_grayscale(image);
  return false;
}

bool run(const GaussianBlur& t, Image& image, Image&, Random& random) {
  if (!random.chance(t.probability)) return false;
  gaussian_blur(image, t.kernel_size, random.uniform(t.min_sigma, t.max_sigma));
  return false;
}

bool run(const Channels&, Image& image, Image& out, Random&) {
  if (image.channels == out.channels) return false;
  const std::uint8_t* from = image.pixels.data();
  std::uint8_t* to = out.pixels.data();
  for (std::int64_t i = 0; i < image.height * image.width; ++i, from += image.channels, to += out.channels) {
    if (out.channels == 3) {
      std::fill_n(to, 3, *from);
    } else {
      *to = luminance(from);
    }
  }
  return true;
}

bool run(const Apply& t, Image& image, Image&, Random& random) {
  t.function(image, random);
  return false;
}
bool run(const ToFloat&, Image&, Image&, Random&) { return false; }
bool run(const Normalize&, Image&, Image&, Random&) { return false; }
bool run(const RandomErasing&, Image&, Image&, Random&) { return false; }

/// Erases a rectangle of planes. As in torchvision, nothing is erased where ten attempts find none that fits.
void erase(const RandomErasing& t, ImageSize size, std::span<std::byte> target, Random& random) {
  if (!random.chance(t.probability)) return;
  auto* const planes = reinterpret_cast<float*>(target.data());
  for (int attempt = 0; attempt < 10; ++attempt) {
    const auto [height, width] = random_sides(t, size.height * size.width, random);
    if (height >= size.height || width >= size.width) continue;
    const std::int64_t top = draw(random, size.height - height + 1);
    const std::int64_t left = draw(random, size.width - width + 1);
    for (std::int64_t row = 0; row < size.channels * height; ++row) {
      const std::int64_t y = row / height * size.height + top + row % height;
      std::fill_n(planes + y * size.width + left, width, t.value);
    }
    return;
  }
}

/// From interleaved to planar, each sample through `convert(value, channel)`.
template <class T, class Convert>
void write_planes(const Image& image, std::span<std::byte> target, const Convert& convert) {
  auto* out = reinterpret_cast<T*>(target.data());
  const std::int64_t pixels = image.height * image.width;
  for (int c = 0; c < image.channels; ++c) {
    const std::uint8_t* in = image.pixels.data() + c;
    for (std::int64_t i = 0; i < pixels; ++i, in += image.channels) *out++ = convert(*in, c);
  }
}

}  // namespace

Transforms::Transforms(std::vector<Transform> steps) {
  bool normalized = false;
  for (Transform& step : steps) {
    std::visit([](const auto& transform) { check(transform); }, step);
    require(!erasing_, "Transforms: RandomErasing must come last");
    if (const auto* erasing = std::get_if<RandomErasing>(&step)) {
      erasing_ = *erasing;
    } else if (std::holds_alternative<ToFloat>(step)) {
      to_float_ = true;
    } else if (const auto* normalize = std::get_if<Normalize>(&step)) {
      require(to_float_, "Normalize: put ToFloat before it");
      require(!normalized, "Normalize: once is enough");
      normalized = true;
      normalize_ = *normalize;
    } else {
      require(!to_float_, "Transforms: ToFloat, Normalize and RandomErasing must come last");
      steps_.push_back(std::move(step));
    }
  }
  require(!erasing_ || to_float_, "RandomErasing: put ToFloat before it");
  const auto first = std::find_if(steps_.begin(), steps_.end(),
                                  [](const Transform& step) { return !std::holds_alternative<Channels>(step); });
  const auto* crop = first == steps_.end() ? nullptr : std::get_if<RandomResizedCrop>(&*first);
  if (crop != nullptr && crop->reduced_decoding) reducing_ = *crop;
  if (!to_float_) return;
  for (std::size_t c = 0; c < normalize_.mean.size(); ++c) {
    std::array<float, 256>& table = tables_.emplace_back();
    for (std::size_t value = 0; value < 256; ++value) {
      table[value] = (static_cast<float>(value) / 255.0F - normalize_.mean[c]) / normalize_.std[c];
    }
  }
}

DrawnCrop Transforms::draw_crop(std::int64_t height, std::int64_t width, Random& random) const {
  DrawnCrop drawn = draw(*reducing_, height, width, random);
  const std::int64_t side = std::min(drawn.height, drawn.width);
  for (const int reduction : {2, 4, 8}) {
    if (side >= reduction * reducing_->size) drawn.reduction = reduction;
  }
  return drawn;
}

ImageSize Transforms::result(ImageSize size) const {
  for (const Transform& step : steps_) {
    size = std::visit([&](const auto& transform) { return checked_result_of(transform, size); }, step);
  }
  if (tables_.size() > 1 && tables_.size() != static_cast<std::size_t>(size.channels)) {
    throw ValueError(fmt::format("Normalize: {} means for {} channels", tables_.size(), size.channels));
  }
  return size;
}

Transforms Transforms::with_views(std::int64_t count) const {
  require(count >= 1, "Transforms: a sample has at least one view");
  Transforms several = *this;
  several.views_ = count;
  return several;
}

bool Transforms::fixes_size() const {
  return std::any_of(steps_.begin(), steps_.end(), [](const Transform& step) {
    const auto* const resize = std::get_if<Resize>(&step);
    return (resize != nullptr && resize->width > 0) || std::holds_alternative<CenterCrop>(step) ||
           std::holds_alternative<RandomCrop>(step) || std::holds_alternative<RandomResizedCrop>(step);
  });
}

void Transforms::apply(Image& image, ImageSize expected, std::span<std::byte> target, Random& random,
                       std::optional<DrawnCrop> drawn) const {
  thread_local Image out;
  for (const Transform& step : steps_) {
    std::visit(
        [&](const auto& transform) {
          const ImageSize size = checked_result_of(transform, {image.height, image.width, image.channels});
          out.resize(size.height, size.width, size.channels);
          if (drawn && std::is_same_v<std::decay_t<decltype(transform)>, RandomResizedCrop>) {
            crop(*drawn, image, out);
            std::swap(image, out);
            drawn.reset();
          } else if (run(transform, image, out, random)) {
            std::swap(image, out);
          }
        },
        step);
  }
  const ImageSize size{image.height, image.width, image.channels};
  if (size != expected) {
    throw ShapeError(fmt::format("the image is {} x {} x {}, others are {} x {} x {}. Add Resize or a crop?",
                                 size.channels, size.height, size.width, expected.channels, expected.height,
                                 expected.width));
  }
  if (to_float_) {
    const auto table = [&](std::size_t channel) { return &tables_[tables_.size() == 1 ? 0 : channel]; };
    if (image.channels == 3) {
      pixels::to_planes(image.pixels, {table(0), table(1), table(2)}, reinterpret_cast<float*>(target.data()));
    } else {
      write_planes<float>(image, target, [&](std::uint8_t value, int) { return (*table(0))[value]; });
    }
    if (erasing_) erase(*erasing_, size, target, random);
  } else {
    write_planes<std::uint8_t>(image, target, [](std::uint8_t value, int) { return value; });
  }
}

}  // namespace russet::data
