// Loops over pixels, on each instruction set: against Pillow where its results are integers, against float64 where they
// are rounded sums.
#include "data/pixels.h"

#include <gtest/gtest.h>
#include <russet/data/adjust.h>
#include <russet/data/transforms.h>
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "data/luminance.h"
#include "data/rows.h"
#include "group_builder.h"

namespace russet::data {
namespace {

class EachInstructionSet : public testing::TestWithParam<cpu::tiles::InstructionSet> {
  test::Limit limit_{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Pixels, EachInstructionSet, testing::ValuesIn(test::instruction_sets));

unsigned long checksum(const Image& image) {
  return crc32(0, image.pixels.data(), static_cast<unsigned>(image.pixels.size()));
}

/// Every third level of each colour with each other: 86 rows of 86 * 86 pixels.
Image colours() {
  Image image;
  image.resize(86, 86 * 86, 3);
  std::uint8_t* pixel = image.pixels.data();
  for (int red = 0; red < 256; red += 3) {
    for (int green = 0; green < 256; green += 3) {
      for (int blue = 0; blue < 256; blue += 3) {
        for (const int level : {red, green, blue}) *pixel++ = static_cast<std::uint8_t>(level);
      }
    }
  }
  return image;
}

struct Change {
  const char* name;
  std::function<void(Image&)> change;
  unsigned long checksum;
};

/// zlib.crc32(np.asarray(torchvision.transforms.functional.CHANGE(colours)).tobytes()), on images of Pillow 13.
TEST_P(EachInstructionSet, ColoursAreThoseOfPillow) {
  const Change changes[] = {
      {"hue 0.07", [](Image& i) { adjust_hue(i, 0.07); }, 0x763fc847},
      {"hue -0.2", [](Image& i) { adjust_hue(i, -0.2); }, 0x613a5872},
      {"hue 0.5", [](Image& i) { adjust_hue(i, 0.5); }, 0x42e55ac4},
      {"brightness 0.6911", [](Image& i) { adjust_brightness(i, 0.6911); }, 0xbfb9a132},
      {"brightness 1.37", [](Image& i) { adjust_brightness(i, 1.37); }, 0x49390f6b},
      {"contrast 0.6911", [](Image& i) { adjust_contrast(i, 0.6911); }, 0xe408b4d6},
      {"contrast 1.37", [](Image& i) { adjust_contrast(i, 1.37); }, 0xdc555563},
      {"saturation 0.6911", [](Image& i) { adjust_saturation(i, 0.6911); }, 0xef6a90d0},
      {"saturation 1.37", [](Image& i) { adjust_saturation(i, 1.37); }, 0xf75d1d76},
      {"grayscale", to_grayscale, 0xc9fdc06c},
  };
  for (const Change& change : changes) {
    Image image = colours();
    ASSERT_EQ(checksum(image), 0x77daf5feUL);
    change.change(image);
    EXPECT_EQ(checksum(image), change.checksum) << change.name;
  }
}

Image picture(std::int64_t height, std::int64_t width, int channels = 3) {
  Image image;
  image.resize(height, width, channels);
  for (std::int64_t y = 0; y < height; ++y) {
    for (std::int64_t x = 0; x < width; ++x) {
      for (std::int64_t c = 0; c < channels; ++c) {
        image.row(y)[x * channels + c] = static_cast<std::uint8_t>((x * 7 + y * 13 + c * 29 + (x * y) % 17 * 5) % 256);
      }
    }
  }
  return image;
}

/// Changes the first `width` pixels of a row, and says what each of them must become; the others stay.
template <class Change, class Expected>
void expect_pixels(std::int64_t width, const Change& change, const Expected& expected) {
  const Image before = picture(1, 200);
  Image changed = before;
  change(std::span(changed.pixels).first(static_cast<std::size_t>(3 * width)));
  Image wanted = before;
  for (std::int64_t x = 0; x < width; ++x) expected(before.pixels.data(), x, wanted.pixels.data() + 3 * x);
  EXPECT_EQ(changed.pixels, wanted.pixels) << width << " pixels";
}

TEST_P(EachInstructionSet, RowsOfAnyLength) {
  for (std::int64_t width = 1; width <= 150; ++width) {
    expect_pixels(width, pixels::reverse, [&](const std::uint8_t* row, std::int64_t x, std::uint8_t* pixel) {
      std::copy_n(row + 3 * (width - 1 - x), 3, pixel);
    });
    std::int64_t sum = 0;
    expect_pixels(width, pixels::set_to_luminance, [&](const std::uint8_t* row, std::int64_t x, std::uint8_t* pixel) {
      std::fill_n(pixel, 3, luminance(row + 3 * x));
      sum += *pixel;
    });
    const auto blend = [](pixels::Samples samples) { pixels::blend(samples, 100, 0.5F); };
    expect_pixels(width, blend, [](const std::uint8_t* row, std::int64_t x, std::uint8_t* pixel) {
      for (int c = 0; c < 3; ++c) pixel[c] = static_cast<std::uint8_t>((100 + row[3 * x + c]) / 2);
    });
    const Image image = picture(1, 200);
    EXPECT_EQ(pixels::sum_of_luminance(std::span(image.pixels).first(static_cast<std::size_t>(3 * width))), sum);
  }
}

TEST_P(EachInstructionSet, PlanesOfAnyLength) {
  std::array<pixels::Table, 3> tables{};
  for (std::size_t c = 0; c < 3; ++c) {
    for (std::size_t value = 0; value < 256; ++value) {
      tables[c][value] = static_cast<float>(1000 * c + (value * 37) % 256) / 7.0F;
    }
  }
  const Image image = picture(1, 200);
  for (std::size_t width = 1; width <= 150; ++width) {
    std::vector<float> planes(3 * width + 1, -1);
    pixels::to_planes(std::span(image.pixels).first(3 * width), {&tables[0], &tables[1], &tables[2]}, planes.data());
    for (std::size_t i = 0; i < 3 * width; ++i) {
      ASSERT_EQ(planes[i], tables[i / width][image.pixels[i % width * 3 + i / width]]) << width << ", place " << i;
    }
    EXPECT_EQ(planes.back(), -1);
  }
}

struct Golden {
  std::int64_t height;
  std::int64_t width;
  unsigned long checksum;
};

/// Pillow 13 (the first seven are Pillow 11's, too): zlib.crc32 of np.asarray(Image.fromarray(picture).resize((width,
/// height), Image.BILINEAR)).tobytes().
TEST_P(EachInstructionSet, ResizedAsByPillow) {
  const Image source = picture(37, 53);
  for (const Golden& golden :
       {Golden{16, 16, 0x9b1ae98e}, Golden{37, 20, 0x7f8af6d4}, Golden{20, 53, 0x98549b20}, Golden{64, 100, 0xb309c0ac},
        Golden{7, 5, 0xb491d2a8}, Golden{1, 1, 0x8bef11b1}, Golden{224, 224, 0xf384f4f}, Golden{12, 60, 0x2d90b731},
        Golden{20, 48, 0xcb5c309e}, Golden{10, 40, 0xf280d31c}, Golden{11, 40, 0xcaddb1d}}) {
    Image target;
    target.resize(golden.height, golden.width, 3);
    resize_bilinear(source, 0, 0, 37, 53, target);
    EXPECT_EQ(checksum(target), golden.checksum) << golden.height << " x " << golden.width;
  }
  Image box;  // .crop((10, 5, 40, 30)).resize((32, 32), Image.BILINEAR)
  box.resize(32, 32, 3);
  resize_bilinear(source, 5, 10, 25, 30, box);
  EXPECT_EQ(checksum(box), 0xee70cd6eUL);
  Image grey;
  grey.resize(37, 53, 1);
  for (std::size_t i = 0; i < grey.pixels.size(); ++i) grey.pixels[i] = source.pixels[3 * i];
  Image small;
  small.resize(24, 16, 1);
  resize_bilinear(grey, 0, 0, 37, 53, small);
  EXPECT_EQ(checksum(small), 0x4a8501d8UL);
}

/// Output i is input i, the last one from there on.
rows::Filter nearest(std::int64_t inputs, std::int64_t outputs) {
  rows::Filter filter{.taps = 1};
  for (std::int64_t i = 0; i < outputs; ++i) {
    filter.first.push_back(std::min(i, inputs - 1));
    filter.count.push_back(1);
    filter.values.push_back(1 << rows::Filter::precision_bits);
  }
  return filter;
}

/// What lies around the window that is written to keeps its values.
TEST_P(EachInstructionSet, ScaledWithinItsWindow) {
  constexpr std::int64_t margin = 4;
  for (const int channels : {1, 3}) {
    for (std::int64_t size = 1; size <= 40; ++size) {
      for (const bool along_x : {true, false}) {
        const Image source = picture(11, along_x ? 13 : size, channels);
        const std::int64_t height = along_x ? source.height : size;
        const std::int64_t stride = size * channels + 2 * margin;
        std::vector<std::uint8_t> around(static_cast<std::size_t>(height * stride), 0xAB);
        const rows::Window<const std::uint8_t> from{source.pixels.data(), source.width * channels, source.height,
                                                    source.width, channels};
        const rows::Window<std::uint8_t> to{around.data() + margin, stride, height, size, channels};
        (along_x ? rows::scale_along_x : rows::scale_along_y)(nearest(along_x ? source.width : source.height, size),
                                                              from, to);
        for (std::int64_t i = 0; i < std::ssize(around); ++i) {
          const std::int64_t sample = i % stride - margin;
          const bool inside = sample >= 0 && sample < size * channels;
          const std::int64_t y = std::min(i / stride, source.height - 1);
          const std::int64_t x = std::min(sample / channels, source.width - 1);
          const int expected = inside ? source.row(y)[x * channels + sample % channels] : 0xAB;
          ASSERT_EQ(around[static_cast<std::size_t>(i)], expected)
              << "along " << (along_x ? "x" : "y") << " to " << size << " pixels of " << channels << ", byte " << i;
        }
      }
    }
  }
}

/// The blur of one sample in float64, with all of the kernel's weights.
double blurred(const Image& image, std::int64_t y, std::int64_t x, int c, std::int64_t size, double sigma) {
  const std::int64_t reach = size / 2;
  const auto weight = [&](std::int64_t k) { return std::exp(-0.5 * static_cast<double>(k * k) / (sigma * sigma)); };
  const auto inside = [](std::int64_t i, std::int64_t n) { return i < 0 ? -i : i < n ? i : 2 * (n - 1) - i; };
  double sum = 0;
  double total = 0;
  for (std::int64_t i = -reach; i <= reach; ++i) {
    for (std::int64_t j = -reach; j <= reach; ++j) {
      const double product = weight(i) * weight(j);
      sum += product * image.row(inside(y + i, image.height))[inside(x + j, image.width) * image.channels + c];
      total += product;
    }
  }
  return sum / total;
}

TEST_P(EachInstructionSet, BlursAreRoundedSums) {
  for (const int channels : {1, 3}) {
    for (const auto& [height, width, size, sigma] :
         {std::tuple{4L, 5L, 7L, 2.0}, std::tuple{20L, 31L, 5L, 0.8}, std::tuple{25L, 24L, 23L, 0.77},
          std::tuple{30L, 23L, 23L, 2.0}, std::tuple{3L, 90L, 3L, 0.1}, std::tuple{9L, 9L, 1L, 1.0}}) {
      const Image source = picture(height, width, channels);
      Image image = source;
      gaussian_blur(image, size, sigma);
      double worst = 0;
      for (std::int64_t i = 0; i < std::ssize(image.pixels); ++i) {
        const std::int64_t pixel = i / channels;
        const double exact = blurred(source, pixel / width, pixel % width, static_cast<int>(i % channels), size, sigma);
        worst = std::max(worst, std::abs(image.pixels[static_cast<std::size_t>(i)] - exact));
      }
      EXPECT_LE(worst, 0.5 + 1e-4) << height << " x " << width << " x " << channels << ", " << size << ", " << sigma;
    }
  }
}

}  // namespace
}  // namespace russet::data
