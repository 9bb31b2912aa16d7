#pragma once
// Vectors of 2 and 4 (Metal Shading Language Specification 2.2); uint3 for positions in a grid.
#include "scalars.h"

// No vectors of 4 numbers of 64 bits: the instrumentation of checked kernels does not see accesses of 32 bytes.
#define RUSSET_VECTORS_2(T)                           \
  typedef T T##2 __attribute__((ext_vector_type(2))); \
  inline T##2 make_##T##2(T x) { return T##2(x); }    \
  inline T##2 make_##T##2(T x, T y) { return T##2 {x, y}; }
#define RUSSET_VECTORS(T)                                                   \
  typedef T T##2 __attribute__((ext_vector_type(2)));                       \
  typedef T T##4 __attribute__((ext_vector_type(4)));                       \
  inline T##2 make_##T##2(T x) { return T##2(x); }                          \
  inline T##2 make_##T##2(T x, T y) { return T##2 {x, y}; }                 \
  inline T##4 make_##T##4(T x) { return T##4(x); }                          \
  inline T##4 make_##T##4(T x, T y, T z, T w) { return T##4 {x, y, z, w}; } \
  inline T##4 make_##T##4(T##2 a, T##2 b) { return T##4 {a.x, a.y, b.x, b.y}; }
RUSSET_VECTORS(char)
RUSSET_VECTORS(uchar)
RUSSET_VECTORS(short)
RUSSET_VECTORS(ushort)
RUSSET_VECTORS(int)
RUSSET_VECTORS(uint)
RUSSET_VECTORS_2(long)
RUSSET_VECTORS_2(ulong)
RUSSET_VECTORS(float)
#undef RUSSET_VECTORS
#undef RUSSET_VECTORS_2
typedef uint uint3 __attribute__((ext_vector_type(3)));
inline uint3 make_uint3(uint x, uint y, uint z) { return uint3{x, y, z}; }

#include "../shared/half_vectors.h"
