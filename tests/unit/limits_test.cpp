// Sizes that no computer has are refused with words, at the call; nothing wraps around.
#include <gtest/gtest.h>
#include <russet/autograd.h>
#include <russet/error.h>
#include <russet/functional.h>
#include <russet/optim.h>

#include <limits>
#include <type_traits>

namespace russet {
namespace {

constexpr std::int64_t k32 = std::int64_t{1} << 32;
constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();

static_assert(!std::is_constructible_v<Shape, int, int>, "Shape(2, 3) could mean two things");

TEST(Limits, OfElements) {
  EXPECT_THROW(zeros({k32, k32}), ShapeError);  // 2^64: no elements at all, if they wrapped around
  EXPECT_THROW(zeros({k32, k32 / 2}), ShapeError);
  EXPECT_THROW(zeros({0, k32, k32}), ShapeError);
  EXPECT_THROW(zeros({0}).reshape({k32, k32}), ShapeError);
  EXPECT_THROW(zeros({1, 1}).expand({k32, k32}), ShapeError);
  EXPECT_THROW(zeros({1, 1}).repeat({k32, k32}), Error);
  EXPECT_THROW(zeros({k32, 1}, {.dtype = DType::int8}).expand({k32, k32}), Error);
  EXPECT_EQ(numel({k32, k32 / 4}), std::int64_t{1} << 62);
  EXPECT_EQ(numel({k32, 0}), 0);
}

TEST(Limits, OfBytes) {
  EXPECT_THROW(zeros({k32 / 2, k32 / 2}), OutOfMemoryError);  // 2^62 elements of 4 bytes
  EXPECT_THROW(zeros({std::int64_t{1} << 46}), OutOfMemoryError);
  const Tensor wide = zeros({1}, {.dtype = DType::int8}).expand({std::int64_t{1} << 62});  // a view needs no memory
  EXPECT_THROW(wide + 1, OutOfMemoryError);
  EXPECT_THROW(wide.contiguous(), OutOfMemoryError);
}

TEST(Limits, OfTheHostsMemory) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "a sanitizer ends the process where memory ends";
#endif
  const Tensor all = zeros({1}, {.dtype = DType::uint8}).expand({std::int64_t{1} << 47});  // as much as is addressed
  EXPECT_THROW(all.to_bytes(), OutOfMemoryError);
  EXPECT_THROW(all.to_vector<double>(), OutOfMemoryError);
  EXPECT_EQ(zeros({2}).to_vector<float>(), (std::vector<float>{0, 0}));
}

TEST(Limits, OfStrides) {
  const Tensor x = arange(10);
  EXPECT_THROW(x.as_strided({3}, {most / 2 + 1}, 0), ShapeError);  // 2 * 2^62 wraps around to a negative number
  EXPECT_THROW(x.as_strided({5, 5}, {most, most}, 0), ShapeError);
  EXPECT_THROW(x.as_strided({2}, {most}, 2), ShapeError);
  EXPECT_THROW(x.as_strided({2}, {1}, -1), ShapeError);
  EXPECT_EQ(x.as_strided({2}, {4}, 5).to_vector<int>(), (std::vector<int>{5, 9}));
}

TEST(Limits, OfRanges) {
  EXPECT_THROW(arange(least, most), ValueError);
  EXPECT_THROW(arange(std::int64_t{0}, least, std::int64_t{-1}), ValueError);
  EXPECT_THROW(arange(0.0, 1e300), ValueError);
  EXPECT_THROW(arange(0.0, 1.0, 1e-300), ValueError);
  EXPECT_THROW(arange(most), OutOfMemoryError);
  EXPECT_EQ(arange(least, most, most).to_vector<std::int64_t>(), (std::vector<std::int64_t>{least, -1, most - 1}));
}

TEST(Limits, ClippingSaysWhatIsUndefined) {
  EXPECT_THROW(optim::clip_grad_norm_({Tensor()}, 1), ValueError);
  EXPECT_THROW(optim::clip_grad_value_({Tensor()}, 1), ValueError);
}

}  // namespace
}  // namespace russet
