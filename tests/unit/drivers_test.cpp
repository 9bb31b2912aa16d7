// The drivers of the devices that every build has.
#include <gtest/gtest.h>
#include <russet/error.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "ops/table.h"
#include "runtime/device.h"

namespace russet::runtime {
namespace {

std::uintptr_t address(const std::byte* memory) { return reinterpret_cast<std::uintptr_t>(memory); }

TEST(ReferenceDriver, HoldsValuesInAlignedMemory) {
  DeviceDriver* driver = driver_of(DeviceType::reference);
  ASSERT_NE(driver, nullptr);
  EXPECT_TRUE(driver->runs());
  EXPECT_EQ(driver->properties().dtypes.size(), static_cast<std::size_t>(dtype_count));
  for (const std::size_t bytes : {0, 1, 100, 4096, 100000}) {
    std::byte* memory = driver->allocate(bytes);
    EXPECT_EQ(address(memory) % (bytes >= 4096 ? 4096 : 64), 0U);
    const std::vector<std::byte> source(bytes, std::byte{7});
    std::vector<std::byte> back(bytes);
    driver->upload(memory, source);
    driver->download(back, memory);
    EXPECT_EQ(back, source);
    driver->release(memory, bytes);
  }
  EXPECT_THROW(driver->allocate(std::size_t{1} << 62), OutOfMemoryError);
}

TEST(NullDriver, HandsOutAddressesAlone) {
  DeviceDriver* driver = driver_of(DeviceType::null);
  ASSERT_NE(driver, nullptr);
  EXPECT_FALSE(driver->runs());
  std::vector<std::byte*> blocks;
  constexpr std::size_t large = std::size_t{64} << 30;
  for (int i = 0; i < 16; ++i) blocks.push_back(driver->allocate(large));
  std::sort(blocks.begin(), blocks.end());
  for (std::size_t i = 1; i < blocks.size(); ++i)
    EXPECT_GE(blocks[i] - blocks[i - 1], static_cast<std::int64_t>(large));
  std::byte byte{5};
  driver->upload(blocks[0], {&byte, 1});
  driver->download({&byte, 1}, blocks[0]);
  EXPECT_EQ(byte, std::byte{0});
  for (std::byte* block : blocks) driver->release(block, large);
  EXPECT_THROW(driver->allocate(std::size_t{1} << 62), OutOfMemoryError);
}

TEST(NullDriver, TakesEveryStep) {
  const compile::Target& target = driver_of(DeviceType::null)->target();
  EXPECT_EQ(target.compile(compile::Group{})->name(), "null:group");
  for (const ops::OpRow& row : ops::table()) {
    compile::Primitive step;
    step.op = row.op;
    target.compile(step)->run({});
  }
}

}  // namespace
}  // namespace russet::runtime
