#pragma once
// Operators of C++, and the functions that they stand for. tensor.h includes this.
#include <russet/scalar.h>

namespace russet {

class Tensor;

// add, sub, mul, div, remainder and their in-place forms; neg; bitwise_not, bitwise_and, bitwise_or, bitwise_xor.
Tensor operator+(const Tensor& x, const Tensor& y);
Tensor operator+(const Tensor& x, Scalar y);
Tensor operator+(Scalar x, const Tensor& y);
Tensor operator-(const Tensor& x, const Tensor& y);
Tensor operator-(const Tensor& x, Scalar y);
Tensor operator-(Scalar x, const Tensor& y);
Tensor operator*(const Tensor& x, const Tensor& y);
Tensor operator*(const Tensor& x, Scalar y);
Tensor operator*(Scalar x, const Tensor& y);
Tensor operator/(const Tensor& x, const Tensor& y);
Tensor operator/(const Tensor& x, Scalar y);
Tensor operator/(Scalar x, const Tensor& y);
Tensor operator%(const Tensor& x, const Tensor& y);
Tensor operator%(const Tensor& x, Scalar y);
const Tensor& operator+=(const Tensor& x, const Tensor& y);
const Tensor& operator+=(const Tensor& x, Scalar y);
const Tensor& operator-=(const Tensor& x, const Tensor& y);
const Tensor& operator-=(const Tensor& x, Scalar y);
const Tensor& operator*=(const Tensor& x, const Tensor& y);
const Tensor& operator*=(const Tensor& x, Scalar y);
const Tensor& operator/=(const Tensor& x, const Tensor& y);
const Tensor& operator/=(const Tensor& x, Scalar y);
Tensor operator-(const Tensor& x);
Tensor operator~(const Tensor& x);
Tensor operator&(const Tensor& x, const Tensor& y);
Tensor operator|(const Tensor& x, const Tensor& y);
Tensor operator^(const Tensor& x, const Tensor& y);
Tensor operator&(const Tensor& x, Scalar y);
Tensor operator|(const Tensor& x, Scalar y);
Tensor operator^(const Tensor& x, Scalar y);

// eq, ne, lt, le, gt, ge: boolean results of the broadcast shape.
Tensor operator==(const Tensor& x, const Tensor& y);
Tensor operator==(const Tensor& x, Scalar y);
Tensor operator==(Scalar x, const Tensor& y);
Tensor operator!=(const Tensor& x, const Tensor& y);
Tensor operator!=(const Tensor& x, Scalar y);
Tensor operator!=(Scalar x, const Tensor& y);
Tensor operator<(const Tensor& x, const Tensor& y);
Tensor operator<(const Tensor& x, Scalar y);
Tensor operator<(Scalar x, const Tensor& y);
Tensor operator<=(const Tensor& x, const Tensor& y);
Tensor operator<=(const Tensor& x, Scalar y);
Tensor operator<=(Scalar x, const Tensor& y);
Tensor operator>(const Tensor& x, const Tensor& y);
Tensor operator>(const Tensor& x, Scalar y);
Tensor operator>(Scalar x, const Tensor& y);
Tensor operator>=(const Tensor& x, const Tensor& y);
Tensor operator>=(const Tensor& x, Scalar y);
Tensor operator>=(Scalar x, const Tensor& y);

}  // namespace russet
