#pragma once
// Atomic functions (Metal Shading Language Specification 6.15): integers of 32 bits, relaxed.
#include "scalars.h"

namespace metal {

struct atomic_int {
  int value;
};
struct atomic_uint {
  uint value;
};
enum memory_order { memory_order_relaxed };

#define RUSSET_ATOMIC(A, T)                                                                                          \
  inline T atomic_load_explicit(const volatile A* object, memory_order) {                                            \
    return __atomic_load_n(&object->value, __ATOMIC_RELAXED);                                                        \
  }                                                                                                                  \
  inline void atomic_store_explicit(volatile A* object, T desired, memory_order) {                                   \
    __atomic_store_n(&object->value, desired, __ATOMIC_RELAXED);                                                     \
  }                                                                                                                  \
  inline T atomic_exchange_explicit(volatile A* object, T desired, memory_order) {                                   \
    return __atomic_exchange_n(&object->value, desired, __ATOMIC_RELAXED);                                           \
  }                                                                                                                  \
  inline bool atomic_compare_exchange_weak_explicit(volatile A* object, T* expected, T desired, memory_order,        \
                                                    memory_order) {                                                  \
    return __atomic_compare_exchange_n(&object->value, expected, desired, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED); \
  }                                                                                                                  \
  inline T atomic_fetch_add_explicit(volatile A* object, T x, memory_order) {                                        \
    return __atomic_fetch_add(&object->value, x, __ATOMIC_RELAXED);                                                  \
  }                                                                                                                  \
  inline T atomic_fetch_sub_explicit(volatile A* object, T x, memory_order) {                                        \
    return __atomic_fetch_sub(&object->value, x, __ATOMIC_RELAXED);                                                  \
  }                                                                                                                  \
  inline T atomic_fetch_and_explicit(volatile A* object, T x, memory_order) {                                        \
    return __atomic_fetch_and(&object->value, x, __ATOMIC_RELAXED);                                                  \
  }                                                                                                                  \
  inline T atomic_fetch_or_explicit(volatile A* object, T x, memory_order) {                                         \
    return __atomic_fetch_or(&object->value, x, __ATOMIC_RELAXED);                                                   \
  }                                                                                                                  \
  inline T atomic_fetch_xor_explicit(volatile A* object, T x, memory_order) {                                        \
    return __atomic_fetch_xor(&object->value, x, __ATOMIC_RELAXED);                                                  \
  }                                                                                                                  \
  inline T atomic_fetch_min_explicit(volatile A* object, T x, memory_order) {                                        \
    T old = __atomic_load_n(&object->value, __ATOMIC_RELAXED);                                                       \
    while (x < old &&                                                                                                \
           !__atomic_compare_exchange_n(&object->value, &old, x, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {        \
    }                                                                                                                \
    return old;                                                                                                      \
  }                                                                                                                  \
  inline T atomic_fetch_max_explicit(volatile A* object, T x, memory_order) {                                        \
    T old = __atomic_load_n(&object->value, __ATOMIC_RELAXED);                                                       \
    while (old < x &&                                                                                                \
           !__atomic_compare_exchange_n(&object->value, &old, x, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {        \
    }                                                                                                                \
    return old;                                                                                                      \
  }
RUSSET_ATOMIC(atomic_int, int)
RUSSET_ATOMIC(atomic_uint, uint)
#undef RUSSET_ATOMIC

}  // namespace metal
