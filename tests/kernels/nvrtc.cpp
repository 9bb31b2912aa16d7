#include "kernels/nvrtc.h"

#include <atomic>
#include <chrono>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "device/gpu/gpu_kernel.h"

#ifdef RUSSET_CUDA

#include <russet/error.h>

namespace russet::kernels {

std::string nvrtc_missing() {
  try {
    constexpr int capability = 90;
    cuda::compiler_name(capability);
    return {};
  } catch (const DeviceError& error) {
    return error.what();
  }
}

cuda::Cubin compile_for_cuda(const gpu::CompilationUnit& unit, int capability) {
  return compile_for_cuda(cuda::source_of(unit), capability);
}
cuda::Cubin compile_for_cuda(const std::string& source, int capability) { return cuda::compile(source, capability); }

}  // namespace russet::kernels

#else

namespace russet::kernels {

std::string nvrtc_missing() { return "CUDA's headers were not there when russet was built"; }
cuda::Cubin compile_for_cuda(const gpu::CompilationUnit&, int) { throw std::runtime_error(nvrtc_missing()); }
cuda::Cubin compile_for_cuda(const std::string&, int) { throw std::runtime_error(nvrtc_missing()); }

}  // namespace russet::kernels

#endif

namespace russet::kernels {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

void expect_compiled(const std::vector<gpu::FunctionPtr>& functions, int capability) {
  const std::vector<gpu::CompilationUnit> units = gpu::make_units(functions);
  const auto start = std::chrono::steady_clock::now();
  std::atomic<std::size_t> next{0};
  std::atomic<std::size_t> compiled{0};
  std::mutex mutex;
  const auto work = [&] {
    for (std::size_t i = next++; i < units.size(); i = next++) {
      try {
        const cuda::Cubin cubin = compile_for_cuda(units[i], capability);
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
  fmt::print("NVRTC: {} of {} kernels compiled for sm_{}, in {} units, {:.1f} s\n", compiled.load(), functions.size(),
             capability, units.size(), seconds_since(start));
  EXPECT_GT(compiled.load(), 0U);
  EXPECT_EQ(compiled.load(), functions.size());
}

}  // namespace russet::kernels
