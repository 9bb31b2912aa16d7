#pragma once
// Floating-point functions (Metal Shading Language Specification 6.2, 6.3, 6.5). What is exact is declared in metal;
// what is rounded, as Metal's precise functions are, in metal::precise alone, so that no kernel depends on the math
// mode. Those that no processor rounds correctly are the simulator's (simulator/functions.cpp).
#include "integers.h"

// Metal Shading Language Specification 6.5: constants of single precision.
#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")

namespace metal {

inline float fabs(float x) { return __builtin_fabsf(x); }
inline float abs(float x) { return __builtin_fabsf(x); }
inline float floor(float x) { return __builtin_floorf(x); }
inline float ceil(float x) { return __builtin_ceilf(x); }
inline float trunc(float x) { return __builtin_truncf(x); }
inline float rint(float x) { return __builtin_rintf(x); }
inline float round(float x) { return __builtin_roundf(x); }
inline float copysign(float x, float y) { return __builtin_copysignf(x, y); }
inline float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline float fmod(float x, float y) { return __builtin_fmodf(x, y); }
inline float ldexp(float x, int exponent) { return __builtin_ldexpf(x, exponent); }
inline bool isnan(float x) { return __builtin_isnan(x); }
inline bool isinf(float x) { return __builtin_isinf(x); }
inline bool isfinite(float x) { return __builtin_isfinite(x); }
inline bool signbit(float x) { return __builtin_signbitf(x); }
inline float sign(float x) { return isnan(x) || x == 0 ? (isnan(x) ? 0.0f : x) : (x < 0 ? -1.0f : 1.0f); }

// Of a number and a NaN, the number. Which zero comes out of +0 and -0 is unspecified.
inline float fmin(float x, float y) { return __builtin_fminf(x, y); }
inline float fmax(float x, float y) { return __builtin_fmaxf(x, y); }
inline float min(float x, float y) { return __builtin_fminf(x, y); }
inline float max(float x, float y) { return __builtin_fmaxf(x, y); }
inline float clamp(float x, float low, float high) { return min(max(x, low), high); }
inline float select(float a, float b, bool c) { return c ? b : a; }

inline half fabs(half x) { return half(fabs(float(x))); }
inline half abs(half x) { return half(fabs(float(x))); }
inline half floor(half x) { return half(floor(float(x))); }
inline half ceil(half x) { return half(ceil(float(x))); }
inline half min(half x, half y) { return half(min(float(x), float(y))); }
inline half max(half x, half y) { return half(max(float(x), float(y))); }
inline half clamp(half x, half low, half high) { return min(max(x, low), high); }
inline half select(half a, half b, bool c) { return c ? b : a; }
inline bool isnan(half x) { return isnan(float(x)); }
inline bool isinf(half x) { return isinf(float(x)); }
inline bool isfinite(half x) { return isfinite(float(x)); }

namespace precise {

// Functions of one and of two arguments, each by the name that the module's table has for it.
#define RUSSET_FUNCTION(name)                                                           \
  extern "C" __attribute__((const, visibility("hidden"))) float russet_##name(float x); \
  inline float name(float x) { return russet_##name(x); }
#define RUSSET_FUNCTION_OF_TWO(name)                                                             \
  extern "C" __attribute__((const, visibility("hidden"))) float russet_##name(float x, float y); \
  inline float name(float x, float y) { return russet_##name(x, y); }
RUSSET_FUNCTION(exp)
RUSSET_FUNCTION(exp2)
RUSSET_FUNCTION(exp10)
RUSSET_FUNCTION(log)
RUSSET_FUNCTION(log2)
RUSSET_FUNCTION(log10)
RUSSET_FUNCTION(sin)
RUSSET_FUNCTION(cos)
RUSSET_FUNCTION(tan)
RUSSET_FUNCTION(asin)
RUSSET_FUNCTION(acos)
RUSSET_FUNCTION(atan)
RUSSET_FUNCTION(sinh)
RUSSET_FUNCTION(cosh)
RUSSET_FUNCTION(tanh)
RUSSET_FUNCTION(asinh)
RUSSET_FUNCTION(acosh)
RUSSET_FUNCTION(atanh)
RUSSET_FUNCTION_OF_TWO(atan2)
RUSSET_FUNCTION_OF_TWO(pow)
#undef RUSSET_FUNCTION
#undef RUSSET_FUNCTION_OF_TWO

/// For x >= 0.
inline float powr(float x, float y) { return x < 0 ? __builtin_nanf("") : russet_pow(x, y); }
inline float sqrt(float x) { return __builtin_sqrtf(x); }
inline float rsqrt(float x) { return static_cast<float>(1.0 / __builtin_sqrt(static_cast<double>(x))); }
inline float divide(float x, float y) { return x / y; }
using metal::ceil;
using metal::clamp;
using metal::fabs;
using metal::floor;
using metal::fma;
using metal::fmax;
using metal::fmin;
using metal::fmod;
using metal::max;
using metal::min;
using metal::rint;
using metal::round;
using metal::trunc;

}  // namespace precise

// By element.
#define RUSSET_VECTOR_1(space, name)                                                       \
  inline float2 name(float2 x) { return float2{space::name(x.x), space::name(x.y)}; }      \
  inline float4 name(float4 x) {                                                           \
    return float4{space::name(x.x), space::name(x.y), space::name(x.z), space::name(x.w)}; \
  }
#define RUSSET_VECTOR_2(space, name)                                                                           \
  inline float2 name(float2 x, float2 y) { return float2{space::name(x.x, y.x), space::name(x.y, y.y)}; }      \
  inline float4 name(float4 x, float4 y) {                                                                     \
    return float4{space::name(x.x, y.x), space::name(x.y, y.y), space::name(x.z, y.z), space::name(x.w, y.w)}; \
  }
RUSSET_VECTOR_1(metal, fabs)
RUSSET_VECTOR_1(metal, abs)
RUSSET_VECTOR_1(metal, floor)
RUSSET_VECTOR_1(metal, ceil)
RUSSET_VECTOR_1(metal, trunc)
RUSSET_VECTOR_1(metal, rint)
RUSSET_VECTOR_1(metal, round)
RUSSET_VECTOR_2(metal, min)
RUSSET_VECTOR_2(metal, max)
RUSSET_VECTOR_2(metal, fmin)
RUSSET_VECTOR_2(metal, fmax)
inline float2 fma(float2 a, float2 b, float2 c) { return float2{fma(a.x, b.x, c.x), fma(a.y, b.y, c.y)}; }
inline float4 fma(float4 a, float4 b, float4 c) {
  return float4{fma(a.x, b.x, c.x), fma(a.y, b.y, c.y), fma(a.z, b.z, c.z), fma(a.w, b.w, c.w)};
}
inline float dot(float2 a, float2 b) { return a.x * b.x + a.y * b.y; }
inline float dot(float4 a, float4 b) { return a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w; }
namespace precise {
RUSSET_VECTOR_1(precise, exp)
RUSSET_VECTOR_1(precise, exp2)
RUSSET_VECTOR_1(precise, log)
RUSSET_VECTOR_1(precise, log2)
RUSSET_VECTOR_1(precise, sin)
RUSSET_VECTOR_1(precise, cos)
RUSSET_VECTOR_1(precise, tanh)
RUSSET_VECTOR_1(precise, sqrt)
RUSSET_VECTOR_1(precise, rsqrt)
RUSSET_VECTOR_2(precise, pow)
}  // namespace precise
#undef RUSSET_VECTOR_1
#undef RUSSET_VECTOR_2

}  // namespace metal
