#pragma once
// Atomic functions: integers of 32 bits, relaxed.

struct atomic_int {
  int value;
};
struct atomic_uint {
  uint value;
};
enum memory_order { memory_order_relaxed };

#define RUSSET_ATOMIC(A, T)                                                                                   \
  inline T* russet_place(const volatile A* object) { return const_cast<T*>(&object->value); }                 \
  inline T atomic_load_explicit(const volatile A* object, memory_order) { return object->value; }             \
  inline void atomic_store_explicit(volatile A* object, T desired, memory_order) { object->value = desired; } \
  inline T atomic_exchange_explicit(volatile A* object, T desired, memory_order) {                            \
    return atomicExch(russet_place(object), desired);                                                         \
  }                                                                                                           \
  inline bool atomic_compare_exchange_weak_explicit(volatile A* object, T* expected, T desired, memory_order, \
                                                    memory_order) {                                           \
    const T wanted = *expected;                                                                               \
    *expected = atomicCAS(russet_place(object), wanted, desired);                                             \
    return *expected == wanted;                                                                               \
  }                                                                                                           \
  inline T atomic_fetch_add_explicit(volatile A* object, T x, memory_order) {                                 \
    return atomicAdd(russet_place(object), x);                                                                \
  }                                                                                                           \
  inline T atomic_fetch_sub_explicit(volatile A* object, T x, memory_order) {                                 \
    return atomicSub(russet_place(object), x);                                                                \
  }                                                                                                           \
  inline T atomic_fetch_and_explicit(volatile A* object, T x, memory_order) {                                 \
    return atomicAnd(russet_place(object), x);                                                                \
  }                                                                                                           \
  inline T atomic_fetch_or_explicit(volatile A* object, T x, memory_order) {                                  \
    return atomicOr(russet_place(object), x);                                                                 \
  }                                                                                                           \
  inline T atomic_fetch_xor_explicit(volatile A* object, T x, memory_order) {                                 \
    return atomicXor(russet_place(object), x);                                                                \
  }                                                                                                           \
  inline T atomic_fetch_min_explicit(volatile A* object, T x, memory_order) {                                 \
    return atomicMin(russet_place(object), x);                                                                \
  }                                                                                                           \
  inline T atomic_fetch_max_explicit(volatile A* object, T x, memory_order) {                                 \
    return atomicMax(russet_place(object), x);                                                                \
  }
RUSSET_ATOMIC(atomic_int, int)
RUSSET_ATOMIC(atomic_uint, uint)
#undef RUSSET_ATOMIC
