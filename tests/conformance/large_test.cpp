// More than 2^31 elements: positions, sums and slices must not wrap at 32 bits.
#include <gtest/gtest.h>
#include <russet/functional.h>
#include <russet/runtime.h>

namespace russet {
namespace {

TEST(Large, MoreElementsThan32BitsCount) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "a sanitizer's shadow of these arrays needs more than 20 GiB";
#endif
  constexpr std::int64_t count = (std::int64_t{1} << 31) + 37;
  const Tensor x = zeros({count}, {.dtype = DType::int8});
  x.slice(0, {count - 5, count}).fill_(3);
  const Tensor y = x + x;
  EXPECT_EQ(y.slice(0, {count - 6, count}).to_vector<int>(), (std::vector<int>{0, 6, 6, 6, 6, 6}));
  EXPECT_EQ(sum(y).item<std::int64_t>(), 30);
  EXPECT_EQ(argmax(y).item<std::int64_t>(), count - 5);
}

}  // namespace
}  // namespace russet
