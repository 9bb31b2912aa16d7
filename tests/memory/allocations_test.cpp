// Replay allocates nothing large: every allocation of the process is watched while training steps are replayed.
#include <gtest/gtest.h>
#include <russet/russet.h>
#include <russet/train/workload.h>
#include <sys/mman.h>

#include <cmath>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "memory/allocation_watch.h"

namespace russet {
namespace {

const Device cpu{DeviceType::cpu};

template <class Function>
std::uint64_t counted(const Function& function) {
  const AllocationWatch watch;
  function();
  return watch.count();
}

/// Keeps the compiler from leaving out an allocation that nobody uses.
void use(void* memory) { asm volatile("" : : "r"(memory) : "memory"); }

TEST(AllocationWatch, SeesEveryWayToAllocate) {
  const auto freed = [](void* memory) {
    use(memory);
    std::free(memory);
  };
  EXPECT_EQ(counted([&] { freed(std::malloc(8192)); }), 1U);
  EXPECT_EQ(counted([&] { freed(std::calloc(2, 4096)); }), 1U);
  EXPECT_EQ(counted([&] { freed(std::realloc(nullptr, 8192)); }), 1U);
  EXPECT_EQ(counted([&] { freed(std::aligned_alloc(64, 8192)); }), 1U);
  EXPECT_EQ(counted([&] {
              void* memory = nullptr;
              EXPECT_EQ(posix_memalign(&memory, 64, 8192), 0);
              freed(memory);
            }),
            1U);
  EXPECT_EQ(counted([&] {
              void* const memory = mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
              use(memory);
              munmap(memory, 8192);
            }),
            1U);
  EXPECT_EQ(counted([&] { use(std::make_unique<std::byte[]>(8192).get()); }), 1U);
}

TEST(AllocationWatch, SeesOtherThreadsAndLibraries) {
  EXPECT_GE(counted([] { std::thread([] { use(std::make_unique<std::byte[]>(8192).get()); }).join(); }), 1U);
  // Made and grown within the library.
  EXPECT_GE(counted([] { (void)Tensor::from(std::vector<float>(1, 1.0F), {1}).expand({8192}).to_bytes(); }), 1U);
}

TEST(AllocationWatch, LetsSmallOnesPassAndNamesTheFirstLargeOne) {
  EXPECT_EQ(counted([] { use(std::make_unique<std::byte[]>(4096).get()); }), 0U);
  const AllocationWatch watch;
  EXPECT_EQ(watch.first(), "");
  use(std::make_unique<std::byte[]>(12345).get());
  EXPECT_NE(watch.first().find("12345 bytes"), std::string::npos) << watch.first();
}

struct Case {
  const char* model;
  std::int64_t batch;
  DType precision;
};

class Replay : public testing::TestWithParam<Case> {};

/// A model in a size that a test has time for.
models::ModelOptions reduced(std::string_view model) {
  if (model != "bert_base") return {};
  return {.config = {{"vocab_size", 100},
                     {"hidden_size", 64},
                     {"num_hidden_layers", 2},
                     {"num_attention_heads", 4},
                     {"intermediate_size", 128},
                     {"max_position_embeddings", 128}}};
}

TEST_P(Replay, OfTrainingAndEvaluationAllocatesNothingLarge) {
  const Case& param = GetParam();
  train::Workload workload = train::benchmark_workload(param.model);
  workload.batch = param.batch;
  workload.precision = param.precision;
  workload.options = reduced(param.model);
  train::Workbench bench(workload, cpu);
  const auto step = [&] {
    bench.train_step();
    const Tensor logits = bench.eval_step();
  };
  for (int i = 0; i < 4; ++i) step();
  const std::uint64_t plans = counters().plans_compiled;
  const AllocationWatch watch;
  for (int i = 0; i < 3; ++i) step();
  EXPECT_EQ(watch.count(), 0U) << watch.first();
  EXPECT_EQ(counters().plans_compiled, plans) << why_compiled();
}

INSTANTIATE_TEST_SUITE_P(Models, Replay,
                         testing::Values(Case{"mlp", 32, DType::float32}, Case{"mlp", 32, DType::bfloat16},
                                         Case{"lenet5", 64, DType::float32}, Case{"lenet5", 64, DType::bfloat16},
                                         Case{"resnet18_cifar", 4, DType::float32},
                                         Case{"resnet18_cifar", 4, DType::bfloat16},
                                         Case{"bert_base", 4, DType::float32}, Case{"bert_base", 4, DType::bfloat16}),
                         [](const auto& info) {
                           return std::string(info.param.model) +
                                  (info.param.precision == DType::float32 ? "_fp32" : "_bf16");
                         });

TEST(Replay, OfALoopWithALoaderAllocatesNothingLarge) {
  const data::TensorDataset samples(randn({512, 1, 28, 28}), remainder(arange(512), 10));
  data::DataLoader loader(samples, {.batch = 32, .shuffle = true, .seed = 5, .workers = 2});
  models::Model net = models::get_model("lenet5", {.dropout = 0.1});
  optim::AdamW optimizer(net.parameters(), {.lr = 1e-3});
  double sum_of_losses = 0;
  // An epoch starts by making its order, which is as long as the data set: the watch lasts for a part of one.
  std::optional<AllocationWatch> watch;
  int count = 0;
  for (const auto& [image, label] : loader) {
    if (count++ == 6) watch.emplace();
    const Tensor loss = cross_entropy(net(image), label);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    sum_of_losses += loss.item<float>();
  }
  ASSERT_EQ(count, 16);
  EXPECT_EQ(watch->count(), 0U) << watch->first();
  EXPECT_TRUE(std::isfinite(sum_of_losses));
}

}  // namespace
}  // namespace russet
