#include <gtest/gtest.h>
#include <russet/data.h>

#include "files/damage.h"
#include "files/encoders.h"

namespace russet::files {
namespace {

Bytes solid_png(std::uint8_t value, std::int64_t side = 8) {
  return encode_png(side, side, {}, std::vector<std::uint8_t>(static_cast<std::size_t>(side * side * 3), value));
}

TEST(ImageFolder, ClassesAndFilesAreSorted) {
  const TemporaryFolder folder;
  write(folder / "zebra/b.png", solid_png(4));
  write(folder / "zebra/a.JPG", encode_jpeg(test_picture(8, 8, 3)));
  write(folder / "ant/10.png", solid_png(1));
  write(folder / "ant/9.png", solid_png(2));
  write(folder / "ant/deep/1.png", solid_png(3));
  write(folder / "ant/notes.txt", bytes_of("no image"));
  write(folder / "ant/._9.png", bytes_of("no image"));
  write(folder / ".hidden/x.png", bytes_of("no image"));
  const data::ImageFolder images(folder.path(), {});
  EXPECT_EQ(images.class_names(), (std::vector<std::string>{"ant", "zebra"}));
  ASSERT_EQ(images.size(), 5);
  const char* const names[] = {"ant/10.png", "ant/9.png", "ant/deep/1.png", "zebra/a.JPG", "zebra/b.png"};
  for (std::int64_t i = 0; i < 5; ++i) {
    EXPECT_EQ(images.describe(i), (folder / names[i]).string());
    EXPECT_EQ(images.label(i), i < 3 ? 0 : 1);
  }
  EXPECT_EQ(images.input(), (data::Field{DType::uint8, {3, 8, 8}}));
  Bytes input(images.input().bytes());
  Bytes target(8);
  data::Random random(0, data::Random::Purpose::augmentation);
  for (int pass = 0; pass < 2; ++pass) {  // from the disk, then from memory
    images.get(2, input, target, random);
    EXPECT_EQ(input, Bytes(input.size(), std::byte{3}));
    EXPECT_EQ(target[0], std::byte{0});
  }
  std::filesystem::remove(folder / "ant/deep/1.png");
  EXPECT_NO_THROW(images.get(2, input, target, random));
  const data::ImageFolder uncached(folder.path(), {}, {.cache_bytes = 0});
  uncached.get(0, input, target, random);
  std::filesystem::remove(folder / "ant/10.png");
  EXPECT_NE(file_error([&] { uncached.get(0, input, target, random); }).find("ant/10.png: cannot open it"),
            std::string::npos);
}

TEST(ImageFolder, BadImagesAreNamed) {
  const TemporaryFolder folder;
  write(folder / "a/1.png", solid_png(1));
  write(folder / "a/2.png", solid_png(1, 9));
  Bytes cut = solid_png(1);
  cut.resize(cut.size() / 2);
  write(folder / "a/3.png", cut);
  const data::ImageFolder images(folder.path());
  Bytes input(images.input().bytes());
  Bytes target(8);
  data::Random random(0, data::Random::Purpose::augmentation);
  const auto get = [&](std::int64_t i) { return file_error([&, i] { images.get(i, input, target, random); }); };
  EXPECT_EQ(get(1),
            (folder / "a/2.png").string() + ": the image is 3 x 9 x 9, others are 3 x 8 x 8. Add Resize or a crop?");
  EXPECT_TRUE(get(2).starts_with((folder / "a/3.png").string() + ": damaged PNG")) << get(2);
}

/// Inputs of image `index`, by numbers of its own.
std::vector<std::uint8_t> cropped(const data::Dataset& images, std::int64_t index, std::uint64_t seed) {
  std::vector<std::uint8_t> input(images.input().bytes());
  Bytes target(8);
  data::Random random(seed, data::Random::Purpose::augmentation);
  images.get(index, std::as_writable_bytes(std::span(input)), target, random);
  return input;
}

/// The same rectangles, from files that are decoded to a part of their size where these are large, or whole.
TEST(ImageFolder, LargeCropsComeFromReducedFiles) {
  const TemporaryFolder folder;
  write(folder / "a/1.jpg", encode_jpeg(test_picture(200, 150, 3), {.quality = 95}));
  write(folder / "a/2.png", solid_png(7, 64));
  data::RandomResizedCrop crop{.size = 16};
  const auto views = [&](const data::Transform& last) {
    return data::Transforms{data::Channels{3}, crop, last}.with_views(3);
  };
  const data::ImageFolder reduced(folder.path(), views(data::RandomHorizontalFlip{}));
  crop.reduced_decoding = false;
  const data::ImageFolder whole(folder.path(), views(data::RandomHorizontalFlip{}));
  EXPECT_EQ(reduced.input(), (data::Field{DType::uint8, {3, 3, 16, 16}}));
  int different = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const auto found = cropped(reduced, 0, seed);
    const auto expected = cropped(whole, 0, seed);
    different += found != expected ? 1 : 0;
    for (std::size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i], expected[i], 12) << seed << ": " << i;
    EXPECT_EQ(cropped(reduced, 1, seed), cropped(whole, 1, seed));
  }
  EXPECT_GT(different, 10);  // most have a view that is twice as large as the result
}

/// A crop that does not come first, or is small, sees the whole file: the same bits.
TEST(ImageFolder, OtherCropsComeFromWholeFiles) {
  const TemporaryFolder folder;
  write(folder / "a/1.jpg", encode_jpeg(test_picture(60, 50, 3), {.quality = 95}));
  for (const bool blur_first : {false, true}) {
    const auto transforms = [&](bool reduced) {
      const data::RandomResizedCrop crop{.size = blur_first ? 8 : 30, .reduced_decoding = reduced};
      return blur_first ? data::Transforms{data::GaussianBlur{3}, crop} : data::Transforms{crop, data::GaussianBlur{3}};
    };
    const data::ImageFolder reduced(folder.path(), transforms(true));
    const data::ImageFolder whole(folder.path(), transforms(false));
    for (std::uint64_t seed = 0; seed < 10; ++seed) EXPECT_EQ(cropped(reduced, 0, seed), cropped(whole, 0, seed));
  }
}

TEST(ImageFolder, FoldersWithoutImagesAreRefused) {
  const TemporaryFolder folder;
  EXPECT_NE(file_error([&] { data::ImageFolder images(folder.path()); }).find("there are no subfolders"),
            std::string::npos);
  std::filesystem::create_directories(folder / "a");
  EXPECT_NE(file_error([&] { data::ImageFolder images(folder.path()); }).find("/a: there is no JPEG or PNG file"),
            std::string::npos);
  EXPECT_THROW(data::ImageFolder images(folder / "nowhere"), FileError);
}

TEST(OpenFolder, NumbersBothPartsAlike) {
  const TemporaryFolder folder;
  write(folder / "train/a/1.png", solid_png(1));
  write(folder / "train/b/1.png", solid_png(1));
  write(folder / "test/b/1.png", solid_png(1));
  const data::Parts parts = data::open_folder(folder.path());
  EXPECT_EQ(parts.train->size(), 2);
  ASSERT_NE(parts.test, nullptr);
  EXPECT_EQ(parts.test->classes(), 2);
  EXPECT_EQ(dynamic_cast<const data::ImageFolder&>(*parts.test).label(0), 1);
  write(folder / "test/c/1.png", solid_png(1));
  EXPECT_NE(file_error([&] { data::open_folder(folder.path()); }).find("\"c\" is not among the 2 classes"),
            std::string::npos);
}

}  // namespace
}  // namespace russet::files
