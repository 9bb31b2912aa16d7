// What NVIDIA's libraries are asked, and with which addresses. No GPU is needed.
#include "device/gpu/cuda/planning/questions.h"

#include <gtest/gtest.h>

#include <array>

#include "compile/layouts.h"
#include "device/gpu/cuda/pipeline.h"
#include "device/gpu/cuda/planning/convolutions.h"
#include "device/gpu/cuda/planning/products.h"
#include "device/gpu/templates/contraction.h"
#include "device/gpu/templates/templates.h"
#include "runtime/engine.h"

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
  constexpr std::int64_t enough = 4096;
  EXPECT_EQ(why_not_asked(product(DType::float32, DType::float32, enough)), "");
  EXPECT_EQ(why_not_asked(product(DType::bfloat16, DType::bfloat16, enough)), "");
  EXPECT_EQ(why_not_asked(product(DType::bfloat16, DType::float32, enough)), "");
  EXPECT_EQ(why_not_asked(product(DType::float32, DType::bfloat16, enough)), "the result's type");
  EXPECT_EQ(why_not_asked(product(DType::int32, DType::int32, enough)), "the factors' types");
  EXPECT_EQ(why_not_asked(product(DType::float32, DType::float32, 2)), "too little work");
  EXPECT_EQ(why_not_asked(product(DType::float32, DType::float32, 64)), "our own kernel for little work is faster");
  Primitive mixed = product(DType::float32, DType::float32, enough);
  mixed.inputs[1].access.dtype = DType::float16;
  EXPECT_EQ(why_not_asked(mixed), "the factors' types");
  Primitive fused = product(DType::float32, DType::float32, enough);
  fused.epilogue.code.push_back({});
  EXPECT_EQ(why_not_asked(fused), "an epilogue");
  fused = product(DType::float32, DType::float32, enough);
  fused.prologues[1].code.push_back({});
  EXPECT_EQ(why_not_asked(fused), "a prologue");
}

Primitive made(const Shape& left, const Shape& right, const Shape& result) {
  Primitive primitive;
  primitive.op = ops::Op::matmul;
  primitive.inputs = {operand(DType::bfloat16, left), operand(DType::bfloat16, right)};
  primitive.output = operand(DType::bfloat16, result);
  return primitive;
}

// A library declines only what our own kernel takes, as it lies: no product may be left to plain tiles.
TEST(Questions, AreNotOfProductsOfASmallDepthThatOurKernelTakes) {
  constexpr std::int64_t many = 100000;
  const Primitive taken = made({many, 64}, {64, 256}, {many, 256});
  EXPECT_TRUE(gpu::is_stationary_product(taken));
  Primitive other = taken;
  other.inputs[1].access.strides = {1, 64};  // lines along the depth
  EXPECT_TRUE(gpu::is_stationary_product(other));
  other.inputs[0].access.strides = {1, many};  // rows whose elements lie apart
  EXPECT_FALSE(gpu::is_stationary_product(other));
  other = taken;
  other.inputs[0].access.offset = 4;  // not at a vector
  EXPECT_FALSE(gpu::is_stationary_product(other));
  other = taken;
  other.output.access.strides = {1, many};  // columns apart
  EXPECT_FALSE(gpu::is_stationary_product(other));
  EXPECT_FALSE(gpu::is_stationary_product(made({8, 4096, 64}, {8, 64, 4096}, {8, 4096, 4096})));  // batches
  EXPECT_FALSE(gpu::is_stationary_product(made({many, 256}, {256, 512}, {many, 512})));           // a large depth
  EXPECT_FALSE(gpu::is_stationary_product(made({many, 0}, {0, 256}, {many, 256})));               // none
  EXPECT_FALSE(gpu::is_stationary_product(made({many, 64}, {64, 64}, {many, 64})));               // few columns
  EXPECT_FALSE(gpu::is_stationary_product(made({1000, 64}, {64, 256}, {1000, 256})));             // few rows
}

