// A GPU whose memory is not the host's: whoever touches it but by a launch or a copy is ended by the system.
#include <russet/functional.h>
#include <russet/nn_functional.h>
#include <russet/optim.h>
#include <russet/random.h>
#include <russet/runtime.h>
#include <russet/train/workload.h>
#include <sys/mman.h>

#include "machine_driver.h"
#include "runtime/device.h"

namespace russet::test {
namespace {

class ApartDriver final : public MachineDriver {
 public:
  bool shares_memory_with_host() const override { return false; }

  std::byte* allocate(std::size_t bytes) override {
    void* const memory = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw OutOfMemoryError("the system grants no memory");
    blocks_[static_cast<std::byte*>(memory)] = bytes;
    simulator::mark_uninitialised(static_cast<std::byte*>(memory), bytes);
    return static_cast<std::byte*>(memory);
  }
  void release(std::byte* memory, std::size_t bytes) override {
    synchronize();
    simulator::mark_initialised(memory, bytes);
    blocks_.erase(memory);
    munmap(memory, bytes);
  }
  void upload(std::byte* target, std::span<const std::byte> source) override {
    const Open open(*this);
    MachineDriver::upload(target, source);
  }
  void download(std::span<std::byte> target, const std::byte* source) override {
    const Open open(*this);
    MachineDriver::download(target, source);
  }
  void barrier() override {
    const Open open(*this);
    MachineDriver::barrier();
  }
  void synchronize() override {
    const Open open(*this);
    MachineDriver::synchronize();
  }

 private:
  /// While it lives, the host can touch the memory.
  class Open {
   public:
    explicit Open(ApartDriver& driver) : driver_(driver) {
      if (driver_.openings_++ == 0) driver_.protect(PROT_READ | PROT_WRITE);
    }
    ~Open() {
      if (--driver_.openings_ == 0) driver_.protect(PROT_NONE);
    }
    Open(const Open&) = delete;
    Open& operator=(const Open&) = delete;

   private:
    ApartDriver& driver_;
  };

  void protect(int access) {
    for (const auto& [memory, bytes] : blocks_) mprotect(memory, bytes, access);
  }

  std::map<std::byte*, std::size_t> blocks_;
  int openings_ = 0;
};

const Device mps{DeviceType::mps};
const Device cpu{DeviceType::cpu};

class Apart : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    runtime::register_device(DeviceType::mps, [] { return std::make_unique<ApartDriver>(); });
  }
  ~Apart() override {
    synchronize();
    expect_no_reports();
  }
};

TEST_F(Apart, AModelTrains) {
  const auto logits = [](Device device) {
    manual_seed(3);
    train::Workload workload = train::benchmark_workload("lenet5");
    workload.batch = 4;
    train::Workbench bench(workload, device);
    for (int i = 0; i < 3; ++i) bench.train_step();
    return bench.eval_step().to(cpu).to_vector<float>();
  };
  const std::vector<float> expected = logits(cpu);
  const std::vector<float> got = logits(mps);
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-4);
}

TEST_F(Apart, StepsRunOnTheCpu) {
  const Tensor b = Tensor::from<float>({2, 1, 0, 1}, {2, 2});
  const std::uint64_t fallbacks = counters().fallbacks;
  const Tensor factor = linalg_cholesky(matmul(b, b.t()).to(mps) + 0.5);
  const Tensor product = matmul(factor, factor.t()).to(cpu);
  EXPECT_GT(counters().fallbacks, fallbacks);
  const std::vector<float> expected{5.5, 1.5, 1.5, 1.5};
  const std::vector<float> got = product.to_vector<float>();
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-6);
}

TEST_F(Apart, AStepOnTheCpuWritesAPartOfATensor) {
  Tensor all = zeros({3, 2, 2}, {.device = mps});
  const Tensor one = Tensor::from<float>({4, 0, 0, 9}, {2, 2}, mps);
  all.select(0, 1).copy_(linalg_cholesky(one));
  EXPECT_EQ(all.to_vector<float>(), (std::vector<float>{0, 0, 0, 0, 2, 0, 0, 3, 0, 0, 0, 0}));
}

TEST_F(Apart, IndicesThatTheGpuComputesAreChecked) {
  const Tensor table = Tensor::from<float>({1, 2, 3, 4, 5, 6}, {3, 2}, mps);
  const Tensor index = Tensor::from<std::int64_t>({0, 1}, {2}, mps);
  EXPECT_EQ(index_select(table, 0, index + 1).to_vector<float>(), (std::vector<float>{3, 4, 5, 6}));
  const Tensor outside = index_select(table, 0, index + 2);
  EXPECT_THROW(outside.to_vector<float>(), IndexError);
  const Tensor nothing = index.narrow(0, 0, 0) + 1;
  EXPECT_EQ(index_select(table, 0, nothing).to_vector<float>(), std::vector<float>());
  const Tensor same = index_add(table, 0, nothing, zeros({0, 2}, {.device = mps}));
  EXPECT_EQ(same.to_vector<float>(), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(index_select(table, 0, index).to_vector<float>(), (std::vector<float>{1, 2, 3, 4}));
}

}  // namespace
}  // namespace russet::test
