#pragma once
// SIMD-group functions (Metal Shading Language Specification 6.9.2), for the types that Metal declares them for.
// The order in which Metal adds is unspecified; here it is a tree over lanes, halved from 16 apart to neighbours, or
// lane by lane from the last where that is asked for (`coarse`).
#include "math.h"
#include "threads.h"

extern "C" {
__attribute__((visibility("hidden"))) uint russet_lane();
/// A lane was given a number that names no lane, or another one than lane 0.
__attribute__((visibility("hidden"))) void russet_bad_lane(uint lane, uint given);
}

namespace russet_simulator {

// Reads of other lanes' stacks are the simulator's own, not the kernel's.
#define RUSSET_UNCHECKED __attribute__((no_sanitize("thread", "undefined")))

/// What a lane brings to a shuffle: the lane that it reads, and the number that it was given.
template <class T>
struct Shuffle {
  T value;
  uint lane;
  uint given;
};

template <class T, class Join>
RUSSET_UNCHECKED void reduce(const Lanes& all) {
  T values[lanes];
  for (uint i = 0; i < lanes; ++i) values[i] = *static_cast<const T*>(all.in[i]);
  if (all.coarse) {
    for (uint i = lanes - 1; i > 0; --i) values[i - 1] = Join::of(values[i], values[i - 1]);
  } else {
    for (uint step = lanes / 2; step > 0; step /= 2) {
      for (uint i = 0; i < step; ++i) values[i] = Join::of(values[i], values[i + step]);
    }
  }
  for (uint i = 0; i < lanes; ++i) *static_cast<T*>(all.out[i]) = values[0];
}

template <class T, class Join, bool inclusive>
RUSSET_UNCHECKED void scan(const Lanes& all) {
  T sum = *static_cast<const T*>(all.in[0]);
  if constexpr (inclusive) {
    *static_cast<T*>(all.out[0]) = sum;
  } else {
    *static_cast<T*>(all.out[0]) = T(0.0f);
  }
  for (uint i = 1; i < lanes; ++i) {
    const T next = *static_cast<const T*>(all.in[i]);
    const T joined = Join::of(sum, next);
    *static_cast<T*>(all.out[i]) = inclusive ? joined : sum;
    sum = joined;
  }
}

/// Each lane names the lane that it reads; what it gets beyond the simdgroup, or (`alike`) if lanes were given
/// different numbers, Metal leaves open, so it is reported.
template <class T, bool alike>
RUSSET_UNCHECKED void shuffle(const Lanes& all) {
  const uint given = static_cast<const Shuffle<T>*>(all.in[0])->given;
  bool reported = false;
  for (uint i = 0; i < lanes; ++i) {
    const Shuffle<T>& mine = *static_cast<const Shuffle<T>*>(all.in[i]);
    if (!reported && (mine.lane >= lanes || (alike && mine.given != given))) {
      russet_bad_lane(i, mine.given);
      reported = true;
    }
    const uint from = mine.lane < lanes ? mine.lane : i;
    *static_cast<T*>(all.out[i]) = static_cast<const Shuffle<T>*>(all.in[from])->value;
  }
}

inline RUSSET_UNCHECKED void vote(const Lanes& all) {
  uint bits = 0;
  for (uint i = 0; i < lanes; ++i) bits |= static_cast<uint>(*static_cast<const bool*>(all.in[i])) << i;
  for (uint i = 0; i < lanes; ++i) *static_cast<uint*>(all.out[i]) = bits;
}

template <class T>
struct Sum {
  RUSSET_UNCHECKED static T of(T a, T b) { return a + b; }
};
template <class T>
struct Product {
  RUSSET_UNCHECKED static T of(T a, T b) { return a * b; }
};
template <class T>
struct Least {
  RUSSET_UNCHECKED static T of(T a, T b) { return metal::min(a, b); }
};
template <class T>
struct Greatest {
  RUSSET_UNCHECKED static T of(T a, T b) { return metal::max(a, b); }
};
template <class T>
struct And {
  RUSSET_UNCHECKED static T of(T a, T b) { return a & b; }
};
template <class T>
struct Or {
  RUSSET_UNCHECKED static T of(T a, T b) { return a | b; }
};
template <class T>
struct Xor {
  RUSSET_UNCHECKED static T of(T a, T b) { return a ^ b; }
};

template <class T>
[[gnu::always_inline]] inline T together(void (*combine)(const Lanes&), T x) {
  T result;
  russet_simdgroup_function(combine, &x, &result);
  return result;
}
template <bool alike, class T>
[[gnu::always_inline]] inline T from_lane(T x, uint lane, uint given) {
  const Shuffle<T> mine{x, lane, given};
  T result;
  russet_simdgroup_function(shuffle<T, alike>, &mine, &result);
  return result;
}
/// `distance` lanes up or down; lanes that would reach beyond the edge keep their own value.
template <class T>
[[gnu::always_inline]] inline T from_distance(T x, uint lane, uint distance) {
  return from_lane<true>(x, distance < lanes && lane >= lanes ? russet_lane() : lane, distance);
}
[[gnu::always_inline]] inline uint votes(bool x) {
  uint result;
  russet_simdgroup_function(vote, &x, &result);
  return result;
}

}  // namespace russet_simulator

