// What NVIDIA's libraries are asked, and with which addresses. No GPU is needed.
#include "device/gpu/cuda/planning/questions.h"

#include <gtest/gtest.h>

#include <array>

#include "device/gpu/cuda/pipeline.h"

namespace russet::cuda {
namespace {

using compile::Operand;
using compile::Primitive;

Operand operand(DType dtype, const Shape& sizes) { return {{0, dtype, 0, -1, contiguous_strides(sizes)}, sizes}; }

Primitive product(DType factors, DType result, std::int64_t rows) {
  Primitive primitive;
  primitive.op = ops::Op::matmul;
  primitive.inputs = {operand(factors, {rows, 64}), operand(factors, {64, 64})};
  primitive.output = operand(result, {rows, 64});
  return primitive;
}

TEST(Questions, AreOfFloatingProductsThatAreWorthIt) {
  EXPECT_EQ(why_not_asked(product(DType::float32, DType::float32, 64)), "");
  EXPECT_EQ(why_not_asked(product(DType::bfloat16, DType::bfloat16, 64)), "");
  EXPECT_EQ(why_not_asked(product(DType::bfloat16, DType::float32, 64)), "");
  EXPECT_EQ(why_not_asked(product(DType::float32, DType::bfloat16, 64)), "the result's type");
  EXPECT_EQ(why_not_asked(product(DType::int32, DType::int32, 64)), "the factors' types");
  EXPECT_EQ(why_not_asked(product(DType::float32, DType::float32, 2)), "too little work");
  Primitive mixed = product(DType::float32, DType::float32, 64);
  mixed.inputs[1].access.dtype = DType::float16;
  EXPECT_EQ(why_not_asked(mixed), "the factors' types");
  Primitive fused = product(DType::float32, DType::float32, 64);
  fused.epilogue.code.push_back({});
  EXPECT_EQ(why_not_asked(fused), "an epilogue");
  fused = product(DType::float32, DType::float32, 64);
  fused.prologues[1].code.push_back({});
  EXPECT_EQ(why_not_asked(fused), "a prologue");
}

TEST(Questions, KnowWhereMemoryIsAligned) {
  gpu::Region region;
  EXPECT_EQ(alignment_of({&region, 1}), 16U);
  region.offset = 48;
  EXPECT_EQ(alignment_of({&region, 1}), 16U);
  region.offset = 40;
  EXPECT_EQ(alignment_of({&region, 1}), 8U);
  region.offset = 64;
  region.argument = 0;
  region.scale = 2;  // it begins at any element
  EXPECT_EQ(alignment_of({&region, 1}), 2U);
  const gpu::Region other;
  EXPECT_EQ(alignment_of(std::array{other, region, other}), 2U);
}

TEST(Questions, LeaveOutWhatLiesBackwards) {
  Primitive primitive = product(DType::float32, DType::float32, 64);
  EXPECT_EQ(regions_of(primitive).size(), 3U);
  EXPECT_TRUE(regions_of(primitive)[2].writes);
  primitive.inputs[0].access.strides[1] = -1;
  EXPECT_TRUE(regions_of(primitive).empty());
}

TEST(Questions, TellProductsAmongConvolutions) {
  Primitive convolution;
  convolution.op = ops::Op::convolution_weight;
  convolution.attributes = ops::Window{};
  EXPECT_TRUE(is_pointwise(convolution));
  convolution.attributes = ops::Window{.stride = {2, 2}};
  EXPECT_FALSE(is_pointwise(convolution));
}

// Products of float32 failed on a GPU where it was aligned as our memory is.
TEST(Workspaces, AreAlignedAndLieWithin) {
  std::vector<std::byte> memory(2048);
  for (std::size_t first = 0; first < 512; first += 64) {
    std::byte* const begin = memory.data() + first;
    std::byte* const aligned = aligned_workspace(begin);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(aligned) % workspace_alignment, 0U);
    EXPECT_GE(aligned, begin);
    EXPECT_LE(aligned + 100, begin + padded_workspace(100));
  }
  EXPECT_EQ(padded_workspace(0), 0U);
}

}  // namespace
}  // namespace russet::cuda
