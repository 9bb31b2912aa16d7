// The tuner on the simulated GPU, whose time the test decides: what it finds, keeps, and leaves alone.
#include "device/gpu/tuner.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <russet/error.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "gpu/machine_driver.h"

namespace russet::gputest {
namespace {

using gpu::Tile;
using gpu::Tuning;

/// A GPU whose time depends on the number of threadgroups alone. Launches must keep to memory that it has granted.
class TimedMachine final : public test::MachineDriver {
 public:
  gpu::Properties gpu_properties() const override {
    gpu::Properties properties = test::MachineDriver::gpu_properties();
    properties.name = name;
    properties.system = "system 1";
    return properties;
  }
  std::byte* allocate(std::size_t bytes) override {
    std::byte* const memory = test::MachineDriver::allocate(bytes);
    granted_[memory] = bytes;
    return memory;
  }
  void release(std::byte* memory, std::size_t bytes) override {
    granted_.erase(memory);
    test::MachineDriver::release(memory, bytes);
  }
  double time(std::span<const gpu::Launch> all) override {
    ++times;
    if (fails) throw DeviceError("the GPU gave up");
    double sum = 0;
    for (const gpu::Launch& one : all) {
      for (const gpu::Binding& buffer : one.buffers) EXPECT_TRUE(holds(buffer)) << "memory that is not the tuner's";
      test::MachineDriver::launch(one);
      barrier();
      sum += seconds(one.groups[0]);
    }
    return sum;
  }

  std::string name = "GPU 1";
  std::function<double(std::uint32_t)> seconds = [](std::uint32_t groups) { return 1e-3 * groups; };
  bool fails = false;
  int times = 0;

 private:
  bool holds(const gpu::Binding& buffer) const {
    const auto after = granted_.upper_bound(buffer.address);
    if (after == granted_.begin()) return false;
    const auto& [memory, bytes] = *std::prev(after);
    return buffer.address + buffer.bytes <= memory + bytes;
  }
  std::map<std::byte*, std::size_t> granted_;
};

/// A process that compiles contractions.
struct Process {
  explicit Process(const std::filesystem::path& folder, Tuning tuning = Tuning::finds,
                   const std::string& name = "GPU 1")
      : context{library, stream, {}, nullptr} {
    machine.name = name;
    context.properties = machine.gpu_properties();
    tuner = std::make_unique<gpu::Tuner>(context, machine, tuning, folder, [this] {
      return gpu::Tuner::MeasuringMemory{pool, Device(DeviceType::mps)};
    });
    context.tiles = tuner.get();
  }
  ~Process() {
    tuner.reset();
    EXPECT_EQ(pool.in_use(), 0U);
    pool.drop_free();
    test::expect_no_reports();
  }

  /// The name of the kernel of a product of [rows, 40] and [40, columns].
  std::string compile(std::int64_t rows = 70, std::int64_t columns = 70) {
    compile::Primitive product;
    product.op = ops::Op::matmul;
    const auto operand = [](std::int32_t slot, const Shape& sizes) {
      return compile::Operand{{slot, DType::float32, 1000, -1, contiguous_strides(sizes)}, sizes};
    };
    product.inputs = {operand(3, {rows, 40}), operand(1, {40, columns})};
    product.output = operand(4, {rows, columns});
    return compile::choose<const gpu::GpuContext&>(gpu::implementations(product.op), product, false, context)
        .make()
        ->name();
  }

  TimedMachine machine;
  gpu::Library library{machine};
  gpu::Stream stream{machine};
  runtime::MemoryPool pool{machine};
  gpu::GpuContext context;
  std::unique_ptr<gpu::Tuner> tuner;
};

class Tuner : public testing::Test {
 protected:
  Tuner() : folder(std::filesystem::temp_directory_path() / ("russet-tuner-" + std::to_string(getpid()))) {
    std::filesystem::remove_all(folder);
  }
  ~Tuner() override { std::filesystem::remove_all(folder); }

