#pragma once
// Comparisons and logic: boolean results of the broadcast shape, never part of a gradient.
#include <russet/tensor.h>

namespace russet {

Tensor eq(const Tensor& x, const Tensor& y);
Tensor eq(const Tensor& x, Scalar y);
Tensor ne(const Tensor& x, const Tensor& y);
Tensor ne(const Tensor& x, Scalar y);
Tensor lt(const Tensor& x, const Tensor& y);
Tensor lt(const Tensor& x, Scalar y);
Tensor le(const Tensor& x, const Tensor& y);
Tensor le(const Tensor& x, Scalar y);
Tensor gt(const Tensor& x, const Tensor& y);
Tensor gt(const Tensor& x, Scalar y);
Tensor ge(const Tensor& x, const Tensor& y);
Tensor ge(const Tensor& x, Scalar y);

inline Tensor operator==(const Tensor& x, const Tensor& y) { return eq(x, y); }
inline Tensor operator==(const Tensor& x, Scalar y) { return eq(x, y); }
inline Tensor operator==(Scalar x, const Tensor& y) { return eq(y, x); }
inline Tensor operator!=(const Tensor& x, const Tensor& y) { return ne(x, y); }
inline Tensor operator!=(const Tensor& x, Scalar y) { return ne(x, y); }
inline Tensor operator!=(Scalar x, const Tensor& y) { return ne(y, x); }
inline Tensor operator<(const Tensor& x, const Tensor& y) { return lt(x, y); }
inline Tensor operator<(const Tensor& x, Scalar y) { return lt(x, y); }
inline Tensor operator<(Scalar x, const Tensor& y) { return gt(y, x); }
inline Tensor operator<=(const Tensor& x, const Tensor& y) { return le(x, y); }
inline Tensor operator<=(const Tensor& x, Scalar y) { return le(x, y); }
inline Tensor operator<=(Scalar x, const Tensor& y) { return ge(y, x); }
inline Tensor operator>(const Tensor& x, const Tensor& y) { return gt(x, y); }
inline Tensor operator>(const Tensor& x, Scalar y) { return gt(x, y); }
inline Tensor operator>(Scalar x, const Tensor& y) { return lt(y, x); }
inline Tensor operator>=(const Tensor& x, const Tensor& y) { return ge(x, y); }
inline Tensor operator>=(const Tensor& x, Scalar y) { return ge(x, y); }
inline Tensor operator>=(Scalar x, const Tensor& y) { return le(y, x); }

Tensor isnan(const Tensor& x);
Tensor isinf(const Tensor& x);
Tensor isfinite(const Tensor& x);
Tensor isposinf(const Tensor& x);
Tensor isneginf(const Tensor& x);
/// Numbers count as false when they are zero.
Tensor logical_not(const Tensor& x);
Tensor logical_and(const Tensor& x, const Tensor& y);
Tensor logical_or(const Tensor& x, const Tensor& y);
Tensor logical_xor(const Tensor& x, const Tensor& y);

/// |x - y| <= atol + rtol * |y|, element by element.
Tensor isclose(const Tensor& x, const Tensor& y, double rtol = 1e-5, double atol = 1e-8, bool equal_nan = false);
/// Whether isclose holds everywhere. Waits for the values.
bool allclose(const Tensor& x, const Tensor& y, double rtol = 1e-5, double atol = 1e-8, bool equal_nan = false);
/// Whether sizes and values are the same. Waits for the values. Throws TypeError for different types.
bool equal(const Tensor& x, const Tensor& y);

}  // namespace russet
