#pragma once
// Transforms: from a decoded image to what a network takes. They run on the loader's threads, one image at a time.
#include <russet/data/random.h>
#include <russet/dtype.h>
#include <russet/io/image.h>
#include <array>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <variant>
#include <vector>

namespace russet::data {

using io::Image;

/// Height, width and channels of an image.
struct ImageSize {
  std::int64_t height = 0;
  std::int64_t width = 0;
  int channels = 0;
  bool operator==(const ImageSize&) const = default;
};

/// Scales to height x width, or, with one number, the shorter side to it. Bilinear with antialiasing, the same bits
/// as Pillow 13's, which torchvision uses.
struct Resize {
  std::int64_t height;
  std::int64_t width = 0;
};
/// The middle of the image; black is added where it is too small.
struct CenterCrop {
  std::int64_t size;
};
/// Black pixels on all sides.
struct Pad {
  std::int64_t pixels;
};
/// A square at a random place of the image, to which `padding` black pixels have been added on all sides.
struct RandomCrop {
  std::int64_t size;
  std::int64_t padding = 0;
};
/// A rectangle of random place, area and shape, scaled to size x size (torchvision's defaults).
struct RandomResizedCrop {
  std::int64_t size;
  double min_area = 0.08;
  double max_area = 1.0;
  double min_ratio = 3.0 / 4.0;
  double max_ratio = 4.0 / 3.0;
  /// Whether a JPEG file may be decoded to 1/2, 1/4 or 1/8 where that leaves the rectangle at least as large as the
  /// result, if no other transform but Channels comes before. docs/numerics.md says how much pixels differ then.
  bool reduced_decoding = true;
};
struct RandomHorizontalFlip {
  double probability = 0.5;
};
/// Changes brightness, contrast, saturation and hue (adjust.h), in random order. Factors are uniform in 1 - x to 1 + x,
/// at least 0, and hue's within -hue to hue; 0 leaves a quality alone.
struct ColorJitter {
  double brightness = 0;
  double contrast = 0;
  double saturation = 0;
  double hue = 0;  // at most 0.5
  /// Of changing anything: RandomApply's.
  double probability = 1;
};
struct RandomGrayscale {
  double probability = 0.1;
};
/// Gaussian blur by a sigma that is uniform between two.
struct GaussianBlur {
  std::int64_t kernel_size;  // odd
  double min_sigma = 0.1;
  double max_sigma = 2.0;
  double probability = 1;
};
/// 1: luminance; 3: RGB.
struct Channels {
  int count;
};
/// A function of your own, which keeps the image's size.
struct Apply {
  std::function<void(Image&, Random&)> function;
};
/// To float32 from 0 to 1.
struct ToFloat {};
/// (x - mean) / std, channel by channel; one number stands for all channels. Comes after ToFloat.
struct Normalize {
  std::vector<float> mean;
  std::vector<float> std;
};
/// Writes `value` over a rectangle of random place, area and shape (torchvision's defaults). Comes last.
struct RandomErasing {
  double probability = 0.5;
  double min_area = 0.02;
  double max_area = 0.33;
  double min_ratio = 0.3;
  double max_ratio = 3.3;
  float value = 0;
};

using Transform =
    std::variant<Resize, CenterCrop, Pad, RandomCrop, RandomResizedCrop, RandomHorizontalFlip, ColorJitter,
                 RandomGrayscale, GaussianBlur, Channels, Apply, ToFloat, Normalize, RandomErasing>;

/// A rectangle that RandomResizedCrop drew, in pixels of the image file, and the 1 / n to which the file may be
/// decoded.
struct DrawnCrop {
  std::int64_t top;
  std::int64_t left;
  std::int64_t height;
  std::int64_t width;
  int reduction = 1;
};

/// A list of transforms. The result is [channels, height, width]: uint8, or float32 with ToFloat.
class Transforms {
 public:
  Transforms() = default;
  /// Throws ValueError for a list that makes no sense.
  Transforms(std::initializer_list<Transform> steps) : Transforms(std::vector<Transform>(steps)) {}
  explicit Transforms(std::vector<Transform> steps);

  const std::vector<Transform>& steps() const { return steps_; }
  /// The same transforms, by which a sample becomes `count` results, each with random numbers of its own. Throws
  /// ValueError for a count below 1.
  Transforms with_views(std::int64_t count) const;
  std::int64_t views() const { return views_; }
  DType dtype() const { return to_float_ ? DType::float32 : DType::uint8; }
  /// The size that an image of size `size` gets. Throws ValueError if it is too small for a crop.
  ImageSize result(ImageSize size) const;
  /// Whether images of all sizes become equal in size.
  bool fixes_size() const;
  /// Transforms `image`, whose memory is scratch from then on, and writes one result to `target`. `drawn`: what
  /// draw_crop() gave, with the reduction that the image has; undefined: RandomResizedCrop draws here.
  /// Throws ShapeError if the result is not of size `expected`.
  void apply(Image& image, ImageSize expected, std::span<std::byte> target, Random& random,
             std::optional<DrawnCrop> drawn = {}) const;
  /// Whether files may be decoded to a part of their size: what draw_crop() tells.
  bool may_reduce() const { return reducing_.has_value(); }
  /// What the first transform does to an image of height x width. Requires may_reduce().
  DrawnCrop draw_crop(std::int64_t height, std::int64_t width, Random& random) const;

 private:
  std::vector<Transform> steps_;  // what changes 8-bit images
  bool to_float_ = false;
  Normalize normalize_{{0.0F}, {1.0F}};
  std::optional<RandomErasing> erasing_{};
  std::optional<RandomResizedCrop> reducing_{};  // the first of the steps that are not Channels
  std::int64_t views_ = 1;
  std::vector<std::array<float, 256>> tables_;  // what ToFloat and Normalize make of a sample, for each channel or all
};

/// Bilinear scaling with antialiasing of the box at (top, left) of `source` to `target`, whose size is set. The box
/// lies within `source`; its edges need not be those of pixels.
void resize_bilinear(const Image& source, double top, double left, double height, double width, Image& target);

}  // namespace russet::data
