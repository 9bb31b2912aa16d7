// A vendor's library beside our own kernels: what it takes is its own, and nothing is fused that it would not take.
#include "device/gpu/vendor_library.h"

#include <gtest/gtest.h>

#include "compile/layouts.h"
#include "gpu/epilogues.h"
#include "machine_driver.h"

namespace russet::test {
namespace {

using compile::Operand;
using compile::Primitive;

class NoPipeline final : public gpu::Pipeline {};

/// Takes products of float32 without epilogues, and convolutions of float32 whose channels lie side by side.
class Products final : public gpu::VendorLibrary {
 public:
  const char* name() const override { return "products"; }
  std::string version() const override { return "1.0.0"; }
  gpu::Verdict judge(const Primitive& primitive, const gpu::GpuContext& context) const override {
    if (primitive.op != ops::Op::matmul) return gpu::decline("it is no product");
    if (primitive.inputs[0].access.dtype != DType::float32) return gpu::decline("types");
    if (!primitive.epilogue.code.empty()) return gpu::decline("an epilogue");
    std::vector<gpu::Region> regions{gpu::place(primitive.output, true).region};
    return gpu::accept([&context, regions] {
      return gpu::make_library_kernel(context, "products", std::make_shared<NoPipeline>(), regions, 4096);
    });
  }
  bool multiplies(DType dtype, double operations) const override {
    return dtype == DType::float32 && operations >= 1e6;
  }
  std::optional<Strides> required_strides(const Primitive& contraction, int operand,
                                          const gpu::Properties& /*properties*/) const override {
    if (contraction.op != ops::Op::convolution) return std::nullopt;
    return compile::channels_last(compile::operand_of(contraction, operand).sizes);
  }
};

/// Takes products that have epilogues, and nothing else.
class Epilogues final : public gpu::VendorLibrary {
 public:
  const char* name() const override { return "epilogues"; }
  std::string version() const override { return "1.0.0"; }
  gpu::Verdict judge(const Primitive& primitive, const gpu::GpuContext& context) const override {
    if (primitive.epilogue.code.empty()) return gpu::decline("no epilogue");
    return gpu::accept(
        [&context] { return gpu::make_library_kernel(context, "epilogues", std::make_shared<NoPipeline>(), {}, 0); });
  }
};

class MachineWithLibrary final : public MachineDriver {
 public:
  MachineWithLibrary() { libraries_.push_back(std::make_unique<Products>()); }
  void add(std::unique_ptr<const gpu::VendorLibrary> library) { libraries_.push_back(std::move(library)); }
  std::span<const std::unique_ptr<const gpu::VendorLibrary>> vendor_libraries() const override { return libraries_; }