TEST(Questions, AreNotOfLargeProductsThatOurWarpgroupsMultiply) {
  gpu::Properties properties;
  properties.has_warpgroups = properties.has_bulk_copies = true;
  const auto is_ours = [&](const Primitive& primitive) {
    return gpu::prefers_warpgroup_product(primitive, properties);
  };
  const Primitive taken = made({8192, 768}, {768, 3072}, {8192, 3072});
  EXPECT_TRUE(is_ours(taken));
  Primitive other = taken;
  other.inputs[1].access.strides = {1, 768};  // lines along the depth
  EXPECT_TRUE(is_ours(other));
  other.inputs[0].access.strides = {1, 8192};  // rows whose elements lie apart
  EXPECT_FALSE(is_ours(other));
  other = taken;
  other.inputs[0].access.offset = 4;  // not at a vector
  EXPECT_FALSE(is_ours(other));
  other = taken;
  other.output.access.dtype = DType::float32;  // the kernel rounds to the factors' type
  EXPECT_FALSE(is_ours(other));
  for (const int factor : {0, 1}) {
    for (const std::int64_t stride : {0, -4096}) {  // lines repeated, or backwards: CUDA has no maps of those
      other = taken;
      other.inputs[static_cast<std::size_t>(factor)].access.strides = {stride, 1};
      EXPECT_FALSE(is_ours(other));
    }
  }
  EXPECT_FALSE(is_ours(made({8192, 128}, {128, 3072}, {8192, 3072})));           // a stationary product's depth
  EXPECT_FALSE(is_ours(made({8192, 1536}, {1536, 3072}, {8192, 3072})));         // a large depth
  EXPECT_FALSE(is_ours(made({8192, 1024}, {1024, 1536}, {8192, 1536})));         // few columns
  EXPECT_FALSE(is_ours(made({4224, 768}, {768, 2048}, {4224, 2048})));           // few rows
  EXPECT_FALSE(is_ours(made({7168, 768}, {768, 1536}, {7168, 1536})));           // few cores in the last turn
  EXPECT_FALSE(is_ours(made({2, 8192, 768}, {2, 768, 3072}, {2, 8192, 3072})));  // batches
  Primitive convolution = made({128, 256, 14, 14}, {1024, 256, 1, 1}, {128, 1024, 14, 14});
  convolution.op = ops::Op::convolution;
  convolution.attributes = ops::Window{};
  for (Operand* one : {&convolution.inputs[0], &convolution.inputs[1], &convolution.output}) {
    one->access.strides = compile::channels_last(one->sizes);
  }
  EXPECT_TRUE(is_ours(convolution));
  Primitive gradient = convolution;  // as large, for an image
  gradient.op = ops::Op::convolution_input;
  gradient.inputs[1].sizes = {256, 1024, 1, 1};
  gradient.inputs[1].access.strides = compile::channels_last(gradient.inputs[1].sizes);
  EXPECT_FALSE(is_ours(gradient));
  properties.has_warpgroups = false;
  EXPECT_FALSE(is_ours(taken));
  properties.has_warpgroups = true;
  properties.has_bulk_copies = false;
  EXPECT_FALSE(is_ours(taken));
}

/// A product to which a bias is added, as the compiler writes it.
Primitive product_with_bias(DType dtype) {
  using compile::Instruction;
  Primitive primitive = product(dtype, dtype, 64);
  compile::Group& group = primitive.epilogue;
  group.space = primitive.output.sizes;
  group.accesses = {primitive.output.access, {1, dtype, 0, -1, Strides{0, 1}}, primitive.output.access};
  group.accesses[0].slot = -1;
  group.code.resize(4);
  for (Instruction& in : group.code) in.dtype = dtype;
  group.code[0].kind = group.code[1].kind = Instruction::Kind::load;
  group.code[0].access = 0;
  group.code[1].access = 1;
  group.code[2].op = ops::Op::add;
  group.code[2].inputs = {0, 1, -1};
  group.code[3].kind = Instruction::Kind::store;
  group.code[3].access = 2;
  group.code[3].inputs = {2, -1, -1};
  return primitive;
}

