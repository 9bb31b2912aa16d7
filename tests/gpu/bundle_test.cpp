// Steps that share a launch: they give what they give alone, whatever they are, and however their memory is divided.
#include "device/gpu/gpu_kernel.h"
#include "run_group.h"

namespace russet::test {
namespace {

using compile::Bundle;
using compile::Operand;
using compile::Primitive;
using compile::Work;

/// Works over slots of one memory.
class Works {
 public:
  int slot(std::int64_t elements, bool filled) {
    const int number = memory.add(static_cast<std::size_t>(elements) * 4);
    std::vector<float> values;
    for (std::int64_t i = 0; i < elements; ++i) {
      values.push_back(filled ? static_cast<float>((i * 7919 + number) % 211 - 100) / 64 : 0);
    }
    write(memory, number, values);
    return number;
  }

  void elementwise(std::int64_t rows, std::int64_t columns, std::int64_t row_stride) {
    const int x = slot(rows * row_stride, true);
    const int y = slot(rows * columns, false);
    Builder b(Group::Kind::elementwise, {rows, columns}, 2);
    const auto value = b.load(x, DType::float32, {row_stride, 1});
    b.store(b.compute(Op::exp, DType::float32, b.compute(Op::mul, DType::float32, value, value)), y, {columns, 1});
    list.emplace_back(b.group);
  }

  void column(std::int64_t rows, std::int64_t columns) {
    const int x = slot(rows * columns, true);
    const int y = slot(columns, false);
    Builder b(Group::Kind::column, {rows, columns}, 1);
    const auto sum = b.reduce(Op::sum, DType::float32, b.load(x, DType::float32, {columns, 1}));
    b.store(sum, y, {0, 1}, Extent::reduced);
    list.emplace_back(b.group);
  }

  void row(std::int64_t rows, std::int64_t columns) {
    const int x = slot(rows * columns, true);
    const int y = slot(rows * columns, false);
    Builder b(Group::Kind::row, {rows, columns}, 1);
    const auto value = b.load(x, DType::float32, {columns, 1});
    const auto largest = b.reduce(Op::amax, DType::float32, value);
    b.store(b.compute(Op::sub, DType::float32, value, largest), y, {columns, 1});
    list.emplace_back(b.group);
  }

  /// The second launch of column sums.
  void results(MachineDriver& driver, std::int64_t rows, std::int64_t columns) {
    column(rows, columns);
    compile::Stage stage;
    stage.whole = std::get<Group>(list.back());
    stage.number = 1;
    const auto bytes = driver.target().stages(std::get<Group>(list.back()))->parts_bytes;
    stage.parts = slot(static_cast<std::int64_t>(bytes) / 4, true);
    list.back() = stage;
  }

  /// [rows, depth] x [depth, columns], each factor as it lies or transposed.
  void product(std::int64_t rows, std::int64_t columns, std::int64_t depth, bool left_turned, bool right_turned) {
    Primitive p;
    p.op = Op::matmul;
    const auto operand = [&](std::int64_t lines, std::int64_t length, bool turned, bool filled) {
      const Strides strides = turned ? Strides{1, lines} : Strides{length, 1};
      return Operand{{slot(lines * length, filled), DType::float32, 0, -1, strides}, {lines, length}};
    };
    p.inputs = {operand(rows, depth, left_turned, true), operand(depth, columns, right_turned, true)};
    p.output = operand(rows, columns, false, false);
    list.emplace_back(std::move(p));
  }

  Memory memory;
  std::vector<Work> list;
};

std::vector<std::byte> bytes_of(Memory& memory) {
  std::vector<std::byte> all;
  const auto slots = memory.pointers();
  for (std::size_t i = 0; i < slots.size(); ++i) {
    all.insert(all.end(), slots[i], slots[i] + memory.bytes(static_cast<int>(i)));
  }
  return all;
}

compile::Step step_of(const Work& work) {
  return std::visit([](const auto& member) -> compile::Step { return member; }, work);
}

/// Runs the works as one step; they must give the bytes that they give one by one. Returns the launches it took.
int run_together(MachineDriver& driver, Works& works) {
  Memory alone = works.memory;
  for (const Work& work : works.list) run_on(driver, *driver.target().compile(step_of(work)), alone, {});
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

/// The two launches of a step, as steps.
TEST(Stages, GiveWhatTheWholeStepGives) {
  MachineDriver driver;
  Works works;
  works.column(1000, 48);
  const auto stages = driver.target().stages(step_of(works.list[0]));
  ASSERT_TRUE(stages.has_value());
  Memory whole = works.memory;
  run_on(driver, *driver.target().compile(step_of(works.list[0])), whole, {});
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
  for (const Work& work : works.list) EXPECT_FALSE(driver.target().stages(step_of(work)).has_value());
}

}  // namespace
}  // namespace russet::test
