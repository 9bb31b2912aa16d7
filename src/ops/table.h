#pragma once
// The operator table: what each primitive is, with no device and no gradient in sight.
#include <russet/dtype.h>
#include <array>
#include <span>
#include <string_view>

#include "ops/operation.h"

namespace russet::ops {

/// How the type of the result follows from the types of the inputs, and which input types are taken. Inputs of one
/// elementwise operator have one type (casts are nodes of their own), `where`'s condition aside. Indices are integers;
/// the first input of max_pool and max_unpool, which only chooses positions, may have another type than the second.
enum class TypeRule : std::uint8_t {
  given,       // stated by the caller (cast, sources); random numbers are float32, random_bits int64
  same,        // any type; the result has it (that of the values where a condition, index or selector takes part)
  numeric,     // any but boolean
  floating,    // floating types only; integers are cast to float32 before
  integral,    // integers and boolean
  comparison,  // any type; boolean result
  widen,       // boolean and integers become int64 (sums)
  index,       // any type; int64 result
  wide,        // floating types; float32, or float64
  precise,     // float32 and float64
};

/// How the shape of the result follows.
enum class ShapeRule : std::uint8_t {
  given,      // stated by the caller
  same,       // the first input's
  broadcast,  // NumPy's rule over all inputs
  reduced,    // size 1 on the reduced axes
  matmul,     // [batch..., m, k] x [batch..., k, n]
  convolution,
  pool,
  take,  // the index's sizes, then those of the array's axes that are not named
  attention,
  linalg,
};

/// The autocast policy: run in the lower precision, in float32, in the widest type of the inputs, or as it comes.
enum class Autocast : std::uint8_t { none, lower, float32, widest };

/// What computing a result costs: of elementwise operators and random numbers how dear an element is, of others how
/// many multiplications and additions there are (operations() in cost.h). Devices give the former their times.
enum class Cost : std::uint8_t {
  simple,     // an instruction or two for each element of the result, or a copy
  root,       // square roots and quotients: one slow instruction
  series,     // a polynomial
  chain,      // several of those, or a call for each element
  remainder,  // quotients of integers
  draw,       // random numbers: Philox
  draw_more,  // Philox, and more work on its numbers
  product,    // contractions: two for each multiplication of theirs
  convolution,
  convolution_input,
  convolution_weight,
  attention,
  attention_gradient,  // computes the scores anew
  factorisation,       // the cube of a matrix's size
  substitution,        // of triangular systems
};

struct Tolerance {
  double float32 = 1e-6;  // relative to the largest reference value, 16-bit types by their epsilon
  double float64 = 1e-13;
};

struct OpRow {
  Op op;
  std::string_view name;
  Family family;
  int inputs;
  TypeRule type;
  ShapeRule shape;
  Autocast autocast;
  Cost cost;
  std::string_view documentation;
  bool has_argument = false;  // takes a run-time argument
  Tolerance tolerance{};
  int optional_inputs = 0;  // of `inputs`, the last ones
};

std::span<const OpRow> table();
const OpRow& row(Op op);
/// The row of a name, or nullptr.
const OpRow* find(std::string_view name);

/// The result's description. `given` holds what the caller states for rules `given`. Throws ShapeError or TypeError
/// that names the operator and all inputs.
Description infer(Op op, std::span<const Description* const> inputs, const Attributes& attributes,
                  const Description& given);

/// Output size along one axis of a convolution or a pooling window; may be 0 or negative when nothing fits.
constexpr std::int64_t window_output(std::int64_t size, std::int64_t kernel, std::int64_t stride, std::int64_t before,
                                     std::int64_t after, std::int64_t dilation) {
  const std::int64_t room = size + before + after - dilation * (kernel - 1) - 1;
  return room < 0 ? 0 : room / stride + 1;
}

}  // namespace russet::ops
