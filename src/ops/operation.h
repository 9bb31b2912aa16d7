#pragma once
// Operation: what computes a value. Nodes, keys of plans and programs all hold this one record.
#include <russet/dtype.h>
#include <russet/shape.h>

#include "ops/attributes.h"
#include "ops/op.h"

namespace russet::ops {

/// What shape and type rules see of a value.
struct Description {
  DType dtype = DType::float32;
  Shape shape;
  bool operator==(const Description&) const = default;
};

/// A value and what it is computed by, but for what it reads.
struct Operation : Description {
  Op op = Op::leaf;
  Attributes attributes;
  bool operator==(const Operation&) const = default;
};

}  // namespace russet::ops
