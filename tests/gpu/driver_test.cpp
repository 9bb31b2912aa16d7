// What drivers of GPUs share, over a backend whose queue runs work when it is waited for, or fails when it is told to.
#include <gtest/gtest.h>
#include <russet/error.h>

#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <thread>
#include <utility>

#include "device/gpu/driver/backend.h"
#include "runtime/device.h"

namespace russet::gpu {
namespace {

constexpr std::size_t limit = std::size_t{256} << 20;

class HostBlock final : public Block {
 public:
  explicit HostBlock(std::size_t bytes) : Block(new (std::align_val_t{runtime::page}) std::byte[bytes], bytes) {}
  ~HostBlock() override { ::operator delete[](begin(), std::align_val_t{runtime::page}); }
};

class HostMemory final : public BlockSource {
 public:
  std::string limit_name() const override { return "what a test grants"; }
  std::size_t limit() const override { return gpu::limit; }
  std::size_t most_of_cut_block() const override { return gpu::limit; }
  std::unique_ptr<Block> grant(std::size_t bytes) override {
    if (refuses) return nullptr;
    return std::make_unique<HostBlock>(bytes);
  }
  bool refuses = false;
};

/// Adds one to each of the bytes of the first buffer, and puts the sums into the second.
struct AddOne final : Pipeline {
  static void run(const std::vector<Binding>& buffers) {
    for (std::size_t i = 0; i < buffers[0].bytes; ++i) {
      buffers[1].address[i] = static_cast<std::byte>(std::to_integer<int>(buffers[0].address[i]) + 1);
    }
  }
};

/// What the tests tell the queue, and hear of it.
struct Talk {
  std::vector<std::string> failures;  // of the next submissions
  int submissions = 0;
  int barriers = 0;
  int restarts = 0;
  int copies_to_device = 0;  // that the host waited for
  int copies_to_host = 0;
  bool keeps_flushes_whole = false;
  bool takes_uploads = false;
  bool keeps_launches = false;
  bool buffers_move = false;  // with arguments
  int repeats = 0;
  std::vector<std::uint64_t> arguments;  // of the last one
  int stagings = 0;                      // that may still be granted
  int waits = 0;                         // for submissions
};

struct Upload {
  std::byte* target;
  std::vector<std::byte> content;
  graph::StagingMemory staging{};  // or its first bytes, as they are when the work runs
  std::size_t staged = 0;

  void run() const {
    std::ranges::copy(content, target);
    std::copy_n(staging.get(), staged, target);
  }
};

class Work final : public Submission {
 public:
  Work(Talk& talk, std::vector<Upload> uploads, std::vector<std::vector<Binding>> launches, std::string failure)
      : talk_(talk), uploads_(std::move(uploads)), launches_(std::move(launches)), failure_(std::move(failure)) {}
  bool is_done() const override { return done_; }
  void wait() const override {
    if (std::exchange(done_, true) || !failure_.empty()) return;
    ++talk_.waits;
    for (const Upload& upload : uploads_) upload.run();
    for (const std::vector<Binding>& buffers : launches_) AddOne::run(buffers);
  }
  double seconds() const override { return 1e-4; }
  std::string failure() const override { return failure_; }

 private:
  Talk& talk_;
  std::vector<Upload> uploads_;
  std::vector<std::vector<Binding>> launches_;
  std::string failure_;
  mutable bool done_ = false;
};

struct Kept final : Encoded {
  Kept(std::vector<std::vector<Binding>> list, bool takes_others)
      : launches(std::move(list)), takes_others(takes_others) {
    for (const std::vector<Binding>& buffers : launches) all.insert(all.end(), buffers.begin(), buffers.end());
  }
  std::span<const Binding> bindings() const override { return all; }
  bool takes_other_arguments() const override { return takes_others; }

