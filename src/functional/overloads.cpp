// Operators of C++.
#include <russet/functional/comparison.h>
#include <russet/functional/elementwise.h>

namespace russet {

Tensor operator+(const Tensor& x, const Tensor& y) { return add(x, y); }
Tensor operator+(const Tensor& x, Scalar y) { return add(x, y); }
Tensor operator+(Scalar x, const Tensor& y) { return add(x, y); }
Tensor operator-(const Tensor& x, const Tensor& y) { return sub(x, y); }
Tensor operator-(const Tensor& x, Scalar y) { return sub(x, y); }
Tensor operator-(Scalar x, const Tensor& y) { return sub(x, y); }
Tensor operator*(const Tensor& x, const Tensor& y) { return mul(x, y); }
Tensor operator*(const Tensor& x, Scalar y) { return mul(x, y); }
Tensor operator*(Scalar x, const Tensor& y) { return mul(x, y); }
Tensor operator/(const Tensor& x, const Tensor& y) { return div(x, y); }
Tensor operator/(const Tensor& x, Scalar y) { return div(x, y); }
Tensor operator/(Scalar x, const Tensor& y) { return div(x, y); }
Tensor operator%(const Tensor& x, const Tensor& y) { return remainder(x, y); }
Tensor operator%(const Tensor& x, Scalar y) { return remainder(x, y); }
const Tensor& operator+=(const Tensor& x, const Tensor& y) { return x.add_(y); }
const Tensor& operator+=(const Tensor& x, Scalar y) { return x.add_(y); }
const Tensor& operator-=(const Tensor& x, const Tensor& y) { return x.sub_(y); }
const Tensor& operator-=(const Tensor& x, Scalar y) { return x.sub_(y); }
const Tensor& operator*=(const Tensor& x, const Tensor& y) { return x.mul_(y); }
const Tensor& operator*=(const Tensor& x, Scalar y) { return x.mul_(y); }
const Tensor& operator/=(const Tensor& x, const Tensor& y) { return x.div_(y); }
const Tensor& operator/=(const Tensor& x, Scalar y) { return x.div_(y); }
Tensor operator-(const Tensor& x) { return neg(x); }
Tensor operator~(const Tensor& x) { return bitwise_not(x); }
Tensor operator&(const Tensor& x, const Tensor& y) { return bitwise_and(x, y); }
Tensor operator|(const Tensor& x, const Tensor& y) { return bitwise_or(x, y); }
Tensor operator^(const Tensor& x, const Tensor& y) { return bitwise_xor(x, y); }
Tensor operator&(const Tensor& x, Scalar y) { return bitwise_and(x, y); }
Tensor operator|(const Tensor& x, Scalar y) { return bitwise_or(x, y); }
Tensor operator^(const Tensor& x, Scalar y) { return bitwise_xor(x, y); }
Tensor operator==(const Tensor& x, const Tensor& y) { return eq(x, y); }
Tensor operator==(const Tensor& x, Scalar y) { return eq(x, y); }
Tensor operator==(Scalar x, const Tensor& y) { return eq(y, x); }
Tensor operator!=(const Tensor& x, const Tensor& y) { return ne(x, y); }
Tensor operator!=(const Tensor& x, Scalar y) { return ne(x, y); }
Tensor operator!=(Scalar x, const Tensor& y) { return ne(y, x); }
Tensor operator<(const Tensor& x, const Tensor& y) { return lt(x, y); }
Tensor operator<(const Tensor& x, Scalar y) { return lt(x, y); }
Tensor operator<(Scalar x, const Tensor& y) { return gt(y, x); }
Tensor operator<=(const Tensor& x, const Tensor& y) { return le(x, y); }
Tensor operator<=(const Tensor& x, Scalar y) { return le(x, y); }
Tensor operator<=(Scalar x, const Tensor& y) { return ge(y, x); }
Tensor operator>(const Tensor& x, const Tensor& y) { return gt(x, y); }
Tensor operator>(const Tensor& x, Scalar y) { return gt(x, y); }
Tensor operator>(Scalar x, const Tensor& y) { return lt(y, x); }
Tensor operator>=(const Tensor& x, const Tensor& y) { return ge(x, y); }
Tensor operator>=(const Tensor& x, Scalar y) { return ge(x, y); }
Tensor operator>=(Scalar x, const Tensor& y) { return le(y, x); }

}  // namespace russet
