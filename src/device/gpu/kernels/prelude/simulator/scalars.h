#pragma once
// Scalar types (Metal Shading Language Specification 2.1): half and bfloat are classes here. half converts to and from
// other arithmetic types by itself, its arithmetic rounds after each operation; bfloat is for storage.

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
static_assert(sizeof(long) == 8 && sizeof(int) == 4 && sizeof(short) == 2);

namespace russet_numbers {

inline float float_of_bits(uint bits) { return __builtin_bit_cast(float, bits); }
inline uint bits_of_float(float x) { return __builtin_bit_cast(uint, x); }

#ifdef __F16C__
inline ushort half_bits(float x) { return __builtin_bit_cast(ushort, static_cast<__fp16>(x)); }
inline float half_value(ushort bits) { return static_cast<float>(__builtin_bit_cast(__fp16, bits)); }
#else
/// Rounds to nearest, ties to even.
inline ushort half_bits(float x) {
  const uint bits = bits_of_float(x);
  const uint sign = bits >> 16 & 0x8000u;
  const uint magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<ushort>(sign | 0x7e00u | (magnitude >> 13 & 0x3ffu));
  if (magnitude >= 0x477ff000u) return static_cast<ushort>(sign | 0x7c00u);
  if (magnitude < 0x38800000u) {
    // Below the smallest normal number: adding 0.5 leaves multiples of 2^-24 in the lowest bits.
    const float shifted = float_of_bits(magnitude) + 0.5f;
    return static_cast<ushort>(sign | (bits_of_float(shifted) - 0x3f000000u));
  }
  const uint odd = magnitude >> 13 & 1u;
  return static_cast<ushort>(sign | (magnitude - 0x38000000u + 0xfffu + odd) >> 13);
}
inline float half_value(ushort bits) {
  const uint sign = (bits & 0x8000u) << 16;
  const uint magnitude = bits & 0x7fffu;
  if (magnitude >= 0x7c00u) return float_of_bits(sign | 0x7f800000u | (magnitude & 0x3ffu) << 13);
  const float value = float_of_bits(magnitude << 13) * 0x1p112f;
  return float_of_bits(sign | bits_of_float(value));
}
#endif

/// Rounds to nearest, ties to even.
inline ushort bfloat_bits(float x) {
  const uint bits = bits_of_float(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<ushort>(bits >> 16 | 0x40u);
  return static_cast<ushort>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}
inline float bfloat_value(ushort bits) { return float_of_bits(static_cast<uint>(bits) << 16); }
inline float bfloat_rounded(float x) { return bfloat_value(bfloat_bits(x)); }
inline uint half_pair(float x, float y) { return half_bits(x) | static_cast<uint>(half_bits(y)) << 16; }
inline uint bfloat_pair(float x, float y) { return bfloat_bits(x) | static_cast<uint>(bfloat_bits(y)) << 16; }

}  // namespace russet_numbers

#include "../shared/half.h"

namespace russet_simulator {
template <class To, class From>
inline To bit_cast(From x) {
  static_assert(sizeof(To) == sizeof(From), "as_type needs types of equal size");
  return __builtin_bit_cast(To, x);
}
}  // namespace russet_simulator

namespace metal {
/// 2.x "as_type": the same bits as another type.
template <class To, class From>
inline To as_type(From x) {
  return russet_simulator::bit_cast<To>(x);
}
}  // namespace metal
