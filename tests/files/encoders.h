#pragma once
// JPEG, PNG and gzip files of every kind, made with the libraries directly.
#include <russet/io/image.h>

#include <cstdint>
#include <vector>

#include "files/bytes.h"

namespace russet::files {

/// A picture without symmetries: pixel (y, x, c) is a smooth function of all three.
io::Image test_picture(std::int64_t height, std::int64_t width, int channels);

struct JpegKind {
  int quality = 90;
  bool progressive = false;
  bool subsampled = false;
};
/// 1 channel: grey, 3: RGB, 4: CMYK as Adobe writes it (inverted).
Bytes encode_jpeg(const io::Image& image, const JpegKind& kind = {});

struct PngKind {
  int bit_depth = 8;
  int colour_type = 2;  // PNG_COLOR_TYPE_RGB
  bool interlaced = false;
};
/// `samples`: rows of big-endian samples as the kind has them (packed below 8 bits).
Bytes encode_png(std::int64_t height, std::int64_t width, const PngKind& kind, const std::vector<std::uint8_t>& samples,
                 const std::vector<std::uint8_t>& palette = {}, const std::vector<std::uint8_t>& palette_alpha = {});

Bytes gzip(const Bytes& content);

}  // namespace russet::files