namespace metal {

#define RUSSET_SHUFFLE(T)                                                                    \
  [[gnu::always_inline]] inline T simd_shuffle(T x, ushort lane) {                           \
    return russet_simulator::from_lane<false>(x, lane, lane);                                \
  }                                                                                          \
  [[gnu::always_inline]] inline T simd_broadcast(T x, ushort lane) {                         \
    return russet_simulator::from_lane<true>(x, lane, lane);                                 \
  }                                                                                          \
  [[gnu::always_inline]] inline T simd_broadcast_first(T x) { return simd_broadcast(x, 0); } \
  [[gnu::always_inline]] inline T simd_shuffle_xor(T x, ushort mask) {                       \
    return russet_simulator::from_lane<true>(x, russet_lane() ^ mask, mask);                 \
  }                                                                                          \
  [[gnu::always_inline]] inline T simd_shuffle_down(T x, ushort delta) {                     \
    return russet_simulator::from_distance(x, russet_lane() + delta, delta);                 \
  }                                                                                          \
  [[gnu::always_inline]] inline T simd_shuffle_up(T x, ushort delta) {                       \
    return russet_simulator::from_distance(x, russet_lane() - delta, delta);                 \
  }
#define RUSSET_REDUCE(name, Join, T)                                                              \
  [[gnu::always_inline]] inline T name(T x) {                                                     \
    return russet_simulator::together(russet_simulator::reduce<T, russet_simulator::Join<T>>, x); \
  }
#define RUSSET_SCAN(name, Join, inclusive, T)                                                              \
  [[gnu::always_inline]] inline T name(T x) {                                                              \
    return russet_simulator::together(russet_simulator::scan<T, russet_simulator::Join<T>, inclusive>, x); \
  }
#define RUSSET_ARITHMETIC(T)                           \
  RUSSET_SHUFFLE(T)                                    \
  RUSSET_REDUCE(simd_sum, Sum, T)                      \
  RUSSET_REDUCE(simd_product, Product, T)              \
  RUSSET_REDUCE(simd_min, Least, T)                    \
  RUSSET_REDUCE(simd_max, Greatest, T)                 \
  RUSSET_SCAN(simd_prefix_inclusive_sum, Sum, true, T) \
  RUSSET_SCAN(simd_prefix_exclusive_sum, Sum, false, T)
#define RUSSET_BITS(T)            \
  RUSSET_REDUCE(simd_and, And, T) \
  RUSSET_REDUCE(simd_or, Or, T)   \
  RUSSET_REDUCE(simd_xor, Xor, T)
RUSSET_ARITHMETIC(char)
RUSSET_ARITHMETIC(uchar)
RUSSET_ARITHMETIC(short)
RUSSET_ARITHMETIC(ushort)
RUSSET_ARITHMETIC(int)
RUSSET_ARITHMETIC(uint)
RUSSET_ARITHMETIC(half)
RUSSET_ARITHMETIC(float)
RUSSET_BITS(int)
RUSSET_BITS(uint)
RUSSET_BITS(short)
RUSSET_BITS(ushort)
RUSSET_SHUFFLE(int2)
RUSSET_SHUFFLE(int4)
RUSSET_SHUFFLE(uint2)
RUSSET_SHUFFLE(uint4)
RUSSET_SHUFFLE(half2)
RUSSET_SHUFFLE(half4)
RUSSET_SHUFFLE(float2)
RUSSET_SHUFFLE(float4)
RUSSET_REDUCE(simd_sum, Sum, float2)
RUSSET_REDUCE(simd_sum, Sum, float4)
RUSSET_REDUCE(simd_max, Greatest, float2)
RUSSET_REDUCE(simd_max, Greatest, float4)
RUSSET_REDUCE(simd_min, Least, float2)
RUSSET_REDUCE(simd_min, Least, float4)
#undef RUSSET_SHUFFLE
#undef RUSSET_REDUCE
#undef RUSSET_SCAN
#undef RUSSET_ARITHMETIC
#undef RUSSET_BITS

[[gnu::always_inline]] inline bool simd_all(bool x) { return russet_simulator::votes(x) == 0xffffffffu; }
[[gnu::always_inline]] inline bool simd_any(bool x) { return russet_simulator::votes(x) != 0; }

}  // namespace metal
