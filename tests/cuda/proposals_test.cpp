// Which of a library's proposals is taken. No GPU is needed.
#include "device/gpu/cuda/proposals.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

namespace russet::cuda {
namespace {

const LibraryVersion cudnn{"cudnn", "9.19.0", 90};
constexpr MeasuredProposal table[] = {
    {"cudnn 9.19.0 sm_90", 3, "a convolution"},
    {"cudnn 9.19.0 sm_80", 4, "a convolution"},
    {"cublaslt 13.1.0 sm_90", 5, "a product"},
};

TEST(Proposals, AreKnownForAVersionAndAGpu) {
  EXPECT_EQ(fastest_known(table, cudnn, "a convolution"), 3U);
  EXPECT_EQ(fastest_known(table, {"cudnn", "9.19.0", 80}, "a convolution"), 4U);
  EXPECT_EQ(fastest_known(table, {"cudnn", "9.20.0", 90}, "a convolution"), 0U);
  EXPECT_EQ(fastest_known(table, {"cublaslt", "13.1.0", 90}, "a product"), 5U);
  EXPECT_EQ(fastest_known(table, cudnn, "a product"), 0U);
  EXPECT_EQ(fastest_known(table, cudnn, "a convolution, aligned to 16"), 0U);
  EXPECT_EQ(fastest_known({}, cudnn, "a convolution"), 0U);
}

TEST(Proposals, OfTheTableAreOneAQuestion) {
  std::set<std::pair<std::string, std::string>> seen;
  for (const MeasuredProposal& measured : measured_proposals()) {
    EXPECT_GT(measured.proposal, 0U);
    EXPECT_LT(measured.proposal, most_proposals);
    EXPECT_TRUE(seen.emplace(measured.library, measured.question).second) << measured.question;
  }
  EXPECT_FALSE(seen.empty());
}

TEST(Proposals, FallBackToTheFirst) {
  std::vector<std::size_t> asked;
  const auto two = [&](std::size_t number) {
    asked.push_back(number);
    if (number > 1) throw DeviceError("there are two");
    return number;
  };
  EXPECT_EQ(proposed(1, two), 1U);
  EXPECT_EQ(proposed(7, two), 0U);
  EXPECT_EQ(asked, (std::vector<std::size_t>{1, 7, 0}));
  const auto none = [](std::size_t) -> std::size_t { throw DeviceError("there is none"); };
  EXPECT_THROW(proposed(0, none), DeviceError);
  EXPECT_THROW(proposed(2, none), DeviceError);
}

}  // namespace
}  // namespace russet::cuda
