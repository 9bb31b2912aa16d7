// Launches that are cut: their slices give, bit for bit, what the whole launch gives, with all checks of the simulator
// on, and none is modelled to take longer than is allowed.
#include <algorithm>
#include <cmath>

#include "device/gpu/gpu_kernel.h"
#include "kernel_cases.h"
#include "works.h"

namespace russet::test {
namespace {

using gputest::Case;
using gputest::Layout;

void expect_equal_bits(const std::vector<Case>& cases) {
  const std::vector<gputest::Outcome> whole = gputest::run(cases);
  std::vector<Case> cut = cases;
  for (Case& one : cut) one.slices = 3;
  const std::vector<gputest::Outcome> sliced = gputest::run(cut);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    EXPECT_EQ(sliced[i].complaint, "") << sliced[i].name << " by " << sliced[i].kernel;
    EXPECT_GT(sliced[i].launches, whole[i].launches) << sliced[i].name << " by " << sliced[i].kernel;
    EXPECT_EQ(gputest::result_bits(cut[i]), gputest::result_bits(cases[i])) << cut[i].name;
  }
}

TEST(Slices, OfContractions) {
  std::vector<Case> cases{
      gputest::product(DType::float32, {200, 47}, {47, 135}, {200, 135}, Layout::contiguous, Layout::reversed),
      // Split along the depth, element by element, and with an epilogue in two launches.
      gputest::product(DType::float32, {2, 3, 9, 600}, {2, 1, 600, 11}, {2, 3, 9, 11}, Layout::contiguous,
                       Layout::contiguous),
      gputest::product(DType::int32, {20, 50}, {50, 40}, {20, 40}, Layout::contiguous, Layout::contiguous),
      gputest::product(DType::float16, {300, 33}, {33, 70}, {300, 70}, Layout::contiguous, Layout::contiguous)};
  cases.back().column_sums = true;
  cases[0].prologues = true;
  const ops::Window window{.padding = {1, 1}, .padding_after = {1, 1}};
  gputest::add_convolutions(cases, DType::float32, {4, 16, 13, 13, 48, 3, 3, window}, Layout::channels_last);
  expect_equal_bits(cases);
}

TEST(Slices, OfPools) {
  std::vector<Case> cases;
  gputest::add_pools(cases, DType::float32, {4, 9, 15, 14}, {.kernel = {3, 2}, .stride = {2, 1}}, Layout::channels_last,
                     false);
  expect_equal_bits(cases);
}

TEST(Slices, OfScansAndSorts) {
  expect_equal_bits({gputest::along_axis(ops::Op::cumsum, DType::float32, {1000, 19}, 1, Layout::contiguous),
                     gputest::along_axis(ops::Op::cumsum, DType::float32, {5, 2100}, 1, Layout::contiguous),
                     gputest::along_axis(ops::Op::argsort, DType::float32, {30, 37}, 1, Layout::contiguous),
                     gputest::along_axis(ops::Op::argsort, DType::float32, {2, 1700}, 1, Layout::contiguous)});
}

TEST(Slices, OfElementsByIndex) {
  std::vector<Case> cases{
      gputest::rows_by_index(ops::Op::take, DType::float32, {70, 15}, {60, 4}, Layout::contiguous, false),
      gputest::rows_by_index(ops::Op::put, DType::float32, {70, 15}, {6, 40}, Layout::spaced, false),
      gputest::rows_by_index(ops::Op::put, DType::float32, {70, 15}, {6, 40}, Layout::contiguous, true)};
  for (Case one : std::vector<Case>(cases)) {
    one.stray_indices = true;
    cases.push_back(one);
  }
  constexpr std::int8_t tensor = ops::Indexing::by_tensor;
  for (const ops::Op op : {ops::Op::take, ops::Op::put}) {
    cases.push_back(gputest::by_index(op, DType::float32, {40, 70},
                                      {.lead = {40, 60}, .axes = 2, .sources = {0, tensor}}, {{40, 60}},
                                      Layout::contiguous));
  }
  expect_equal_bits(cases);
}

/// Elementwise, rows and columns in launches that can be shared; in two launches each, and a product.
Works works_of_every_kind(bool shared) {
  Works works;
  works.elementwise(40, 64, 64);
  works.column(33, 260);
  works.row(300, 100);
  works.elementwise(100, 64, 128);
  if (shared) return works;
  works.column(1000, 70);
  works.row(3, 9000);
  works.product(70, 100, 64, true, false);
  return works;
}

const gpu::GpuKernel& kernel_of(const compile::Kernel& kernel) { return dynamic_cast<const gpu::GpuKernel&>(kernel); }

/// What the model says of the longest call of a kernel.
double longest_of(const compile::Kernel& kernel) {
  double longest = 0;
  for (const gpu::Call& call : kernel_of(kernel).calls()) longest = std::max(longest, call.seconds);
  return longest;
}

/// A driver that cuts what takes longer.
struct Cutting : MachineDriver {
  explicit Cutting(double seconds) { longest_launch = seconds; }
};

TEST(Slices, OfGroupsAndTheirStages) {
  MachineDriver whole;
  Works works = works_of_every_kind(false);
  for (const compile::Step& work : works.list) {
    const auto kernel = whole.target().compile(work);
    Cutting driver(longest_of(*kernel) / 3);
    const auto cut = driver.target().compile(work);
    EXPECT_GT(cut->launches(), kernel->launches());
    Memory expected = works.memory;
    run_on(whole, *kernel, expected, {});
    Memory memory = works.memory;
    run_on(driver, *cut, memory, {});
    EXPECT_EQ(bytes_of(memory), bytes_of(expected));
  }
}

/// Threadgroups of all members, and what they take, are dealt out: none is lost, and no launch is too long.
TEST(Slices, OfSharedLaunches) {
  MachineDriver whole;
  Works works = works_of_every_kind(true);
  const compile::Bundle bundle{works.list};
  const auto kernel = whole.target().compile(bundle);
  ASSERT_EQ(kernel->launches(), 1);
  Memory expected = works.memory;
  run_on(whole, *kernel, expected, {});
  const gpu::Call& call = kernel_of(*kernel).calls()[0];
  for (const int parts : {2, 5, 11}) {
    Cutting driver(call.seconds / parts);
    const auto cut = driver.target().compile(bundle);
    EXPECT_GE(cut->launches(), parts);
    EXPECT_LE(longest_of(*cut), driver.longest_launch);
    std::vector<std::uint32_t> groups(call.members.size());
    double seconds = 0;
    std::size_t member = 0;
    for (const gpu::Call& slice : kernel_of(*cut).calls()) {
      seconds += slice.seconds;
      for (const gpu::Member& part : slice.members) {
        if (part.first == 0 && groups[member] > 0) ++member;
        EXPECT_EQ(part.first, groups[member]);
        groups[member] += part.groups;
      }
    }
    for (std::size_t i = 0; i < groups.size(); ++i) EXPECT_EQ(groups[i], call.members[i].groups);
    EXPECT_NEAR(seconds, call.seconds, 1e-12);
    Memory memory = works.memory;
    run_on(driver, *cut, memory, {});
    EXPECT_EQ(bytes_of(memory), bytes_of(expected));
  }
}

TEST(Slices, HaveCommandBuffersOfTheirOwn) {
  Works works;
  works.elementwise(3, 10, 10);
  works.elementwise(100, 64, 64);
  MachineDriver whole;
  const double seconds = longest_of(*whole.target().compile(works.list[1]));
  Cutting driver(seconds * 0.6);
  const auto small = driver.target().compile(works.list[0]);
  const auto cut = driver.target().compile(works.list[1]);
  ASSERT_EQ(cut->launches(), 2);
  run_on(driver, *small, works.memory, {});
  run_on(driver, *small, works.memory, {});
  run_on(driver, *cut, works.memory, {});
  run_on(driver, *small, works.memory, {});
  driver.commit();
  EXPECT_EQ(driver.command_buffers, (std::vector<int>{2, 1, 1, 1}));
}

TEST(Slices, AreNotMadeOfShortLaunches) {
  MachineDriver driver;
  Works works = works_of_every_kind(false);
  for (const compile::Step& work : works.list) {
    const auto kernel = driver.target().compile(work);
    EXPECT_LE(kernel->launches(), 2);
    for (const gpu::Call& call : kernel_of(*kernel).calls()) EXPECT_FALSE(call.is_slice);
  }
}

TEST(Slices, OfOneThreadgroupThereAreNone) {
  Cutting driver(0);
  Works works;
  works.elementwise(3, 10, 10);
  testing::internal::CaptureStderr();
  for (int i = 0; i < 2; ++i) EXPECT_EQ(driver.target().compile(works.list[0])->launches(), 1);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("cannot be cut"), std::string::npos) << said;
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
}

