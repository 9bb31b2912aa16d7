// What the product of warpgroups declines: no plan may launch what it cannot run.
#include <gtest/gtest.h>

#include "run_group.h"
#include "works.h"

namespace russet::test {
namespace {

/// The kernel of a product whose result is multiplied by a number, which is known or comes with each run.
std::string kernel_of_scaled_product(bool by_argument) {
  MachineDriver driver;
  driver.adjust = [](gpu::Properties& properties) {
    properties.has_fragments = properties.has_warpgroups = properties.has_bulk_copies = true;
  };
  Works works;
  works.product(600, 264, 136, false, false);
  auto product = std::get<compile::Primitive>(works.list.back());
  for (compile::Operand* one : {&product.inputs[0], &product.inputs[1], &product.output}) {
    one->access.dtype = DType::bfloat16;
  }
  compile::Group& after = product.epilogue;
  after.space = product.output.sizes;
  after.split = 2;
  Access sums = product.output.access;
  sums.slot = -1;
  after.accesses = {sums, product.output.access};
  const auto number = by_argument ? Kind::scalar : Kind::constant;
  after.code = {{.kind = Kind::load, .dtype = DType::bfloat16, .access = 0},
                {.kind = number, .dtype = DType::bfloat16, .argument = by_argument ? 0 : -1},
                {.kind = Kind::compute, .op = Op::mul, .dtype = DType::bfloat16, .inputs = {0, 1, -1}},
                {.kind = Kind::store, .dtype = DType::bfloat16, .inputs = {2, -1, -1}, .access = 1}};
  return driver.target().compile(product)->name();
}

// What tells of matrices lies in values that never change (gpu/launch.h).
TEST(WarpgroupProduct, TakesNoRunTimeArguments) {
  EXPECT_EQ(kernel_of_scaled_product(false), "warpgroup product");
  EXPECT_NE(kernel_of_scaled_product(true), "warpgroup product");
}

}  // namespace
}  // namespace russet::test
