#pragma once
// Group: the unit of generated code. A loop nest over one index space with elementwise expressions, loads and stores
// through affine views, and reductions along the inner axes (row group), the outer ones (column group), or both.
#include <russet/dtype.h>
#include <russet/shape.h>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "ops/attributes.h"
#include "ops/op.h"

namespace russet::compile {

/// Where an element lies: buffer `slot`, element offset (+ run-time argument `offset_argument`) + index . strides.
struct Access {
  std::int32_t slot = -1;
  DType dtype = DType::float32;
  std::int64_t offset = 0;
  std::int32_t offset_argument = -1;
  Strides strides;  // elements; one for each axis of the index space; 0 broadcasts; may be negative
  /// Booleans, four neighbours in a byte, the first in its lowest bit: see the pass `masks`.
  bool packed = false;
  bool operator==(const Access&) const = default;
};

/// The part of the index space over which a value varies.
enum class Extent : std::uint8_t {
  full,     // the whole space
  reduced,  // constant along the reduced axes: what reductions give, and what is computed from it
  column,   // row groups: constant along the kept axes: what reductions over these give, and what is computed from it;
            // nothing full or reduced is
};

/// One instruction; its result is known by its position in Group::code. Results are rounded to `dtype` (bfloat16 and
/// float16 are computed in float32 and rounded as if stored; int8, int16, uint8 wrap).
struct Instruction {
  enum class Kind : std::uint8_t {
    load,      // accesses[access]
    store,     // inputs[0] into accesses[access]; dtypes match; extent says over which part it runs
    index,     // int64: accesses[access].offset (+ argument) + index . strides, without a buffer
    scalar,    // run-time argument `argument`: a double or an int64 by dtype's kind
    constant,  // `number`
    compute,   // op (elementwise) on inputs; `cast` included; comparison inputs keep their own type
    random,    // op (uniform, normal, random_bits) at position inputs[0] (int64); argument = offset; seed
    reduce,    // op (sum, prod, amax, amin, argmax, argmin, squared_deviations) over the reduced axes, full to reduced;
               // or over the kept ones, full to column (sum alone).
               // argmax and argmin give the row-major position among the reduced axes. float16, bfloat16 and float32
               // accumulate in float32 or better.
  };
  Kind kind = Kind::compute;
  ops::Op op = ops::Op::leaf;
  DType dtype = DType::float32;
  Extent extent = Extent::full;
  std::array<std::int16_t, 3> inputs{-1, -1, -1};
  std::int16_t access = -1;
  std::int32_t argument = -1;
  ops::Number number{};
  std::uint64_t seed = 0;
  bool operator==(const Instruction&) const = default;
};

struct Group {
  enum class Kind : std::uint8_t {
    elementwise,  // no reductions
    row,          // space = kept axes, then reduced axes; full instructions may follow reductions
    column,       // space = reduced axes, then kept axes; nothing full follows a reduction
  };
  Kind kind = Kind::elementwise;
  /// Sizes of the index space, neighbouring axes merged where all accesses allow it.
  Shape space;
  /// The number of leading axes before the split: kept ones (row) or reduced ones (column); rank (elementwise).
  int split = 0;
  std::vector<Access> accesses;
  std::vector<Instruction> code;
  bool operator==(const Group&) const = default;
};

/// What groups have in common that differ in sizes, places and run-time arguments alone; no text, but equal where the
/// code is.
std::string code_of(const Group& group);

/// A rendering for logs and tests, an instruction a line.
std::string to_string(const Group& group);

}  // namespace russet::compile