TEST(Questions, KnowABiasOfAProduct) {
  const Primitive plain = product_with_bias(DType::bfloat16);
  const auto epilogue = library_epilogue(plain);
  ASSERT_TRUE(epilogue.has_value());
  EXPECT_TRUE(epilogue->tail.bias);
  EXPECT_FALSE(epilogue->tail.residual || epilogue->tail.relu);
  ASSERT_EQ(epilogue->regions.size(), 1U);
  EXPECT_EQ(epilogue->regions[0].slot, 1);
  EXPECT_EQ(epilogue->regions[0].bytes, 128U);
  Primitive other = plain;
  other.epilogue.code[2].inputs = {1, 0, -1};
  EXPECT_TRUE(library_epilogue(other).has_value());
  const auto refused = [&](const auto& change) {
    Primitive changed = plain;
    change(changed);
    return !library_epilogue(changed).has_value();
  };
  EXPECT_FALSE(refused([](Primitive&) {}));
  EXPECT_TRUE(refused([](Primitive& p) { p.epilogue.code[2].op = ops::Op::sub; }));
  EXPECT_TRUE(refused([](Primitive& p) { p.epilogue.code[2].inputs = {0, 0, -1}; }));
  EXPECT_TRUE(refused([](Primitive& p) { p.epilogue.code[3].inputs = {0, -1, -1}; }));
  EXPECT_TRUE(refused([](Primitive& p) { p.epilogue.code.push_back(p.epilogue.code[3]); }));
  EXPECT_TRUE(refused([](Primitive& p) { p.epilogue.accesses[1].strides = Strides{1, 0}; }));   // a row's
  EXPECT_TRUE(refused([](Primitive& p) { p.epilogue.accesses[1].strides = Strides{64, 1}; }));  // a sum of matrices
  EXPECT_TRUE(refused([](Primitive& p) { p.epilogue.accesses[1].dtype = DType::float32; }));
  EXPECT_TRUE(refused([](Primitive& p) { p.epilogue.accesses[1].offset_argument = 0; }));
  EXPECT_TRUE(refused([](Primitive& p) { p.epilogue.code[1].access = 0; }));
  EXPECT_TRUE(refused([](Primitive& p) { p.op = ops::Op::convolution_input; }));
  EXPECT_FALSE(library_epilogue(product(DType::float32, DType::float32, 64)).has_value());
}

TEST(Questions, KnowReluOfAProduct) {
  using compile::Instruction;
  Primitive relu = product_with_bias(DType::bfloat16);
  std::vector<Instruction>& code = relu.epilogue.code;
  const Instruction store = code.back();
  code.back() = Instruction{.kind = Instruction::Kind::constant, .dtype = DType::bfloat16};
  Instruction maximum = code[2];
  maximum.op = ops::Op::maximum;
  maximum.inputs = {2, 3, -1};
  code.push_back(maximum);
  code.push_back(store);
  code.back().inputs = {4, -1, -1};
  const auto epilogue = library_epilogue(relu);
  ASSERT_TRUE(epilogue.has_value());
  EXPECT_TRUE(epilogue->tail.bias && epilogue->tail.relu);
  code[3].number.real = 1;
  EXPECT_FALSE(library_epilogue(relu).has_value());
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
  EXPECT_TRUE(gpu::is_pointwise(convolution));
  convolution.attributes = ops::Window{.stride = {2, 2}};
  EXPECT_FALSE(gpu::is_pointwise(convolution));
}

/// Is asked, and answers nothing.
class AskedConvolutions final : public Convolutions {
 public:
  std::string version() const override { return "1.0.0"; }

 private:
  gpu::Verdict answer(const ConvolutionQuestion&, std::vector<gpu::Region>, const gpu::GpuContext&) const override {
    return gpu::decline("nobody answers");
  }
};

Primitive convolution(DType dtype, ops::Op op, std::int64_t kernel, std::int64_t size, std::int64_t channels = 3) {
  Primitive primitive;
  primitive.op = op;
  primitive.attributes = ops::Window{.stride = {2, 2}};
  const Operand weight = operand(dtype, {64, channels, kernel, kernel});
  const Operand result = operand(dtype, {8, 64, size, size});
  primitive.inputs = {operand(dtype, {8, channels, 2 * size, 2 * size}), op == ops::Op::convolution ? weight : result};
  primitive.output = op == ops::Op::convolution ? result : weight;
  return primitive;
}

