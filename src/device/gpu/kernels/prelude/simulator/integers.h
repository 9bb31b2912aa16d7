#pragma once
// Integer functions (Metal Shading Language Specification 6.4), one overload a type: what is ambiguous on Metal is
// ambiguous here.
#include "vectors.h"

namespace metal {

#define RUSSET_INTEGER(T, U)                                                                                    \
  inline T min(T a, T b) { return b < a ? b : a; }                                                              \
  inline T max(T a, T b) { return a < b ? b : a; }                                                              \
  inline T clamp(T x, T low, T high) { return min(max(x, low), high); }                                         \
  inline T select(T a, T b, bool c) { return c ? b : a; }                                                       \
  inline T popcount(T x) { return static_cast<T>(__builtin_popcountl(static_cast<U>(x))); }                     \
  inline T clz(T x) {                                                                                           \
    return x == 0 ? static_cast<T>(8 * sizeof(T))                                                               \
                  : static_cast<T>(__builtin_clzl(static_cast<U>(x)) - (64 - 8 * static_cast<int>(sizeof(T)))); \
  }                                                                                                             \
  inline T ctz(T x) {                                                                                           \
    return x == 0 ? static_cast<T>(8 * sizeof(T)) : static_cast<T>(__builtin_ctzl(static_cast<U>(x)));          \
  }                                                                                                             \
  inline T rotate(T x, T count) {                                                                               \
    constexpr unsigned width = 8 * sizeof(T);                                                                   \
    const unsigned n = static_cast<unsigned>(count) & (width - 1);                                              \
    const U bits = static_cast<U>(x);                                                                           \
    return n == 0 ? x : static_cast<T>(static_cast<U>(bits << n) | static_cast<U>(bits >> (width - n)));        \
  }
#define RUSSET_SIGNED(T, U) \
  RUSSET_INTEGER(T, U)      \
  inline T abs(T x) { return x < 0 ? static_cast<T>(U(0) - static_cast<U>(x)) : x; }
#define RUSSET_UNSIGNED(T) \
  RUSSET_INTEGER(T, T)     \
  inline T abs(T x) { return x; }
RUSSET_SIGNED(char, uchar)
RUSSET_SIGNED(short, ushort)
RUSSET_SIGNED(int, uint)
RUSSET_SIGNED(long, ulong)
RUSSET_UNSIGNED(uchar)
RUSSET_UNSIGNED(ushort)
RUSSET_UNSIGNED(uint)
RUSSET_UNSIGNED(ulong)
#undef RUSSET_INTEGER
#undef RUSSET_SIGNED
#undef RUSSET_UNSIGNED

/// The upper half of the product.
#define RUSSET_MULHI(T, Wide) \
  inline T mulhi(T a, T b) { return static_cast<T>(static_cast<Wide>(a) * static_cast<Wide>(b) >> (8 * sizeof(T))); }
RUSSET_MULHI(char, int)
RUSSET_MULHI(uchar, uint)
RUSSET_MULHI(short, int)
RUSSET_MULHI(ushort, uint)
RUSSET_MULHI(int, long)
RUSSET_MULHI(uint, ulong)
RUSSET_MULHI(long, __int128)
RUSSET_MULHI(ulong, unsigned __int128)
#undef RUSSET_MULHI

#define RUSSET_INTEGER_VECTOR(T)                                                                                \
  inline T##2 min(T##2 a, T##2 b) { return T##2 {min(a.x, b.x), min(a.y, b.y)}; }                               \
  inline T##2 max(T##2 a, T##2 b) { return T##2 {max(a.x, b.x), max(a.y, b.y)}; }                               \
  inline T##4 min(T##4 a, T##4 b) { return T##4 {min(a.x, b.x), min(a.y, b.y), min(a.z, b.z), min(a.w, b.w)}; } \
  inline T##4 max(T##4 a, T##4 b) { return T##4 {max(a.x, b.x), max(a.y, b.y), max(a.z, b.z), max(a.w, b.w)}; }
RUSSET_INTEGER_VECTOR(int)
RUSSET_INTEGER_VECTOR(uint)
#undef RUSSET_INTEGER_VECTOR

}  // namespace metal
