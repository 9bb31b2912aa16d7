#pragma once
// MixUp and CutMix of a batch's samples, each with the one before it (the first with the last): torchvision's.
#include <russet/data/loader.h>

#include <cstdint>
#include <optional>
#include <span>

namespace russet::data {

/// What a batch is mixed by: a share of all values (MixUp), or a box of pixels (CutMix).
struct Mixture {
  struct Box {
    std::int64_t top;
    std::int64_t left;
    std::int64_t bottom;
    std::int64_t right;
  };
  /// How much of a sample stays its own: of its target, and, without a box, of its values.
  double own = 1;
  /// The pixels that are the other sample's.
  std::optional<Box> box{};
};

/// CutMix's box around (y, x): of `lambda`, the share of the image outside, if the image's edges do not cut the box.
Mixture cut_mixture(double lambda, std::int64_t y, std::int64_t x, std::int64_t height, std::int64_t width);
/// A mixture for a batch of samples of a shape.
Mixture draw_mixture(const Mixing& mixing, const Shape& sample, Random& random);
/// A number of the distribution Beta(alpha, alpha).
double draw_beta(double alpha, Random& random);

/// Mixes the rows of a batch in place.
void mix_inputs(std::span<float> values, const Shape& sample, const Mixture& mixture);
/// The shares of classes [rows, classes] that a mixture makes of labels. Throws ValueError for a label that is no
/// class.
void mix_targets(std::span<const std::int64_t> labels, std::int64_t classes, const Mixture& mixture,
                 std::span<float> shares);

}  // namespace russet::data
