// Steps that one launch runs sample by sample.
#include "device/gpu/samples.h"

#include "gpu/kernel_cases.h"
#include "works.h"

namespace russet::gputest {
namespace {

using ops::Op;

constexpr DType floats[] = {DType::float32, DType::float16, DType::bfloat16};

const ConvolutionShape convolution_shapes[] = {
    {4, 1, 28, 28, 6, 5, 5, {.padding = {2, 2}, .padding_after = {2, 2}}},
    {3, 6, 14, 14, 12, 5, 5, {}},
    {2, 9, 7, 9, 10, 3, 3, {.padding = {1, 1}, .padding_after = {1, 1}}},
    {2, 8, 9, 7, 9, 3, 2, {.stride = {2, 3}, .padding = {1, 0}, .padding_after = {0, 1}}},
    {2, 8, 11, 10, 8, 3, 3, {.padding = {2, 2}, .padding_after = {2, 2}, .dilation = {2, 2}}},
    {3, 12, 1, 1, 11, 1, 1, {}},
    {3, 40, 1, 1, 10, 1, 1, {}},
    {2, 8, 6, 7, 9, 1, 1, {.stride = {2, 2}}},
    {2, 3, 12, 13, 4, 5, 5, {}},
};

void expect_right(std::vector<Case> cases) {
  put_on_samples(cases);
  for (const Outcome& outcome : run(cases)) {
    EXPECT_EQ(outcome.complaint, "") << outcome.name << " by " << outcome.kernel;
    EXPECT_EQ(outcome.kernel, "sample by sample") << outcome.name;
  }
}

TEST(ProductsBySamples, OfConvolutionsAndGradientsOfTheirImages) {
  std::vector<Case> cases;
  for (const ConvolutionShape& shape : convolution_shapes) {
    for (const Layout layout : {Layout::contiguous, Layout::channels_last}) {
      add_convolutions(cases, DType::float32, shape, layout);
    }
  }
  add_convolutions(cases, DType::bfloat16, convolution_shapes[1], Layout::contiguous);
  add_convolutions(cases, DType::float16, convolution_shapes[0], Layout::contiguous);
  expect_right(std::move(cases));
}

TEST(ProductsBySamples, OfRowsByMatricesThatLieEitherWay) {
  std::vector<Case> cases;
  for (const DType type : floats) {
    for (const Layout left : {Layout::contiguous, Layout::reversed}) {
      for (const Layout right : {Layout::contiguous, Layout::reversed}) {
        cases.push_back(product(type, {5, 400}, {400, 120}, {5, 120}, left, right));
        cases.push_back(product(type, {3, 47}, {47, 35}, {3, 35}, left, right));
        for (std::size_t last : {cases.size() - 1, cases.size() - 2}) {
          for (Array& input : cases[last].inputs) input.margin = 8;
        }
      }
    }
  }
  cases.push_back(product(DType::float32, {3, 17}, {17, 10}, {3, 10}, Layout::spaced, Layout::flipped));
  cases.push_back(product(DType::float32, {2, 1}, {1, 1}, {2, 1}, Layout::contiguous, Layout::contiguous));
  cases.push_back(cases.front());
  cases.back().bias_axis = 1;
  expect_right(std::move(cases));
}

}  // namespace
}  // namespace russet::gputest

namespace russet::test {
namespace {

using compile::Operand;
using compile::Primitive;

/// A small network, step by step, over memory of its own.
class Network {
 public:
  explicit Network(std::int64_t samples) : samples_(samples) {}