  std::vector<std::vector<Binding>> launches;
  std::vector<Binding> all;
  bool takes_others;
};

class LazyQueue final : public Queue {
 public:
  explicit LazyQueue(Talk& talk) : talk_(talk) {}
  bool keeps_flushes_whole() const override { return talk_.keeps_flushes_whole; }
  void begin() override { EXPECT_TRUE(launches_.empty()); }
  void encode(const Launch& launch) override { launches_.emplace_back(launch.buffers.begin(), launch.buffers.end()); }
  void barrier() override { ++talk_.barriers; }
  bool keeps_launches() const override { return talk_.keeps_launches; }
  std::shared_ptr<const Encoded> encoded() const override {
    return std::make_shared<const Kept>(launches_, !talk_.buffers_move);
  }
  void repeat(std::shared_ptr<const Encoded> encoded, std::span<const std::uint64_t> arguments) override {
    EXPECT_TRUE(launches_.empty());
    ++talk_.repeats;
    talk_.arguments.assign(arguments.begin(), arguments.end());
    launches_ = dynamic_cast<const Kept&>(*encoded).launches;
  }
  bool upload(std::byte* target, std::span<const std::byte> source) override {
    if (talk_.takes_uploads) uploads_.push_back({target, {source.begin(), source.end()}});
    return talk_.takes_uploads;
  }
  void upload_staged(std::byte* target, const graph::StagingMemory& source, std::size_t bytes) override {
    uploads_.push_back({target, {}, source, bytes});
  }
  bool clear(std::byte* target, std::size_t bytes) override { return upload(target, std::vector<std::byte>(bytes)); }
  std::unique_ptr<Submission> submit() override {
    const auto number = static_cast<std::size_t>(talk_.submissions++);
    return std::make_unique<Work>(talk_, std::exchange(uploads_, {}), std::exchange(launches_, {}),
                                  number < talk_.failures.size() ? talk_.failures[number] : "");
  }
  void drop() override {
    uploads_.clear();
    launches_.clear();
  }
  void restart(const std::string& /*reason*/) override { ++talk_.restarts; }

 private:
  Talk& talk_;
  std::vector<Upload> uploads_;
  std::vector<std::vector<Binding>> launches_;
};

class HostBackend final : public Backend {
 public:
  explicit HostBackend(Talk& talk, HostMemory& memory, std::atomic<int>& compiled)
      : talk_(talk), memory_(memory), compiled_(compiled) {}
  DeviceType type() const override { return DeviceType::mps; }
  runtime::DeviceProperties properties() const override { return {}; }
  Properties gpu_properties() const override { return {}; }
  BlockSource& memory() override { return memory_; }
  std::unique_ptr<Queue> make_queue(MemoryBlocks&) override { return std::make_unique<LazyQueue>(talk_); }
  std::vector<PipelinePtr> compile(const CompilationUnit& unit) override {
    ++compiled_;
    if (unit.text == "wrong") throw DeviceError("a kernel is wrong");
    return std::vector<PipelinePtr>(unit.entry_points.size(), std::make_shared<AddOne>());
  }
  bool shares_memory_with_host() const override { return false; }
  graph::StagingMemory allocate_staging(std::size_t bytes) override {
    if (talk_.stagings-- <= 0) return nullptr;
    const auto memory = std::make_shared<std::byte[]>(bytes);
    return {memory, memory.get()};
  }
  void clear(std::byte* target, std::size_t bytes) override { copy_to_device(target, std::vector<std::byte>(bytes)); }
  void copy_to_device(std::byte* target, std::span<const std::byte> source) override {
    ++talk_.copies_to_device;
    std::copy(source.begin(), source.end(), target);
  }
  void copy_to_host(std::span<std::byte> target, const std::byte* source) override {
    ++talk_.copies_to_host;
    std::copy_n(source, target.size(), target.begin());
  }

