// Mutants of plans: each barrier of a training step is left out, one at a time, and the simulated GPU must report the
// dispatches that nothing orders any more. Barriers divide the step into batches; without one of them the batch before
// it and the one behind it are one. They run so, their memory is put back, and the step goes on as it was planned.
#include <fmt/format.h>
#include <russet/functional.h>
#include <russet/models.h>
#include <russet/nn_functional.h>
#include <russet/optim.h>
#include <russet/runtime.h>
#include <russet/train/workload.h>

#include "machine_driver.h"
#include "runtime/device.h"

namespace russet::test {
namespace {

using Dispatches = std::vector<simulator::Dispatch>;

/// What the dispatches may write, to be put back.
class Saved {
 public:
  explicit Saved(const Dispatches& dispatches) {
    for (const simulator::Dispatch& dispatch : dispatches) {
      for (const simulator::BoundMemory& range : dispatch.buffers) {
        if (range.writable) copies_.push_back({range.begin, {range.begin, range.begin + range.bytes}});
      }
    }
  }
  void put_back() const {
    for (const Copy& copy : copies_) std::copy(copy.bytes.begin(), copy.bytes.end(), copy.begin);
  }
  /// Whether memory holds now what `other` saw.
  bool operator==(const Saved& other) const = default;

 private:
  struct Copy {
    std::byte* begin;
    std::vector<std::byte> bytes;
    bool operator==(const Copy&) const = default;
  };
  std::vector<Copy> copies_;
};

Dispatches joined(const Dispatches& first, const Dispatches& second) {
  Dispatches both = first;
  both.insert(both.end(), second.begin(), second.end());
  return both;
}

bool reports_overlap() {
  const std::vector<simulator::CheckReport> reports = simulator::take_reports();
  return std::any_of(reports.begin(), reports.end(), [](const auto& report) { return report.check == "overlap"; });
}

class MutatingDriver final : public MachineDriver {
 public:
  void release(std::byte* memory, std::size_t bytes) override {
    synchronize();
    MachineDriver::release(memory, bytes);
  }
  void barrier() override {
    if (waiting_.empty()) return;
    if (!before_.empty()) {
      if (judging) judge(before_, waiting_);
      run(before_);
    }
    before_ = std::exchange(waiting_, {});
  }
  /// The host waits, which orders too.
  void synchronize() override {
    barrier();
    run(before_);
    before_.clear();
  }

  bool judging = false;
  int caught = 0;
  int ordering_nothing = 0;  // the dispatches bind the same bytes, and touch others: any order gives the same
  std::vector<std::string> missed;

 private:
  static void run(const Dispatches& batch) {
    if (batch.empty()) return;
    simulator::execute(batch);
    expect_no_reports();
  }

  void judge(const Dispatches& before, const Dispatches& after) {
    const Dispatches both = joined(before, after);
    const Saved saved(both);
    simulator::execute(both);
    const bool reported = reports_overlap();
    saved.put_back();
    if (reported) {
      ++caught;
    } else if (in_order(before, after, saved) == in_order(after, before, saved)) {
      ++ordering_nothing;
    } else {
      missed.push_back(fmt::format("between {} and {}", names(before), names(after)));
    }
  }

  static Saved in_order(const Dispatches& first, const Dispatches& second, const Saved& start) {
    simulator::execute(first);
    simulator::execute(second);
    Saved result(
        joined(std::less<>()(&first, &second) ? first : second, std::less<>()(&first, &second) ? second : first));
    start.put_back();
    simulator::take_reports();
    return result;
  }

  static std::string names(const Dispatches& batch) {
    std::string text;
    for (const simulator::Dispatch& dispatch : batch) {
      text += fmt::format("{}{} threads of {} groups", text.empty() ? "" : ", ", dispatch.threads, dispatch.groups[0]);
    }
    return text;
  }

  Dispatches before_;
};

/// The device mps of this program.
MutatingDriver& driver() {
  static MutatingDriver& driver = []() -> MutatingDriver& {
    auto made = std::make_unique<MutatingDriver>();
    MutatingDriver& result = *made;
    runtime::register_device(DeviceType::mps, [&] { return std::move(made); });
    runtime::driver_of(DeviceType::mps);
    return result;
  }();
  return driver;
}

const Device mps{DeviceType::mps};

/// Judges every barrier of one training step, after two that make the plans and the optimizer's state.
template <class Step>
void expect_no_survivor(std::string_view name, const Step& step) {
  for (int i = 0; i < 2; ++i) step();
  synchronize();
  driver().caught = 0;
  driver().ordering_nothing = 0;
  driver().missed.clear();
  driver().judging = true;
  step();
  synchronize();
  driver().judging = false;
  for (const std::string& line : driver().missed) fmt::print("{}: survived {}\n", name, line);
  fmt::print("{}: {} barriers left out, one at a time: {} caught, {} order nothing, {} survived\n", name,
             driver().caught + driver().ordering_nothing + static_cast<int>(driver().missed.size()), driver().caught,
             driver().ordering_nothing, driver().missed.size());
  EXPECT_GT(driver().caught, 0);
  EXPECT_TRUE(driver().missed.empty());
}

class PlanBarriers : public testing::Test {
 protected:
  PlanBarriers() {
    driver();
    if (!simulator::options().checked) skip_ = "the simulator checks nothing";
  }
  void SetUp() override {
    if (!skip_.empty()) GTEST_SKIP() << skip_;
  }

 private:
  std::string skip_;
};

TEST_F(PlanBarriers, OfLeNet5) {
  train::Workload workload = train::benchmark_workload("lenet5");
  workload.batch = 4;
  train::Workbench bench(workload, mps);
  expect_no_survivor("lenet5", [&] { bench.train_step(); });
}

TEST_F(PlanBarriers, OfBert) {
  train::Workload workload = train::benchmark_workload("bert_base");
  workload.batch = 2;
  workload.options.config = {{"vocab_size", 40},         {"hidden_size", 32},       {"num_hidden_layers", 2},
                             {"num_attention_heads", 2}, {"intermediate_size", 48}, {"max_position_embeddings", 12}};
  train::Workbench bench(workload, mps);
  expect_no_survivor("bert, two layers", [&] { bench.train_step(); });
}

TEST_F(PlanBarriers, OfAResNet) {
  const nn::NewModules place(mps);
  models::ResNet model({.layers = {1, 1, 1, 1}, .num_classes = 4, .small_stem = true});
  optim::SGD optimizer(model.parameters(), {.lr = 0.01, .momentum = 0.9});
  const Tensor x = randn({2, 3, 8, 8}, {.device = mps});
  const Tensor labels = Tensor::from<std::int64_t>({0, 3}, {2}, mps);
  expect_no_survivor("resnet, four blocks", [&] {
    optimizer.zero_grad();
    cross_entropy(model(x), labels).backward();
    optimizer.step();
    flush();
  });
}

}  // namespace
}  // namespace russet::test
