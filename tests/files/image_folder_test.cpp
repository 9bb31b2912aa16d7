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
