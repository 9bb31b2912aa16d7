#include <fmt/format.h>
#include <russet/error.h>
#include <russet/io/file.h>
#include <russet/io/image.h>

#include <algorithm>
#include <array>
#include <string>

#include "io/jpeg.h"

namespace russet::io {
namespace {

/// More than a JPEG or PNG of ImageLimits::max_pixels needs.
constexpr std::uint64_t max_file_bytes = std::uint64_t{1} << 30;

template <std::size_t count>
bool begins_with(std::span<const std::byte> file, const std::array<unsigned char, count>& magic) {
  return file.size() >= count && std::equal(magic.begin(), magic.end(), file.begin(),
                                            [](unsigned char a, std::byte b) { return std::byte{a} == b; });
}

bool is_jpeg(std::span<const std::byte> file) {
  return begins_with(file, std::array<unsigned char, 3>{0xFF, 0xD8, 0xFF});
}

}  // namespace

void decode_image(std::span<const std::byte> file, std::string_view name, int channels, Image& image,
                  const ImageLimits& limits) {
  constexpr std::array<unsigned char, 8> png{0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
  if (is_jpeg(file)) return decode_jpeg(file, name, channels, image, limits);
  if (begins_with(file, png)) return decode_png(file, name, channels, image, limits);
  throw FileError(fmt::format("{}: {}", name, file.empty() ? "the file is empty" : "it is neither JPEG nor PNG"));
}

int decode_reduced(std::span<const std::byte> file, std::string_view name, int channels, const ChooseReduction& choose,
                   Image& image, const ImageLimits& limits) {
  if (is_jpeg(file)) return decode_jpeg_reduced(file, name, channels, choose, image, limits);
  decode_image(file, name, channels, image, limits);
  return 1;
}

Image read_image(const std::filesystem::path& path, int channels, const ImageLimits& limits) {
  Image image;
  decode_image(read_file(path, max_file_bytes), path.string(), channels, image, limits);
  return image;
}

}  // namespace russet::io