/// A convolution and what may come after it, as the compiler writes it: relu(result + bias + residual).
Primitive convolution_with_all(Primitive primitive = convolution(DType::bfloat16, ops::Op::convolution, 3, 16)) {
  using compile::Instruction;
  const DType dtype = DType::bfloat16;
  compile::Group& group = primitive.epilogue;
  group.space = primitive.output.sizes;
  const auto access = [&](std::int32_t slot, const Strides& strides) {
    group.accesses.push_back({slot, dtype, 0, -1, strides});
  };
  const auto add = [&](Instruction::Kind kind, std::int16_t of_access) -> Instruction& {
    Instruction& in = group.code.emplace_back();
    in.kind = kind;
    in.dtype = dtype;
    in.access = of_access;
    return in;
  };
  const auto compute = [&](ops::Op op, std::int16_t left, std::int16_t right) {
    Instruction& in = add(Instruction::Kind::compute, -1);
    in.op = op;
    in.inputs = {left, right, -1};
  };
  access(-1, primitive.output.access.strides);
  access(1, {0, 1, 0, 0});
  access(2, primitive.output.access.strides);
  access(0, primitive.output.access.strides);
  add(Instruction::Kind::load, 0);
  add(Instruction::Kind::load, 1);
  compute(ops::Op::add, 0, 1);
  add(Instruction::Kind::load, 2);
  compute(ops::Op::add, 3, 2);
  add(Instruction::Kind::constant, -1);
  compute(ops::Op::maximum, 4, 5);
  add(Instruction::Kind::store, 3).inputs = {6, -1, -1};
  return primitive;
}

TEST(Questions, KnowABiasAResidualAndRelu) {
  const Primitive plain = convolution_with_all();
  const auto epilogue = library_epilogue(plain);
  ASSERT_TRUE(epilogue.has_value());
  EXPECT_TRUE(epilogue->tail.bias && epilogue->tail.residual && epilogue->tail.relu);
  ASSERT_EQ(epilogue->regions.size(), 2U);
  EXPECT_EQ(epilogue->regions[0].slot, 1);
  EXPECT_EQ(epilogue->regions[0].bytes, 128U);
  EXPECT_EQ(epilogue->regions[1].slot, 2);
  const auto changed = [&](const auto& change) {
    Primitive other = plain;
    change(other);
    return library_epilogue(other);
  };
  const auto store = [](std::int16_t value) {
    return [value](Primitive& p) { p.epilogue.code.back().inputs = {value, -1, -1}; };
  };
  // Neither relu nor its zero is left over where the sum is stored.
  EXPECT_FALSE(changed(store(4)).has_value());
  EXPECT_FALSE(changed([](Primitive& p) { p.epilogue.code[5].number.real = 1; }).has_value());
  EXPECT_FALSE(changed([](Primitive& p) { p.epilogue.code[6].op = ops::Op::minimum; }).has_value());
  EXPECT_FALSE(changed([](Primitive& p) { p.epilogue.code[4].op = ops::Op::sub; }).has_value());
  EXPECT_FALSE(changed([](Primitive& p) { p.epilogue.accesses[1].dtype = DType::float32; }).has_value());
  EXPECT_FALSE(changed([](Primitive& p) { p.epilogue.accesses[1].strides = {0, 0, 1, 0}; }).has_value());
  EXPECT_FALSE(changed([](Primitive& p) { p.epilogue.accesses[2].strides = {0, 1, 0, 0}; }).has_value());  // two biases
  EXPECT_FALSE(changed([](Primitive& p) { p.epilogue.accesses[1].strides = p.output.access.strides; }).has_value());
  EXPECT_FALSE(changed([](Primitive& p) { p.epilogue.accesses[2].offset_argument = 0; }).has_value());
  EXPECT_FALSE(changed([](Primitive& p) { p.epilogue.code[2].dtype = DType::float32; }).has_value());
  EXPECT_FALSE(changed([](Primitive& p) { p.op = ops::Op::convolution_input; }).has_value());
  EXPECT_FALSE(library_epilogue(convolution(DType::bfloat16, ops::Op::convolution, 3, 16)).has_value());
  const auto bias_alone = changed([](Primitive& p) {
    p.epilogue.code.resize(3);
    compile::Instruction& last = p.epilogue.code.emplace_back();
    last.kind = compile::Instruction::Kind::store;
    last.inputs = {2, -1, -1};
  });
  ASSERT_TRUE(bias_alone.has_value());
  EXPECT_FALSE(bias_alone->tail.residual || bias_alone->tail.relu);
}

