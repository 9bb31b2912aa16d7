// The pass layout: in which memory order results lie.
#include <gtest/gtest.h>

#include "compile/plan.h"
#include "nothing.h"
#include "without_pass.h"

namespace russet {
namespace {

/// A device whose products store their results in any order, or in none but their own.
class StoresAnywhere final : public PlansAlone {
 public:
  explicit StoresAnywhere(bool anywhere) : anywhere_(anywhere) {}
  bool stores_into_arrays(const compile::Primitive&) const override { return anywhere_; }

 private:
  bool anywhere_;
};

constexpr std::int64_t batch = 8, heads = 12, length = 40, width = 64;

/// Products for each head, the results of which are read with the axes in this order, and kept in bfloat16.
compile::Program products(const Shape& order) {
  compile::Program program;
  const auto add = [&](ops::Op op, DType dtype, const Shape& shape, compile::Inputs inputs,
                       ops::Attributes attributes) {
    program.values.push_back({{{dtype, shape}, op, std::move(attributes)}, inputs, -1, -1, contiguous_strides(shape)});
    return static_cast<compile::ValueId>(program.values.size() - 1);
  };
  const auto add_leaf = [&](const Shape& shape) {
    const compile::ValueId id = add(ops::Op::leaf, DType::float32, shape, {}, {});
    program.values.back().leaf = static_cast<std::int32_t>(program.leaves.size());
    program.leaves.push_back({id, false, false});
    return id;
  };
  const Shape sizes{batch, heads, length, width};
  const Strides strides = contiguous_strides(sizes);
  Shape shown = sizes;
  Strides by = strides;
  for (int axis = 0; axis < 4; ++axis) {
    shown[axis] = sizes[static_cast<int>(order[axis])];
    by[axis] = strides[static_cast<int>(order[axis])];
  }
  const compile::ValueId left = add_leaf({batch, heads, length, length});
  const compile::ValueId right = add_leaf(sizes);
  const compile::ValueId product = add(ops::Op::matmul, DType::float32, sizes, {left, right}, {});
  const compile::ValueId view = add(ops::Op::strided, DType::float32, shown, {product}, ops::View{by, 0, false});
  program.outputs.push_back({add(ops::Op::cast, DType::bfloat16, shown, {view}, {}), -1});
  return program;
}

Strides strides_of_products(const Shape& order, bool anywhere) {
  const compile::Plan plan = compile::make_plan(products(order), StoresAnywhere(anywhere));
  for (const compile::Step& step : plan.program.steps) {
    if (const auto* product = std::get_if<compile::Primitive>(&step)) return product->output.access.strides;
  }
  return {};
}

TEST(Layout, PutsHeadsSideBySideWhereTheyAreReadSo) {
  const Strides plain = contiguous_strides({batch, heads, length, width});
  const Strides side_by_side{length * heads * width, width, heads * width, 1};
  EXPECT_EQ(strides_of_products({0, 2, 1, 3}, true), side_by_side);
  EXPECT_EQ(strides_of_products({0, 2, 1, 3}, false), plain) << "the device does not store them so";
  EXPECT_EQ(strides_of_products({0, 3, 1, 2}, true), plain) << "rows would be taken apart";
  EXPECT_EQ(strides_of_products({0, 1, 2, 3}, true), plain);
}

}  // namespace
}  // namespace russet
