#include <gtest/gtest.h>
#include <russet/data.h>

#include <algorithm>
#include <cstring>
#include <set>

namespace russet::data {
namespace {

Image picture(std::int64_t height, std::int64_t width) {
  Image image;
  image.resize(height, width, 3);
  for (std::int64_t y = 0; y < height; ++y) {
    for (std::int64_t x = 0; x < width; ++x) {
      for (std::int64_t c = 0; c < 3; ++c) {
        image.row(y)[x * 3 + c] = static_cast<std::uint8_t>((x * 7 + y * 13 + c * 29 + (x * y) % 17 * 5) % 256);
      }
    }
  }
  return image;
}

/// Applies `transforms` to `image` and returns the result, channel after channel.
template <class T>
std::vector<T> applied(const Transforms& transforms, Image image, std::uint64_t seed = 0) {
  const ImageSize size = transforms.result({image.height, image.width, image.channels});
  std::vector<T> values(static_cast<std::size_t>(size.height * size.width * size.channels));
  Random random(seed, Random::Purpose::augmentation);
  transforms.apply(image, size, std::as_writable_bytes(std::span(values)), random);
  return values;
}

TEST(Transforms, NoneMakesPlanes) {
  const Image image = picture(4, 5);
  const auto values = applied<std::uint8_t>({}, image);
  for (std::int64_t c = 0; c < 3; ++c) {
    for (std::int64_t i = 0; i < 20; ++i) {
      EXPECT_EQ(values[static_cast<std::size_t>(c * 20 + i)], image.pixels[static_cast<std::size_t>(i * 3 + c)]);
    }
  }
}

TEST(Transforms, FloatAndNormalized) {
  const Image image = picture(4, 5);
  const auto plain = applied<float>({ToFloat{}}, image);
  const auto normal = applied<float>({ToFloat{}, Normalize{{0.5F, 0.25F, 0.125F}, {0.5F, 0.25F, 2.0F}}}, image);
  for (std::size_t i = 0; i < 60; ++i) {
    const float value = static_cast<float>(image.pixels[i % 20 * 3 + i / 20]) / 255.0F;
    EXPECT_EQ(plain[i], value);
    const float means[] = {0.5F, 0.25F, 0.125F};
    const float deviations[] = {0.5F, 0.25F, 2.0F};
    EXPECT_FLOAT_EQ(normal[i], (value - means[i / 20]) / deviations[i / 20]);
  }
}

TEST(Transforms, SizesFollowTorchvision) {
  const ImageSize wide{100, 151, 3};
  // torchvision.transforms.Resize(64): int(64 * 151 / 100) = 96
  EXPECT_EQ(Transforms({Resize{64}}).result(wide), (ImageSize{64, 96, 3}));
  EXPECT_EQ((Transforms({Resize{256}, CenterCrop{224}}).result(wide)), (ImageSize{224, 224, 3}));
  EXPECT_EQ((Transforms({Resize{20, 30}, Pad{2}, Channels{1}}).result(wide)), (ImageSize{24, 34, 1}));
  EXPECT_TRUE((Transforms{Resize{256}, CenterCrop{224}}.fixes_size()));
  EXPECT_FALSE((Transforms{Resize{256}, ToFloat{}}.fixes_size()));
}

TEST(CenterCrop, TakesTheMiddleAndPads) {
  Image line;
  line.resize(1, 5, 1);
  for (std::uint8_t i = 0; i < 5; ++i) line.pixels[i] = static_cast<std::uint8_t>(i + 1);
  EXPECT_EQ(applied<std::uint8_t>({CenterCrop{1}}, line), std::vector<std::uint8_t>{3});
  // torchvision: center_crop of [1..5] to 3 x 3 pads one black row on top and one below.
  EXPECT_EQ(applied<std::uint8_t>({CenterCrop{3}}, line), (std::vector<std::uint8_t>{0, 0, 0, 2, 3, 4, 0, 0, 0}));
}

TEST(RandomCrop, ReachesEveryPlace) {
  const Image image = picture(6, 6);
  const Transforms crop{RandomCrop{6, 1}};
  std::set<std::vector<std::uint8_t>> seen;
  for (std::uint64_t seed = 0; seed < 200; ++seed) seen.insert(applied<std::uint8_t>(crop, image, seed));
  std::set<std::vector<std::uint8_t>> expected;
  for (std::int64_t top = -1; top <= 1; ++top) {
    for (std::int64_t left = -1; left <= 1; ++left) {
      std::vector<std::uint8_t> planes(108, 0);
      for (std::int64_t y = std::max<std::int64_t>(0, -top); y < std::min<std::int64_t>(6, 6 - top); ++y) {
        for (std::int64_t x = std::max<std::int64_t>(0, -left); x < std::min<std::int64_t>(6, 6 - left); ++x) {
          for (std::int64_t c = 0; c < 3; ++c) {
            planes[static_cast<std::size_t>(c * 36 + y * 6 + x)] = image.row(y + top)[(x + left) * 3 + c];
          }
        }
      }
      expected.insert(planes);
    }
  }
  EXPECT_EQ(seen, expected);
  EXPECT_THROW((Transforms{RandomCrop{9, 1}}.result({6, 6, 3})), ValueError);
}

TEST(RandomHorizontalFlip, MirrorsHalfOfThem) {
  const Image image = picture(3, 5);
  const auto as_is = applied<std::uint8_t>({}, image);
  std::vector<std::uint8_t> mirrored(as_is.size());
  for (std::size_t i = 0; i < as_is.size(); ++i) mirrored[i] = as_is[i / 5 * 5 + 4 - i % 5];
  int flips = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    const auto values = applied<std::uint8_t>({RandomHorizontalFlip{}}, image, seed);
    ASSERT_TRUE(values == as_is || values == mirrored);
    flips += values == mirrored ? 1 : 0;
  }
  EXPECT_NEAR(flips, 500, 80);  // five deviations of a fair coin
  EXPECT_EQ(applied<std::uint8_t>({RandomHorizontalFlip{1.0}}, image), mirrored);
}

TEST(RandomResizedCrop, KeepsSolidColour) {
  Image image;
  image.resize(40, 60, 3);
  std::fill(image.pixels.begin(), image.pixels.end(), std::uint8_t{77});
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    EXPECT_EQ(applied<std::uint8_t>({RandomResizedCrop{16}}, image, seed), std::vector<std::uint8_t>(768, 77));
  }
  // An image that no allowed box fits falls back to the middle.
  Image thin;
  thin.resize(2, 90, 3);
  EXPECT_EQ(applied<std::uint8_t>({RandomResizedCrop{4, 0.9, 1.0}}, thin).size(), 48U);
}

