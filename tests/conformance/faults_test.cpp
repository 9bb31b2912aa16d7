// A training loop that catches the errors of bad batches goes on: what did not depend on the operator that failed has
// happened, nothing else has. Two trainings of a small network with batch normalisation run side by side. One meets a
// fault in every other step and catches it; the other does, in these steps, only what does not depend on what fails.
// Weights, statistics and the optimizer's state stay equal, bit for bit.
#include <gtest/gtest.h>
#include <russet/error.h>
#include <russet/functional.h>
#include <russet/io.h>
#include <russet/nn.h>
#include <russet/nn_functional.h>
#include <russet/optim.h>
#include <russet/random.h>
#include <russet/runtime.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <random>

#include "devices/tested.h"

namespace russet::conformance {
namespace {

constexpr int steps = 440;  // 220 faults
constexpr std::int64_t batch = 6;
constexpr std::int64_t width = 5;
constexpr std::int64_t classes = 3;

enum class Fault {
  none,
  label,           // in memory: the call throws
  computed_label,  // known when it has been computed
  index,           // of the samples that make up the batch; in memory
  computed_index,
  memory,    // one operator of the loss takes more than there is
  file,      // that holds the batch
  division,  // of integers, by zero; devices that divide by zero have none
  shape,
};
constexpr int fault_kinds = 9;

/// What goes into a step.
struct Batch {
  std::vector<float> samples;
  std::vector<std::int64_t> labels;
};

Batch batch_of(int step) {
  std::mt19937 random(static_cast<unsigned>(step));
  std::uniform_real_distribution<float> numbers(-1, 1);
  std::uniform_int_distribution<std::int64_t> labels(0, classes - 1);
  Batch made;
  for (std::int64_t i = 0; i < batch * width; ++i) made.samples.push_back(numbers(random));
  for (std::int64_t i = 0; i < batch; ++i) made.labels.push_back(labels(random));
  return made;
}

/// A network in training on a device, one step at a time.
class Training {
 public:
  Training(Device device, bool one_plan, const std::string& optimizer) : device_(device), one_plan_(one_plan) {
    network_.to(device);
    if (optimizer == "adam") {
      optimizer_ = std::make_unique<optim::Adam>(network_.parameters(), optim::AdamOptions{.lr = 0.01});
    } else {
      optimizer_ = std::make_unique<optim::SGD>(network_.parameters(), optim::SGDOptions{.lr = 0.05, .momentum = 0.9});
    }
  }

  /// A step of which everything depends on no fault or meets it.
  void step(int number, Fault fault) {
    if (!one_plan_) return take(number, fault);
    in_one_plan([&] { take(number, fault); });
  }

  /// What of the same step does not depend on what fails.
  void sound_part(int number, Fault fault) {
    optimizer_->zero_grad();
    switch (fault) {
      case Fault::none: return step(number, fault);
      case Fault::file:
      case Fault::index:
      case Fault::shape: break;
      // The number of batches is counted whatever they hold.
      case Fault::computed_index: network_.state_dict().at("1.num_batches_tracked").detach().add_(1); break;
      case Fault::label:
      case Fault::computed_label:
      case Fault::memory:
      case Fault::division: network_.forward(samples(number)); break;
    }
    flush();
  }

  /// All that training changes.
  std::map<std::string, std::vector<std::byte>> state() const {
    std::map<std::string, std::vector<std::byte>> all;
    for (const auto& [name, tensor] : network_.state_dict()) all[name] = tensor.to_bytes();
    const optim::OptimizerState state = optimizer_->state_dict();
    for (const auto& [name, tensor] : state.tensors) all["optimizer " + name] = tensor.to_bytes();
    for (const auto& [name, number] : state.numbers) {
      const auto* bytes = reinterpret_cast<const std::byte*>(&number);
      all["optimizer " + name].assign(bytes, bytes + sizeof number);
    }
    return all;
  }

 private:
  Tensor samples(int number) const { return Tensor::from(batch_of(number).samples, {batch, width}, device_); }

  Tensor read_samples(int number, Fault fault) const {
    if (fault != Fault::file) return samples(number);
    const auto path = std::filesystem::temp_directory_path() / ("russet_faults_" + std::to_string(getpid()));
    io::save_safetensors(path, {{"samples", samples(number)}});
    std::filesystem::resize_file(path, std::filesystem::file_size(path) - 3);
    try {
      return io::load_safetensors(path).at("samples").to(device_);
    } catch (...) {
      std::filesystem::remove(path);
      throw;
    }
  }

  Tensor integers(std::vector<std::int64_t> numbers) const {
    const auto count = static_cast<std::int64_t>(numbers.size());
    return Tensor::from(numbers, {count}, device_);
  }
  /// The same, known when it has been computed.
  Tensor computed(const Tensor& x) const { return x + integers({0}); }

