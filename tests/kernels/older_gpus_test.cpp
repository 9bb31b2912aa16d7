// Kernels for NVIDIA's GPUs without warpgroups and without copies in bulk compile, and have room in threadgroup memory.
#include <gtest/gtest.h>
#include <russet/autograd.h>
#include <russet/functional.h>
#include <russet/nn_functional.h>
#include <russet/runtime.h>

#include <algorithm>

#include "kernels/collect.h"
#include "kernels/nvrtc.h"

namespace russet::kernels {
namespace {

TEST(OlderGpus, HaveTheModels) {
  RUSSET_NEEDS_NVRTC();
  expect_compiled(functions_of_models(Gpu::nvidia_ampere), 86);
}

const TensorOptions planned{.dtype = DType::bfloat16, .device = Device(DeviceType::null)};

/// Work of which kernels keep as much in threadgroup memory as they ever do.
struct LargeWork {
  std::string_view name;
  std::string_view kernel;
  void (*work)();
};
const LargeWork large_works[] = {
    {"a convolution of single pixels from 128 channels", "stationary_product",
     [] {
       const Tensor result = silu(conv2d(zeros({64, 128, 28, 28}, planned), zeros({512, 128, 1, 1}, planned)));
       flush();
     }},
    {"gradients of an attention over 208 keys", "attention_key_gradient_at_once",
     [] {
       const auto some = [] { return zeros({64, 12, 208, 64}, planned).requires_grad_(); };
       const Tensor query = some(), key = some(), value = some();
       sum(scaled_dot_product_attention(query, key, value)).backward();
       flush();
     }},
};

/// Threadgroups of compute capability 8.6 may have 99 KiB (CUDA C++ Programming Guide, technical specifications).
TEST(OlderGpus, HaveMemoryForTheLargestKernels) {
  constexpr std::uint32_t most_bytes = 99 << 10;
  constexpr std::uint32_t small_arrays = 1024;  // that a kernel has beside
  for (const LargeWork& one : large_works) {
    std::uint32_t largest = 0;
    for (const gpu::FunctionPtr& function : functions_of_plans(Gpu::nvidia_ampere, one.work)) {
      if (function->name().starts_with(one.kernel)) largest = std::max(largest, function->source().large_memory);
    }
    EXPECT_GT(largest, 48U << 10) << one.name;
    EXPECT_LE(largest + small_arrays, most_bytes) << one.name;
  }
}

}  // namespace
}  // namespace russet::kernels
