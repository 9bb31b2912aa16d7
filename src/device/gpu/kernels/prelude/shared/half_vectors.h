#pragma once
// Vectors of half and bfloat, and conversions between vectors. Needs the other vectors, and
// half_pair and bfloat_pair of namespace russet_numbers.

struct alignas(4) half2 {
  half x, y;
  half& operator[](uint i) { return (&x)[i]; }
  half operator[](uint i) const { return (&x)[i]; }
};
struct alignas(8) half4 {
  half x, y, z, w;
  half& operator[](uint i) { return (&x)[i]; }
  half operator[](uint i) const { return (&x)[i]; }
};
struct alignas(4) bfloat2 {
  bfloat x, y;
  bfloat& operator[](uint i) { return (&x)[i]; }
  bfloat operator[](uint i) const { return (&x)[i]; }
};
struct alignas(8) bfloat4 {
  bfloat x, y, z, w;
  bfloat& operator[](uint i) { return (&x)[i]; }
  bfloat operator[](uint i) const { return (&x)[i]; }
};

inline half2 make_half2(half x) { return {x, x}; }
inline half2 make_half2(half x, half y) { return {x, y}; }
inline half2 make_half2(float2 a) { return __builtin_bit_cast(half2, russet_numbers::half_pair(a.x, a.y)); }
inline half4 make_half4(half x) { return {x, x, x, x}; }
inline half4 make_half4(half x, half y, half z, half w) { return {x, y, z, w}; }
inline half4 make_half4(float4 a) {
  return __builtin_bit_cast(half4,
                            make_uint2(russet_numbers::half_pair(a.x, a.y), russet_numbers::half_pair(a.z, a.w)));
}
inline bfloat2 make_bfloat2(bfloat x, bfloat y) { return {x, y}; }
inline bfloat2 make_bfloat2(float2 a) { return __builtin_bit_cast(bfloat2, russet_numbers::bfloat_pair(a.x, a.y)); }
inline bfloat4 make_bfloat4(bfloat x, bfloat y, bfloat z, bfloat w) { return {x, y, z, w}; }
inline bfloat4 make_bfloat4(float4 a) {
  return __builtin_bit_cast(bfloat4,
                            make_uint2(russet_numbers::bfloat_pair(a.x, a.y), russet_numbers::bfloat_pair(a.z, a.w)));
}

// A bfloat is the upper half of a float.
inline float2 make_float2(bfloat2 a) {
  const uint bits = __builtin_bit_cast(uint, a);
  return make_float2(__builtin_bit_cast(float, bits << 16u), __builtin_bit_cast(float, bits & 0xffff0000u));
}
inline float4 make_float4(bfloat4 a) {
  const float2 lower = make_float2(bfloat2{a.x, a.y});
  const float2 upper = make_float2(bfloat2{a.z, a.w});
  return make_float4(lower.x, lower.y, upper.x, upper.y);
}

// Conversions between vectors of equal length.
#define RUSSET_CONVERT(to, from)                                            \
  inline to##2 make_##to##2(from##2 a) { return to##2 {to(a.x), to(a.y)}; } \
  inline to##4 make_##to##4(from##4 a) { return to##4 {to(a.x), to(a.y), to(a.z), to(a.w)}; }
RUSSET_CONVERT(float, half)
RUSSET_CONVERT(float, char)
RUSSET_CONVERT(float, uchar)
RUSSET_CONVERT(float, short)
RUSSET_CONVERT(float, ushort)
RUSSET_CONVERT(float, int)
RUSSET_CONVERT(float, uint)
RUSSET_CONVERT(int, float)
RUSSET_CONVERT(int, uint)
RUSSET_CONVERT(uint, int)
RUSSET_CONVERT(uint, float)
#undef RUSSET_CONVERT

#define RUSSET_HALF_VECTOR_OPERATOR(op)                                                                   \
  inline half2 operator op(half2 a, half2 b) { return {a.x op b.x, a.y op b.y}; }                         \
  inline half4 operator op(half4 a, half4 b) { return {a.x op b.x, a.y op b.y, a.z op b.z, a.w op b.w}; } \
  inline half2 operator op(half2 a, half b) { return {a.x op b, a.y op b}; }                              \
  inline half4 operator op(half4 a, half b) { return {a.x op b, a.y op b, a.z op b, a.w op b}; }
RUSSET_HALF_VECTOR_OPERATOR(+)
RUSSET_HALF_VECTOR_OPERATOR(-)
RUSSET_HALF_VECTOR_OPERATOR(*)
RUSSET_HALF_VECTOR_OPERATOR(/)
#undef RUSSET_HALF_VECTOR_OPERATOR
