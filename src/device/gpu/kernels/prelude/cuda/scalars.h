#pragma once
// Scalar types. half and bfloat are classes of ours, whose conversions are single instructions (PTX ISA 9.7.9.21, cvt).

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
static_assert(sizeof(long) == 8 && sizeof(int) == 4 && sizeof(short) == 2, "the dialect's long has 64 bits");

namespace russet_numbers {

// Two numbers are rounded four times as fast as one, which is another kind of instruction (F2FP and F2F).
inline ushort half_bits(float x) {
  uint pair;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(0.0f), "f"(x));
  return static_cast<ushort>(pair);
}
inline float half_value(ushort bits) {
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
  return x;
}
inline ushort bfloat_bits(float x) {
  uint pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(0.0f), "f"(x));
  return static_cast<ushort>(pair);
}
inline float bfloat_value(ushort bits) { return __uint_as_float(static_cast<uint>(bits) << 16); }
/// In the upper half, where a float has its value.
inline float bfloat_rounded(float x) {
  uint pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(x), "f"(0.0f));
  return __uint_as_float(pair);
}
// Two numbers, the first in the lower half.
inline uint half_pair(float x, float y) {
  uint pair;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(y), "f"(x));
  return pair;
}
inline uint bfloat_pair(float x, float y) {
  uint pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(y), "f"(x));
  return pair;
}

}  // namespace russet_numbers

/// The same bits as another type.
template <class To, class From>
inline To as_type(From x) {
  static_assert(sizeof(To) == sizeof(From), "as_type needs types of equal size");
  union Bits {
    From from;
    To to;
    Bits() {}
  };
  Bits bits;
  bits.from = x;
  return bits.to;
}
