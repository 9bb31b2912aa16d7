// What the host prepares for a device while the device still works on what was prepared before. What is expected is
// computed here.
#include <gtest/gtest.h>
#include <russet/error.h>
#include <russet/functional.h>
#include <russet/runtime.h>
#include <russet/staging.h>

#include <algorithm>
#include <span>

#include "devices/tested.h"

namespace russet::conformance {
namespace {

class Staging : public testing::TestWithParam<std::string> {
 protected:
  static std::span<std::int32_t> integers(const StagingBuffer& buffer) {
    return {reinterpret_cast<std::int32_t*>(buffer.bytes().data()), buffer.bytes().size() / sizeof(std::int32_t)};
  }
  const Device device{GetParam()};
};

TEST_P(Staging, EachBatchHasItsOwnContentHoweverFarTheHostIsAhead) {
  constexpr std::int64_t count = 1 << 16;
  StagingBuffer buffer(device, count * sizeof(std::int32_t));
  std::vector<Tensor> sums;
  for (int step = 0; step < 50; ++step) {
    std::ranges::fill(integers(buffer), step);
    const Tensor batch = buffer.to_tensor({256, count / 256}, DType::int32);
    buffer.renew();
    sums.push_back(sum(batch * batch));
    flush();
  }
  for (std::int64_t step = 0; step < 50; ++step) {
    EXPECT_EQ(sums[static_cast<std::size_t>(step)].item<std::int64_t>(), step * step * count);
  }
}

TEST_P(Staging, ContentStaysUntilTheBufferIsRenewed) {
  StagingBuffer buffer(device, 4 * sizeof(std::int32_t));
  std::ranges::copy(std::vector<std::int32_t>{1, 2, 3, 4}, integers(buffer).begin());
  EXPECT_THROW(buffer.to_tensor({5}, DType::int32), ShapeError);
  EXPECT_EQ(buffer.to_tensor({3}, DType::int32).to_vector<std::int32_t>(), (std::vector<std::int32_t>{1, 2, 3}));
  EXPECT_EQ(buffer.to_tensor({2, 2}, DType::int32).to_vector<std::int32_t>(), (std::vector<std::int32_t>{1, 2, 3, 4}));
  EXPECT_EQ(buffer.to_tensor({0, 2}, DType::int32).sizes(), (Shape{0, 2}));
  const Tensor unread = buffer.to_tensor({1}, DType::int32);
  buffer.renew();
  integers(buffer)[0] = 9;
  EXPECT_EQ(unread.item<std::int32_t>(), 1);
  EXPECT_EQ(buffer.to_tensor({1}, DType::int32).item<std::int32_t>(), 9);
}

INSTANTIATE_TEST_SUITE_P(Devices, Staging, testing::ValuesIn(tested_devices()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace russet::conformance
