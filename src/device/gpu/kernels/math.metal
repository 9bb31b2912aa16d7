// Arithmetic as PyTorch defines it, and the functions that Metal lacks, for generated kernels. Numbers are float, int or
// long here: narrower types are computed in these and rounded by the caller.

/// n / d for any n, by the multiplier and the shift of d (Granlund and Montgomery, "Division by invariant integers
/// using multiplication", 1994, figure 4.1).
inline uint divide(uint n, uint multiplier, uint shift) {
  const uint high = mulhi(multiplier, n);
  return shift == 0u ? n : (high + ((n - high) >> 1u)) >> (shift - 1u);
}

/// A number to divide by.
struct AxisSize {
  uint number, multiplier, shift;
};

// Integers wrap around.
inline int wrap_neg(int x) { return int(0u - uint(x)); }
inline long wrap_neg(long x) { return long(0ul - ulong(x)); }
inline int wrap_add(int a, int b) { return int(uint(a) + uint(b)); }
inline long wrap_add(long a, long b) { return long(ulong(a) + ulong(b)); }
inline int wrap_sub(int a, int b) { return int(uint(a) - uint(b)); }
inline long wrap_sub(long a, long b) { return long(ulong(a) - ulong(b)); }
inline int wrap_mul(int a, int b) { return int(uint(a) * uint(b)); }
inline long wrap_mul(long a, long b) { return long(ulong(a) * ulong(b)); }
inline int absolute(int x) { return x < 0 ? wrap_neg(x) : x; }
inline long absolute(long x) { return x < 0 ? wrap_neg(x) : x; }

inline float sign_of(float x) { return float(int(x > 0.0f) - int(x < 0.0f)); }
inline int sign_of(int x) { return int(x > 0) - int(x < 0); }
inline long sign_of(long x) { return long(int(x > 0) - int(x < 0)); }

// NaN passes; -0 is smaller than 0.
#ifndef HAS_LARGER  // for floats: the GPU has instructions of its own
inline float larger(float a, float b) { return a != a || a > b || (a == b && as_type<int>(b) < 0) ? a : b; }
inline float smaller(float a, float b) { return a != a || a < b || (a == b && as_type<int>(a) < 0) ? a : b; }
#endif
inline int larger(int a, int b) { return a > b ? a : b; }
inline int smaller(int a, int b) { return a < b ? a : b; }
inline long larger(long a, long b) { return a > b ? a : b; }
inline long smaller(long a, long b) { return a < b ? a : b; }

/// Whether a, at position i, goes before b, at position j, as the largest; NaN counts as larger than all.
inline bool precedes_largest(float a, uint i, float b, uint j) {
  const bool nan_a = a != a;
  const bool nan_b = b != b;
  if (nan_a != nan_b) return nan_a;
  return a > b || ((nan_a || a == b) && i < j);
}
inline bool precedes_largest(int a, uint i, int b, uint j) { return a > b || (a == b && i < j); }
inline bool precedes_largest(long a, uint i, long b, uint j) { return a > b || (a == b && i < j); }
inline bool precedes_smallest(float a, uint i, float b, uint j) {
  const bool nan_a = a != a;
  const bool nan_b = b != b;
  if (nan_a != nan_b) return nan_a;
  return a < b || ((nan_a || a == b) && i < j);
}
inline bool precedes_smallest(int a, uint i, int b, uint j) { return a < b || (a == b && i < j); }
inline bool precedes_smallest(long a, uint i, long b, uint j) { return a < b || (a == b && i < j); }

/// Floating to integer drops the fraction; what does not fit, and NaN, becomes the smallest number. (Metal leaves open
/// what a conversion makes of them.)
inline int to_int(float x) { return x >= -2147483648.0f && x < 2147483648.0f ? int(x) : int(0x80000000u); }
inline long to_long(float x) {
  return x >= -9223372036854775808.0f && x < 9223372036854775808.0f ? long(x) : long(0x8000000000000000ul);
}