 private:
  std::vector<std::unique_ptr<const gpu::VendorLibrary>> libraries_;
};

Operand operand(std::int32_t slot, DType dtype, const Shape& sizes) {
  return {{slot, dtype, 0, -1, contiguous_strides(sizes)}, sizes};
}

Primitive product(DType dtype) {
  Primitive primitive;
  primitive.op = ops::Op::matmul;
  primitive.inputs = {operand(0, dtype, {64, 48}), operand(1, dtype, {48, 32})};
  primitive.output = operand(2, dtype, {64, 32});
  return primitive;
}

Primitive with_epilogue(Primitive primitive) {
  const DType dtype = primitive.output.access.dtype;
  primitive.epilogue = gputest::bias_and_relu(primitive, operand(3, dtype, {32}), 1);
  return primitive;
}

TEST(VendorLibrary, GoesBeforeOurKernels) {
  const MachineWithLibrary driver;
  const auto kernel = driver.target().compile(product(DType::float32));
  EXPECT_EQ(kernel->name(), "products");
  EXPECT_EQ(kernel->scratch_bytes(), 4096U);
  EXPECT_EQ(kernel->launches(), 1);
  EXPECT_NE(driver.target().compile(product(DType::float16))->name(), "products");
}

TEST(VendorLibrary, IsNotGivenUpForAnEpilogue) {
  const MachineWithLibrary driver;
  const MachineDriver plain;
  EXPECT_TRUE(plain.target().accepts_epilogue(with_epilogue(product(DType::float32))));
  EXPECT_FALSE(driver.target().accepts_epilogue(with_epilogue(product(DType::float32))));
  EXPECT_TRUE(driver.target().accepts_epilogue(with_epilogue(product(DType::float16))));
}

TEST(VendorLibrary, GivesWayToAnotherThatTakesTheEpilogue) {
  MachineWithLibrary driver;
  driver.add(std::make_unique<Epilogues>());
  EXPECT_EQ(driver.target().compile(product(DType::float32))->name(), "products");
  EXPECT_TRUE(driver.target().accepts_epilogue(with_epilogue(product(DType::float32))));
  EXPECT_EQ(driver.target().compile(with_epilogue(product(DType::float32)))->name(), "epilogues");
  // Bare it is our own: a library that takes what follows, too, does so at no cost.
  EXPECT_EQ(driver.target().compile(product(DType::float16))->name().find("tiles"), 0U);
  EXPECT_TRUE(driver.target().accepts_epilogue(with_epilogue(product(DType::float16))));
  EXPECT_EQ(driver.target().compile(with_epilogue(product(DType::float16)))->name(), "epilogues");
}

TEST(VendorLibrary, RunsAloneAndWhole) {
  MachineWithLibrary driver;
  driver.longest_launch = 1e-12;  // everything that can be cut is
  EXPECT_TRUE(driver.target().sharing(product(DType::float32)).kind.empty());
  EXPECT_EQ(driver.target().compile(product(DType::float32))->launches(), 1);
  EXPECT_GT(driver.target().compile(product(DType::float16))->launches(), 1);
}

TEST(VendorLibrary, SaysHowOperandsLie) {
  const MachineWithLibrary driver;
  Primitive convolution;
  convolution.op = ops::Op::convolution;
  convolution.attributes = ops::Window{.kernel = {3, 3}};
  convolution.inputs = {operand(0, DType::float32, {2, 4, 8, 8}), operand(1, DType::float32, {16, 4, 3, 3})};
  convolution.output = operand(2, DType::float32, {2, 16, 6, 6});
  EXPECT_EQ(driver.target().preferred_strides(convolution, 1), compile::channels_last({16, 4, 3, 3}));
  EXPECT_EQ(MachineDriver().target().preferred_strides(convolution, 1), contiguous_strides({16, 4, 3, 3}));
  EXPECT_FALSE(MachineDriver().target().required_strides(convolution, 0).has_value());
}

TEST(VendorLibrary, MultipliesWhatAttentionIsMadeOf) {
  const MachineWithLibrary driver;
  const auto attention = [](DType dtype, std::int64_t length) {
    Primitive primitive;
    primitive.op = ops::Op::attention;
    primitive.attributes = ops::Attention{};
    for (int slot = 0; slot < 3; ++slot) primitive.inputs.push_back(operand(slot, dtype, {2, 4, length, 16}));
    primitive.output = operand(3, dtype, {2, 4, length, 16});
    return primitive;
  };
  EXPECT_FALSE(driver.target().prefers_attention(attention(DType::float32, 128)));
  EXPECT_TRUE(driver.target().prefers_attention(attention(DType::float32, 4096)));  // the scores would be too many
  EXPECT_TRUE(driver.target().prefers_attention(attention(DType::float32, 32)));    // the products are too small
  EXPECT_TRUE(driver.target().prefers_attention(attention(DType::float16, 128)));
  EXPECT_TRUE(MachineDriver().target().prefers_attention(attention(DType::float32, 128)));
}

TEST(VendorLibrary, MultipliesPatchesOfWholeVectors) {
  const MachineWithLibrary driver;
  const auto convolution = [](DType dtype, std::int64_t patch) {
    Primitive primitive;
    primitive.op = ops::Op::convolution;
    primitive.attributes = ops::Window{.stride = {static_cast<int>(patch), static_cast<int>(patch)}};
    primitive.inputs = {operand(0, dtype, {4, 3, 8 * patch, 8 * patch}), operand(1, dtype, {64, 3, patch, patch})};
    primitive.output = operand(2, dtype, {4, 64, 8, 8});
    return primitive;
  };
  EXPECT_TRUE(driver.target().prefers_products(convolution(DType::float32, 8)));
  EXPECT_FALSE(driver.target().prefers_products(convolution(DType::float32, 7)));  // 147 elements
  EXPECT_FALSE(driver.target().prefers_products(convolution(DType::float16, 8)));
  EXPECT_FALSE(MachineDriver().target().prefers_products(convolution(DType::float32, 8)));
}

}  // namespace
}  // namespace russet::test
