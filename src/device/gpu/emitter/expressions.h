#pragma once
// Kernel text for single values: types, and an expression an operator.
#include <russet/dtype.h>
#include <string>
#include <string_view>

#include "ops/op.h"

namespace russet::gpu {

/// Whether kernels compute with the type: all but float64.
bool has_type(DType dtype);
/// The type in which a value lies in memory: "half", "uchar" for booleans.
std::string_view stored_type(DType dtype);
/// The type in which a value is computed: "float", "int" (narrow integers and booleans) or "long".
std::string_view register_type(DType dtype);

/// A value from memory as one to compute with.
std::string loaded(DType dtype, std::string_view value);
/// A computed value, already rounded to `dtype`, as memory holds it.
std::string stored(DType dtype, std::string_view value);
/// A computed value rounded as if it had been stored in `dtype` (narrow integers wrap, booleans become 0 or 1).
std::string rounded(DType dtype, std::string_view value);
/// A value of type `from` as one of type `to`.
std::string cast(DType from, DType to, std::string_view value);

/// An elementwise operator's expression on values of type `inputs` (`where`: of its second input), not yet rounded.
/// Throws TypeError if the operator does not take the type.
std::string expression(ops::Op op, DType inputs, std::string_view a, std::string_view b, std::string_view c);
/// Whether the operator's results need no rounding where its inputs needed none.
bool is_exact(ops::Op op, DType dtype);

}  // namespace russet::gpu
