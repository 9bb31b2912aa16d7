// Steps that share a launch: they give what they give alone, whatever they are, and however their memory is divided.
#include "device/gpu/gpu_kernel.h"
#include "works.h"

namespace russet::test {
namespace {

using compile::Bundle;

/// Runs the works as one step; they must give the bytes that they give one by one. Returns the launches it took.
int run_together(MachineDriver& driver, Works& works) {
  Memory alone = works.memory;
  for (const compile::Step& work : works.list) run_on(driver, *driver.target().compile(work), alone, {});
  Memory together = works.memory;
  const auto kernel = driver.target().compile(Bundle{works.list});
  const int before = driver.launches;
  run_on(driver, *kernel, together, {});
  EXPECT_EQ(bytes_of(together), bytes_of(alone));
  EXPECT_NE(bytes_of(together), bytes_of(works.memory));
  return driver.launches - before;
}

TEST(BundledSteps, OfAnyKindShareALaunch) {
  MachineDriver driver;
  Works works;
  works.elementwise(13, 64, 64);
  works.column(40, 70);
  works.elementwise(5, 7, 9);
  works.row(30, 100);
  works.column(33, 260);
  works.elementwise(100, 64, 128);
  EXPECT_EQ(run_together(driver, works), 1);
}

/// Threadgroups of one simdgroup stand side by side in those of others.
TEST(BundledSteps, OfSingleSimdgroupsStandSideBySide) {
  MachineDriver driver;
  Works works;
  works.results(driver, 1000, 48);  // a simdgroup for 32 columns
  works.elementwise(13, 64, 64);
  works.results(driver, 700, 70);
  EXPECT_EQ(run_together(driver, works), 1);
  works.list.erase(works.list.begin() + 1);
  EXPECT_EQ(run_together(driver, works), 1);
}

TEST(BundledSteps, MayBeProductsOfAllTranspositions) {
  MachineDriver driver;
  Works works;
  int i = 0;
  for (const auto& [rows, columns, depth] : {std::array{40, 50, 33}, std::array{17, 100, 64}, std::array{33, 33, 8}}) {
    works.product(rows, columns, depth, i % 2 == 0, i == 1);
    ++i;
  }
  EXPECT_EQ(run_together(driver, works), 1);
}

TEST(BundledSteps, TakeATableOfAnyLength) {
  MachineDriver driver;
  Works works;
  for (int i = 0; i < 150; ++i) works.elementwise(1 + i % 7, 40 + 4 * i, 40 + 4 * i);
  EXPECT_EQ(run_together(driver, works), 1);
}

TEST(BundledSteps, InTooManyBlocksOfMemoryTakeSeveralLaunches) {
  MachineDriver driver;
  driver.block_bits = 6;  // every slot is a block of its own
  Works works;
  constexpr int count = 40;
  for (int i = 0; i < count; ++i) works.elementwise(3, 20 + i, 20 + i);
  constexpr int members = static_cast<int>(gpu::most_bases) / 2;
  EXPECT_EQ(run_together(driver, works), (count + members - 1) / members);
}

TEST(BundledSteps, AreOneFunctionWhateverTheirNumberAndSizes) {
  MachineDriver driver;
  std::vector<const gpu::Function*> functions;
  std::vector<std::unique_ptr<compile::Kernel>> kernels;
  for (const int count : {5, 7}) {
    Works works;
    for (int i = 0; i < count; ++i) {
      works.elementwise(3 + i, 20 + i, 20 + i);
      works.column(10, 30 + i);
    }
    kernels.push_back(driver.target().compile(Bundle{works.list}));
    functions.push_back(dynamic_cast<const gpu::GpuKernel&>(*kernels.back()).calls().front().function.get());
  }
  EXPECT_EQ(functions[0], functions[1]);
}

using Kernels = std::vector<std::unique_ptr<compile::Kernel>>;

std::vector<const gpu::Function*> functions_of(const Kernels& kernels) {
  std::vector<const gpu::Function*> functions;
  for (const auto& kernel : kernels) {
    functions.push_back(dynamic_cast<const gpu::GpuKernel&>(*kernel).calls().at(0).function.get());
  }
  return functions;
}

Kernels bundles_of(MachineDriver& driver, const Works& works, const std::vector<std::vector<std::size_t>>& members) {
  Kernels kernels;
  for (const std::vector<std::size_t>& some : members) {
    Bundle bundle;
    for (const std::size_t member : some) bundle.members.push_back(works.list[member]);
    kernels.push_back(driver.target().compile(bundle));
  }
  return kernels;
}

/// Bundles of one plan whose pieces overlap have one kernel, and give the bytes that they gave.
TEST(BundlesOfAPlan, ShareKernels) {
  MachineDriver driver;
  Works works;
  works.scaled_sum(1, 300);
  works.column(40, 70);
  works.row(30, 100);
  works.elementwise(5, 7, 9);
  works.scaled_sum(5, 77);  // more tensors than the others have: their numbers lie elsewhere in the table
  const Kernels kernels = bundles_of(driver, works, {{1, 0}, {2, 1, 4}, {0, 3}, {3, 2}, {1, 1}});
  const std::vector<std::uint64_t> arguments = {std::bit_cast<std::uint64_t>(0.75)};
  Memory expected = works.memory;
  for (const compile::Step& work : works.list) run_on(driver, *driver.target().compile(work), expected, arguments);
  driver.target().share_code(kernels);
  const auto functions = functions_of(kernels);
  EXPECT_EQ(functions[0], functions[1]);
  EXPECT_EQ(functions[0], functions[4]);
  EXPECT_EQ(functions[2], functions[3]);
  EXPECT_NE(functions[0], functions[2]);  // which needs no memory of a threadgroup
  driver.target().prepare(kernels);
  for (const std::vector<std::size_t>& order : {std::vector<std::size_t>{0, 1, 3}, std::vector<std::size_t>{1, 2}}) {
    Memory memory = works.memory;
    for (const std::size_t kernel : order) run_on(driver, *kernels[kernel], memory, arguments);
    EXPECT_EQ(bytes_of(memory), bytes_of(expected));
  }
}

/// One that reaches many blocks of memory still does in one launch.
TEST(BundlesOfAPlan, ReachAsMuchMemoryAsBefore) {
  MachineDriver driver;
  driver.block_bits = 6;  // every slot is a block of its own
  Works works;
  std::vector<std::size_t> many;
  for (std::size_t i = 0; i < 10; ++i) {
    works.elementwise(3, 20, 20);
    many.push_back(i);
  }
  works.row(30, 100);
  const Kernels kernels = bundles_of(driver, works, {{0, 10}, many});
  driver.target().share_code(kernels);
  EXPECT_EQ(functions_of(kernels)[0], functions_of(kernels)[1]);
  run_on(driver, *kernels[1], works.memory, {});
  EXPECT_EQ(driver.launches, 1);
}

TEST(BundlesOfAPlan, ShareKernelsOfAFewPiecesAlone) {
  MachineDriver driver;
  Works works;
  constexpr Op ops[] = {Op::neg,   Op::abs,  Op::sign,    Op::floor, Op::ceil, Op::round, Op::trunc, Op::exp, Op::expm1,
                        Op::log1p, Op::tanh, Op::sigmoid, Op::sin,   Op::cos,  Op::erf,   Op::atan,  Op::sinh};
  for (const Op op : ops) works.elementwise(op, 3, 64);
  constexpr std::size_t most = gpu::most_pieces;
  for (const std::size_t count : {most, most + 1}) {
    std::vector<std::vector<std::size_t>> members = {{0}, {0}};
    for (std::size_t i = 1; i < count; ++i) members[i < 6 ? 0 : 1].push_back(i);
    const Kernels kernels = bundles_of(driver, works, members);
    driver.target().share_code(kernels);
    const auto functions = functions_of(kernels);
    EXPECT_EQ(functions[0] == functions[1], count <= most);
  }
}

/// The two launches of a step, as steps.
TEST(Stages, GiveWhatTheWholeStepGives) {
  MachineDriver driver;
  Works works;
  works.column(1000, 48);
  const auto stages = driver.target().stages(works.list[0]);
  ASSERT_TRUE(stages.has_value());
  Memory whole = works.memory;
  run_on(driver, *driver.target().compile(works.list[0]), whole, {});
  const int parts = works.memory.add(stages->parts_bytes);
  for (int number = 0; number < 2; ++number) {
    compile::Stage stage;
    stage.whole = std::get<Group>(works.list[0]);
    stage.number = number;
    stage.parts = parts;
    const auto kernel = driver.target().compile(stage);
    EXPECT_EQ(kernel->launches(), 1);
    EXPECT_EQ(kernel->scratch_bytes(), 0U);
    run_on(driver, *kernel, works.memory, {});
  }
  EXPECT_EQ(read<float>(works.memory, 1, 48), read<float>(whole, 1, 48));
}

TEST(Stages, AreNotMadeOfWhatIsOneLaunch) {
  MachineDriver driver;
  Works works;
  works.column(20, 48);
  works.elementwise(20, 48, 48);
  for (const compile::Step& work : works.list) EXPECT_FALSE(driver.target().stages(work).has_value());
}

}  // namespace
}  // namespace russet::test