  std::filesystem::path file() const {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      if (entry.path().extension() == ".json") return entry.path();
    }
    return {};
  }
  std::string text() const {
    std::ifstream in(file());
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void overwrite(const std::string& text) const { std::ofstream(file(), std::ios::trunc) << text; }

  const std::filesystem::path folder;
};

TEST_F(Tuner, TakesAndKeepsTheFastestTile) {
  {
    Process process(folder, Tuning::measured);
    EXPECT_EQ(process.compile(), "tiles 64x64, tuned");  // 4 threadgroups; the table's 32x32 takes 9
    const int times = process.machine.times;
    EXPECT_GT(times, 0);
    EXPECT_EQ(process.compile(), "tiles 64x64, tuned");
    EXPECT_EQ(process.machine.times, times) << "it is known by now";
    process.machine.seconds = [](std::uint32_t groups) { return 1.0 / groups; };
    EXPECT_EQ(process.compile(20, 90), "tiles 32x32, tuned") << "the table's is the fastest";
  }
  Process next(folder);
  EXPECT_EQ(next.compile(), "tiles 64x64, tuned");
  EXPECT_EQ(next.compile(20, 90), "tiles 32x32, tuned");
  EXPECT_EQ(next.compile(71, 70), "tiles 32x32") << "nothing is known of other sizes";
  EXPECT_EQ(next.machine.times, 0);
  EXPECT_EQ(Process(folder, Tuning::off).compile(), "tiles 32x32");
}

TEST_F(Tuner, AChangeMustBeWorthIt) {
  Process process(folder, Tuning::measured);
  process.machine.seconds = [](std::uint32_t groups) { return groups == 9 ? 1.0 : 0.98; };
  EXPECT_EQ(process.compile(), "tiles 32x32, tuned");
  process.machine.seconds = [](std::uint32_t groups) { return groups == 9 ? 1.0 : 0.96; };
  EXPECT_EQ(process.compile(71, 70), "tiles 32x64, tuned");
}

TEST_F(Tuner, FindsOfAnotherGpuAreNotUsed) {
  Process(folder, Tuning::measured).compile();
  EXPECT_EQ(Process(folder, Tuning::finds, "GPU 2").compile(), "tiles 32x32");
  // Not even under the name of its own file.
  const std::string first = text();
  const std::filesystem::path own = file();
  std::filesystem::rename(own, folder / "kept");
  Process(folder, Tuning::measured, "GPU 2").compile();
  overwrite(first);
  EXPECT_EQ(Process(folder, Tuning::finds, "GPU 2").compile(), "tiles 32x32");
  // Nor those of another version of the kernels.
  std::filesystem::rename(folder / "kept", own);
  nlohmann::json json = nlohmann::json::parse(first);
  json["kernels"] = "0123";
  std::ofstream(own) << json.dump();
  EXPECT_EQ(Process(folder).compile(), "tiles 32x32");
}

TEST_F(Tuner, DamagedFilesAreIgnoredAndMadeAnew) {
  Process(folder, Tuning::measured).compile();
  const std::string whole = text();
  nlohmann::json wrong = nlohmann::json::parse(whole);
  wrong["tiles"].begin().value()["tile"] = {64, "64", 16};
  nlohmann::json strange = nlohmann::json::parse(whole);
  strange["tiles"].begin().value()["tile"] = {64, 48, 16};
  nlohmann::json list = nlohmann::json::parse(whole);
  list["tiles"] = {1, 2, 3};
  const std::string texts[] = {"",
                               "{",
                               "[]",
                               "null",
                               whole.substr(0, whole.size() / 2),
                               std::string(std::size_t{5} << 20, '['),
                               std::string(100000, '['),
                               std::string("\0\xff\xfe", 3),
                               wrong.dump(),
                               strange.dump(),
                               list.dump()};
  for (const std::string& text : texts) {
    overwrite(text);
    EXPECT_EQ(Process(folder).compile(), "tiles 32x32") << text.substr(0, 60);
    EXPECT_EQ(Process(folder, Tuning::measured).compile(), "tiles 64x64, tuned") << text.substr(0, 60);
    EXPECT_EQ(Process(folder).compile(), "tiles 64x64, tuned") << text.substr(0, 60);
  }
}

TEST_F(Tuner, AFolderThatCannotBeWrittenIsAWarning) {
  std::ofstream(folder.string()) << "a file";
  EXPECT_EQ(Process(folder, Tuning::measured).compile(), "tiles 64x64, tuned");
  EXPECT_EQ(Process(folder).compile(), "tiles 32x32");
}

// File locks are of open files, so threads that open their own are to them what processes are.
TEST_F(Tuner, ManyMayWriteAtOnce) {
  const gpu::Properties properties = Process(folder).context.properties;
  constexpr int writers = 4;
  constexpr int each = 25;
  std::vector<std::thread> threads;
  for (int writer = 0; writer < writers; ++writer) {
    threads.emplace_back([&, writer] {
      gpu::Finds finds(folder, properties);
      for (int i = 0; i < each; ++i) finds.add(fmt::format("product {} of {}", i, writer), {{32, 64, 16}, 1, 2});
    });
  }
  for (std::thread& thread : threads) thread.join();
  const gpu::Finds finds(folder, properties);
  for (int i = 0; i < each * writers; ++i) {
    EXPECT_NE(finds.find(fmt::format("product {} of {}", i % each, i / each)), nullptr) << i;
  }
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 2) << "the finds and the lock";
}

TEST_F(Tuner, WhatDoesNotFitTheLimitIsNotMeasured) {
  Process process(folder, Tuning::measured);
  process.pool.set_limit(40000);  // two operands of 70 x 40 and one of 70 x 70 take 42,000
  EXPECT_EQ(process.compile(), "tiles 32x32");
  EXPECT_EQ(process.machine.times, 0);
  EXPECT_EQ(process.compile(40, 40), "tiles 64x64, tuned");
}

TEST_F(Tuner, AFailureOfTheGpuIsNone) {
  Process process(folder, Tuning::measured);
  process.machine.fails = true;
  EXPECT_EQ(process.compile(), "tiles 32x32");
  process.machine.fails = false;
  process.machine.seconds = [](std::uint32_t) { return 0.0; };
  EXPECT_EQ(process.compile(71, 70), "tiles 32x32") << "a GPU that does not tell its time";
  EXPECT_FALSE(std::filesystem::exists(folder));
}

}  // namespace
}  // namespace russet::gputest
