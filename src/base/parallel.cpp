#include "base/parallel.h"

#include <fmt/format.h>
#include <russet/error.h>
#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>
#include <vector>

// libgomp's ABI: GOMP_parallel is what g++ makes of `#pragma omp parallel`. Calling it directly gives one pool of
// threads, which oneDNN shares, whatever compiler builds russet: clang's own pragmas would bring libomp along.
extern "C" {
void GOMP_parallel(void (*function)(void*), void* data, unsigned threads, unsigned flags);
int omp_get_max_threads();
int omp_get_num_threads();
int omp_get_thread_num();
int omp_in_parallel();
void omp_set_num_threads(int count);
}

namespace russet::base {
namespace {

/// Work of less than this, in nanoseconds, is done before other threads have woken up.
constexpr double worthwhile = 8000;

std::atomic<int>& shared_count() {
  static std::atomic<int> count{std::max(omp_get_max_threads(), 1)};
  return count;
}

struct Region {
  FunctionRef<void(int, int)> body;
  std::atomic<bool> failed{false};
  std::exception_ptr error{};

  void run(int thread, int threads) noexcept {
    try {
      body(thread, threads);
    } catch (...) {
      if (!failed.exchange(true)) error = std::current_exception();
    }
  }
};

#ifdef RUSSET_THREADS_STD

// The thread sanitizer does not see libgomp's synchronisation, so regions run on threads of their own here, and
// libraries that use OpenMP get a single thread.
constexpr bool openmp_runs_regions = false;

thread_local bool inside = false;

bool in_region() { return inside; }

void run_on_all(Region& region, int threads) {
  const auto work = [&](int thread) {
    inside = true;
    region.run(thread, threads);
    inside = false;
  };
  std::vector<std::thread> others;
  others.reserve(static_cast<std::size_t>(threads - 1));
  for (int thread = 1; thread < threads; ++thread) others.emplace_back(work, thread);
  work(0);
  for (std::thread& other : others) other.join();
}

#else

constexpr bool openmp_runs_regions = true;

bool in_region() { return omp_in_parallel() != 0; }

void run_on_all(Region& region, int threads) {
  const auto entry = [](void* data) { static_cast<Region*>(data)->run(omp_get_thread_num(), omp_get_num_threads()); };
  GOMP_parallel(entry, &region, static_cast<unsigned>(threads), 0);
}

#endif

}  // namespace

int thread_count() {
  const int count = shared_count().load(std::memory_order_relaxed);
  // OpenMP keeps its count per thread of the program, and libraries change it: OpenBLAS does.
  const int openmp_count = openmp_runs_regions ? count : 1;
  if (omp_get_max_threads() != openmp_count && omp_in_parallel() == 0) omp_set_num_threads(openmp_count);
  return count;
}

void set_thread_count(int count) {
  if (count < 1) throw ValueError(fmt::format("the number of threads is at least 1, not {}", count));
  shared_count().store(count);
  thread_count();
}

void parallel_region(FunctionRef<void(int, int)> body) {
  const int threads = thread_count();
  if (threads == 1 || in_region()) return body(0, 1);
  Region region{.body = body};
  run_on_all(region, threads);
  if (region.error) std::rethrow_exception(region.error);
}

void parallel_for(std::int64_t count, double cost, FunctionRef<void(std::int64_t, std::int64_t)> body) {
  if (count <= 0) return;
  const bool worth_waking = count > 1 && static_cast<double>(count) * cost >= worthwhile;
  if (!worth_waking || thread_count() == 1 || in_region()) return body(0, count);
  // Always on all threads: libgomp ends the threads that a smaller region leaves out and must start them anew.
  parallel_region([&](int thread, int threads) {
    const std::int64_t share = count / threads;
    const std::int64_t rest = count % threads;
    const std::int64_t begin = thread * share + std::min<std::int64_t>(thread, rest);
    const std::int64_t end = begin + share + (thread < rest ? 1 : 0);
    if (begin < end) body(begin, end);
  });
}

}  // namespace russet::base
