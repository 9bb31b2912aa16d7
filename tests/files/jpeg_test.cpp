#include <gtest/gtest.h>
#include <russet/io/image.h>

#include <cstdlib>

#include "files/damage.h"
#include "files/encoders.h"

namespace russet::files {
namespace {

io::Image decoded(std::span<const std::byte> file, int channels = 3) {
  io::Image image;
  io::decode_jpeg(file, "a.jpg", channels, image);
  return image;
}

Parser parser() {
  return [](std::span<const std::byte> file) { decoded(file); };
}

/// JPEG is lossy: samples of a smooth picture stay within a few steps.
void expect_close(const io::Image& image, const io::Image& truth, int tolerance) {
  ASSERT_EQ(image.height, truth.height);
  ASSERT_EQ(image.width, truth.width);
  ASSERT_EQ(image.channels, truth.channels);
  for (std::size_t i = 0; i < truth.pixels.size(); ++i) {
    ASSERT_NEAR(image.pixels[i], truth.pixels[i], tolerance) << "sample " << i;
  }
}

TEST(Jpeg, ColourComesBack) {
  const io::Image picture = test_picture(37, 53, 3);
  for (const bool progressive : {false, true}) {
    expect_close(decoded(encode_jpeg(picture, {.quality = 98, .progressive = progressive})), picture, 6);
    expect_close(decoded(encode_jpeg(picture, {.quality = 98, .progressive = progressive, .subsampled = true})),
                 picture, 12);
  }
}

TEST(Jpeg, GreyBecomesColourAndBack) {
  const io::Image grey = test_picture(20, 31, 1);
  const Bytes file = encode_jpeg(grey, {.quality = 98});
  expect_close(decoded(file, 1), grey, 3);
  io::Image three;
  three.resize(20, 31, 3);
  for (std::size_t i = 0; i < three.pixels.size(); ++i) three.pixels[i] = grey.pixels[i / 3];
  expect_close(decoded(file, 3), three, 3);

  const io::Image colour = test_picture(20, 31, 3);
  io::Image luminance;
  luminance.resize(20, 31, 1);
  for (std::size_t i = 0; i < luminance.pixels.size(); ++i) {
    const std::uint8_t* p = &colour.pixels[3 * i];
    luminance.pixels[i] = static_cast<std::uint8_t>(0.299 * p[0] + 0.587 * p[1] + 0.114 * p[2] + 0.5);
  }
  expect_close(decoded(encode_jpeg(colour, {.quality = 98}), 1), luminance, 4);
}

TEST(Jpeg, CmykOfAdobeIsInverted) {
  // Ink c = m = y = 0 and k = 0 is white; stored inverted, as 255.
  io::Image ink;
  ink.resize(16, 16, 4);
  for (std::size_t i = 0; i < ink.pixels.size(); i += 4) {
    ink.pixels[i] = 255;      // no cyan: red 255
    ink.pixels[i + 1] = 128;  // half magenta: green 128
    ink.pixels[i + 2] = 0;    // full yellow: no blue
    ink.pixels[i + 3] = 255;  // no black
  }
  const io::Image image = decoded(encode_jpeg(ink, {.quality = 100}));
  EXPECT_NEAR(image.pixels[0], 255, 3);
  EXPECT_NEAR(image.pixels[1], 128, 3);
  EXPECT_NEAR(image.pixels[2], 0, 3);
}

int decoded_to(const Bytes& file, int reduction, io::Image& image) {
  return io::decode_reduced(
      file, "a.jpg", 3, [&](std::int64_t, std::int64_t) { return reduction; }, image);
}

TEST(Jpeg, PartsOfTheSizeAreRoundedUp) {
  const Bytes file = encode_jpeg(test_picture(37, 53, 3), {.quality = 98});
  const io::Image whole = decoded(file);
  for (const int n : {1, 2, 4, 8}) {
    io::Image image;
    EXPECT_EQ(decoded_to(file, n, image), n);
    ASSERT_EQ(image.height, (37 + n - 1) / n);
    ASSERT_EQ(image.width, (53 + n - 1) / n);
    // The means of a smooth picture's squares, where the picture has all of them.
    for (std::int64_t y = 0; y < 37 / n; ++y) {
      for (std::int64_t x = 0; x < 53 / n * 3; ++x) {
        int sum = 0;
        for (int i = 0; i < n * n; ++i) sum += whole.row(y * n + i / n)[(x / 3 * n + i % n) * 3 + x % 3];
        ASSERT_NEAR(image.row(y)[x], sum / (n * n), 4) << n << ": " << y << ", " << x;
      }
    }
  }
  io::Image image;
  EXPECT_THROW(decoded_to(file, 3, image), ValueError);
  EXPECT_THROW(decoded_to(file, 0, image), ValueError);
}

TEST(Jpeg, EveryTruncationIsRefused) {
  const io::Image picture = test_picture(19, 23, 3);
  for (const bool progressive : {false, true}) {
    expect_truncations_refused(encode_jpeg(picture, {.quality = 60, .progressive = progressive}), parser());
  }
}

TEST(Jpeg, FlippedBitsAreSurvived) {
  const io::Image picture = test_picture(19, 23, 3);
  for (const bool progressive : {false, true}) {
    const Bytes file = encode_jpeg(picture, {.quality = 60, .progressive = progressive});
    EXPECT_GT(expect_flips_survived(file, parser(), 1500), 300);
  }
}

TEST(Jpeg, SizesThatTheFileCannotHoldAreRefusedAtOnce) {
  Bytes file = encode_jpeg(test_picture(16, 16, 3));
  // The frame header: FF C0, length, precision, height, width.
  std::size_t frame = 0;
  while (!(file[frame] == std::byte{0xFF} && file[frame + 1] == std::byte{0xC0})) ++frame;
  const auto set_size = [&](int height, int width) {
    file[frame + 5] = static_cast<std::byte>(height >> 8);
    file[frame + 6] = static_cast<std::byte>(height);
    file[frame + 7] = static_cast<std::byte>(width >> 8);
    file[frame + 8] = static_cast<std::byte>(width);
  };
  set_size(65000, 65000);
  EXPECT_NE(file_error([&] { decoded(file); }).find("a.jpg: the image is too large: 65000 x 65000"), std::string::npos);
  set_size(8000, 8000);
  EXPECT_NE(file_error([&] { decoded(file); }).find("cannot hold 8000 x 8000 pixels"), std::string::npos);
}

TEST(Jpeg, OtherFilesAreRefused) {
  EXPECT_THROW(decoded({}), FileError);
  EXPECT_THROW(decoded(bytes_of("this is no image")), FileError);
  io::Image image;
  EXPECT_EQ(file_error([&] { io::decode_image(bytes_of("GIF89a"), "x/b.jpg", 3, image); }),
            "x/b.jpg: it is neither JPEG nor PNG");
  EXPECT_THROW(io::decode_jpeg(encode_jpeg(test_picture(8, 8, 3)), "a", 2, image), ValueError);
}

TEST(Jpeg, BytesBehindTheEndDoNotMatter) {
  const io::Image picture = test_picture(16, 16, 3);
  Bytes file = encode_jpeg(picture);
  const io::Image before = decoded(file);
  const Bytes more = bytes_of("appended by a camera");
  file.insert(file.end(), more.begin(), more.end());
  EXPECT_EQ(decoded(file).pixels, before.pixels);
}

}  // namespace
}  // namespace russet::files
