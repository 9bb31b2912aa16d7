#pragma once
// half and bfloat where the compiler does not have them. half converts to and from other arithmetic types by itself,
// its arithmetic rounds after each operation; bfloat is for storage. Needs half_bits, half_value, bfloat_bits,
// bfloat_value and bfloat_rounded of namespace russet_numbers.

struct half {
  ushort bits;
  half() = default;
  half(float x) : bits(russet_numbers::half_bits(x)) {}
  operator float() const { return russet_numbers::half_value(bits); }
  half& operator+=(half x) { return *this = half(float(*this) + float(x)); }
  half& operator-=(half x) { return *this = half(float(*this) - float(x)); }
  half& operator*=(half x) { return *this = half(float(*this) * float(x)); }
  half& operator/=(half x) { return *this = half(float(*this) / float(x)); }
};

struct bfloat {
  ushort bits;
  bfloat() = default;
  explicit bfloat(float x) : bits(russet_numbers::bfloat_bits(x)) {}
  explicit operator float() const { return russet_numbers::bfloat_value(bits); }
};
inline float rounded_bfloat(float x) { return russet_numbers::bfloat_rounded(x); }

// With another half or an integer the result is a half, with a float a float, as the usual conversions have it.
#define RUSSET_HALF_OPERATOR(op)                                                 \
  inline half operator op(half a, half b) { return half(float(a) op float(b)); } \
  inline float operator op(half a, float b) { return float(a) op b; }            \
  inline float operator op(float a, half b) { return a op float(b); }            \
  RUSSET_HALF_MIXED(op, half, int)                                               \
  RUSSET_HALF_MIXED(op, half, uint)                                              \
  RUSSET_HALF_MIXED(op, half, long)                                              \
  RUSSET_HALF_MIXED(op, half, ulong)
#define RUSSET_HALF_COMPARISON(op)                                         \
  inline bool operator op(half a, half b) { return float(a) op float(b); } \
  inline bool operator op(half a, float b) { return float(a) op b; }       \
  inline bool operator op(float a, half b) { return a op float(b); }       \
  RUSSET_HALF_MIXED(op, bool, int)                                         \
  RUSSET_HALF_MIXED(op, bool, uint)                                        \
  RUSSET_HALF_MIXED(op, bool, long)                                        \
  RUSSET_HALF_MIXED(op, bool, ulong)
#define RUSSET_HALF_MIXED(op, result, type)                                              \
  inline result operator op(half a, type b) { return a op half(static_cast<float>(b)); } \
  inline result operator op(type a, half b) { return half(static_cast<float>(a)) op b; }
RUSSET_HALF_OPERATOR(+)
RUSSET_HALF_OPERATOR(-)
RUSSET_HALF_OPERATOR(*)
RUSSET_HALF_OPERATOR(/)
RUSSET_HALF_COMPARISON(<)
RUSSET_HALF_COMPARISON(>)
RUSSET_HALF_COMPARISON(<=)
RUSSET_HALF_COMPARISON(>=)
RUSSET_HALF_COMPARISON(==)
RUSSET_HALF_COMPARISON(!=)
#undef RUSSET_HALF_OPERATOR
#undef RUSSET_HALF_COMPARISON
#undef RUSSET_HALF_MIXED
inline half operator-(half a) {
  half negative = a;
  negative.bits ^= 0x8000u;
  return negative;
}