TEST(Questions, FoldScalesIntoWeightsOf16BitsAlone) {
  const AskedConvolutions convolutions;
  const auto adds = [&](DType dtype, ops::Op op, std::int64_t channels) {
    return convolutions.adds_biases(convolution(dtype, op, 3, 32, channels));
  };
  EXPECT_TRUE(adds(DType::bfloat16, ops::Op::convolution, 32));
  EXPECT_FALSE(adds(DType::float32, ops::Op::convolution, 32));
  EXPECT_FALSE(adds(DType::bfloat16, ops::Op::convolution_weight, 32));
  EXPECT_FALSE(adds(DType::bfloat16, ops::Op::convolution, 3));  // our own kernel takes the whole norm
}

TEST(Questions, TakeStridesOffLargeWindowsAlone) {
  const AskedConvolutions convolutions;
  const auto prefers = [&](DType dtype, ops::Op op, std::int64_t kernel) {
    return convolutions.prefers_space_to_depth(convolution(dtype, op, kernel, 16));
  };
  EXPECT_TRUE(prefers(DType::bfloat16, ops::Op::convolution, 11));
  EXPECT_TRUE(prefers(DType::bfloat16, ops::Op::convolution_weight, 11));
  EXPECT_FALSE(prefers(DType::bfloat16, ops::Op::convolution, 7));  // our own kernels take these as they are
  EXPECT_FALSE(prefers(DType::bfloat16, ops::Op::convolution_weight, 7));
  EXPECT_FALSE(prefers(DType::float32, ops::Op::convolution, 11));
  EXPECT_FALSE(prefers(DType::float32, ops::Op::convolution_weight, 11));
}

TEST(Questions, LeaveSmallConvolutionsOfPixelsToProducts) {
  const AskedConvolutions convolutions;
  const auto strided = [](DType dtype, ops::Op op, std::int64_t size) { return convolution(dtype, op, 1, size, 64); };
  const auto dense = [](DType dtype, ops::Op op, std::int64_t size) {
    Primitive primitive = convolution(dtype, op, 1, size, 64);
    primitive.attributes = ops::Window{};
    primitive.inputs[0] = operand(dtype, {8, 64, size, size});
    return primitive;
  };
  const auto asked = [&](const Primitive& primitive) {
    return convolutions.required_strides(primitive, 0, {}).has_value();
  };
  EXPECT_FALSE(asked(dense(DType::bfloat16, ops::Op::convolution, 32)));
  EXPECT_TRUE(asked(dense(DType::bfloat16, ops::Op::convolution, 256)));
  EXPECT_TRUE(asked(dense(DType::bfloat16, ops::Op::convolution_weight, 32)));
  EXPECT_TRUE(asked(convolution(DType::bfloat16, ops::Op::convolution, 3, 16, 64)));
  // Products take biases, too.
  EXPECT_TRUE(convolutions.adds_biases(dense(DType::bfloat16, ops::Op::convolution, 32)));
  EXPECT_FALSE(convolutions.adds_biases(dense(DType::float32, ops::Op::convolution, 32)));
  // Of those that stride, their pixels are copied.
  EXPECT_TRUE(convolutions.prefers_subsampling(strided(DType::bfloat16, ops::Op::convolution, 32)));
  EXPECT_FALSE(convolutions.prefers_subsampling(strided(DType::bfloat16, ops::Op::convolution, 256)));
  EXPECT_FALSE(convolutions.prefers_subsampling(strided(DType::float32, ops::Op::convolution, 32)));
}