/// A product that an M1 takes 0.15 s for at least.
/// Their kernels have more memory than those that share launches may have.
TEST(Slices, OfTilesOnTensorCoresThereAreNone) {
  Case one = gputest::product(DType::float32, {260, 40}, {40, 132}, {260, 132}, Layout::contiguous, Layout::contiguous);
  gputest::put_on_warpgroups(one);
  gputest::set_margin(one, 8);
  one.slices = 3;
  const gputest::Outcome outcome = gputest::run({one}).front();
  EXPECT_EQ(outcome.kernel.find("split product"), 0U) << outcome.kernel;
  EXPECT_EQ(outcome.complaint, "");
  EXPECT_EQ(outcome.launches, 1);
}

TEST(Slices, AreWhatTheModelOfTheChipSays) {
  MachineDriver driver;
  compile::Primitive p;
  p.op = Op::matmul;
  constexpr std::int64_t size = 5848;  // 2 * size ^ 3 = 0.4e12 operations, at 2.6e12 a second
  p.inputs = {{{0, DType::float32, 0, -1, {size, 1}}, {size, size}},
              {{1, DType::float32, 0, -1, {size, 1}}, {size, size}}};
  p.output = {{2, DType::float32, 0, -1, {size, 1}}, {size, size}};
  const auto kernel = driver.target().compile(p);
  EXPECT_EQ(kernel->launches(), 4);
  double seconds = 0;
  for (const gpu::Call& call : kernel_of(*kernel).calls()) {
    EXPECT_LE(call.seconds, 0.05);
    EXPECT_TRUE(call.is_slice);
    seconds += call.seconds;
  }
  EXPECT_NEAR(seconds, 2 * std::pow(static_cast<double>(size), 3) / 2.6e12, 1e-6);
}

}  // namespace
}  // namespace russet::test