// Division by 0 gives 0; the smallest number divided by -1 wraps.
inline int floor_divide(int a, int b) {
  if (b == 0) return 0;
  if (b == -1) return wrap_neg(a);
  const int quotient = a / b;
  return a - quotient * b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}
inline long floor_divide(long a, long b) {
  if (b == 0) return 0;
  if (b == -1) return wrap_neg(a);
  const long quotient = a / b;
  return a - quotient * b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}
inline int remainder_of(int a, int b) { return b == 0 || b == -1 ? 0 : a - a / b * b; }
inline long remainder_of(long a, long b) { return b == 0 || b == -1 ? 0l : a - a / b * b; }

/// The bits of x / y's remainder, subtracted bit by bit from the top: exact for all finite x and y != 0.
inline float long_remainder(float x, float y) {
  uint a = as_type<uint>(x) & 0x7fffffffu;
  const uint b = as_type<uint>(y) & 0x7fffffffu;
  const uint sign = as_type<uint>(x) & 0x80000000u;
  int ea = int(a >> 23u);
  int eb = int(b >> 23u);
  uint ma = ea == 0 ? a : (a & 0x7fffffu) | 0x800000u;
  uint mb = eb == 0 ? b : (b & 0x7fffffu) | 0x800000u;
  ea = ea == 0 ? 1 : ea;
  eb = eb == 0 ? 1 : eb;
  // Both mantissas below 2^24; a >= b. What is left of a stays below mb, so a shift never overflows.
  if (ma >= mb && ea == eb) ma -= mb;
  for (; ea > eb; --ea) {
    if (ma >= mb) ma -= mb;
    ma <<= 1u;
  }
  if (ma >= mb) ma -= mb;
  if (ma == 0u) return as_type<float>(sign);
  while (ma < 0x800000u && ea > 1) {
    ma <<= 1u;
    --ea;
  }
  a = ma >= 0x800000u ? (ma & 0x7fffffu) | (uint(ea) << 23u) : ma;
  return as_type<float>(a | sign);
}

/// The remainder with x's sign, exact.
inline float remainder_of(float x, float y) {
  const float a = fabs(x);
  const float b = fabs(y);
  if (!(a < INFINITY) || b == 0.0f || b != b) return NAN;
  if (a < b) return x;
  const float quotient = a / b;
  if (!(quotient < 4194304.0f) || b < 1e-30f) return long_remainder(x, y);
  float rest = fma(-trunc(quotient), b, a);
  if (rest < 0.0f) rest += b;  // the quotient had been rounded up
  if (rest >= b) rest -= b;
  return copysign(rest, x);
}

inline float floor_divide(float a, float b) {
  if (b == 0.0f) return a / b;
  const float remainder = remainder_of(a, b);
  float quotient = (a - remainder) / b;
  if (remainder != 0.0f && (b < 0.0f) != (remainder < 0.0f)) quotient -= 1.0f;
  if (quotient == 0.0f) return copysign(0.0f, a / b);
  const float below = floor(quotient);  // an integer up to rounding
  return quotient - below > 0.5f ? below + 1.0f : below;
}

/// Exact but for wrapping; a negative exponent leaves something of 1 and -1 only.
inline long power(long base, long exponent) {
  if (exponent < 0) return base == 1 ? 1l : (base == -1 ? ((exponent & 1) != 0 ? -1l : 1l) : 0l);
  long result = 1;
  for (; exponent != 0; exponent >>= 1) {
    if ((exponent & 1) != 0) result = wrap_mul(result, base);
    base = wrap_mul(base, base);
  }
  return result;
}
inline int power(int base, int exponent) { return int(uint(ulong(power(long(base), long(exponent))))); }

inline int shift_left(int a, int count) { return count < 0 || count > 31 ? 0 : int(uint(a) << uint(count)); }
inline long shift_left(long a, long count) { return count < 0 || count > 63 ? 0l : long(ulong(a) << ulong(count)); }
inline int shift_right(int a, int count) { return a >> uint(count < 0 || count > 31 ? 31 : count); }
inline long shift_right(long a, long count) { return a >> ulong(count < 0 || count > 63 ? 63l : count); }

