#pragma once
// JPEG and PNG to 8-bit samples, and back.
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

namespace russet::io {

/// 8-bit samples, row by row, channels interleaved: height x width x channels.
struct Image {
  std::int64_t height = 0;
  std::int64_t width = 0;
  int channels = 0;
  std::vector<std::uint8_t> pixels;

  void resize(std::int64_t new_height, std::int64_t new_width, int new_channels) {
    height = new_height;
    width = new_width;
    channels = new_channels;
    pixels.resize(static_cast<std::size_t>(height * width * channels));
  }
  std::uint8_t* row(std::int64_t y) { return pixels.data() + y * width * channels; }
  const std::uint8_t* row(std::int64_t y) const { return pixels.data() + y * width * channels; }
};

/// What is refused before any memory is taken.
struct ImageLimits {
  std::int64_t max_pixels = 100'000'000;
};

// Decoders replace `image`, whose memory is used again. `channels` is 3 (RGB) or 1 (luminance): colours convert as
// needed, an alpha channel is dropped, 16-bit samples are scaled to 8. `name` is what errors call the file.
// They throw FileError for damaged, truncated or oversized input.
void decode_jpeg(std::span<const std::byte> file, std::string_view name, int channels, Image& image,
                 const ImageLimits& limits = {});
void decode_png(std::span<const std::byte> file, std::string_view name, int channels, Image& image,
                const ImageLimits& limits = {});
/// Looks at the first bytes to tell the format.
void decode_image(std::span<const std::byte> file, std::string_view name, int channels, Image& image,
                  const ImageLimits& limits = {});

/// Says to which 1 / n of its height and width a JPEG file is to be decoded: n is 1, 2, 4 or 8.
using ChooseReduction = std::function<int(std::int64_t height, std::int64_t width)>;
/// As decode_image, but a JPEG file to 1 / n of its height and width, rounded up, which costs less: pixels come from
/// the low frequencies of each block, and are about the means of n x n of the whole file's. Returns n; a PNG file's is
/// 1, and `choose` is not asked. Throws ValueError for another n.
int decode_reduced(std::span<const std::byte> file, std::string_view name, int channels, const ChooseReduction& choose,
                   Image& image, const ImageLimits& limits = {});

/// Reads and decodes a JPEG or PNG file.
Image read_image(const std::filesystem::path& path, int channels = 3, const ImageLimits& limits = {});

/// A PNG file of an image with 1 or 3 channels. Throws ValueError for others.
std::vector<std::byte> encode_png(const Image& image);

}  // namespace russet::io
