// JPEG files decoded to a part of their size, against Pillow, and crops of them, against torchvision's of whole files
// (scripts/golden/reduced_jpeg.py).
#include <gtest/gtest.h>
#include <russet/data/transforms.h>
#include <russet/io/image.h>

#include <algorithm>
#include <cstdlib>

#include "calls/golden.h"

namespace golden {
namespace {

using russet::io::Image;
using Pixels = std::vector<std::uint8_t>;

const Json& records() {
  static const Json read = read_json("reduced_jpeg.json.gz");
  return read;
}

Image reduced(const Json& record, int n) {
  const auto file = record.at("file").get<Pixels>();
  Image image;
  const auto choose = [&](std::int64_t height, std::int64_t width) {
    EXPECT_EQ(height, record.at("height").get<std::int64_t>());
    EXPECT_EQ(width, record.at("width").get<std::int64_t>());
    return n;
  };
  EXPECT_EQ(russet::io::decode_reduced(std::as_bytes(std::span(file)), "a.jpg", 3, choose, image), n);
  return image;
}

/// Absolute differences, in levels.
struct Difference {
  double mean = 0;
  int largest = 0;
};

Difference difference_of(const Pixels& found, const Pixels& expected) {
  Difference result;
  EXPECT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < std::min(found.size(), expected.size()); ++i) {
    const int levels = std::abs(int{found[i]} - int{expected[i]});
    result.mean += static_cast<double>(levels) / static_cast<double>(expected.size());
    result.largest = std::max(result.largest, levels);
  }
  return result;
}

TEST(ReducedJpeg, PixelsArePillows) {
  for (const Json& record : records()) {
    for (const Json& expected : record.at("reduced")) {
      const Image image = reduced(record, expected.at("n"));
      EXPECT_EQ(image.height, expected.at("height").get<std::int64_t>());
      EXPECT_EQ(image.width, expected.at("width").get<std::int64_t>());
      EXPECT_LE(difference_of(image.pixels, expected.at("pixels").get<Pixels>()).largest, 1) << expected.at("n");
    }
  }
}

/// What docs/numerics.md says of crops.
TEST(ReducedJpeg, CropsAreNearThoseOfWholeFiles) {
  for (const Json& record : records()) {
    for (const Json& crop : record.at("crops")) {
      const auto box = crop.at("box").get<std::vector<int>>();  // top, left, height, width, size
      const int side = std::min(box[2], box[3]);
      for (const int n : {2, 4, 8}) {
        if (side < n * box[4]) continue;
        const Image image = reduced(record, n);
        Image target;
        target.resize(box[4], box[4], 3);
        const auto scaled = [&](int i) { return static_cast<double>(box[static_cast<std::size_t>(i)]) / n; };
        russet::data::resize_bilinear(image, scaled(0), scaled(1), scaled(2), scaled(3), target);
        const Difference difference = difference_of(target.pixels, crop.at("pixels").get<Pixels>());
        EXPECT_LE(difference.mean, 1.25) << crop.at("box") << " to 1 / " << n;
        EXPECT_LE(difference.largest, 9) << crop.at("box") << " to 1 / " << n;
      }
    }
  }
}

}  // namespace
}  // namespace golden
