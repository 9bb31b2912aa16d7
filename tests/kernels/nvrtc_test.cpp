// All kernels compile for NVIDIA's GPUs, where CUDA's toolkit is installed. Nothing runs: that takes no such GPU.
#include "kernels/nvrtc.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <ctime>
#include <mutex>
#include <thread>

#include "kernels/collect.h"

namespace russet::kernels {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

#define RUSSET_NEEDS_NVRTC()                                         \
  if (const std::string reason = nvrtc_missing(); !reason.empty()) { \
    fmt::print("NVRTC: none compiled: {}\n", reason);                \
    GTEST_SKIP() << reason;                                          \
  }

TEST(Nvrtc, CompilesAllKernels) {
  RUSSET_NEEDS_NVRTC();
  const std::vector<gpu::FunctionPtr> functions = all_functions();
  const std::vector<gpu::CompilationUnit> units = gpu::make_units(functions);
  const auto start = std::chrono::steady_clock::now();
  std::atomic<std::size_t> next{0};
  std::atomic<std::size_t> compiled{0};
  std::mutex mutex;
  const auto work = [&] {
    for (std::size_t i = next++; i < units.size(); i = next++) {
      try {
        const cuda::Cubin cubin = compile_for_cuda(units[i]);
        for (const gpu::EntryPoint& entry : units[i].entry_points) {
          const bool there = cubin.code.starts_with(
                                 "\x7f"
                                 "ELF") &&
                             cubin.code.find(".text." + entry.name) != std::string::npos;
          const std::lock_guard lock(mutex);
          EXPECT_TRUE(there) << entry.name;
          compiled += there ? 1 : 0;
        }
        const std::lock_guard lock(mutex);
        EXPECT_EQ(cubin.log.find("warning"), std::string::npos) << cubin.log;
      } catch (const std::runtime_error& error) {
        const std::lock_guard lock(mutex);
        ADD_FAILURE() << error.what();
      }
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 1; i < std::max(1U, std::thread::hardware_concurrency()); ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  fmt::print("NVRTC: {} of {} kernels compiled for sm_90, in {} units, {:.1f} s\n", compiled.load(), functions.size(),
             units.size(), seconds_since(start));
  EXPECT_GT(compiled.load(), 0U);
  EXPECT_EQ(compiled.load(), functions.size());
}

/// The best of several, in time of the processor: other work on the machine only ever adds to it, and to what a clock
/// shows adds most.
TEST(Nvrtc, AOneLineKernelIsThereAtOnce) {
  RUSSET_NEEDS_NVRTC();
  double best = 1e9;
  for (int i = 0; i < 10; ++i) {
    gpu::CompilationUnit unit;
    unit.text = fmt::format(R"(struct Numbers {{ uint count; float factor; }};
KERNEL(scale{0}, 256, IN(float, x, 0), OUT(float, y, 1), VALUES(Numbers, values, 2)) {{
  const uint i = group_id.x * 256u + thread_id;
  if (i < values.count) y[i] = x[i] * values.factor + {0}.0f;
}})",
                            i);
    unit.entry_points = {{fmt::format("scale{}", i), 256}};
    const std::clock_t start = std::clock();
    EXPECT_FALSE(compile_for_cuda(unit).code.empty());
    best = std::min(best, static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
  }
  fmt::print("NVRTC: a one-line kernel takes {:.3f} s from text to machine code\n", best);
  EXPECT_LE(best, 0.05);
}

}  // namespace
}  // namespace russet::kernels
