#pragma once
// Floating-point functions by their Metal names. fabs, floor, fma, min and others of float are CUDA's own; what is
// rounded stands in precise alone, as on Metal: CUDA's functions within 1 or 2 ulp, divisions and roots exactly rounded
// (--prec-div and --prec-sqrt, which are on unless asked otherwise), subnormals kept, and no contraction
// (--fmad=false).

#define INFINITY (__int_as_float(0x7f800000))
#define NAN (__int_as_float(0x7fffffff))

inline float sign(float x) { return x != x ? 0.0f : (x < 0.0f ? -1.0f : (x > 0.0f ? 1.0f : x)); }
inline float clamp(float x, float low, float high) { return fminf(fmaxf(x, low), high); }
inline float select(float a, float b, bool c) { return c ? b : a; }

// Of two floats, NaN if one is; -0 is smaller than 0 (PTX ISA 9.7.3, max and min).
#define HAS_LARGER
inline float larger(float a, float b) {
  float result;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
}
inline float smaller(float a, float b) {
  float result;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
}

// ex2 is within 2 ulp, rcp within 1 (PTX ISA 9.7.3).
#define HAS_FAST
inline float fast_exp2(float x) {
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
  return power;
}
inline float fast_reciprocal(float x) {
  float reciprocal;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(reciprocal) : "f"(x));
  return reciprocal;
}

inline half fabs(half x) { return half(fabsf(float(x))); }
inline half abs(half x) { return half(fabsf(float(x))); }
inline half floor(half x) { return half(floorf(float(x))); }
inline half ceil(half x) { return half(ceilf(float(x))); }
inline half min(half x, half y) { return half(fminf(float(x), float(y))); }
inline half max(half x, half y) { return half(fmaxf(float(x), float(y))); }
inline half clamp(half x, half low, half high) { return min(max(x, low), high); }
inline half select(half a, half b, bool c) { return c ? b : a; }
inline bool isnan(half x) { return isnan(float(x)); }
inline bool isinf(half x) { return isinf(float(x)); }
inline bool isfinite(half x) { return isfinite(float(x)); }

namespace precise {

inline float exp(float x) { return expf(x); }
inline float exp2(float x) { return exp2f(x); }
inline float exp10(float x) { return exp10f(x); }
inline float log(float x) { return logf(x); }
inline float log2(float x) { return log2f(x); }
inline float log10(float x) { return log10f(x); }
inline float sin(float x) { return sinf(x); }
inline float cos(float x) { return cosf(x); }
inline float tan(float x) { return tanf(x); }
inline float asin(float x) { return asinf(x); }
inline float acos(float x) { return acosf(x); }
inline float atan(float x) { return atanf(x); }
inline float atan2(float y, float x) { return atan2f(y, x); }
inline float sinh(float x) { return sinhf(x); }
inline float cosh(float x) { return coshf(x); }
inline float tanh(float x) { return tanhf(x); }
inline float asinh(float x) { return asinhf(x); }
inline float acosh(float x) { return acoshf(x); }
inline float atanh(float x) { return atanhf(x); }
inline float pow(float x, float y) { return powf(x, y); }
/// For x >= 0.
inline float powr(float x, float y) { return x < 0.0f ? NAN : powf(x, y); }
inline float sqrt(float x) { return __fsqrt_rn(x); }
inline float rsqrt(float x) { return __frsqrt_rn(x); }
inline float divide(float x, float y) { return __fdiv_rn(x, y); }
inline float ceil(float x) { return ceilf(x); }
inline float clamp(float x, float low, float high) { return fminf(fmaxf(x, low), high); }
inline float fabs(float x) { return fabsf(x); }
inline float floor(float x) { return floorf(x); }
inline float fma(float a, float b, float c) { return fmaf(a, b, c); }
inline float fmax(float x, float y) { return fmaxf(x, y); }
inline float fmin(float x, float y) { return fminf(x, y); }
inline float fmod(float x, float y) { return fmodf(x, y); }
inline float max(float x, float y) { return fmaxf(x, y); }
inline float min(float x, float y) { return fminf(x, y); }
inline float rint(float x) { return rintf(x); }
inline float round(float x) { return roundf(x); }
inline float trunc(float x) { return truncf(x); }

}  // namespace precise

// By element.
#define RUSSET_VECTOR_1(name, scalar)                                            \
  inline float2 name(float2 x) { return make_float2(scalar(x.x), scalar(x.y)); } \
  inline float4 name(float4 x) { return make_float4(scalar(x.x), scalar(x.y), scalar(x.z), scalar(x.w)); }
#define RUSSET_VECTOR_2(name, scalar)                                                                \
  inline float2 name(float2 x, float2 y) { return make_float2(scalar(x.x, y.x), scalar(x.y, y.y)); } \
  inline float4 name(float4 x, float4 y) {                                                           \
    return make_float4(scalar(x.x, y.x), scalar(x.y, y.y), scalar(x.z, y.z), scalar(x.w, y.w));      \
  }
RUSSET_VECTOR_1(fabs, fabsf)
RUSSET_VECTOR_1(abs, fabsf)
RUSSET_VECTOR_1(floor, floorf)
RUSSET_VECTOR_1(ceil, ceilf)
RUSSET_VECTOR_1(trunc, truncf)
RUSSET_VECTOR_1(rint, rintf)
RUSSET_VECTOR_1(round, roundf)
RUSSET_VECTOR_2(min, fminf)
RUSSET_VECTOR_2(max, fmaxf)
RUSSET_VECTOR_2(fmin, fminf)
RUSSET_VECTOR_2(fmax, fmaxf)
inline float2 fma(float2 a, float2 b, float2 c) { return make_float2(fmaf(a.x, b.x, c.x), fmaf(a.y, b.y, c.y)); }
inline float4 fma(float4 a, float4 b, float4 c) {
  return make_float4(fmaf(a.x, b.x, c.x), fmaf(a.y, b.y, c.y), fmaf(a.z, b.z, c.z), fmaf(a.w, b.w, c.w));
}
inline float dot(float2 a, float2 b) { return a.x * b.x + a.y * b.y; }
inline float dot(float4 a, float4 b) { return a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w; }
namespace precise {
RUSSET_VECTOR_1(exp, expf)
RUSSET_VECTOR_1(exp2, exp2f)
RUSSET_VECTOR_1(log, logf)
RUSSET_VECTOR_1(log2, log2f)
RUSSET_VECTOR_1(sin, sinf)
RUSSET_VECTOR_1(cos, cosf)
RUSSET_VECTOR_1(tanh, tanhf)
RUSSET_VECTOR_1(sqrt, __fsqrt_rn)
RUSSET_VECTOR_1(rsqrt, __frsqrt_rn)
RUSSET_VECTOR_2(pow, powf)
}  // namespace precise
#undef RUSSET_VECTOR_1
#undef RUSSET_VECTOR_2
