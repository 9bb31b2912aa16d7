#pragma once
// The autocast policy, asked by composites where they hand tensors to primitives.
#include <russet/autocast.h>
#include <russet/tensor.h>

#include "ops/op.h"
#include "ops/table.h"

namespace russet::functional {

/// x as an operator of this policy takes it within an Autocast scope: cast down, or up to float32, or as it is. Only
/// floating types other than float64 change; outside a scope nothing does.
Tensor autocast(ops::Autocast policy, const Tensor& x);
/// The same by the operator table's column.
Tensor autocast(ops::Op op, const Tensor& x);

}  // namespace russet::functional
