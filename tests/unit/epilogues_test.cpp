// Epilogues and prologues that a device accepted are those that its kernels are made for.
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <set>
#include <string>

#include "compile/plan.h"
#include "nothing.h"
#include "small_program.h"

namespace russet {
namespace {

/// A device that accepts every epilogue and prologue, and remembers which.
class AcceptsAll final : public PlansAlone {
 public:
  bool accepts_epilogue(const compile::Primitive& primitive) const override {
    accepted_.insert(code_of(primitive));
    return true;
  }
  bool takes_prologues() const override { return true; }
  bool has_accepted(const compile::Primitive& primitive) const { return accepted_.count(code_of(primitive)) > 0; }

 private:
  static std::array<std::string, 3> code_of(const compile::Primitive& primitive) {
    return {compile::code_of(primitive.epilogue), compile::code_of(primitive.prologues[0]),
            compile::code_of(primitive.prologues[1])};
  }
  mutable std::set<std::array<std::string, 3>> accepted_;
};

/// left * (leaf of [4, 4]) + bias, where a run-time number stands in every place of one of them, which is kept, and the
/// other is a leaf.
compile::Program product_with_number(bool as_bias) {
  compile::Program program;
  const auto add = [&](ops::Op op, const Shape& shape, compile::Inputs inputs = {}, ops::Attributes attributes = {}) {
    program.values.push_back(
        {{{DType::float32, shape}, op, std::move(attributes)}, inputs, -1, -1, contiguous_strides(shape)});
    return static_cast<compile::ValueId>(program.values.size() - 1);
  };
  const auto add_leaf = [&](const Shape& shape) {
    const compile::ValueId id = add(ops::Op::leaf, shape);
    program.values.back().leaf = static_cast<std::int32_t>(program.leaves.size());
    program.leaves.push_back({id, false, false});
    return id;
  };
  const compile::ValueId number = add(ops::Op::scalar, {});
  program.values.back().argument = program.arguments++;
  const auto add_filled = [&](const Shape& shape) {
    return add(ops::Op::strided, shape, {number}, ops::View{Strides::filled(shape.rank(), 0), 0, false});
  };
  const compile::ValueId left = as_bias ? add_leaf({3, 4}) : add_filled({3, 4});
  const compile::ValueId bias = as_bias ? add_filled({4}) : add_leaf({4});
  const compile::ValueId product = add(ops::Op::matmul, {3, 4}, {left, add_leaf({4, 4})});
  program.outputs.push_back({add(ops::Op::add, {3, 4}, {product, bias}), -1});
  program.outputs.push_back({as_bias ? bias : left, -1});
  return program;
}

TEST(Epilogues, AndProloguesAreThoseThatTheDeviceAccepted) {
  for (const bool as_bias : {true, false}) {
    const AcceptsAll target;
    const compile::Plan plan = compile::make_plan(product_with_number(as_bias), target);
    int products = 0;
    for (const compile::Step& step : plan.program.steps) {
      const auto* product = std::get_if<compile::Primitive>(&step);
      if (product == nullptr) continue;
      ++products;
      EXPECT_FALSE(product->epilogue.code.empty());
      EXPECT_EQ(product->prologues[0].code.empty(), as_bias);
      EXPECT_TRUE(target.has_accepted(*product)) << to_string(product->epilogue) << to_string(product->prologues[0]);
    }
    EXPECT_EQ(products, 1);
  }
}

/// A device that accepts every epilogue, and has no prologues.
class TakesEpilogues : public PlansAlone {
 public:
  bool accepts_epilogue(const compile::Primitive&) const override { return true; }
};

/// y = exp(product), or product + its transpose; product * (y * leaf) reads the product again.
compile::Program product_with_other_readers(bool by_view) {
  testing::SmallProgram small;
  const auto add = [&](ops::Op op, compile::Inputs inputs, ops::Attributes attributes = {}) {
    return small.add(op, DType::float32, {20, 20}, inputs, std::move(attributes));
  };
  const compile::ValueId product =
      add(ops::Op::matmul, {small.leaf(DType::float32, {20, 4}), small.leaf(DType::float32, {4, 20})});
  const compile::ValueId y =
      by_view ? add(ops::Op::add, {product, add(ops::Op::strided, {product}, ops::View{{1, 20}, 0, false})})
              : add(ops::Op::exp, {product});
  const compile::ValueId later = add(ops::Op::matmul, {y, small.leaf(DType::float32, {20, 20})});
  small.output(add(ops::Op::mul, {product, later}));
  return small.program;
}

int stores_of_first_product(const compile::Target& target, bool by_view = false) {
  const compile::Plan plan = compile::make_plan(product_with_other_readers(by_view), target);
  for (const compile::Step& step : plan.program.steps) {
    const auto* product = std::get_if<compile::Primitive>(&step);
    if (product == nullptr || product->op != ops::Op::matmul) continue;
    return static_cast<int>(
        std::ranges::count(product->epilogue.code, compile::Instruction::Kind::store, &compile::Instruction::kind));
  }
  return -1;
}

// What others read is stored beside what the epilogue makes of it, unless prologues could make that of it, or an
// element is made of others than its own.
TEST(Epilogues, StoreTheResultForItsOtherReaders) {
  EXPECT_EQ(stores_of_first_product(TakesEpilogues()), 2);
  EXPECT_EQ(stores_of_first_product(AcceptsAll()), 0);
  EXPECT_EQ(stores_of_first_product(TakesEpilogues(), true), 0);
}

/// A device that has epilogues of one result alone.
class StoresOneResult final : public PlansAlone {
 public:
  bool accepts_epilogue(const compile::Primitive& primitive) const override {
    return std::ranges::count(primitive.epilogue.code, compile::Instruction::Kind::store,
                              &compile::Instruction::kind) == 1;
  }
};

// In training relu's gradient is told where its result is 0: what reads that finds it from the result.
TEST(Epilogues, LeaveToReadersWhatFollowsFromTheResult) {
  testing::SmallProgram small;
  const auto add = [&](ops::Op op, DType dtype, compile::Inputs inputs) {
    return small.add(op, dtype, {30, 20}, inputs);
  };
  const compile::ValueId product =
      add(ops::Op::matmul, DType::float32, {small.leaf(DType::float32, {30, 4}), small.leaf(DType::float32, {4, 20})});
  const compile::ValueId zero = small.add(ops::Op::constant, DType::float32, {}, {}, ops::Number{});
  const compile::ValueId y = add(ops::Op::maximum, DType::float32, {product, zero});
  const compile::ValueId is_zero = add(ops::Op::le, DType::boolean, {y, zero});
  const compile::ValueId later =
      small.add(ops::Op::matmul, DType::float32, {30, 20}, {y, small.leaf(DType::float32, {20, 20})});
  small.output(add(ops::Op::where, DType::float32, {is_zero, zero, later}));
  small.output(y);
  const compile::Plan plan = compile::make_plan(small.program, StoresOneResult());
  ASSERT_EQ(plan.program.steps.size(), 2U);  // both products, each with an epilogue
  for (const compile::Step& step : plan.program.steps) {
    EXPECT_FALSE(std::get<compile::Primitive>(step).epilogue.code.empty());
  }
}

/// A device that has elementwise epilogues, and adds up no columns in them.
class AddsUpNoColumns final : public PlansAlone {
 public:
  bool accepts_epilogue(const compile::Primitive& primitive) const override {
    return primitive.epilogue.kind == compile::Group::Kind::elementwise;
  }
};

/// The gradient g = (a b) h, which a product reads, and the sums of its columns; with `reads_again` those of g h, too.
compile::Program gradient_and_sums(bool reads_again) {
  testing::SmallProgram small;
  const auto add = [&](ops::Op op, const Shape& shape, compile::Inputs inputs, ops::Attributes attributes = {}) {
    return small.add(op, DType::float32, shape, inputs, std::move(attributes));
  };
  const Shape sizes{30, 20};
  const compile::ValueId h = small.leaf(DType::float32, sizes);
  const compile::ValueId product =
      add(ops::Op::matmul, sizes, {small.leaf(DType::float32, {30, 4}), small.leaf(DType::float32, {4, 20})});
  const compile::ValueId g = add(ops::Op::mul, sizes, {product, h});
  small.output(add(ops::Op::matmul, sizes, {g, small.leaf(DType::float32, {20, 20})}));
  small.output(add(ops::Op::sum, {1, 20}, {g}, ops::Axes{1}));
  if (reads_again) small.output(add(ops::Op::sum, {1, 20}, {add(ops::Op::mul, sizes, {g, h})}, ops::Axes{1}));
  return small.program;
}

/// How many products have an epilogue.
int epilogues_of(const compile::Plan& plan) {
  return static_cast<int>(std::ranges::count_if(plan.program.steps, [](const compile::Step& step) {
    const auto* const product = std::get_if<compile::Primitive>(&step);
    return product != nullptr && !product->epilogue.code.empty();
  }));
}

TEST(Epilogues, LeaveSumsThatAreNotTakenToAGroupOfTheirOwn) {
  const compile::Plan plan = compile::make_plan(gradient_and_sums(false), AddsUpNoColumns());
  ASSERT_EQ(plan.program.steps.size(), 3U);
  EXPECT_EQ(epilogues_of(plan), 1);
  const auto sums = std::ranges::find_if(
      plan.program.steps, [](const compile::Step& step) { return std::holds_alternative<compile::Group>(step); });
  ASSERT_NE(sums, plan.program.steps.end());
  // It reads the gradient alone, and computes nothing of it again.
  EXPECT_EQ(compile::bytes_of(*sums), (30 * 20 + 20) * sizeof(float)) << to_string(std::get<compile::Group>(*sums));
}

// What would read both factors of the gradient again moves as much memory as it saves.
TEST(Epilogues, AreNotSplitFromSumsThatReadAsMuchAgain) {
  const compile::Plan plan = compile::make_plan(gradient_and_sums(true), AddsUpNoColumns());
  EXPECT_EQ(plan.program.steps.size(), 3U);
  EXPECT_EQ(epilogues_of(plan), 0);
}

// As behind a network's last pool: a product's result gets the pool's type where it is stored.
TEST(Epilogues, CastWhatAPoolReadsInAnotherShape) {
  testing::SmallProgram small;
  const compile::ValueId product =
      small.add(ops::Op::matmul, DType::bfloat16, {2, 12},
                {small.leaf(DType::bfloat16, {2, 5}), small.leaf(DType::bfloat16, {5, 12})});
  const Shape image{2, 3, 2, 2};
  const compile::ValueId view =
      small.add(ops::Op::strided, DType::bfloat16, image, {product}, ops::View{contiguous_strides(image), 0, false});
  const compile::ValueId cast = small.add(ops::Op::cast, DType::float32, image, {view});
  ops::Window window;
  window.kernel = window.stride = {2, 2};
  small.output(small.add(ops::Op::sum_unpool, DType::float32, {2, 3, 4, 4}, {cast}, window));
  const compile::Plan plan = compile::make_plan(small.program, AddsUpNoColumns());
  EXPECT_EQ(plan.program.steps.size(), 2U);
  EXPECT_EQ(epilogues_of(plan), 1);
}

}  // namespace
}  // namespace russet
