#pragma once
// CUDA's compiler, where the build and the machine have it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "device/gpu/cuda/nvrtc.h"
#include "device/gpu/library.h"

#define RUSSET_NEEDS_NVRTC()                                         \
  if (const std::string reason = nvrtc_missing(); !reason.empty()) { \
    fmt::print("NVRTC: none compiled: {}\n", reason);                \
    GTEST_SKIP() << reason;                                          \
  }

namespace russet::kernels {

/// Why there is no compiler; empty if there is one.
std::string nvrtc_missing();

/// As machine code, by default sm_90's, a unit of kernels in the dialect or a source in CUDA. Throws std::runtime_error
/// with the compiler's words. Thread-safe.
cuda::Cubin compile_for_cuda(const gpu::CompilationUnit& unit, int capability = 90);
cuda::Cubin compile_for_cuda(const std::string& source, int capability = 90);

/// Compiles kernels, by all processors, and expects that each is there and that nothing is warned of: within a process
/// for one capability, since NVRTC precompiles the prelude for the first one.
void expect_compiled(const std::vector<gpu::FunctionPtr>& functions, int capability);

}  // namespace russet::kernels
