#pragma once
// How many operations a primitive takes.
#include <russet/shape.h>

#include <span>

#include "ops/attributes.h"
#include "ops/op.h"

namespace russet::ops {

/// Multiplications and additions for inputs of these shapes, by the cost in the operator's row; one for each element of
/// the result where that says nothing else. `companions`: gradients of an attention that that for the key is computed
/// with.
double operations(Op op, const Attributes& attributes, std::span<const Shape> inputs, const Shape& output,
                  std::span<const Op> companions = {});

}  // namespace russet::ops
