// The pool of threads, the bounded cache, pools of objects and the log's channels.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <russet/error.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/bounded_cache.h"
#include "base/log.h"
#include "base/parallel.h"
#include "base/pool.h"

namespace russet::base {
namespace {

/// The count that libraries which use OpenMP see; -1 without OpenMP.
int openmp_threads() {
  void* function = dlsym(RTLD_DEFAULT, "omp_get_max_threads");
  return function == nullptr ? -1 : reinterpret_cast<int (*)()>(function)();
}

/// Sets the number of threads and restores it.
class Threads {
 public:
  explicit Threads(int count) : before_(thread_count()) { set_thread_count(count); }
  ~Threads() { set_thread_count(before_); }

 private:
  int before_;
};

TEST(Parallel, RegionRunsOnceOnEachThread) {
  const Threads threads(3);
  std::mutex mutex;
  std::multiset<int> seen;
  parallel_region([&](int thread, int count) {
    const std::lock_guard lock(mutex);
    EXPECT_EQ(count, 3);
    seen.insert(thread);
  });
  EXPECT_EQ(seen, (std::multiset<int>{0, 1, 2}));
}

TEST(Parallel, ForCoversTheRangeOnce) {
  const Threads threads(4);
  for (const std::int64_t count : {0, 1, 2, 3, 4, 5, 1000, 1001}) {
    std::vector<std::atomic<int>> hits(static_cast<std::size_t>(count));
    parallel_for(count, 1e6, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) ++hits[static_cast<std::size_t>(i)];
    });
    for (const auto& hit : hits) EXPECT_EQ(hit, 1);
  }
}

TEST(Parallel, LittleWorkStaysOnTheCallingThread) {
  const Threads threads(2);
  const auto caller = std::this_thread::get_id();
  int calls = 0;
  parallel_for(100, 1, [&](std::int64_t begin, std::int64_t end) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    EXPECT_EQ(end - begin, 100);
    ++calls;
  });
  EXPECT_EQ(calls, 1);
}

TEST(Parallel, NestedCallsRunAlone) {
  const Threads threads(2);
  std::atomic<int> inner{0};
  parallel_region([&](int, int) {
    parallel_region([&](int thread, int count) {
      EXPECT_EQ(thread, 0);
      EXPECT_EQ(count, 1);
      ++inner;
    });
    parallel_for(10, 1e9, [&](std::int64_t begin, std::int64_t end) { EXPECT_EQ(end - begin, 10); });
  });
  EXPECT_EQ(inner, 2);
}

TEST(Parallel, PassesExceptionsOn) {
  const Threads threads(2);
  EXPECT_THROW(parallel_region([](int, int) { throw ShapeError("one"); }), ShapeError);
  EXPECT_THROW(parallel_for(1000, 1e6,
                            [](std::int64_t, std::int64_t end) {
                              if (end == 1000) throw std::runtime_error("last");
                            }),
               std::runtime_error);
  int sum = 0;
  parallel_for(3, 1, [&](std::int64_t begin, std::int64_t end) { sum += static_cast<int>(end - begin); });
  EXPECT_EQ(sum, 3);
}

TEST(Parallel, CountIsOneForAllThreadsOfTheProgram) {
  const Threads threads(3);
  int seen = 0;
  int openmp = 0;
  std::thread([&] {
    seen = thread_count();
    openmp = openmp_threads();
  }).join();
  EXPECT_EQ(seen, 3);
#ifdef RUSSET_THREADS_STD
  EXPECT_EQ(openmp, 1);
#else
  EXPECT_EQ(openmp, 3);
#endif
  EXPECT_THROW(set_thread_count(0), ValueError);
}