TEST(Transforms, ListsThatMakeNoSenseAreRefused) {
  EXPECT_THROW((Transforms{Normalize{{0.5F}, {0.5F}}}), ValueError);
  EXPECT_THROW((Transforms{ToFloat{}, CenterCrop{3}}), ValueError);
  EXPECT_THROW((Transforms{ToFloat{}, Normalize{{0.5F}, {0.0F}}}), ValueError);
  EXPECT_THROW((Transforms{Channels{4}}), ValueError);
  EXPECT_THROW((Transforms{Resize{0}}), ValueError);
  EXPECT_THROW((Transforms{ToFloat{}, Normalize{{0.5F, 0.5F}, {1.0F, 1.0F}}}.result({4, 4, 3})), ValueError);
  EXPECT_THROW((Transforms{Resize{100'000}}.result({4, 4, 3})), ValueError);
}

TEST(Shapes, DependOnSeedAndIndexOnly) {
  const Shapes set({.size = 100, .seed = 3});
  const Shapes again({.size = 50, .seed = 3});
  const Shapes other({.size = 100, .seed = 4});
  const Shapes test({.size = 100, .seed = 3, .test = true});
  Image a;
  Image b;
  for (std::int64_t i = 0; i < 50; ++i) {
    set.read(i, a);
    again.read(i, b);
    EXPECT_EQ(a.pixels, b.pixels);
    other.read(i, b);
    EXPECT_NE(a.pixels, b.pixels);
    test.read(i, b);
    EXPECT_NE(a.pixels, b.pixels);
  }
  EXPECT_EQ(set.classes(), 10);
  EXPECT_EQ(set.class_names().size(), 10U);
  EXPECT_EQ(set.input(), (Field{DType::float32, {3, 32, 32}}));
}

TEST(Random, WordsAreUniform) {
  Random random(1, Random::Purpose::augmentation, 2, 3);
  std::vector<int> counts(7);
  for (int i = 0; i < 70'000; ++i) ++counts[random.below(7)];
  for (const int count : counts) EXPECT_NEAR(count, 10'000, 500);
  double sum = 0;
  for (int i = 0; i < 10'000; ++i) sum += random.uniform(-1, 3);
  EXPECT_NEAR(sum / 10'000, 1.0, 0.06);
}

TEST(ColorJitter, FactorsAndOrderVary) {
  const Image image = picture(12, 9);
  std::set<std::vector<std::uint8_t>> seen;
  int untouched = 0;
  const auto as_is = applied<std::uint8_t>({}, image);
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const auto values = applied<std::uint8_t>({ColorJitter{0.4, 0.4, 0.4, 0.1, 0.8}}, image, seed);
    untouched += values == as_is ? 1 : 0;
    seen.insert(values);
  }
  EXPECT_NEAR(untouched, 40, 20);
  EXPECT_EQ(seen.size(), static_cast<std::size_t>(200 - untouched + (untouched > 0 ? 1 : 0)));
  EXPECT_EQ(applied<std::uint8_t>({ColorJitter{}}, image), as_is);
  EXPECT_THROW((Transforms{ColorJitter{.hue = 0.6}}), ValueError);
  EXPECT_THROW((Transforms{ColorJitter{.contrast = -1}}), ValueError);
}

TEST(RandomGrayscale, MakesChannelsEqual) {
  const Image image = picture(4, 5);
  const auto grey = applied<std::uint8_t>({Channels{1}}, image);
  const auto values = applied<std::uint8_t>({RandomGrayscale{1}}, image);
  for (std::size_t i = 0; i < 60; ++i) EXPECT_EQ(values[i], grey[i % 20]);
  EXPECT_EQ(applied<std::uint8_t>({RandomGrayscale{0}}, image), applied<std::uint8_t>({}, image));
}

TEST(GaussianBlur, KernelsMustFit) {
  EXPECT_THROW((Transforms{GaussianBlur{4}}), ValueError);
  EXPECT_THROW((Transforms{GaussianBlur{.kernel_size = 3, .min_sigma = 0}}), ValueError);
  EXPECT_THROW((Transforms{GaussianBlur{9}}.result({4, 9, 3})), ValueError);
  EXPECT_EQ((Transforms{GaussianBlur{7}}.result({4, 9, 3})), (ImageSize{4, 9, 3}));
  EXPECT_EQ(applied<std::uint8_t>({GaussianBlur{.kernel_size = 3, .probability = 0}}, picture(4, 5)),
            applied<std::uint8_t>({}, picture(4, 5)));
}

TEST(RandomErasing, WritesOneRectangle) {
  Image white;
  white.resize(20, 30, 3);
  std::fill(white.pixels.begin(), white.pixels.end(), std::uint8_t{255});
  int erased = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const auto values = applied<float>({ToFloat{}, RandomErasing{.value = -2}}, white, seed);
    const auto count = std::count(values.begin(), values.begin() + 600, -2.0F);
    if (count == 0) continue;
    ++erased;
    EXPECT_GE(count, 6);    // 0.02 of 600, with sides rounded
    EXPECT_LE(count, 225);  // 0.33 of 600, likewise
    for (std::size_t i = 0; i < 600; ++i) {
      EXPECT_EQ(values[i], values[600 + i]);
      EXPECT_EQ(values[i], values[1200 + i]);
    }
    std::set<std::ptrdiff_t> rows;
    std::set<std::ptrdiff_t> columns;
    for (std::ptrdiff_t i = 0; i < 600; ++i) {
      if (values[static_cast<std::size_t>(i)] != -2.0F) continue;
      rows.insert(i / 30);
      columns.insert(i % 30);
    }
    EXPECT_EQ(static_cast<std::ptrdiff_t>(rows.size() * columns.size()), count);
  }
  EXPECT_NEAR(erased, 150, 45);
  EXPECT_THROW((Transforms{RandomErasing{}, ToFloat{}}), ValueError);
  EXPECT_THROW((Transforms{ToFloat{}, RandomErasing{}, Normalize{{0}, {1}}}), ValueError);
}

TEST(Views, DifferAndDoNotDependOnTheWorkers) {
  const Transforms transforms = Transforms{
      RandomResizedCrop{16},
      RandomHorizontalFlip{},
      ColorJitter{0.4, 0.4, 0.4, 0.1, 0.8},
      RandomGrayscale{0.2},
      GaussianBlur{.kernel_size = 3, .probability = 0.5},
      ToFloat{},
      RandomErasing{}}.with_views(2);
  const Shapes shapes({.size = 24}, transforms);
  EXPECT_EQ(shapes.input(), (Field{DType::float32, {2, 3, 16, 16}}));
  std::vector<std::vector<float>> runs;
  for (const int workers : {0, 1, 5}) {
    DataLoader loader(shapes, {.batch = 8, .shuffle = true, .seed = 3, .workers = workers});
    std::vector<float> all;
    for (auto [input, target] : loader) {
      EXPECT_EQ(input.sizes(), (russet::Shape{8, 2, 3, 16, 16}));
      const auto values = input.to_vector<float>();
      all.insert(all.end(), values.begin(), values.end());
    }
    runs.push_back(all);
  }
  EXPECT_EQ(runs[0], runs[1]);
  EXPECT_EQ(runs[0], runs[2]);
  constexpr std::ptrdiff_t view = 3 * 16 * 16;
  for (std::ptrdiff_t at = 0; at < std::ssize(runs[0]); at += 2 * view) {
    const auto first = runs[0].begin() + at;
    EXPECT_FALSE(std::equal(first, first + view, first + view));
  }
  EXPECT_THROW(transforms.with_views(0), ValueError);
}

}  // namespace
}  // namespace russet::data
