#pragma once
// Entry points. KERNEL's arguments are spelled IN(type, name, index) and so on; they are read twice here, as parameters
// and as rows of a table that bindings are checked against.
#include "../shared/each.h"
#include "abi.h"
#include "vectors.h"

#ifdef RUSSET_CHECKED
// Out of line, since what is inlined into a kernel is checked with it.
#define RUSSET_INLINE
#define RUSSET_INLINE_MEMBER __attribute__((no_sanitize("thread"), noinline))
#else
#define RUSSET_INLINE __attribute__((always_inline)) inline
#define RUSSET_INLINE_MEMBER __attribute__((always_inline))
#endif

namespace russet_simulator {

/// Hands out group memory in the order of declarations, which is the same for every thread.
struct GroupMemory {
  Threadgroup* threadgroup;
  uint bytes;
  uint arrays;

  RUSSET_INLINE_MEMBER void* take(uint size, const char* name) {
    const uint rounded = (size + 15u) & ~15u;
#ifdef RUSSET_CHECKED
    char* begin = threadgroup->group_memory + group_array_offset(arrays);
    if (arrays < max_group_arrays) threadgroup->arrays[arrays] = {name, size};
#else
    char* begin = threadgroup->group_memory + bytes;
    (void)name;
#endif
    bytes += rounded;
    ++arrays;
    threadgroup->group_bytes = bytes;
    threadgroup->group_arrays = arrays;
    return begin;
  }
};

/// Indices count from 0 in the order of arguments, values come last.
template <uint count>
constexpr bool in_order(const Argument (&arguments)[count]) {
  for (uint i = 0; i < count; ++i) {
    if (arguments[i].index != i) return false;
    if (arguments[i].kind == ArgumentKind::values && (i + 1 != count || arguments[i].bytes > 4096)) return false;
  }
  return true;
}

}  // namespace russet_simulator

#define RUSSET_PARAMETER(argument) RUSSET_PARAMETER_##argument
#define RUSSET_PARAMETER_IN(type, name, index) const type *name,
#define RUSSET_PARAMETER_IN_APART(type, name, index) RUSSET_PARAMETER_IN(type, name, index)
#define RUSSET_PARAMETER_OUT(type, name, index) type *name,
#define RUSSET_PARAMETER_VALUES(type, name, index) const type &name,
#define RUSSET_PARAMETER_CHANGING_VALUES(type, name, index) RUSSET_PARAMETER_VALUES(type, name, index)
#define RUSSET_PARAMETER_TABLE(type, name, index) const type *name,
#define RUSSET_BOUND(argument) RUSSET_BOUND_##argument
#define RUSSET_BOUND_IN(type, name, index) static_cast<const type*>(russet_call.buffers[index]),
#define RUSSET_BOUND_IN_APART(type, name, index) RUSSET_BOUND_IN(type, name, index)
#define RUSSET_BOUND_OUT(type, name, index) static_cast<type*>(russet_call.buffers[index]),
#define RUSSET_BOUND_VALUES(type, name, index) *static_cast<const type*>(russet_call.values),
#define RUSSET_BOUND_CHANGING_VALUES(type, name, index) RUSSET_BOUND_VALUES(type, name, index)
#define RUSSET_BOUND_TABLE(type, name, index) static_cast<const type*>(russet_call.values),
#define RUSSET_ROW(argument) RUSSET_ROW_##argument
#define RUSSET_ROW_IN(type, name, index) {russet_simulator::ArgumentKind::in, index, sizeof(type), #name},
#define RUSSET_ROW_IN_APART(type, name, index) RUSSET_ROW_IN(type, name, index)
#define RUSSET_ROW_OUT(type, name, index) {russet_simulator::ArgumentKind::out, index, sizeof(type), #name},
#define RUSSET_ROW_VALUES(type, name, index) {russet_simulator::ArgumentKind::values, index, sizeof(type), #name},
#define RUSSET_ROW_CHANGING_VALUES(type, name, index) RUSSET_ROW_VALUES(type, name, index)
#define RUSSET_ROW_TABLE(type, name, index) RUSSET_ROW_VALUES(type, name, index)

#define KERNEL(name, thread_count, ...) RUSSET_KERNEL(name, thread_count, __VA_ARGS__)
#define RESIDENT_KERNEL(name, thread_count, groups, ...) KERNEL(name, thread_count, __VA_ARGS__)
#define RUSSET_KERNEL(entry_name, thread_count, ...)                                                                  \
  static RUSSET_INLINE void entry_name##_body(RUSSET_EACH(RUSSET_PARAMETER, __VA_ARGS__) uint3 group_id,              \
                                              uint3 group_count, uint thread_id, uint lane_id, uint simdgroup_id,     \
                                              russet_simulator::GroupMemory russet_group_memory);                     \
  __attribute__((no_sanitize("thread", "kernel-address"))) static void entry_name##_run(                              \
      russet_simulator::Threadgroup& russet_call) {                                                                   \
    while (russet_call.next < russet_call.threads) {                                                                  \
      const uint russet_thread = russet_call.next++;                                                                  \
      russet_call.current = russet_thread;                                                                            \
      entry_name##_body(RUSSET_EACH(RUSSET_BOUND, __VA_ARGS__)                                                        \
                            uint3{russet_call.group_id[0], russet_call.group_id[1], russet_call.group_id[2]},         \
                        uint3{russet_call.group_count[0], russet_call.group_count[1], russet_call.group_count[2]},    \
                        russet_thread, russet_thread % 32u, russet_thread / 32u, {&russet_call, 0, 0});               \
      ++russet_call.finished;                                                                                         \
    }                                                                                                                 \
  }                                                                                                                   \
  static constexpr russet_simulator::Argument entry_name##_arguments[] = {RUSSET_EACH(RUSSET_ROW, __VA_ARGS__)};      \
  static_assert(russet_simulator::in_order(entry_name##_arguments),                                                   \
                "arguments are numbered from 0 in their order, values come last and hold at most 4 KiB");             \
  static_assert((thread_count) % 32 == 0 && (thread_count) > 0 && (thread_count) <= 1024,                             \
                "threadgroups have a multiple of 32 threads, at most 1,024");                                         \
  extern "C" __attribute__((visibility("default"))) const russet_simulator::EntryPoint russet_kernel_##entry_name;    \
  const russet_simulator::EntryPoint russet_kernel_##entry_name{                                                      \
      #entry_name, thread_count, sizeof(entry_name##_arguments) / sizeof(russet_simulator::Argument),                 \
      entry_name##_arguments, entry_name##_run};                                                                      \
  static RUSSET_INLINE void entry_name##_body(                                                                        \
      RUSSET_EACH(RUSSET_PARAMETER, __VA_ARGS__) [[maybe_unused]] uint3 group_id, [[maybe_unused]] uint3 group_count, \
      [[maybe_unused]] uint thread_id, [[maybe_unused]] uint lane_id, [[maybe_unused]] uint simdgroup_id,             \
      [[maybe_unused]] russet_simulator::GroupMemory russet_group_memory)

#define DEVICE_POINTER(array) (&(array)[0])
#define GROUP_MEMORY(type, name, count) \
  type(&name)[count] = *static_cast<type(*)[count]>(russet_group_memory.take(sizeof(type[count]), #name))
#define LARGE_GROUP_MEMORY(type, name, count, bytes) GROUP_MEMORY(type, name, count)
