#include <gtest/gtest.h>
#include <russet/data.h>

#include "files/damage.h"
#include "files/encoders.h"

namespace russet::files {
namespace {

constexpr std::size_t record_bytes = 3073;

/// Records in which plane c of image i is full of 10 * i + c.
Bytes records(const std::vector<int>& labels) {
  Bytes file;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    file.push_back(static_cast<std::byte>(labels[i]));
    for (std::size_t c = 0; c < 3; ++c) file.insert(file.end(), 1024, static_cast<std::byte>(10 * i + c));
  }
  return file;
}

void write_all(const std::filesystem::path& folder) {
  for (int number = 1; number <= 5; ++number) {
    write(folder / ("data_batch_" + std::to_string(number) + ".bin"), records({number, 9 - number}));
  }
  write(folder / "test_batch.bin", records({0, 1, 9}));
}

TEST(Cifar10, FilesFollowEachOther) {
  const TemporaryFolder folder;
  write_all(folder.path());
  const data::Parts parts = data::open_cifar10(folder.path());
  ASSERT_EQ(parts.train->size(), 10);
  ASSERT_EQ(parts.test->size(), 3);
  EXPECT_EQ(parts.train->classes(), 10);
  EXPECT_EQ(parts.train->class_names()[2], "bird");
  EXPECT_EQ(parts.train->input(), (data::Field{DType::float32, {3, 32, 32}}));
  const data::Cifar10 images({folder / "data_batch_2.bin", folder / "data_batch_4.bin"}, {});
  const std::vector<std::int64_t> labels{2, 7, 4, 5};
  for (std::int64_t i = 0; i < 4; ++i) EXPECT_EQ(images.label(i), labels[static_cast<std::size_t>(i)]);
  EXPECT_EQ(images.describe(1), (folder / "data_batch_2.bin").string() + ": image 1");
  EXPECT_EQ(images.describe(2), (folder / "data_batch_4.bin").string() + ": image 0");
  Bytes input(images.input().bytes());
  Bytes target(8);
  data::Random random(0, data::Random::Purpose::augmentation);
  images.get(3, input, target, random);
  for (std::size_t c = 0; c < 3; ++c) {
    EXPECT_EQ(Bytes(input.begin() + static_cast<std::ptrdiff_t>(1024 * c),
                    input.begin() + static_cast<std::ptrdiff_t>(1024 * (c + 1))),
              Bytes(1024, static_cast<std::byte>(10 + c)));
  }
  EXPECT_EQ(target[0], std::byte{5});
}

TEST(Cifar10, TheFolderOfTheArchiveIsFound) {
  const TemporaryFolder folder;
  write_all(folder / "cifar-10-batches-bin");
  EXPECT_EQ(data::open_cifar10(folder.path()).train->size(), 10);
}

TEST(Cifar10, ATreeOfImagesIsTaken) {
  const TemporaryFolder folder;
  const Bytes image = encode_png(32, 32, {}, std::vector<std::uint8_t>(32 * 32 * 3, 7));
  write(folder / "train/cat/1.png", image);
  write(folder / "test/cat/1.png", image);
  const data::Parts parts = data::open_cifar10(folder.path());
  EXPECT_EQ(parts.train->class_names(), std::vector<std::string>{"cat"});
  EXPECT_EQ(parts.test->size(), 1);
}

TEST(Cifar10, DamagedFilesAreRefused) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "batch.bin";
  const auto error_of = [&](const Bytes& content) {
    write(path, content);
    return file_error([&] { const data::Cifar10 images({path}); });
  };
  const Bytes whole = records({3, 4});
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, record_bytes - 1, 2 * record_bytes - 1}) {
    const Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_NE(error_of(cut).find("batch.bin: " + std::to_string(size) + " bytes"), std::string::npos);
  }
  EXPECT_NE(error_of(records({3, 10})).find("image 1 has the label 10"), std::string::npos);
  write_all(folder.path());
  std::filesystem::remove(folder / "data_batch_3.bin");
  EXPECT_NE(file_error([&] { data::open_cifar10(folder.path()); }).find("data_batch_3.bin is missing"),
            std::string::npos);
  const TemporaryFolder empty;
  EXPECT_NE(file_error([&] { data::open_cifar10(empty.path()); }).find("data_batch_1.bin"), std::string::npos);
}

TEST(FirstSamples, OfAFolderComeByTurns) {
  const TemporaryFolder folder;
  for (const char* name : {"a/1.png", "a/2.png", "a/3.png", "b/1.png", "c/1.png", "c/2.png"}) {
    write(folder / name, encode_png(8, 8, {}, std::vector<std::uint8_t>(8 * 8 * 3, 7)));
  }
  const auto images = std::make_shared<const data::ImageFolder>(folder.path());
  const auto indices = [](const data::DatasetPtr& set) { return dynamic_cast<const data::Subset&>(*set).indices(); };
  EXPECT_EQ(indices(data::first_samples(images, 5)), (std::vector<std::int64_t>{0, 3, 4, 1, 5}));
  EXPECT_EQ(data::first_samples(images, 6), images);
  const auto shapes = std::make_shared<const data::Shapes>(data::ShapesOptions{.size = 4});
  EXPECT_EQ(indices(data::first_samples(shapes, 3)), (std::vector<std::int64_t>{0, 1, 2}));
  EXPECT_THROW(data::first_samples(shapes, 0), ValueError);
}

}  // namespace
}  // namespace russet::files
