#pragma once
// Changes of an image by given numbers: torchvision's functions of these names, the same bits as theirs on Pillow's
// images (gaussian_blur: to within one level). An image has 1 or 3 channels and keeps its size.
#include <russet/io/image.h>
#include <cstdint>

namespace russet::data {

/// Towards black (factor 0), or away from it (above 1).
void adjust_brightness(io::Image& image, double factor);
/// Towards the mean of its luminance, or away from it.
void adjust_contrast(io::Image& image, double factor);
/// Towards its luminance, or away from it.
void adjust_saturation(io::Image& image, double factor);
/// Turns hues by `factor` of a whole turn, from -0.5 to 0.5. One channel has none.
void adjust_hue(io::Image& image, double factor);
/// The luminance, in as many channels as there were.
void to_grayscale(io::Image& image);
/// Mixes each pixel with those around it, by a Gaussian of `sigma` cut to kernel_size x kernel_size (odd, less than
/// twice each side); what lies beyond the edges is the image mirrored there.
void gaussian_blur(io::Image& image, std::int64_t kernel_size, double sigma);

}  // namespace russet::data