  Tensor chosen(const Tensor& x, Fault fault) const {
    const Tensor rows = integers({0, 1, 2, 3, 4, batch});
    if (fault == Fault::index) return index_select(x, 0, rows);
    if (fault == Fault::computed_index) return index_select(x, 0, computed(rows));
    if (fault == Fault::shape) return x.narrow(1, 0, width - 1);
    return x;
  }

  Tensor labels(int number, Fault fault) const {
    std::vector<std::int64_t> labels = batch_of(number).labels;
    if (fault == Fault::label || fault == Fault::computed_label) labels[static_cast<std::size_t>(number % batch)] = 7;
    const Tensor made = integers(labels);
    if (fault == Fault::computed_label) return computed(made);
    if (fault != Fault::division) return made;
    const Tensor divisors = integers({1, 1, 1, 0, 1, 1});
    return floor_divide(made, computed(divisors));
  }

  void take(int number, Fault fault) {
    optimizer_->zero_grad();
    const Tensor x = chosen(read_samples(number, fault), fault);
    Tensor loss = cross_entropy(network_.forward(x), labels(number, fault));
    if (fault == Fault::memory) {
      const Tensor tall = full({1 << 12, 1}, 1e-20, {.device = device_});
      loss = loss * matmul(tall, tall.t()).select(0, 0).select(0, 0);
    }
    loss.backward();
    optimizer_->step();
  }

  Device device_;
  bool one_plan_;
  nn::Sequential network_{nn::Linear(width, 8), nn::BatchNorm1d(8), nn::ReLU(), nn::Linear(8, classes)};
  std::unique_ptr<optim::Optimizer> optimizer_;
};

/// Runs a step that meets a fault; says what was wrong with what was thrown.
template <class Expected>
std::string expect(Training& training, int number, Fault fault) {
  try {
    training.step(number, fault);
    synchronize();
  } catch (const Expected&) {
    return "";
  } catch (const std::exception& error) {
    return std::string("another error: ") + error.what();
  }
  return "no error";
}

std::string meet(Training& training, int number, Fault fault) {
  switch (fault) {
    case Fault::none: training.step(number, fault); return "";
    case Fault::label:
    case Fault::computed_label:
    case Fault::index:
    case Fault::computed_index: return expect<IndexError>(training, number, fault);
    case Fault::memory: return expect<OutOfMemoryError>(training, number, fault);
    case Fault::file: return expect<FileError>(training, number, fault);
    case Fault::division: return expect<ValueError>(training, number, fault);
    case Fault::shape: return expect<ShapeError>(training, number, fault);
  }
  return "";
}

using Param = std::tuple<std::string, bool, std::string>;

class Faults : public testing::TestWithParam<Param> {
 protected:
  const Device device{std::get<0>(GetParam())};

  Training training() const {
    manual_seed(3);
    return {device, std::get<1>(GetParam()), std::get<2>(GetParam())};
  }
  Fault fault_of(int kind) const {
    const auto fault = static_cast<Fault>(1 + kind % (fault_kinds - 1));
    const bool divides_by_zero = compiles_kernels(std::get<0>(GetParam()));
    return fault == Fault::division && divides_by_zero ? Fault::computed_label : fault;
  }
};

TEST_P(Faults, LeaveWhatDidNotDependOnThem) {
  Training faulty = training();
  Training sound = training();
  std::mt19937 random(17);
  synchronize();
  int faults = 0;
  for (int step = 0; step < steps; ++step) {
    const Fault fault = step % 2 == 0 ? Fault::none : fault_of(static_cast<int>(random()));
    faults += fault == Fault::none ? 0 : 1;
    // Enough for the step without what takes too much.
    if (fault == Fault::memory) set_memory_limit(memory_in_use(device) + (std::size_t{1} << 22));
    const std::string wrong = meet(faulty, step, fault);
    set_memory_limit(std::nullopt);
    ASSERT_EQ(wrong, "") << "step " << step << ", fault " << static_cast<int>(fault);
    sound.sound_part(step, fault);
    const auto found = faulty.state();
    for (const auto& [name, bytes] : sound.state()) {
      ASSERT_EQ(found.at(name), bytes) << name << " after step " << step << ", fault " << static_cast<int>(fault);
    }
  }
  EXPECT_GE(faults, 200);
}

INSTANTIATE_TEST_SUITE_P(Devices, Faults,
                         testing::Combine(testing::ValuesIn(tested_devices()), testing::Bool(),
                                          testing::Values("sgd", "adam")),
                         [](const testing::TestParamInfo<Param>& info) {
                           return std::get<0>(info.param) + (std::get<1>(info.param) ? "_one_plan_" : "_eager_") +
                                  std::get<2>(info.param);
                         });

}  // namespace
}  // namespace russet::conformance
