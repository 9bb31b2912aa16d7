#pragma once
// Integer functions by their Metal names. min, max and abs of int, uint, long and ulong are CUDA's own.

#define RUSSET_INTEGER(T)                                                              \
  inline T clamp(T x, T low, T high) { return x < low ? low : (high < x ? high : x); } \
  inline T select(T a, T b, bool c) { return c ? b : a; }
RUSSET_INTEGER(char)
RUSSET_INTEGER(uchar)
RUSSET_INTEGER(short)
RUSSET_INTEGER(ushort)
RUSSET_INTEGER(int)
RUSSET_INTEGER(uint)
RUSSET_INTEGER(long)
RUSSET_INTEGER(ulong)
#undef RUSSET_INTEGER

inline uint abs(uint x) { return x; }
inline ulong abs(ulong x) { return x; }

#define RUSSET_COUNTS(T, U, popc, clzero, find, width)                       \
  inline T popcount(T x) { return static_cast<T>(popc(static_cast<U>(x))); } \
  inline T clz(T x) { return static_cast<T>(clzero(static_cast<U>(x))); }    \
  inline T ctz(T x) { return x == 0 ? static_cast<T>(width) : static_cast<T>(find(static_cast<U>(x)) - 1); }
RUSSET_COUNTS(int, int, __popc, __clz, __ffs, 32)
RUSSET_COUNTS(uint, int, __popc, __clz, __ffs, 32)
RUSSET_COUNTS(long, long long, __popcll, __clzll, __ffsll, 64)
RUSSET_COUNTS(ulong, long long, __popcll, __clzll, __ffsll, 64)
#undef RUSSET_COUNTS

inline uint rotate(uint x, uint count) { return __funnelshift_l(x, x, count); }
inline int rotate(int x, int count) { return static_cast<int>(rotate(static_cast<uint>(x), static_cast<uint>(count))); }
inline ulong rotate(ulong x, ulong count) {
  const uint n = static_cast<uint>(count) & 63u;
  return n == 0 ? x : x << n | x >> (64u - n);
}
inline long rotate(long x, long count) {
  return static_cast<long>(rotate(static_cast<ulong>(x), static_cast<ulong>(count)));
}

/// The upper half of the product.
inline int mulhi(int a, int b) { return __mulhi(a, b); }
inline uint mulhi(uint a, uint b) { return __umulhi(a, b); }
inline long mulhi(long a, long b) { return static_cast<long>(__mul64hi(a, b)); }
inline ulong mulhi(ulong a, ulong b) { return static_cast<ulong>(__umul64hi(a, b)); }