 private:
  Talk& talk_;
  HostMemory& memory_;
  std::atomic<int>& compiled_;
};

class GpuDriver : public testing::Test {
 protected:
  std::byte* bytes_of(char value, std::size_t count = 8) {
    std::byte* const memory = driver_->allocate(count);
    driver_->upload(memory, std::vector<std::byte>(count, std::byte(value)));
    return memory;
  }
  void add_one(std::byte* from, std::byte* to, std::size_t count = 8) {
    const Binding buffers[] = {{from, count, false}, {to, count, true}};
    Launch launch;
    launch.pipeline = &pipeline_;
    launch.buffers = buffers;
    driver_->launch(launch);
  }
  int read(const std::byte* memory) {
    std::vector<std::byte> bytes(8);
    driver_->download(bytes, memory);
    for (const std::byte byte : bytes) EXPECT_EQ(byte, bytes[0]);
    return std::to_integer<int>(bytes[0]);
  }
  /// The error's words; "" for none.
  static std::string error_of(const std::function<void()>& work) {
    try {
      work();
    } catch (const DeviceError& error) {
      return error.what();
    }
    return "";
  }

  Talk talk_;
  HostMemory memory_;
  std::atomic<int> compiled_ = 0;
  AddOne pipeline_;
  std::unique_ptr<Driver> driver_ = make_driver(std::make_unique<HostBackend>(talk_, memory_, compiled_));
};

TEST_F(GpuDriver, ReadingSubmitsWhatWritesAndNothingElse) {
  std::byte* const x = bytes_of(1);
  std::byte* const y = bytes_of(0);
  add_one(x, y);
  EXPECT_EQ(read(x), 1);
  EXPECT_EQ(talk_.submissions, 0);
  EXPECT_EQ(read(y), 2);
  EXPECT_EQ(talk_.submissions, 1);
}

TEST_F(GpuDriver, WritingWaitsForWhatReads) {
  std::byte* const x = bytes_of(1);
  std::byte* const y = bytes_of(0);
  add_one(x, y);
  driver_->upload(x, std::vector<std::byte>(8, std::byte{50}));
  EXPECT_EQ(read(y), 2);
  EXPECT_EQ(read(x), 50);
}

TEST_F(GpuDriver, StagingMemoryIsCopiedFromUntilTheHostWaitsForIt) {
  talk_.stagings = 1;
  const graph::StagingMemory staging = driver_->allocate_staging(8);
  EXPECT_EQ(driver_->allocate_staging(8), nullptr);
  std::byte* const x = bytes_of(0);
  std::byte* const y = bytes_of(0);
  std::byte* const z = bytes_of(0);
  std::fill_n(staging.get(), 8, std::byte{5});
  driver_->upload_staged(x, staging, 8);
  EXPECT_EQ(staging.use_count(), 2);
  driver_->commit();
  add_one(x, y);
  driver_->commit();
  add_one(y, z);
  EXPECT_EQ(talk_.waits, 0);
  driver_->finish_copies(staging);
  EXPECT_EQ(talk_.waits, 1);  // not for what only follows
  EXPECT_EQ(staging.use_count(), 1);
  std::fill_n(staging.get(), 8, std::byte{50});
  EXPECT_EQ(read(x), 5);
  EXPECT_EQ(read(z), 7);
  driver_->upload_staged(x, staging, 8);
  driver_->finish_copies(staging);
  std::fill_n(staging.get(), 8, std::byte{60});
  EXPECT_EQ(read(x), 50);
}

TEST_F(GpuDriver, StagingMemoryIsFreeAgainWhereItsWorkFails) {
  talk_.stagings = 1;
  talk_.failures = {"out of luck"};
  const graph::StagingMemory staging = driver_->allocate_staging(8);
  std::byte* const x = bytes_of(0);
  driver_->upload_staged(x, staging, 8);
  driver_->commit();
  driver_->upload_staged(x, staging, 8);  // of the work behind it, which is dropped
  driver_->finish_copies(staging);
  EXPECT_EQ(staging.use_count(), 1);
  EXPECT_NE(error_of([&] { driver_->synchronize(); }), "");
  driver_->upload_staged(x, staging, 8);
  std::fill_n(staging.get(), 8, std::byte{8});
  EXPECT_EQ(read(x), 8);
}

TEST_F(GpuDriver, ABarrierComesOnceAndOnlyBehindALaunch) {
  std::byte* const x = bytes_of(1);
  driver_->barrier();
  add_one(x, x);
  driver_->barrier();
  driver_->barrier();
  driver_->commit();
  driver_->barrier();
  EXPECT_EQ(talk_.barriers, 1);
  driver_->synchronize();
}

TEST_F(GpuDriver, ManyLaunchesAreSubmittedOnTheirOwn) {
  std::byte* const x = bytes_of(0);
  for (int i = 0; i < 200; ++i) add_one(x, x);
  EXPECT_GE(talk_.submissions, 2);
  EXPECT_EQ(read(x), 200);
}

TEST_F(GpuDriver, AFlushIsOneSubmissionWhereTheQueueWantsIt) {
  talk_.keeps_flushes_whole = true;
  std::byte* const x = bytes_of(0);
  for (int i = 0; i < 2000; ++i) add_one(x, x);
  EXPECT_EQ(talk_.submissions, 0);
  driver_->commit();
  EXPECT_EQ(talk_.submissions, 1);
}

TEST_F(GpuDriver, ARunThatBindsTheSameAgainIsRepeated) {
  talk_.keeps_flushes_whole = talk_.keeps_launches = talk_.takes_uploads = talk_.buffers_move = true;
  std::byte* const x = bytes_of(0);
  std::byte* const y = bytes_of(0);
  std::byte* const z = bytes_of(0);
  const auto plan = std::make_shared<int>();
  std::uint64_t argument = 0;
  const auto run = [&](std::byte* target, const std::shared_ptr<const void>& of) {
    std::byte* const slots[] = {x, target};
    const runtime::PlanRun bound{of, slots, nullptr, {&argument, 1}};
    if (!driver_->repeat(bound)) {
      add_one(x, target);
      add_one(target, target);
      driver_->remember(bound);
    }
    driver_->commit();
  };
  for (char value = 0; value < 5; ++value) {
    driver_->upload(x, std::vector<std::byte>(8, std::byte(value)));
    run(y, plan);
    // The host does not take what it saw there last time for what lies there now.
    EXPECT_EQ(std::to_integer<int>(*driver_->peek(y, 8)), value + 2);
    EXPECT_EQ(talk_.repeats, std::max(0, value - 1));
  }
  // Other memory, another argument, another plan.
  const auto expect_known = [&](bool known, std::byte* target, const std::shared_ptr<const void>& of) {
    const int before = talk_.repeats;
    run(target, of);
    EXPECT_EQ(talk_.repeats - before, known ? 1 : 0);
    EXPECT_EQ(read(target), 6);
  };
  expect_known(false, z, plan);
  expect_known(true, y, plan);
  argument = 1;
  expect_known(false, y, plan);
  argument = 0;
  expect_known(false, y, std::make_shared<int>());
  expect_known(true, y, plan);
  // Not with launches before it in the submission, nor while something is lost.
  add_one(x, z);
  expect_known(false, y, plan);
  EXPECT_EQ(read(z), 5);
  talk_.failures.assign(static_cast<std::size_t>(talk_.submissions), "");
  talk_.failures.emplace_back("the watchdog bit");
  run(y, plan);
  EXPECT_NE(error_of([&] { driver_->synchronize(); }), "");
  expect_known(false, y, plan);
  expect_known(true, y, plan);
}

TEST_F(GpuDriver, ARunWithOtherArgumentsIsRepeatedIfTheyMoveNoBuffer) {
  talk_.keeps_flushes_whole = talk_.keeps_launches = true;
  std::byte* const x = bytes_of(1);
  std::byte* const y = bytes_of(0);
  std::byte* const slots[] = {x, y};
  // How many of five runs with these arguments are repeated.
  const auto repeated = [&](std::array<std::uint64_t, 5> arguments) {
    const auto plan = std::make_shared<int>();
    int count = 0;
    for (const std::uint64_t argument : arguments) {
      const runtime::PlanRun bound{plan, slots, nullptr, {&argument, 1}};
      if (driver_->repeat(bound)) {
        EXPECT_EQ(talk_.arguments, std::vector{argument});
        ++count;
      } else {
        add_one(x, y);
        driver_->remember(bound);
      }
      driver_->commit();
      EXPECT_EQ(read(y), 2);
    }
    return count;
  };
  EXPECT_EQ(repeated({1, 2, 3, 4, 4}), 3);
  talk_.buffers_move = true;
  EXPECT_EQ(repeated({1, 2, 3, 4, 5}), 0);
  EXPECT_EQ(repeated({1, 1, 1, 1, 1}), 3);
  EXPECT_EQ(repeated({1, 1, 2, 1, 2}), 1);
}

TEST_F(GpuDriver, WhatIsNotAllOfASubmissionIsNotKept) {
  talk_.keeps_flushes_whole = talk_.keeps_launches = true;
  std::byte* const x = bytes_of(1);
  std::byte* const y = bytes_of(0);
  const auto plan = std::make_shared<int>();
  std::byte* const slots[] = {x, y};
  const runtime::PlanRun bound{plan, slots, nullptr, {}};
  for (int i = 0; i < 4; ++i) {
    EXPECT_FALSE(driver_->repeat(bound));
    add_one(x, y);
    read(y);  // submits what there is
    add_one(y, y);
    driver_->remember(bound);
    EXPECT_EQ(read(y), 3);
  }
}

TEST_F(GpuDriver, TheHostCopiesWhatItLooksAtOnceUntilSomethingElseLiesThere) {
  const auto seen = [&](const std::byte* memory, std::size_t count = 8) {
    const auto content = driver_->peek(memory, count);
    return content ? std::to_integer<int>(content.get()[count - 1]) : -1;
  };
  std::byte* const x = bytes_of(3);
  std::byte* const y = bytes_of(0);
  EXPECT_EQ(seen(x), 3);
  EXPECT_EQ(seen(x, 5), 3);
  add_one(x, y);
  EXPECT_EQ(seen(x), 3);
  EXPECT_EQ(talk_.copies_to_host, 0);
  EXPECT_EQ(seen(y), 4);
  EXPECT_EQ(seen(y), 4);
  EXPECT_EQ(talk_.copies_to_host, 1);
  driver_->upload(y, std::vector<std::byte>(8, std::byte{5}));
  EXPECT_EQ(seen(y), 5);
  EXPECT_EQ(talk_.copies_to_host, 1);
  add_one(x, y + 7, 1);
  EXPECT_EQ(seen(y), 4);
  EXPECT_EQ(talk_.copies_to_host, 2);
  driver_->release(x, 8);
  EXPECT_EQ(driver_->allocate(8), x);
  x[7] = std::byte{77};
  EXPECT_EQ(seen(x), 77);
}

TEST_F(GpuDriver, WhatTheHostKnowsIsBounded) {
  constexpr std::size_t mebibyte = std::size_t{1} << 20;
  std::vector<std::byte*> all;
  for (int i = 0; i < 20; ++i) all.push_back(bytes_of(1, mebibyte));
  EXPECT_NE(driver_->peek(all[19], mebibyte), nullptr);
  EXPECT_NE(driver_->peek(all[4], mebibyte), nullptr);
  EXPECT_EQ(talk_.copies_to_host, 0);
  EXPECT_NE(driver_->peek(all[3], mebibyte), nullptr);
  EXPECT_EQ(talk_.copies_to_host, 1);
  EXPECT_EQ(driver_->peek(bytes_of(1, mebibyte + 1), mebibyte + 1), nullptr);
}

TEST_F(GpuDriver, TheHostDoesNotSeeWhatWasLost) {
  talk_.failures = {"the watchdog bit"};
  std::byte* const x = bytes_of(1);
  std::byte* const y = bytes_of(0);
  add_one(x, y);
  EXPECT_EQ(driver_->peek(y, 8), nullptr);
  EXPECT_NE(driver_->peek(x, 8), nullptr);
}

TEST_F(GpuDriver, UploadsKeepTheirPlaceAmongLaunches) {
  talk_.takes_uploads = true;
  talk_.keeps_flushes_whole = true;
  std::byte* const x = bytes_of(1);
  std::byte* const y = bytes_of(0);
  std::byte* const z = bytes_of(0);
  add_one(x, y);
  driver_->upload(x, std::vector<std::byte>(8, std::byte{50}));
  add_one(x, z);
  driver_->upload(z, std::vector<std::byte>(4, std::byte{7}));
  add_one(z, z, 4);
  EXPECT_EQ(talk_.copies_to_device, 0);
  EXPECT_EQ(read(y), 2);
  EXPECT_EQ(read(x), 50);
  EXPECT_EQ(std::to_integer<int>(driver_->peek(z, 8).get()[0]), 8);
  EXPECT_EQ(std::to_integer<int>(driver_->peek(z, 8).get()[7]), 51);
}

TEST_F(GpuDriver, ClearsMemoryInItsPlaceAmongLaunches) {
  for (const bool takes_uploads : {true, false}) {
    talk_.takes_uploads = takes_uploads;
    std::byte* const x = bytes_of(5);
    std::byte* const y = bytes_of(0);
    std::byte* const z = bytes_of(0);
    add_one(x, y);
    driver_->clear(x, 8);
    add_one(x, z);
    driver_->clear(z, 0);
    EXPECT_EQ(read(y), 6);
    EXPECT_EQ(read(x), 0);
    EXPECT_EQ(read(z), 1);
  }
}

TEST_F(GpuDriver, UploadsAreLostWithTheWorkThatTheyWentWith) {
  talk_.takes_uploads = true;
  talk_.failures = {"the watchdog bit"};
  std::byte* const x = bytes_of(1);
  driver_->commit();
  EXPECT_NE(error_of([&] { read(x); }), "");
  driver_->upload(x, std::vector<std::byte>(8, std::byte{3}));
  EXPECT_EQ(read(x), 3);
}

TEST_F(GpuDriver, AFailureLosesWhatWasWrittenAndIsToldOnce) {
  talk_.failures = {"", "the watchdog bit"};
  std::byte* const x = bytes_of(1);
  std::byte* const good = bytes_of(0);
  std::byte* const lost = bytes_of(0);
  std::byte* const later = bytes_of(0);
  add_one(x, good);
  driver_->commit();
  add_one(x, lost);
  driver_->commit();
  add_one(x, later);
  const std::string told = error_of([&] { driver_->synchronize(); });
  EXPECT_NE(told.find("mps: the GPU gave up on work that had been started: the watchdog bit"), std::string::npos)
      << told;
  EXPECT_EQ(talk_.restarts, 1);
  EXPECT_EQ(error_of([&] { driver_->synchronize(); }), "");
  EXPECT_EQ(read(good), 2);
  EXPECT_EQ(read(x), 1);
  // Each time.
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(error_of([&] { read(lost); }), told);
    EXPECT_EQ(error_of([&] { read(later); }), told);
    EXPECT_EQ(error_of([&] { add_one(lost, good); }), told);
  }
  EXPECT_EQ(read(good), 2);
  // What is set again is there again.
  add_one(x, lost);
  EXPECT_EQ(read(lost), 2);
  driver_->upload(later, std::vector<std::byte>(8, std::byte{7}));
  EXPECT_EQ(read(later), 7);
  EXPECT_EQ(error_of([&] { driver_->synchronize(); }), "");
}

TEST_F(GpuDriver, MemoryThatIsGivenAgainHasLostNothing) {
  talk_.failures = {"gone"};
  std::byte* const x = bytes_of(1);
  std::byte* const y = driver_->allocate(8);
  add_one(x, y);
  EXPECT_NE(error_of([&] { driver_->synchronize(); }), "");
  driver_->release(y, 8);
  std::byte* const again = driver_->allocate(8);
  EXPECT_EQ(again, y);
  add_one(x, again);
  EXPECT_EQ(read(again), 2);
}

TEST_F(GpuDriver, TimedWorkIsApart) {
  std::byte* const x = bytes_of(1);
  std::byte* const y = bytes_of(0);
  add_one(x, y);
  const Binding buffers[] = {{y, 8, false}, {y, 8, true}};
  Launch launch;
  launch.pipeline = &pipeline_;
  launch.buffers = buffers;
  EXPECT_DOUBLE_EQ(driver_->time(std::vector<Launch>(3, launch)), 1e-4);
  EXPECT_EQ(talk_.submissions, 2);
  EXPECT_EQ(read(y), 5);
}

TEST_F(GpuDriver, MemoryIsCutOfFewBlocksAndEndsSomewhere) {
  std::map<const void*, int> blocks;
  std::vector<std::byte*> all;
  for (int i = 0; i < 100; ++i) {
    all.push_back(driver_->allocate(300'000));
    ++blocks[driver_->block_of(all.back(), 300'000)];
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(all.back()) % runtime::page, 0U);
  }
  EXPECT_EQ(blocks.size(), 1U);
  EXPECT_THROW(driver_->allocate(limit), OutOfMemoryError);
  memory_.refuses = true;
  EXPECT_THROW(driver_->allocate(limit / 2), OutOfMemoryError);
  memory_.refuses = false;
  std::byte* const large = driver_->allocate(limit / 2);
  driver_->release(large, limit / 2);
  for (std::byte* const memory : all) driver_->release(memory, 300'000);
  driver_->release(driver_->allocate(limit - (std::size_t{8} << 20)), limit - (std::size_t{8} << 20));
  std::byte elsewhere{};
  EXPECT_THROW(driver_->block_of(&elsewhere, 1), InternalError);
  EXPECT_THROW(driver_->release(&elsewhere, 1), InternalError);
}

TEST_F(GpuDriver, KernelsInUseAreCompiledOnce) {
  const CompilationUnit unit{"text", {{"a", 32}, {"b", 64}}};
  const CompilationUnit other{"other", {{"c", 32}}};
  auto held = driver_->build(std::vector{unit, other});
  EXPECT_EQ(held.size(), 3U);
  EXPECT_EQ(driver_->build(std::vector{other, unit})[1], held[0]);
  EXPECT_EQ(compiled_, 2);
  held.resize(2);
  const auto again = driver_->build(std::vector{unit, other});
  EXPECT_EQ(compiled_, 3);
  EXPECT_EQ(error_of([&] {
              driver_->build(std::vector{unit, CompilationUnit{"wrong", {{"d", 32}}}});
            }),
            "a kernel is wrong");
}

TEST_F(GpuDriver, ThreadsShareADriver) {
  constexpr int threads = 4;
  std::vector<std::thread> all;
  for (int number = 0; number < threads; ++number) {
    all.emplace_back([this, number] {
      for (int round = 0; round < 200; ++round) {
        std::byte* const x = bytes_of(static_cast<char>(number), 8);
        add_one(x, x);
        driver_->barrier();
        add_one(x, x);
        EXPECT_EQ(read(x), number + 2);
        driver_->release(x, 8);
        driver_->build(std::vector{CompilationUnit{std::to_string(round % 3), {{"a", 32}}}});
      }
    });
  }
  for (std::thread& thread : all) thread.join();
}

}  // namespace
}  // namespace russet::gpu