TEST(Parallel, SeveralThreadsOfTheProgramAtOnce) {
  const Threads threads(2);
  std::atomic<std::int64_t> total{0};
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&] {
      for (int repeat = 0; repeat < 50; ++repeat) {
        parallel_for(1000, 1e5, [&](std::int64_t begin, std::int64_t end) { total += end - begin; });
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(total, 4 * 50 * 1000);
}

TEST(BoundedCache, DropsWhatWasUsedLeastRecently) {
  BoundedCache<std::string, int> cache(100);
  cache.insert("a", 1, 40);
  cache.insert("b", 2, 40);
  ASSERT_NE(cache.find("a"), nullptr);
  cache.insert("c", 3, 40);
  EXPECT_EQ(cache.find("b"), nullptr);
  ASSERT_NE(cache.find("a"), nullptr);
  EXPECT_EQ(*cache.find("c"), 3);
  EXPECT_EQ(cache.bytes(), 80U);
  EXPECT_EQ(cache.statistics().hits, 3U);
  EXPECT_EQ(cache.statistics().misses, 1U);
  EXPECT_EQ(cache.statistics().evictions, 1U);
}

TEST(BoundedCache, KeepsTheLastEntriesHoweverLarge) {
  BoundedCache<int, int> cache(10, 2);
  for (int i = 0; i < 5; ++i) cache.insert(i, i, 1000);
  EXPECT_EQ(cache.size(), 2U);
  EXPECT_EQ(cache.begin()->key, 4);
  cache.insert(4, 7, 1);
  EXPECT_EQ(cache.size(), 2U);
  EXPECT_EQ(*cache.find(4), 7);
  EXPECT_EQ(cache.bytes(), 1001U);
}

struct OneBucket {
  std::size_t operator()(int) const { return 0; }
};

TEST(BoundedCache, ComparesKeysThatHashAlike) {
  BoundedCache<int, int, OneBucket> cache(1000);
  for (int i = 0; i < 10; ++i) cache.insert(i, i * i, 1);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(*cache.find(i), i * i);
  cache.erase_if([](const auto& entry) { return entry.key % 2 == 0; });
  EXPECT_EQ(cache.find(4), nullptr);
  EXPECT_EQ(*cache.find(5), 25);
  EXPECT_TRUE(cache.erase(5));
  EXPECT_FALSE(cache.erase(5));
  EXPECT_EQ(cache.bytes(), 4U);
  cache.set_byte_limit(2);
  EXPECT_EQ(cache.size(), 2U);
  cache.clear();
  EXPECT_EQ(cache.bytes(), 0U);
}

TEST(BoundedCache, AnswersQuestionsThatAreNoKeys) {
  BoundedCache<int, int, OneBucket> cache(3);
  for (int i = 0; i < 3; ++i) cache.insert(i, i * i, 1);
  const auto at_least = [](int least) { return [least](int key) { return key >= least; }; };
  EXPECT_EQ(cache.find_where(0, at_least(3)), nullptr);
  EXPECT_EQ(cache.find_where(1, at_least(0)), nullptr);  // another hash
  ASSERT_NE(cache.find_where(0, [](int key) { return key == 0; }), nullptr);
  cache.insert(3, 9, 1);  // the one that was asked for stays
  EXPECT_NE(cache.find(0), nullptr);
  EXPECT_EQ(cache.find(1), nullptr);
}

struct Pooled {
  std::array<std::int64_t, 10> numbers;
};

TEST(ObjectPool, HandsOutEachPieceOnceAtATime) {
  using Pool = ObjectPool<Pooled>;
  std::set<void*> pieces;
  for (int i = 0; i < 1000; ++i) pieces.insert(Pool::allocate());
  EXPECT_EQ(pieces.size(), 1000U);
  for (void* piece : pieces) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(piece) % 64, 0U);
    Pool::release(piece);
  }
}

TEST(ObjectPool, PiecesThatAnotherThreadReleasesComeBack) {
  using Pool = ObjectPool<Pooled>;
  std::set<void*> seen;
  for (int round = 0; round < 100; ++round) {
    std::vector<void*> pieces(500);
    for (void*& piece : pieces) {
      piece = Pool::allocate();
      seen.insert(piece);
    }
    std::thread([&] {
      for (void* piece : pieces) Pool::release(piece);
    }).join();
  }
  EXPECT_LT(seen.size(), 3000U);  // of 50,000 that were asked for
}

TEST(Log, ChannelsComeFromTheEnvironment) {
  const char* set = std::getenv("RUSSET_LOG");
  const std::string before = set == nullptr ? "" : set;
  setenv("RUSSET_LOG", "kernels,plans", 1);
  EXPECT_TRUE(log_enabled("kernels"));
  EXPECT_TRUE(log_enabled("plans"));
  EXPECT_FALSE(log_enabled("plan"));
  EXPECT_FALSE(log_enabled("memory"));
  testing::internal::CaptureStderr();
  Log("plans")("{} of {}", 1, 2);
  Log("memory")("never");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "russet plans: 1 of 2\n");
  setenv("RUSSET_LOG", "all", 1);
  EXPECT_TRUE(log_enabled("memory"));
  setenv("RUSSET_LOG", before.c_str(), 1);
}

}  // namespace
}  // namespace russet::base