  int input(const Shape& sizes) { return works_.slot(numel(sizes), true); }
  int weight(const Shape& sizes) {
    weights_.push_back(input(sizes));
    return weights_.back();
  }
  int convolve(int x, const Shape& sizes, std::int64_t outputs, std::int32_t kernel, std::int32_t padding) {
    Primitive p;
    p.op = Op::convolution;
    p.attributes = ops::Window{.padding = {padding, padding}, .padding_after = {padding, padding}};
    const Shape sizes_of_weight{outputs, sizes[1], kernel, kernel};
    const Shape result{sizes[0], outputs, sizes[2] + 2 * padding - kernel + 1, sizes[3] + 2 * padding - kernel + 1};
    p.inputs = {operand(x, sizes), operand(weight(sizes_of_weight), sizes_of_weight)};
    return finish(std::move(p), result);
  }
  int pool(int x, const Shape& sizes) {
    Primitive p;
    p.op = Op::sum_pool;
    p.attributes = ops::Window{.kernel = {2, 2}, .stride = {2, 2}};
    p.inputs = {operand(x, sizes)};
    return finish(std::move(p), {sizes[0], sizes[1], sizes[2] / 2, sizes[3] / 2});
  }
  /// The weight is [outputs, inputs] in memory, or [inputs, outputs].
  int multiply(int x, std::int64_t inputs, std::int64_t outputs, bool turned) {
    Primitive p;
    p.op = Op::matmul;
    Operand right = operand(weight({inputs, outputs}), {inputs, outputs});
    if (turned) right.access.strides = {1, inputs};
    p.inputs = {operand(x, {samples_, inputs}), right};
    return finish(std::move(p), {samples_, outputs});
  }
  /// tanh(x * run-time argument 0)
  int squash(int x, std::int64_t width) {
    Builder b(Group::Kind::elementwise, {samples_, width}, 2);
    const auto factor = b.push({.kind = Kind::scalar, .dtype = DType::float32, .argument = 0});
    const auto value = b.compute(Op::mul, DType::float32, b.load(x, DType::float32, {width, 1}), factor);
    return finish(b, b.compute(Op::tanh, DType::float32, value), width);
  }
  /// x less the largest of its row
  int subtract_largest(int x, std::int64_t width) {
    Builder b(Group::Kind::row, {samples_, width}, 1);
    const auto value = b.load(x, DType::float32, {width, 1});
    const auto largest = b.reduce(Op::amax, DType::float32, value);
    return finish(b, b.compute(Op::sub, DType::float32, value, largest), width);
  }

  /// Runs all one by one, and sample by sample with so many bytes of threadgroup memory for what is handed on and, if
  /// the GPU brings that by itself, what all samples read: returns the launches that this took.
  int run(std::uint32_t sample_memory = 0, bool brings = false) {
    MachineDriver driver;
    driver.adjust = [&](gpu::Properties& properties) {
      properties.runs_samples = true;
      properties.group_memory -= sample_memory;  // of which the machine has no more
      properties.sample_memory = sample_memory;
      properties.has_bulk_copies = brings;
    };
    const std::vector<std::uint64_t> arguments{std::bit_cast<std::uint64_t>(0.25)};
    Memory alone = works_.memory;
    for (const compile::Step& step : works_.list) {
      run_on(driver, *driver.target().compile(step), alone, arguments);
    }
    Memory together = works_.memory;
    const auto kernel = driver.target().compile(
        compile::Bundle{.members = works_.list, .samples = samples_, .handed_on = handed_on(), .shared = weights_});
    const int before = driver.launches;
    run_on(driver, *kernel, together, arguments);
    const int launches = driver.launches - before;
    stored_ = 0;
    for (const int result : results_) {
      const auto count = static_cast<std::size_t>(together.bytes(result)) / sizeof(float);
      if (read<float>(together, result, count) == read<float>(works_.memory, result, count)) continue;
      ++stored_;
      const auto wanted = read<float>(alone, result, count);
      const auto found = read<float>(together, result, count);
      for (std::size_t i = 0; i < count; ++i) {
        EXPECT_NEAR(found[i], wanted[i], 1e-4F * std::max(1.0F, std::abs(wanted[i]))) << "of slot " << result;
      }
    }
    return launches;
  }
  /// Results that the last run stored in memory.
  int stored() const { return stored_; }

 private:
  /// All results but the last.
  std::vector<compile::HandedOn> handed_on() const {
    std::vector<compile::HandedOn> memory;
    for (std::size_t i = 0; i + 1 < results_.size(); ++i) {
      memory.push_back({results_[i], static_cast<std::size_t>(works_.memory.bytes(results_[i]))});
    }
    return memory;
  }
  static Operand operand(int slot, const Shape& sizes) {
    return {{slot, DType::float32, 0, -1, contiguous_strides(sizes)}, sizes};
  }
  int finish(Primitive p, const Shape& result) {
    results_.push_back(works_.slot(numel(result), false));
    p.output = operand(results_.back(), result);
    works_.list.emplace_back(std::move(p));
    return results_.back();
  }
  int finish(Builder& b, std::int16_t value, std::int64_t width) {
    results_.push_back(works_.slot(samples_ * width, false));
    b.store(value, results_.back(), {width, 1});
    works_.list.emplace_back(b.group);
    return results_.back();
  }