TEST(Questions, LeaveResidualsOfConvolutionsOfPixelsToProducts) {
  const auto& target = runtime::require_planner(Device(DeviceType::cuda), "h200").target();
  Primitive bare = convolution(DType::bfloat16, ops::Op::convolution, 1, 128, 64);
  bare.attributes = ops::Window{};
  bare.inputs[0] = operand(DType::bfloat16, {8, 64, 128, 128});
  for (Operand* one : {&bare.inputs[0], &bare.inputs[1], &bare.output}) {
    one->access.strides = compile::channels_last(one->sizes);
  }
  const Primitive whole = convolution_with_all(bare);
  EXPECT_EQ(target.compile(bare)->name(), "cudnn");
  EXPECT_EQ(target.compile(whole)->name(), "cublaslt");
  EXPECT_TRUE(target.accepts_epilogue(whole));
}

TEST(Questions, PutChannelsIntoVectorsWhereTensorCoresTakeFloat32) {
  const auto wants = [](DType dtype, ops::Op op, std::int64_t size, bool has_warpgroups = true,
                        std::int64_t kernel = 7) {
    gpu::Properties properties;
    properties.has_warpgroups = has_warpgroups;
    return gpu::wants_channels_in_vectors(convolution(dtype, op, kernel, size), properties);
  };
  EXPECT_FALSE(wants(DType::float32, ops::Op::convolution, 256, true, 3));  // by two
  EXPECT_TRUE(wants(DType::float32, ops::Op::convolution_weight, 256, true, 3));
  EXPECT_TRUE(wants(DType::float32, ops::Op::convolution, 256));
  EXPECT_TRUE(wants(DType::float32, ops::Op::convolution_weight, 256));
  EXPECT_FALSE(wants(DType::float32, ops::Op::convolution_input, 256));
  EXPECT_FALSE(wants(DType::float32, ops::Op::convolution, 8));
  EXPECT_FALSE(wants(DType::bfloat16, ops::Op::convolution, 256));
  EXPECT_FALSE(wants(DType::float32, ops::Op::convolution, 256, false));
}

/// Is asked, and answers nothing.
class AskedProducts final : public Products {
 public:
  std::string version() const override { return "1.0.0"; }

 private:
  gpu::Verdict answer(const MatmulQuestion&, std::vector<gpu::Region>, const gpu::GpuContext&) const override {
    return gpu::decline("nobody answers");
  }
};

// Query, key and value as a projection leaves them: 12 heads of 64 side by side.
TEST(Questions, LeaveHeadsSideBySideToOurProducts) {
  const AskedProducts products;
  gpu::Properties properties;
  const auto required = [&](std::int64_t keys, int operand_at) {
    constexpr std::int64_t batch = 64, heads = 12, width = 64;
    Primitive scores;
    scores.op = ops::Op::matmul;
    scores.inputs = {operand(DType::float32, {batch, heads, keys, width}),
                     operand(DType::float32, {batch, heads, width, keys})};
    const std::int64_t line = 3 * heads * width;
    scores.inputs[0].access.strides = {keys * line, width, line, 1};
    scores.inputs[1].access.strides = {keys * line, width, 1, line};
    scores.output = operand(DType::float32, {batch, heads, keys, keys});
    return products.required_strides(scores, operand_at, properties);
  };
  EXPECT_EQ(required(128, 0), (contiguous_strides({64, 12, 128, 64}))) << "heads lie apart for the library";
  EXPECT_EQ(required(128, -1), std::nullopt);
  properties.has_warpgroups = true;
  EXPECT_EQ(required(128, 0), std::nullopt);
  EXPECT_EQ(required(128, 1), std::nullopt);
}

TEST(Questions, LeaveConvolutionsOfSinglePixelsToProducts) {
  const AskedConvolutions convolutions;
  const auto required = [&](std::int64_t size) {
    Primitive primitive = convolution(DType::bfloat16, ops::Op::convolution, 1, size);
    primitive.attributes = ops::Window{};
    primitive.inputs[0] = operand(DType::bfloat16, {512, 3, size, size});
    primitive.output = operand(DType::bfloat16, {512, 64, size, size});
    return convolutions.required_strides(primitive, 0, {}).has_value();
  };
  EXPECT_TRUE(required(16));
  EXPECT_FALSE(required(1));
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
