#pragma once
// Samples of every primitive: inputs of many shapes, laid out in many ways, for every type that the operator takes.
#include <russet/tensor.h>

#include <optional>

#include <string>
#include <vector>

#include "calls/layout.h"
#include "calls/pool.h"
#include "graph/node.h"
#include "ops/table.h"

namespace russet::conformance {

using test::Layout;
using test::layouts;

/// The values that an input draws from.
struct Domain {
  double low = -2;
  double high = 2;
  bool whole = false;    // whole numbers, high included
  double away_from = 0;  // values nearer to 0 than this are pushed away (kinks, poles)
  double diagonal = 0;   // entry i of a matrix's diagonal has (1 + i / size) times this added: it can be factored
};

struct Input {
  Shape shape;
  Domain domain;
  /// Fixed type (indices, conditions); otherwise the type under test.
  std::optional<DType> dtype{};
  /// float32 where the type under test has fewer bits.
  bool wide = false;
};

/// One application of a primitive.
struct Sample {
  std::string name;
  std::vector<Input> inputs;
  graph::NodeInfo given;  // attributes, argument, and what rules `given` take
};

/// The samples of an operator for a type; empty if the operator does not take the type.
std::vector<Sample> samples(const ops::OpRow& row, DType dtype);

/// A tensor of the input's values on a device: the same numbers for the same seed, rounded to `dtype` first and then
/// stored as `stored`, in the given layout. A pool is for one layout and one device.
Tensor make(const Input& input, DType dtype, DType stored, Layout layout, int seed, Device device,
            test::Pool* pool = nullptr);

/// Largest difference allowed, relative to the largest reference value, for results of this type.
double tolerance(const ops::OpRow& row, DType dtype);

}  // namespace russet::conformance
