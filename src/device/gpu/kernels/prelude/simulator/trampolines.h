#pragma once
// Functions that the simulator supplies. A module reaches them through a table that is filled when it is loaded, so it
// depends on no library; a jump keeps the return address, which is where a report finds the line.
#include "abi.h"

// X(name, index): everything that is called by its own name in compiled code, its place in the table.
#define RUSSET_CALLS(X)          \
  X(russet_barrier, 0)           \
  X(russet_simdgroup_barrier, 1) \
  X(russet_simdgroup_function, 2) X(russet_lane, 3) X(russet_bad_lane, 4) X(russet_matrix_access, 5)

// Functions of precise:: that are rounded.
// clang-format off
#define RUSSET_FUNCTIONS(X)                                                                                   \
  X(russet_exp, 64) X(russet_exp2, 65) X(russet_exp10, 66) X(russet_log, 67) X(russet_log2, 68)               \
  X(russet_log10, 69) X(russet_sin, 70) X(russet_cos, 71) X(russet_tan, 72) X(russet_asin, 73)                \
  X(russet_acos, 74) X(russet_atan, 75) X(russet_atan2, 76) X(russet_sinh, 77) X(russet_cosh, 78)             \
  X(russet_tanh, 79) X(russet_asinh, 80) X(russet_acosh, 81) X(russet_atanh, 82) X(russet_pow, 83)
// clang-format on

// What clang's instrumentation calls.
// clang-format off
#define RUSSET_HOOKS(X)                          \
  X(__tsan_read1, 16)                            \
  X(__tsan_read2, 17)                            \
  X(__tsan_read4, 18)                            \
  X(__tsan_read8, 19)                            \
  X(__tsan_read16, 20)                           \
  X(__tsan_write1, 21)                           \
  X(__tsan_write2, 22)                           \
  X(__tsan_write4, 23)                           \
  X(__tsan_write8, 24)                           \
  X(__tsan_write16, 25)                          \
  X(__tsan_unaligned_read2, 26)                  \
  X(__tsan_unaligned_read4, 27)                  \
  X(__tsan_unaligned_read8, 28)                  \
  X(__tsan_unaligned_read16, 29)                 \
  X(__tsan_unaligned_write2, 30)                 \
  X(__tsan_unaligned_write4, 31)                 \
  X(__tsan_unaligned_write8, 32)                 \
  X(__tsan_unaligned_write16, 33)                \
  X(memcpy, 34)                                  \
  X(memmove, 35)                                 \
  X(memset, 36)                                  \
  X(__tsan_memcpy, 34)                           \
  X(__tsan_memmove, 35)                          \
  X(__tsan_memset, 36)                           \
  X(__tsan_atomic32_load, 37)                    \
  X(__tsan_atomic32_store, 38)                   \
  X(__tsan_atomic32_exchange, 39)                \
  X(__tsan_atomic32_fetch_add, 40)               \
  X(__tsan_atomic32_fetch_sub, 41)               \
  X(__tsan_atomic32_fetch_and, 42)               \
  X(__tsan_atomic32_fetch_or, 43)                \
  X(__tsan_atomic32_fetch_xor, 44)               \
  X(__tsan_atomic32_compare_exchange_strong, 45) \
  X(__tsan_atomic32_compare_exchange_weak, 46)   \
  X(__tsan_atomic32_compare_exchange_val, 47)    \
  X(__ubsan_handle_shift_out_of_bounds, 48)      \
  X(__ubsan_handle_divrem_overflow, 49)          \
  X(__ubsan_handle_float_cast_overflow, 50)      \
  X(__ubsan_handle_out_of_bounds, 51)            \
  X(__asan_set_shadow_00, 52)                    \
  X(__asan_set_shadow_f1, 53)                    \
  X(__asan_set_shadow_f2, 54)                    \
  X(__asan_set_shadow_f3, 55)                    \
  X(__asan_handle_no_return, 56)                 \
  X(__ubsan_handle_add_overflow, 57)             \
  X(__ubsan_handle_sub_overflow, 58)             \
  X(__ubsan_handle_mul_overflow, 59)             \
  X(__ubsan_handle_negate_overflow, 60)          \
  X(russet_step, 61)                             \
  X(russet_begin_own, 84)                        \
  X(russet_end_own, 85)
// clang-format on

namespace russet_simulator {
constexpr unsigned table_size = 86;
/// The entry that is no function: where the shadow of stacks lies, from an eighth of their address.
constexpr unsigned shadow_offset_index = 63;
}  // namespace russet_simulator

#ifndef RUSSET_SIMULATOR_HOST

#define RUSSET_TRAMPOLINE(name, index)                                                    \
  __asm__(".text\n.globl " #name "\n.hidden " #name "\n.type " #name ",@function\n" #name \
          ":\njmpq *russet_table+8*" #index "(%rip)\n");

extern "C" {
__attribute__((visibility("hidden"), used)) void* russet_table[russet_simulator::table_size];
/// Where the simulator finds the table.
__attribute__((visibility("default"), used)) void** russet_table_address = russet_table;
}

RUSSET_CALLS(RUSSET_TRAMPOLINE)
RUSSET_FUNCTIONS(RUSSET_TRAMPOLINE)
#ifdef RUSSET_CHECKED
RUSSET_HOOKS(RUSSET_TRAMPOLINE)
/// Called while the module is being loaded, before there is a table.
extern "C" __attribute__((visibility("hidden"))) void __tsan_init() {}
/// Read by functions that mark their variables.
__asm__(
    ".globl __asan_shadow_memory_dynamic_address\n.hidden __asan_shadow_memory_dynamic_address\n"
    ".set __asan_shadow_memory_dynamic_address, russet_table+8*63\n");
#endif

#endif
