// Emitted kernels against a naive evaluator: random groups of all kinds, types and layouts, bit for bit.
#include "../unit/group_fuzzer.h"
#include "../unit/united_groups.h"
#include "device/gpu/compilations.h"
#include "run_group.h"

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
  EXPECT_LE(driver.units_built, static_cast<int>(gpu::compilations_at_once() * 3 / 2));
  for (unsigned i = 0; i < groups_a_seed; ++i) {
    Builder& b = builders[i];
    Memory wanted = b.memory;
    run_reference(b.group, wanted, b.arguments);
    Memory got = b.memory;
    run_on(driver, *kernels[i], got, b.arguments);
    expect_equal(b, got, wanted, GetParam() * 1000 + i);
    if (HasFailure()) return;
  }
}
INSTANTIATE_TEST_SUITE_P(Seeds, EmittedGroups, testing::Range(0U, 6U));

/// Rows of a simdgroup, of several, and of some that are not filled.
TEST(EmittedGroups, OfRowsAndColumnSumsEqualTheReference) {
  MachineDriver driver;
  for (unsigned seed = 0; seed < 12; ++seed) {
    constexpr std::int64_t columns[] = {128, 256, 300, 1028};
    Builder b = PairMaker(seed).make(7, 6, columns[seed % 4]).united();
    Memory wanted = b.memory;
    run_reference(b.group, wanted, {});
    run_on(driver, *driver.target().compile(b.group), b.memory, {});
    expect_equal(b, b.memory, wanted, seed);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace russet::test
