#include <gtest/gtest.h>
#include <russet/data.h>
#include <russet/io/idx.h>

#include <cstdlib>
#include <cstring>

#include "files/damage.h"
#include "files/encoders.h"

namespace russet::files {
namespace {

Bytes idx(unsigned type, const std::vector<std::uint32_t>& sizes, const Bytes& elements) {
  Bytes file{std::byte{0}, std::byte{0}, static_cast<std::byte>(type), static_cast<std::byte>(sizes.size())};
  for (const std::uint32_t size : sizes) {
    for (int shift = 24; shift >= 0; shift -= 8) file.push_back(static_cast<std::byte>(size >> shift));
  }
  file.insert(file.end(), elements.begin(), elements.end());
  return file;
}

Parser parser() {
  return [](std::span<const std::byte> file) { io::parse_idx(file, "a.idx"); };
}

TEST(Idx, PlainAndGzipped) {
  const Bytes elements = bytes_of("abcdefghijkl");
  const Bytes plain = idx(0x08, {2, 3, 2}, elements);
  for (const Bytes& file : {plain, gzip(plain)}) {
    const io::IdxArray array = io::parse_idx(file, "a.idx");
    EXPECT_EQ(array.dtype, DType::uint8);
    EXPECT_EQ(array.shape, (Shape{2, 3, 2}));
    EXPECT_EQ(array.bytes, elements);
  }
}

TEST(Idx, BigEndianElements) {
  const io::IdxArray words = io::parse_idx(idx(0x0C, {2},
                                               {std::byte{0}, std::byte{0}, std::byte{1}, std::byte{2}, std::byte{255},
                                                std::byte{255}, std::byte{255}, std::byte{254}}),
                                           "a.idx");
  std::int32_t values[2];
  ASSERT_EQ(words.bytes.size(), sizeof(values));
  std::memcpy(values, words.bytes.data(), sizeof(values));
  EXPECT_EQ(values[0], 258);
  EXPECT_EQ(values[1], -2);
  const io::IdxArray real =
      io::parse_idx(idx(0x0D, {1}, {std::byte{0x3F}, std::byte{0xC0}, std::byte{0}, std::byte{0}}), "a");
  float value = 0;
  std::memcpy(&value, real.bytes.data(), sizeof(value));
  EXPECT_EQ(value, 1.5F);
}

TEST(Idx, EveryTruncationIsRefused) {
  const Bytes plain = idx(0x08, {2, 3, 2}, bytes_of("abcdefghijkl"));
  expect_truncations_refused(plain, parser());
  expect_truncations_refused(gzip(plain), parser());
}

TEST(Idx, MoreThanTheHeaderSaysIsRefused) {
  const Bytes longer = idx(0x08, {2, 3}, bytes_of("abcdefg"));
  EXPECT_NE(file_error([&] { parser()(longer); }).find("bytes follow the last element"), std::string::npos);
  EXPECT_NE(file_error([&] { parser()(gzip(longer)); }).find("bytes follow the last element"), std::string::npos);
  Bytes twice = gzip(idx(0x08, {1}, bytes_of("a")));
  twice.push_back(std::byte{7});
  EXPECT_NE(file_error([&] { parser()(twice); }).find("1 bytes follow the gzip stream"), std::string::npos);
}

TEST(Idx, SizesThatTheFileCannotHoldAreRefusedAtOnce) {
  const Bytes few = bytes_of("abc");
  EXPECT_THROW(parser()(idx(0x08, {0xFFFFFFFF, 0xFFFFFFFF}, few)), FileError);
  EXPECT_THROW(parser()(idx(0x0E, {0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF}, few)), FileError);
  EXPECT_THROW(parser()(idx(0x08, {0, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF}, {})), FileError);
  EXPECT_THROW(parser()(gzip(idx(0x08, {0x40000000}, few))), FileError);
  EXPECT_EQ(io::parse_idx(idx(0x08, {0, 28, 28}, {}), "empty").shape, (Shape{0, 28, 28}));
}

TEST(Idx, BombsStopAtTheHeadersSize) {
  // 64 MiB of zeros behind a header that says 4 bytes: only these are inflated.
  Bytes zeros = idx(0x08, {4}, Bytes(std::size_t{64} << 20));
  EXPECT_NE(file_error([&] { parser()(gzip(zeros)); }).find("bytes follow"), std::string::npos);
  EXPECT_NE(file_error([&] { io::parse_idx(idx(0x08, {100}, Bytes(100)), "a", 50); }).find("more than the 50"),
            std::string::npos);
}

TEST(Idx, OtherFilesAreRefused) {
  EXPECT_THROW(parser()({}), FileError);
  EXPECT_NE(file_error([&] { parser()(bytes_of("P5 28 28")); }).find("it is no IDX file"), std::string::npos);
  EXPECT_THROW(parser()(idx(0x0A, {1}, bytes_of("a"))), FileError);
  EXPECT_THROW(parser()(idx(0x08, {}, bytes_of("a"))), FileError);
  EXPECT_THROW(parser()(idx(0x08, std::vector<std::uint32_t>(9, 1), bytes_of("a"))), FileError);
}

TEST(Idx, FlippedBitsAreSurvived) {
  const Bytes plain = idx(0x08, {2, 3, 2}, bytes_of("abcdefghijkl"));
  expect_flips_survived(plain, parser(), 2000);
  EXPECT_GT(expect_flips_survived(gzip(plain), parser(), 2000), 1500);
}

TEST(Mnist, PairsMustFit) {
  const TemporaryFolder folder;
  EXPECT_NE(file_error([&] { data::open_mnist(folder.path()); }).find("there are no MNIST files"), std::string::npos);
  EXPECT_NE(file_error([&] { data::open_mnist(folder / "nowhere"); }).find("there is no such folder"),
            std::string::npos);
  write(folder / "t10k-images-idx3-ubyte", idx(0x08, {2, 2, 2}, bytes_of("abcdefgh")));
  EXPECT_NE(file_error([&] { data::open_mnist(folder.path()); }).find("t10k-labels-idx1-ubyte(.gz) is missing"),
            std::string::npos);
  write(folder / "t10k-labels-idx1-ubyte.gz", gzip(idx(0x08, {3}, {std::byte{1}, std::byte{2}, std::byte{3}})));
  EXPECT_NE(file_error([&] { data::open_mnist(folder.path()); }).find("labels must be uint8 of shape [2]"),
            std::string::npos);
  write(folder / "t10k-labels-idx1-ubyte.gz", gzip(idx(0x08, {2}, {std::byte{1}, std::byte{2}})));
  const data::Parts parts = data::open_mnist(folder.path());
  EXPECT_EQ(parts.test, nullptr);
  EXPECT_EQ(parts.train->size(), 2);
  EXPECT_EQ(parts.train->input().shape, (Shape{1, 2, 2}));
}

TEST(Mnist, RealFiles) {
  const char* const folder = std::getenv("RUSSET_DATA");
  if (folder == nullptr) GTEST_SKIP() << "RUSSET_DATA is not set: it names a folder with MNIST's files";
  if (!std::filesystem::exists(std::filesystem::path(folder) / "t10k-images-idx3-ubyte.gz")) {
    GTEST_SKIP() << folder << " has no MNIST files";
  }
  const data::Parts parts = data::open_mnist(folder);
  const data::DatasetPtr test = parts.test ? parts.test : parts.train;
  ASSERT_EQ(test->size(), 10'000);
  EXPECT_EQ(test->classes(), 10);
  EXPECT_EQ(test->input().shape, (Shape{1, 28, 28}));
  // The published file begins with the labels 7, 2, 1, 0, 4, 1, 4, 9, 5, 9, and has 980 zeros.
  const auto& mnist = dynamic_cast<const data::Mnist&>(*test);
  const std::vector<std::int64_t> first{7, 2, 1, 0, 4, 1, 4, 9, 5, 9};
  for (std::int64_t i = 0; i < 10; ++i) EXPECT_EQ(mnist.label(i), first[static_cast<std::size_t>(i)]);
  int zeros = 0;
  for (std::int64_t i = 0; i < 10'000; ++i) zeros += mnist.label(i) == 0 ? 1 : 0;
  EXPECT_EQ(zeros, 980);
}

}  // namespace
}  // namespace russet::files
