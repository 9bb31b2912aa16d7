#pragma once
// Vectors of 2 and 4, and uint3: CUDA's own, which NVRTC declares together with make_float4(x, y, z, w) and the like.
// Their components have names alone (no v[i]).

#define RUSSET_VECTORS(T)                                          \
  inline T##2 make_##T##2(T x) { return make_##T##2(x, x); }       \
  inline T##4 make_##T##4(T x) { return make_##T##4(x, x, x, x); } \
  inline T##4 make_##T##4(T##2 a, T##2 b) { return make_##T##4(a.x, a.y, b.x, b.y); }
RUSSET_VECTORS(char)
RUSSET_VECTORS(uchar)
RUSSET_VECTORS(short)
RUSSET_VECTORS(ushort)
RUSSET_VECTORS(int)
RUSSET_VECTORS(uint)
RUSSET_VECTORS(float)
#undef RUSSET_VECTORS
inline long2 make_long2(long x) { return make_long2(x, x); }
inline ulong2 make_ulong2(ulong x) { return make_ulong2(x, x); }

#define RUSSET_OPERATOR(T, op)                                                                                    \
  inline T##2 operator op(T##2 a, T##2 b) { return make_##T##2(a.x op b.x, a.y op b.y); }                         \
  inline T##2 operator op(T##2 a, T b) { return make_##T##2(a.x op b, a.y op b); }                                \
  inline T##2 operator op(T a, T##2 b) { return make_##T##2(a op b.x, a op b.y); }                                \
  inline T##4 operator op(T##4 a, T##4 b) { return make_##T##4(a.x op b.x, a.y op b.y, a.z op b.z, a.w op b.w); } \
  inline T##4 operator op(T##4 a, T b) { return make_##T##4(a.x op b, a.y op b, a.z op b, a.w op b); }            \
  inline T##4 operator op(T a, T##4 b) { return make_##T##4(a op b.x, a op b.y, a op b.z, a op b.w); }            \
  inline T##2 & operator op##=(T##2 & a, T##2 b) { return a = a op b; }                                           \
  inline T##4 & operator op##=(T##4 & a, T##4 b) { return a = a op b; }
#define RUSSET_ARITHMETIC(T) RUSSET_OPERATOR(T, +) RUSSET_OPERATOR(T, -) RUSSET_OPERATOR(T, *) RUSSET_OPERATOR(T, /)
#define RUSSET_BITS(T) RUSSET_OPERATOR(T, &) RUSSET_OPERATOR(T, |) RUSSET_OPERATOR(T, ^)
RUSSET_ARITHMETIC(float)
RUSSET_ARITHMETIC(int)
RUSSET_ARITHMETIC(uint)
RUSSET_BITS(int)
RUSSET_BITS(uint)
#undef RUSSET_OPERATOR
#undef RUSSET_ARITHMETIC
#undef RUSSET_BITS
inline float2 operator-(float2 a) { return make_float2(-a.x, -a.y); }
inline float4 operator-(float4 a) { return make_float4(-a.x, -a.y, -a.z, -a.w); }
