// The pass simplify, where whole programs do not show what it did: views of arrays that are written in part.
#include <gtest/gtest.h>

#include "compile/passes/passes.h"
#include "nothing.h"
#include "small_program.h"

namespace russet {
namespace {

using compile::ValueId;
using ops::Op;
using ops::View;

const Shape whole{4, 6};

/// A view of [4, 2] of an array of which the columns from 2 to 4 are overwritten.
compile::Program seen_from(std::int64_t first, bool dynamic = false) {
  testing::SmallProgram small;
  const ValueId array = small.leaf(DType::float32, whole);
  const ValueId columns = small.leaf(DType::float32, {whole[0], 3});
  const ValueId put = small.add(Op::overwrite, DType::float32, whole, {array, columns}, View{{6, 1}, 2, false});
  small.output(small.add(Op::strided, DType::float32, {whole[0], 2}, {put}, View{{6, 1}, first, dynamic}));
  return std::move(small.program);
}

/// Whether the pass leaves an overwritten array for the output to see.
bool sees_overwritten(compile::Program program) {
  compile::passes::simplify(program, PlansAlone());
  for (ValueId id = program.outputs[0].value; id >= 0; id = compile::value_at(program, id).inputs[0]) {
    if (compile::value_at(program, id).op == Op::overwrite) return true;
  }
  return false;
}

TEST(Simplify, LetsViewsSeeThroughWhatIsWrittenBesideThem) {
  for (const std::int64_t first : {0, 1, 2, 3, 4}) {
    const bool overlaps = first != 0;
    compile::Program program = seen_from(first);
    std::vector<testing::Values> leaves;
    for (const Shape& shape : {whole, Shape{whole[0], 3}}) {
      leaves.push_back(testing::integers(DType::float32, shape, static_cast<int>(leaves.size())));
    }
    const auto expected = testing::evaluate(program, leaves);
    compile::passes::simplify(program, PlansAlone());
    EXPECT_EQ(testing::evaluate(program, leaves)[0].values, expected[0].values) << first;
    EXPECT_EQ(sees_overwritten(seen_from(first)), overlaps) << first;
  }
}

/// As of what cat() made, of which one view shows the first part and another the second one.
TEST(Simplify, LeavesArraysAloneThatOthersSee) {
  testing::SmallProgram small;
  const ValueId empty = small.add(Op::empty, DType::float32, whole, {});
  ValueId put = empty;
  for (const std::int64_t first : {0, 3}) {
    const ValueId piece = small.leaf(DType::float32, {whole[0], 3});
    put = small.add(Op::overwrite, DType::float32, whole, {put, piece}, View{{6, 1}, first, false});
  }
  for (const std::int64_t first : {0, 3}) {
    small.output(small.add(Op::strided, DType::float32, {whole[0], 3}, {put}, View{{6, 1}, first, false}));
  }
  compile::passes::simplify(small.program, PlansAlone());
  for (const compile::Output& output : small.program.outputs) {
    const ValueId seen = compile::value_at(small.program, output.value).inputs[0];
    const ValueId base = compile::value_at(small.program, seen).inputs[0];
    EXPECT_EQ(compile::value_at(small.program, base).op, Op::overwrite);  // both pieces are there
  }
}

TEST(Simplify, LeavesViewsAloneThatARunPlaces) { EXPECT_TRUE(sees_overwritten(seen_from(0, true))); }

}  // namespace
}  // namespace russet