/// exp(x) - 1: near 0 its Taylor series, whose rest is below 3e-10 of the result.
inline float exp_minus_1(float x) {
  if (fabs(x) >= 0.5f) return precise::exp(x) - 1.0f;
  float r = 2.7557319e-6f;  // 1 / 9!
  r = fma(r, x, 2.4801587e-5f);
  r = fma(r, x, 1.9841270e-4f);
  r = fma(r, x, 1.3888889e-3f);
  r = fma(r, x, 8.3333333e-3f);
  r = fma(r, x, 4.1666667e-2f);
  r = fma(r, x, 1.6666667e-1f);
  r = fma(r, x, 0.5f);
  return fma(r * x, x, x);
}

/// log(1 + x): the logarithm of the rounded sum, corrected for what the rounding lost (Kahan).
inline float log_plus_1(float x) {
  const float sum = 1.0f + x;
  if (sum == 1.0f) return x;
  const float value = precise::log(sum);
  return sum > 0.0f && sum < INFINITY ? value + (x - (sum - 1.0f)) / sum : value;
}

#ifndef HAS_FAST  // the GPU has instructions of its own
/// 2 to the power of x, and 1 / x, within 2 ulp; what is subnormal may be 0.
inline float fast_exp2(float x) { return precise::exp2(x); }
inline float fast_reciprocal(float x) { return 1.0f / x; }
#endif

/// The error function: two polynomials by Norbert Juffa (2014), within 2 ulp; the one for large x is the binary
/// logarithm of 1 - erf |x|. Without branches: the lanes of a simdgroup would take both.
inline float error_function(float x) {
  const float t = fabs(x);
  const float s = x * x;
  const float u = fma(-5.60337631e-3f, t, 3.49920243e-2f);
  float far = fma(-2.49374843e-5f, t, 5.52836573e-4f);
  far = fma(far, s, u);
  far = fma(far, t, -1.54047906e-1f);
  far = fma(far, t, -9.15890157e-1f);
  far = fma(far, t, -1.6283952f);
  far = copysign(1.0f - fast_exp2(far * t), x);
  float near = -5.96761703e-4f;
  near = fma(near, s, 4.99119423e-3f);
  near = fma(near, s, -2.67681349e-2f);
  near = fma(near, s, 1.12819925e-1f);
  near = fma(near, s, -3.76125336e-1f);
  near = fma(near, s, 1.28379166e-1f);
  near = fma(near, x, x);
  return t > 0.927734375f ? far : near;
}

/// The distribution function of the standard normal distribution, within 6e-8, and within 3e-6 of itself down to -5.5: a
/// polynomial is the binary logarithm of the tail, fitted (weighted least squares, sharpened to an even error) up to 5.7.
/// Beyond that it goes on falling.
inline float normal_distribution(float x) {
  const float t = fabs(x);
  float r = -2.22784529e-8f;
  r = fma(r, t, 6.90116622e-7f);
  r = fma(r, t, -9.16273621e-6f);
  r = fma(r, t, 6.60636651e-5f);
  r = fma(r, t, -0.000244728755f);
  r = fma(r, t, -6.95423078e-5f);
  r = fma(r, t, 0.0070266421f);
  r = fma(r, t, -0.0524903871f);
  r = fma(r, t, -0.45920676f);
  r = fma(r, t, -1.15110552f);
  const float tail = fast_exp2(fma(r, t, -1.0f));
  return x < 0.0f ? tail : 1.0f - tail;
}

/// The density of that distribution, likewise: within 1e-7, and up to 5.5 on either side within 4e-6 of itself.
inline float normal_density(float x) { return 0.39894228f * fast_exp2(x * x * -0.72134752f); }

inline float logistic(float x) { return fast_reciprocal(1.0f + precise::exp(-x)); }
