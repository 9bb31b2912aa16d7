// All kernels for NVIDIA's GPUs compile, where CUDA's toolkit is installed. Nothing runs: that takes no such GPU.
#include "kernels/nvrtc.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <russet/autograd.h>
#include <russet/functional.h>
#include <russet/nn_functional.h>
#include <russet/runtime.h>

#include <array>
#include <ctime>

#include "device/gpu/gpu_kernel.h"
#include "kernels/collect.h"

namespace russet::kernels {
namespace {

TEST(Nvrtc, CompilesAllKernels) {
  RUSSET_NEEDS_NVRTC();
  expect_compiled(all_functions({Gpu::nvidia, Gpu::nvidia_without_libraries}), 90);
}

/// A network's first convolution, of an image of three channels with lines of `width` pixels, to 64 channels, and the
/// gradient for its weight.
void convolve_first(std::int64_t width, std::int64_t kernel, std::int64_t stride) {
  const TensorOptions options{.dtype = DType::bfloat16, .device = Device(DeviceType::null)};
  const Tensor weight = zeros({64, 3, kernel, kernel}, options).requires_grad_();
  const Tensor image = zeros({2, 3, 24, width}, options);
  sum(conv2d(image, weight, {}, {.stride = stride, .padding = kernel / 2})).backward();
  flush();
}

/// Lines of an image so long that a threadgroup has memory for one of the result's, or for no fourth channel: the
/// compiler refuses more than 48 KiB.
TEST(Nvrtc, CompilesFirstConvolutionsOfLongLines) {
  RUSSET_NEEDS_NVRTC();
  const std::array<std::int64_t, 3> cases[] = {{256, 7, 2}, {288, 7, 2}, {800, 3, 1}, {1040, 3, 1}};
  for (const auto& [width, kernel, stride] : cases) {
    int stems = 0;
    for (const gpu::FunctionPtr& function :
         functions_of_plans(Gpu::nvidia, [&] { convolve_first(width, kernel, stride); })) {
      if (!function->name().starts_with("stem_")) continue;
      ++stems;
      for (const gpu::CompilationUnit& unit : gpu::make_units(std::vector{function})) {
        EXPECT_NE(compile_for_cuda(unit).code.find(".text." + function->name()), std::string::npos);
      }
    }
    EXPECT_EQ(stems, 2) << "convolution and gradient, of " << width << " pixels and windows of " << kernel;
  }
}

/// A launch by samples binds the most; beside its buffers it has values.
TEST(Nvrtc, CompilesAKernelOfAsManyBuffersAsALaunchBinds) {
  RUSSET_NEEDS_NVRTC();
  std::string buffers;
  for (int i = 0; i < gpu::max_sample_buffers; ++i) buffers += fmt::format("OUT(float, y{0}, {0}), ", i);
  gpu::CompilationUnit unit;
  unit.text = fmt::format("KERNEL(many, 32, {}VALUES(float, values, {})) {{ y{}[thread_id] = values; }}", buffers,
                          gpu::max_sample_buffers, gpu::max_sample_buffers - 1);
  unit.entry_points = {{"many", 32}};
  EXPECT_NE(compile_for_cuda(unit).code.find(".text.many"), std::string::npos);
}

/// Seconds of the processor that `work` takes: other work on the machine adds less to them than to a clock's.
template <class Work>
double processor_seconds(const Work& work) {
  const std::clock_t start = std::clock();
  work();
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

gpu::CompilationUnit one_line(int number) {
  gpu::CompilationUnit unit;
  unit.text = fmt::format(R"(struct Numbers {{ uint count; float factor; }};
KERNEL(scale{0}, 256, IN(float, x, 0), OUT(float, y, 1), VALUES(Numbers, values, 2)) {{
  const uint i = group_id.x * 256u + thread_id;
  if (i < values.count) y[i] = x[i] * values.factor + {0}.0f;
}})",
                          number);
  unit.entry_points = {{fmt::format("scale{}", number), 256}};
  return unit;
}

/// The same kernel without our prelude.
std::string one_line_of_cuda(int number) {
  return fmt::format(R"(struct Numbers {{ unsigned count; float factor; }};
extern "C" __global__ void scale{0}(const float* x, float* y, const __grid_constant__ Numbers values) {{
  const unsigned i = blockIdx.x * 256u + threadIdx.x;
  if (i < values.count) y[i] = x[i] * values.factor + {0}.0f;
}})",
                     number);
}

/// What the prelude costs, as a multiple of what NVRTC takes without it, so that no machine is too slow for the test.
TEST(Nvrtc, AOneLineKernelIsThereAtOnce) {
  RUSSET_NEEDS_NVRTC();
  double with_prelude = 1e9;
  double without = 1e9;
  for (int i = 0; i < 10; ++i) {
    with_prelude =
        std::min(with_prelude, processor_seconds([&] { EXPECT_FALSE(compile_for_cuda(one_line(i)).code.empty()); }));
    without = std::min(without, processor_seconds([&] { compile_for_cuda(one_line_of_cuda(i)); }));
  }
  fmt::print("NVRTC: a one-line kernel takes {:.3f} s from text to machine code, without the prelude {:.3f}\n",
             with_prelude, without);
  EXPECT_LE(with_prelude, 2 * without);
}

}  // namespace
}  // namespace russet::kernels
