// Random programs of views, in-place writes, grad mode, backward passes, tensors that are used up to 100 times, and
// operators that fail: values, aliasing, strides, versions, .grad and errors are PyTorch's, in one thread and in two.
#include <gtest/gtest.h>
#include <russet/runtime.h>

#include <future>

#include "calls/golden.h"
#include "golden/program.h"

namespace golden {
namespace {

/// Where the steps of a program run.
enum class Threads : std::uint8_t {
  one,
  in_turn,      // every other step in another thread
  side_by_side  // a program in each of two threads
};

/// The lines of a program, without the first.
struct Text {
  std::uint64_t seed = 0;
  std::vector<std::string> lines;
};

std::vector<Text> read_programs() {
  std::vector<Text> programs;
  for (std::string& line : read_lines("random_programs.txt.gz")) {
    if (line.starts_with("P ")) {
      programs.push_back({std::stoull(line.substr(2)), {}});
    } else {
      programs.back().lines.push_back(std::move(line));
    }
  }
  return programs;
}

/// A thread that does one thing at a time.
class Worker {
 public:
  Worker() : thread_([this] { work(); }) {}
  ~Worker() {
    give({});
    thread_.join();
  }
  std::string run(const std::function<std::string()>& task) {
    std::packaged_task<std::string()> packaged(task);
    std::future<std::string> result = packaged.get_future();
    give(std::move(packaged));
    return result.get();
  }

 private:
  void give(std::packaged_task<std::string()> task) {
    const std::lock_guard lock(mutex_);
    task_ = std::move(task);
    ready_ = true;
    given_.notify_one();
  }
  void work() {
    for (;;) {
      std::unique_lock lock(mutex_);
      given_.wait(lock, [this] { return ready_; });
      ready_ = false;
      if (!task_.valid()) return;
      task_();
    }
  }

  std::mutex mutex_;
  std::condition_variable given_;
  std::packaged_task<std::string()> task_;
  bool ready_ = false;
  std::thread thread_;
};

class RandomPrograms : public testing::TestWithParam<std::tuple<const char*, Threads>> {
 protected:
  russet::Device device() const { return russet::Device(std::get<0>(GetParam())); }
  Threads threads() const { return std::get<1>(GetParam()); }

  /// An empty string if it does what PyTorch does.
  std::string run(const Text& text, Worker* other) const {
    Program program(text.seed, device());
    std::string history;
    for (std::size_t i = 0; i < text.lines.size(); ++i) {
      history += text.lines[i] + "\n";
      const auto step = [&] { return program.run(parse_step(text.lines[i])); };
      const std::string different = other != nullptr && i % 2 == 1 ? other->run(step) : step();
      if (!different.empty()) return different + "\n" + history;
    }
    return program.read_lost();
  }

  std::string run(const Text& text, const Text& beside) const {
    std::future<std::string> second = std::async(std::launch::async, [&] { return run(beside, nullptr); });
    const std::string first = run(text, nullptr);
    return first + second.get();
  }
};

// Under a sanitizer all of them take half an hour.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr std::size_t every = 20;
#else
constexpr std::size_t every = 1;
#endif

TEST_P(RandomPrograms, DoWhatPyTorchDoes) {
  const std::vector<Text> programs = read_programs();
  ASSERT_GE(programs.size(), 3500U);
  Worker worker;
  int failures = 0;
  const std::size_t stride = every * (threads() == Threads::side_by_side ? 2 : 1);
  for (std::size_t i = 0; i + 1 < programs.size() && failures < 20; i += stride) {
    const std::string different = threads() == Threads::side_by_side
                                      ? run(programs[i], programs[i + 1])
                                      : run(programs[i], threads() == Threads::in_turn ? &worker : nullptr);
    if (different.empty()) continue;
    ++failures;
    ADD_FAILURE() << "program " << programs[i].seed << ": " << different;
  }
}

std::string name_of(const testing::TestParamInfo<std::tuple<const char*, Threads>>& info) {
  const auto [device, threads] = info.param;
  switch (threads) {
    case Threads::one: return device;
    case Threads::in_turn: return std::string(device) + "_in_turn";
    case Threads::side_by_side: break;
  }
  return std::string(device) + "_side_by_side";
}

INSTANTIATE_TEST_SUITE_P(Devices, RandomPrograms,
                         testing::Values(std::tuple("cpu", Threads::one), std::tuple("cpu", Threads::in_turn),
                                         std::tuple("cpu", Threads::side_by_side),
                                         std::tuple("reference", Threads::one)),
                         name_of);

}  // namespace
}  // namespace golden