  std::int64_t samples_;
  Works works_;
  std::vector<int> results_;
  std::vector<std::int32_t> weights_;
  int stored_ = 0;
};

TEST(StepsBySamples, OfASmallNetworkAreOneLaunch) {
  Network network(5);
  const int image = network.input({5, 1, 12, 12});
  const int first = network.squash(network.convolve(image, {5, 1, 12, 12}, 6, 5, 2), 6 * 12 * 12);
  const int pooled = network.pool(first, {5, 6, 12, 12});
  const int second = network.squash(network.convolve(pooled, {5, 6, 6, 6}, 8, 3, 0), 8 * 4 * 4);
  const int hidden = network.squash(network.multiply(second, 128, 20, true), 20);
  network.subtract_largest(network.multiply(hidden, 20, 12, false), 12);
  constexpr int results = 9;
  constexpr std::uint32_t all = 16384;
  constexpr std::uint32_t some = 4096;  // the first convolution's, or what is smaller
  EXPECT_EQ(network.run(), 1);
  EXPECT_EQ(network.stored(), results);
  EXPECT_EQ(network.run(some), 1);
  EXPECT_GT(network.stored(), 1);
  EXPECT_LT(network.stored(), results);
  for (const bool brings : {false, true}) {
    EXPECT_EQ(network.run(all, brings), 1);
    EXPECT_EQ(network.stored(), 1);
  }
}

TEST(StepsBySamples, AreAskedForInLargeBatchesAlone) {
  for (const bool runs : {false, true}) {
    MachineDriver driver;
    driver.adjust = [runs](gpu::Properties& properties) { properties.runs_samples = runs; };
    for (const std::int64_t samples : {gpu::fewest_samples - 1, gpu::fewest_samples}) {
      Works works;
      works.row(samples, 100);
      works.product(samples, 20, 30, false, false);
      for (const compile::Step& step : works.list) {
        EXPECT_EQ(driver.target().sample_times(step, samples).has_value(), runs && samples == gpu::fewest_samples);
      }
    }
  }
}

/// What a core cannot do quickly runs by itself.
TEST(StepsBySamples, AreOfLittleWork) {
  MachineDriver driver;
  driver.adjust = [](gpu::Properties& properties) {
    properties.runs_samples = true;
    properties.chip = chip_of("h200", DeviceType::cuda);
  };
  Works works;
  works.elementwise(32, 100, 100);
  works.elementwise(32, 200000, 200000);
  EXPECT_TRUE(driver.target().sample_times(works.list[0], 32).has_value());
  EXPECT_FALSE(driver.target().sample_times(works.list[1], 32).has_value());
}

/// Elements that four neighbours of one sample do not make up go one by one, and so does a single one.
TEST(StepsBySamples, OfAnyWidth) {
  for (const std::int64_t width : {1, 3, 7}) {
    Network network(3);
    const int x = network.input({3, width});
    network.squash(network.multiply(network.squash(x, width), width, width, true), width);
    EXPECT_EQ(network.run(), 1);
  }
}

/// A kernel's parameters are put together by macros, which take as many as they are written for.
TEST(StepsBySamples, WithAllMemoryThatALaunchBindsAreOne) {
  Network network(2);
  int x = network.squash(network.input({2, 4}), 4);
  constexpr int many = gpu::max_sample_buffers / 2 - 1;  // each binds a weight and a result
  for (int i = 0; i < many; ++i) x = network.multiply(x, 4, 4, true);
  EXPECT_EQ(network.run(), 1);
}

TEST(StepsBySamples, WithMoreMemoryThanALaunchBindsAreSeveral) {
  Network network(2);
  int x = network.input({2, 4});
  constexpr int many = gpu::max_sample_buffers / 2 + 1;  // each binds a weight and a result
  for (int i = 0; i < many; ++i) x = network.multiply(x, 4, 4, true);
  EXPECT_EQ(network.run(), many);
}

}  // namespace
}  // namespace russet::test
