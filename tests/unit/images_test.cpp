// Images that convolutions compute where they read them, on a device that has no other prologues (passes/prologues).
#include <gtest/gtest.h>

#include "compile/passes/passes.h"
#include "compile/plan.h"
#include "nothing.h"
#include "small_program.h"

namespace russet {
namespace {

using compile::Primitive;
using compile::ValueId;
using ops::Op;

class Casts final : public PlansAlone {
 public:
  bool computes_image(const Primitive&) const override { return computes; }
  bool accepts_epilogue(const Primitive& primitive) const override {
    return accepts && compile::has_prologue(primitive);
  }
  bool computes = true, accepts = true;
};

const Shape image{2, 3, 8, 8};
const Shape weight{4, 3, 3, 3};
const Shape result{2, 4, 6, 6};

/// The convolution of a leaf's cast, or of something that lies in memory.
struct Program {
  testing::SmallProgram small;
  ValueId cast, convolution;

  explicit Program(bool casts = true) {
    const ValueId leaf = small.leaf(casts ? DType::float32 : DType::bfloat16, image);
    cast = casts ? small.add(Op::cast, DType::bfloat16, image, {leaf}) : leaf;
    convolution =
        small.add(Op::convolution, DType::bfloat16, result, {cast, small.leaf(DType::bfloat16, weight)}, ops::Window{});
    small.output(convolution);
  }

  /// How many steps compute it, and whether the convolution has a prologue.
  std::pair<std::size_t, bool> plan(const compile::Target& target) {
    const compile::Plan plan = compile::make_plan(std::move(small.program), target);
    const auto has_prologue = [](const compile::Step& step) {
      const auto* primitive = std::get_if<Primitive>(&step);
      return primitive != nullptr && compile::has_prologue(*primitive);
    };
    return {plan.program.steps.size(), std::ranges::any_of(plan.program.steps, has_prologue)};
  }
};

TEST(Images, AreCastWhereTheyAreRead) { EXPECT_EQ(Program().plan(Casts()), (std::pair<std::size_t, bool>{1, true})); }

TEST(Images, StayWhereTheDeviceSaysSo) {
  Casts none, refuses;
  none.computes = false;
  refuses.accepts = false;
  EXPECT_EQ(Program().plan(none), (std::pair<std::size_t, bool>{2, false}));
  EXPECT_EQ(Program().plan(refuses), (std::pair<std::size_t, bool>{2, false}));
}

TEST(Images, StayThatOthersRead) {
  Program read;
  read.small.output(read.small.add(Op::neg, DType::bfloat16, image, {read.cast}));
  EXPECT_FALSE(read.plan(Casts()).second);
  Program given;
  given.small.output(given.cast);
  EXPECT_FALSE(given.plan(Casts()).second);
}

TEST(Images, StayThatLieInMemory) { EXPECT_EQ(Program(false).plan(Casts()), (std::pair<std::size_t, bool>{1, false})); }

}  // namespace
}  // namespace russet
