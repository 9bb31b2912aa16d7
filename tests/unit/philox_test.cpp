// Philox against the known-answer vectors of Random123 (kat_vectors, philox4x32 10), and what is made of its words.
#include <gtest/gtest.h>

#include <cmath>

#include "base/philox.h"

namespace russet::base {
namespace {

using Words = std::array<std::uint32_t, 4>;

TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox(0, 0, 0), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox(~0ULL, ~0ULL, ~0ULL), (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  // counter 243f6a88 85a308d3 13198a2e 03707344, key a4093822 299f31d0
  EXPECT_EQ(philox(0x299f31d0a4093822ULL, 0x0370734413198a2eULL, 0x85a308d3243f6a88ULL),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, PositionsTakeWordsInOrder) {
  // 6627e8d5 >> 8 over 2^24, and so on.
  EXPECT_EQ(uniform_at(0, 0, 0), 0x6627e8 * 0x1p-24F);
  EXPECT_EQ(uniform_at(0, 0, 3), 0x9b00db * 0x1p-24F);
  EXPECT_EQ(random_bits_at(0, 0, 0), std::int64_t{0x6627e8d5e169c58dLL >> 1});
  EXPECT_EQ(random_bits_at(0, 0, 1), static_cast<std::int64_t>(0xbc57ac4c9b00dbd8ULL >> 1));
  const double u1 = (0xbc57ac + 1) / 16777216.0;
  const double u2 = 0x9b00db / 16777216.0;
  EXPECT_FLOAT_EQ(normal_at(0, 0, 1), static_cast<float>(std::sqrt(-2 * std::log(u1)) * std::cos(2 * M_PI * u2)));
}

TEST(Philox, OffsetsAndSeedsGiveOtherNumbers) {
  EXPECT_NE(uniform_at(0, 0, 0), uniform_at(0, 1, 0));
  EXPECT_NE(uniform_at(0, 0, 0), uniform_at(1, 0, 0));
  EXPECT_NE(uniform_at(0, 0, 0), uniform_at(0, 0, 4));
}

TEST(Philox, Moments) {
  constexpr int count = 200000;
  double uniform_sum = 0;
  double normal_sum = 0;
  double normal_squares = 0;
  double normal_fourths = 0;
  for (int i = 0; i < count; ++i) {
    const float u = uniform_at(7, 3, static_cast<std::uint64_t>(i));
    ASSERT_GE(u, 0);
    ASSERT_LT(u, 1);
    uniform_sum += u;
    const double z = normal_at(7, 4, static_cast<std::uint64_t>(i));
    normal_sum += z;
    normal_squares += z * z;
    normal_fourths += z * z * z * z;
  }
  // Five standard errors of each estimate.
  EXPECT_NEAR(uniform_sum / count, 0.5, 5 * std::sqrt(1 / 12.0 / count));
  EXPECT_NEAR(normal_sum / count, 0, 5 / std::sqrt(count));
  EXPECT_NEAR(normal_squares / count, 1, 5 * std::sqrt(2.0 / count));
  EXPECT_NEAR(normal_fourths / count, 3, 5 * std::sqrt(96.0 / count));
}

}  // namespace
}  // namespace russet::base
