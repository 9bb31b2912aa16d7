#pragma once
// The operators that every device knows: the primitives. All else is a composite written with them.
#include <cstddef>
#include <cstdint>

namespace russet::ops {

enum class Op : std::uint8_t {
  // source: values without inputs
  leaf,      // a buffer that exists: a materialised cell
  scalar,    // a number known at run time only
  constant,  // a number that rules may look at
  empty,     // memory without a value
  iota,      // 0, 1, 2, ... in row-major order
  // random: Philox at (offset, row-major position)
  uniform,
  normal,
  random_bits,
  // elementwise, one input
  neg,
  abs,
  sign,
  floor,
  ceil,
  round,
  trunc,
  exp,
  expm1,
  log,
  log1p,
  sqrt,
  rsqrt,
  sin,
  cos,
  tan,
  asin,
  acos,
  atan,
  sinh,
  cosh,
  tanh,
  erf,
  ndtr,
  normal_density,
  sigmoid,
  bitwise_not,
  cast,
  // elementwise, two inputs
  add,
  sub,
  mul,
  div,
  floor_divide,
  fmod,
  pow,
  atan2,
  maximum,
  minimum,
  eq,
  ne,
  lt,
  le,
  bitwise_and,
  bitwise_or,
  bitwise_xor,
  shift_left,
  shift_right,
  // elementwise, three inputs
  where,
  // reduction: the reduced axes stay, with size 1
  sum,
  prod,
  amax,
  amin,
  argmax,
  argmin,
  squared_deviations,
  // contraction
  matmul,
  convolution,
  convolution_input,
  convolution_weight,
  // movement
  strided,
  overwrite,
  // indexing
  take,
  put,
  // window
  max_pool,
  max_unpool,
  sum_pool,
  sum_unpool,
  // ordering
  argsort,
  cumsum,
  cumprod,
  // attention
  attention,
  attention_logsumexp,
  attention_query_gradient,
  attention_key_gradient,
  attention_value_gradient,
  // linalg: factorisations of the matrices in the last two axes
  cholesky,
  lu,
  qr,
  eigh,
  svd,
  solve_triangular,
};

inline constexpr int op_count = static_cast<int>(Op::solve_triangular) + 1;

/// The most inputs that an operator has: put takes an array, values, and an index for each axis.
inline constexpr std::size_t max_inputs = 10;

enum class Family : std::uint8_t {
  source,
  random,
  elementwise,
  reduction,
  contraction,
  movement,
  indexing,
  window,
  ordering,
  attention,
  linalg,
};

}  // namespace russet::ops
