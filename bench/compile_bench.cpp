// What compiling costs: a node, in programs of 1,000 to 200,000; a small BERT of a shape that is new; and how long a
// reader waits while another thread compiles. docs/benchmarks.md says what they may be.
#include <benchmark/benchmark.h>
#include <russet/russet.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "graph/recorder.h"

namespace {

using russet::Device;
using russet::DType;
using russet::Tensor;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// Compiles for the cpu, runs nothing.
Device planned() {
  russet::plan_null_as(Device("cpu"));
  return Device(russet::DeviceType::null);
}

/// A chain in which neighbours fuse, and every hundredth value is a product of matrices. `salt` makes it a new one.
Tensor chain(const Tensor& start, std::int64_t length) {
  Tensor value = start;
  for (std::int64_t i = 0; i < length; ++i) value = i % 100 == 99 ? matmul(value, start) : value * 1.0 + start;
  return value;
}

/// Seconds that the flush of a program takes which nobody has compiled; state.range(0) nodes, about.
template <class Program>
void compile(benchmark::State& state, const Program& program) {
  const Device device = planned();
  std::int64_t size = 8;
  for (auto _ : state) {
    const Tensor start = russet::ones({size, size}, {.device = device});
    russet::flush();
    ++size;
    const std::uint64_t before = russet::counters().nodes_recorded;
    const russet::graph::Deferral one_plan;
    const auto result = program(start, state.range(0));
    const auto nodes = static_cast<double>(russet::counters().nodes_recorded - before);
    const Clock::time_point begin = Clock::now();
    russet::flush();
    const double seconds = seconds_since(begin);
    state.SetIterationTime(seconds);
    state.counters["nodes"] = nodes;
    state.counters["us_per_node"] = seconds * 1e6 / nodes;
  }
}

void compile_forward(benchmark::State& state) {
  compile(state, [](const Tensor& start, std::int64_t nodes) { return chain(start, nodes / 2); });
}

void compile_with_gradients(benchmark::State& state) {
  compile(state, [](const Tensor& start, std::int64_t nodes) {
    const Tensor leaf = start.detach().requires_grad_();
    sum(chain(leaf, nodes / 8)).backward();
    return leaf.grad();
  });
}

/// Many values that have nothing to do with each other, alike but for their numbers.
void compile_side_by_side(benchmark::State& state) {
  compile(state, [](const Tensor& start, std::int64_t nodes) {
    std::vector<Tensor> values;
    for (std::int64_t i = 0; i < nodes / 3; ++i) values.push_back(exp(start * static_cast<double>(i)));
    return values;
  });
}

/// A step of training, in one plan, of a BERT of twelve layers of width 128 on eight texts.
class SmallBert {
 public:
  explicit SmallBert(std::int64_t length) { set_length(length); }

  void set_length(std::int64_t length) {
    ids_ = russet::randint(1, 1000, {8, length});
    mask_ = russet::ones({8, length}, {.dtype = DType::int64});
    labels_ = russet::randint(0, 6, {8});
    russet::flush();
  }

  double step() {
    const Clock::time_point begin = Clock::now();
    russet::in_one_plan([&] {
      cross_entropy(model_(ids_, mask_, {}), labels_).backward();
      optimizer_.step();
      optimizer_.zero_grad();
    });
    russet::synchronize();
    return seconds_since(begin);
  }

 private:
  russet::models::BertForSequenceClassification model_{{.vocab_size = 1000,
                                                        .hidden_size = 128,
                                                        .num_hidden_layers = 12,
                                                        .num_attention_heads = 2,
                                                        .intermediate_size = 512,
                                                        .max_position_embeddings = 512,
                                                        .num_labels = 6}};
  russet::optim::AdamW optimizer_{model_.parameters(), {.lr = 1e-3}};
  Tensor ids_, mask_, labels_;
};

double median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2));
  return values[values.size() / 2];
}

/// Its first step on texts of a new length, in steps on texts of that length: medians over the lengths.
void new_shape_of_bert(benchmark::State& state) {
  std::int64_t length = 32;
  SmallBert bert(length);
  bert.step();
  std::vector<double> first, usual;
  for (auto _ : state) {
    bert.set_length(++length);
    first.push_back(bert.step());
    state.SetIterationTime(first.back());
    for (int i = 0; i < 5; ++i) usual.push_back(bert.step());
  }
  state.counters["first_ms"] = median(first) * 1e3;
  state.counters["usual_ms"] = median(usual) * 1e3;
  state.counters["steps"] = median(first) / median(usual);
}

/// The longest of the reads of two numbers, in memory or computed by a plan that exists, that a thread does while
/// another one compiles 20,000 operators.
void longest_wait_of_a_reader(benchmark::State& state) {
  for (auto _ : state) {
    std::atomic<bool> done{false};
    std::thread compiler([&] {
      const Tensor value = chain(russet::ones({8, 8}), 10'000 + static_cast<std::int64_t>(state.iterations()));
      value.to_bytes();
      done = true;
    });
    const Tensor numbers = russet::ones({2});
    double longest = 0;
    double sum = 0;
    while (!done) {
      const Clock::time_point begin = Clock::now();
      sum += (numbers + 1).to_vector<float>()[0] + numbers.to_vector<float>()[1];
      longest = std::max(longest, seconds_since(begin));
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    compiler.join();
    benchmark::DoNotOptimize(sum);
    state.SetIterationTime(longest);
  }
}

BENCHMARK(compile_forward)
    ->RangeMultiplier(10)
    ->Range(1000, 100'000)
    ->Arg(200'000)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(compile_with_gradients)
    ->RangeMultiplier(10)
    ->Range(1000, 100'000)
    ->Arg(200'000)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(compile_side_by_side)
    ->RangeMultiplier(10)
    ->Range(1000, 100'000)
    ->Arg(200'000)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(new_shape_of_bert)->Iterations(15)->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK(longest_wait_of_a_reader)->Iterations(3)->UseManualTime()->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
