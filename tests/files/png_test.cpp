#include <gtest/gtest.h>
#include <png.h>
#include <russet/io/image.h>

#include "files/damage.h"
#include "files/encoders.h"

namespace russet::files {
namespace {

io::Image decoded(std::span<const std::byte> file, int channels = 3) {
  io::Image image;
  io::decode_png(file, "a.png", channels, image);
  return image;
}

Parser parser() {
  return [](std::span<const std::byte> file) { decoded(file); };
}

TEST(Png, ColourComesBackExactly) {
  const io::Image picture = test_picture(37, 53, 3);
  for (const bool interlaced : {false, true}) {
    const io::Image image = decoded(encode_png(37, 53, {8, PNG_COLOR_TYPE_RGB, interlaced}, picture.pixels));
    EXPECT_EQ(image.height, 37);
    EXPECT_EQ(image.width, 53);
    EXPECT_EQ(image.pixels, picture.pixels);
  }
}

TEST(Png, GreyOfEveryDepth) {
  for (const int depth : {1, 2, 4, 8, 16}) {
    constexpr int width = 13;
    std::vector<std::uint8_t> samples;
    std::vector<std::uint8_t> truth;
    const int largest = (1 << depth) - 1;
    for (int y = 0; y < 5; ++y) {
      std::vector<std::uint8_t> row(static_cast<std::size_t>((width * depth + 7) / 8), 0);
      for (int x = 0; x < width; ++x) {
        const int value = depth == 16 ? x * 4000 + y : (x * 7 + y * 3) & largest;
        if (depth == 16) {
          row[static_cast<std::size_t>(2 * x)] = static_cast<std::uint8_t>(value >> 8);
          row[static_cast<std::size_t>(2 * x + 1)] = static_cast<std::uint8_t>(value);
        } else {
          const int bit = x * depth;
          row[static_cast<std::size_t>(bit / 8)] |= static_cast<std::uint8_t>(value << (8 - depth - bit % 8));
        }
        truth.push_back(static_cast<std::uint8_t>((value * 255 + largest / 2) / largest));
      }
      samples.insert(samples.end(), row.begin(), row.end());
    }
    const Bytes file = encode_png(5, width, {depth, PNG_COLOR_TYPE_GRAY, false}, samples);
    EXPECT_EQ(decoded(file, 1).pixels, truth) << depth << " bits";
    const io::Image colour = decoded(file, 3);
    for (std::size_t i = 0; i < colour.pixels.size(); ++i)
      ASSERT_EQ(colour.pixels[i], truth[i / 3]) << depth << " bits";
  }
}

TEST(Png, PaletteAndAlphaBecomeRgb) {
  const std::vector<std::uint8_t> palette{10, 20, 30, 40, 50, 60, 70, 80, 90, 255, 0, 128};
  // Two bits a pixel: 0, 1, 2, 3.
  const Bytes indexed = encode_png(1, 4, {2, PNG_COLOR_TYPE_PALETTE, false}, {0b00011011}, palette, {0, 128});
  EXPECT_EQ(decoded(indexed).pixels, palette);

  const Bytes with_alpha = encode_png(1, 2, {8, PNG_COLOR_TYPE_RGB_ALPHA, false}, {1, 2, 3, 0, 4, 5, 6, 200});
  EXPECT_EQ(decoded(with_alpha).pixels, (std::vector<std::uint8_t>{1, 2, 3, 4, 5, 6}));
  const Bytes grey_alpha = encode_png(1, 2, {8, PNG_COLOR_TYPE_GRAY_ALPHA, false}, {9, 0, 7, 255});
  EXPECT_EQ(decoded(grey_alpha).pixels, (std::vector<std::uint8_t>{9, 9, 9, 7, 7, 7}));
}

TEST(Png, EveryTruncationIsRefused) {
  const io::Image picture = test_picture(11, 13, 3);
  expect_truncations_refused(encode_png(11, 13, {}, picture.pixels), parser());
  expect_truncations_refused(encode_png(11, 13, {8, PNG_COLOR_TYPE_RGB, true}, picture.pixels), parser());
}

TEST(Png, FlippedBitsAreSeen) {
  // Every chunk has a checksum: a flip passes only if it makes a chunk one that may be skipped, checksum included.
  const Bytes file = encode_png(11, 13, {}, test_picture(11, 13, 3).pixels);
  EXPECT_GT(expect_flips_survived(file, parser(), 2000), 1990);
}

TEST(Png, SizesThatTheFileCannotHoldAreRefusedAtOnce) {
  // A header of that size alone, its checksum right.
  const auto header_only = [](std::uint32_t width, std::uint32_t height) {
    Bytes file = encode_png(1, 1, {}, {1, 2, 3});
    for (int i = 0; i < 4; ++i) {
      file[static_cast<std::size_t>(16 + i)] = static_cast<std::byte>(width >> (24 - 8 * i));
      file[static_cast<std::size_t>(20 + i)] = static_cast<std::byte>(height >> (24 - 8 * i));
    }
    std::uint32_t sum = 0xFFFFFFFFU;
    for (std::size_t i = 12; i < 29; ++i) {
      sum ^= std::to_integer<std::uint32_t>(file[i]);
      for (int bit = 0; bit < 8; ++bit) sum = (sum >> 1) ^ (0xEDB88320U & (0U - (sum & 1U)));
    }
    sum = ~sum;
    for (int i = 0; i < 4; ++i) file[static_cast<std::size_t>(29 + i)] = static_cast<std::byte>(sum >> (24 - 8 * i));
    return file;
  };
  EXPECT_NE(file_error([&] { decoded(header_only(900'000, 900'000)); }).find("too large"), std::string::npos);
  EXPECT_NE(file_error([&] { decoded(header_only(9'000, 9'000)); }).find("cannot hold 9000 x 9000 pixels"),
            std::string::npos);
  EXPECT_THROW(decoded(header_only(0, 5)), FileError);
}

TEST(Png, OursComeBack) {
  for (const int channels : {1, 3}) {
    const io::Image picture = test_picture(9, 14, channels);
    EXPECT_EQ(decoded(io::encode_png(picture), channels).pixels, picture.pixels);
  }
}

}  // namespace
}  // namespace russet::files
