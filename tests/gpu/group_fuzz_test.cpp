// Emitted kernels against a naive evaluator: random groups of all kinds, types and layouts, bit for bit.
#include "../unit/group_fuzzer.h"
#include "machine_driver.h"

namespace russet::test {
namespace {

class EmittedGroups : public testing::TestWithParam<unsigned> {};

constexpr unsigned groups_a_seed = 20;

TEST_P(EmittedGroups, EqualTheReference) {
  MachineDriver driver;
  std::vector<Builder> builders;
  std::vector<std::unique_ptr<compile::Kernel>> kernels;
  for (unsigned i = 0; i < groups_a_seed; ++i) {
    builders.push_back(Fuzzer(GetParam() * 1000 + i, false).make());
    kernels.push_back(driver.target().compile(builders.back().group));
    ASSERT_EQ(kernels.back()->fallback_reason(), "");
  }
  driver.target().prepare(kernels);
  EXPECT_LE(driver.units_built, 8);
  for (unsigned i = 0; i < groups_a_seed; ++i) {
    Builder& b = builders[i];
    Memory wanted = b.memory;
    run_reference(b.group, wanted, b.arguments);
    Memory got = b.memory;
    const std::vector<std::byte*> host = got.pointers();
    std::vector<std::unique_ptr<DeviceMemory>> memory;
    std::vector<std::byte*> slots;
    for (std::size_t slot = 0; slot < host.size(); ++slot) {
      const auto bytes = static_cast<std::size_t>(got.bytes(static_cast<int>(slot)));
      memory.push_back(std::make_unique<DeviceMemory>(driver, bytes));
      slots.push_back(memory.back()->data());
      driver.upload(slots.back(), {host[slot], bytes});
    }
    const DeviceMemory scratch(driver, kernels[i]->scratch_bytes());
    kernels[i]->run({slots.data(), b.arguments.data(), scratch.data()});
    for (std::size_t slot = 0; slot < host.size(); ++slot) {
      driver.download({host[slot], static_cast<std::size_t>(got.bytes(static_cast<int>(slot)))}, slots[slot]);
    }
    expect_equal(b, got, wanted, GetParam() * 1000 + i);
    expect_no_reports();
    if (HasFailure()) return;
  }
}
INSTANTIATE_TEST_SUITE_P(Seeds, EmittedGroups, testing::Range(0U, 6U));

}  // namespace
}  // namespace russet::test
