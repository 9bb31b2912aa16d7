#pragma once
// Entry points: a __global__ function that hands its arguments and indices to the kernel's body. Values are a parameter
// of the kernel, which lies in constant memory and is never copied (__grid_constant__); those that change from run to
// run are read from memory, so that a graph which holds the launch need not be changed. Buffers are not __restrict__,
// unless they are named apart: the planner lets a result take the place of an operand, so what is read and what is
// written may be one. A table may
// be of any length, so it is a buffer.

#define RUSSET_FORMAL(argument) RUSSET_FORMAL_##argument
#define RUSSET_FORMAL_IN(type, name, index) const type* name
#define RUSSET_FORMAL_IN_APART(type, name, index) const type* __restrict__ name
#define RUSSET_FORMAL_OUT(type, name, index) type* name
#define RUSSET_FORMAL_VALUES(type, name, index) const __grid_constant__ type name
#define RUSSET_FORMAL_CHANGING_VALUES(type, name, index) const type* __restrict__ name
#define RUSSET_FORMAL_TABLE(type, name, index) const type* name
#define RUSSET_PARAMETER(argument) RUSSET_PARAMETER_##argument
#define RUSSET_PARAMETER_IN(type, name, index) const type *name,
#define RUSSET_PARAMETER_IN_APART(type, name, index) RUSSET_PARAMETER_IN(type, name, index)
#define RUSSET_PARAMETER_OUT(type, name, index) type *name,
#define RUSSET_PARAMETER_VALUES(type, name, index) const type &name,
#define RUSSET_PARAMETER_CHANGING_VALUES(type, name, index) const type &name,
#define RUSSET_PARAMETER_TABLE(type, name, index) const type *name,
#define RUSSET_PASSED(argument) RUSSET_PASSED_##argument
#define RUSSET_PASSED_IN(type, name, index) name,
#define RUSSET_PASSED_IN_APART(type, name, index) name,
#define RUSSET_PASSED_OUT(type, name, index) name,
#define RUSSET_PASSED_VALUES(type, name, index) name,
#define RUSSET_PASSED_CHANGING_VALUES(type, name, index) *name,
#define RUSSET_PASSED_TABLE(type, name, index) name,

#define KERNEL(name, thread_count, ...) RUSSET_KERNEL(name, thread_count, 1, __VA_ARGS__)
#define RESIDENT_KERNEL(name, thread_count, groups, ...) RUSSET_KERNEL(name, thread_count, groups, __VA_ARGS__)
#define RUSSET_KERNEL(entry_name, thread_count, groups, ...)                                                           \
  static __forceinline__ void entry_name##_body(RUSSET_EACH(RUSSET_PARAMETER, __VA_ARGS__) uint3 group_id,             \
                                                uint3 group_count, uint thread_id, uint lane_id, uint simdgroup_id);   \
  extern "C" __global__ void __launch_bounds__(thread_count, groups)                                                   \
      entry_name(RUSSET_LIST(RUSSET_FORMAL, __VA_ARGS__)) {                                                            \
    entry_name##_body(RUSSET_EACH(RUSSET_PASSED, __VA_ARGS__) make_uint3(blockIdx.x, blockIdx.y, blockIdx.z),          \
                      make_uint3(gridDim.x, gridDim.y, gridDim.z), threadIdx.x, threadIdx.x % 32u, threadIdx.x / 32u); \
  }                                                                                                                    \
  static_assert((thread_count) % 32 == 0 && (thread_count) > 0 && (thread_count) <= 1024,                              \
                "threadgroups have a multiple of 32 threads, at most 1,024");                                          \
  static __forceinline__ void entry_name##_body(RUSSET_EACH(RUSSET_PARAMETER, __VA_ARGS__) uint3 group_id,             \
                                                uint3 group_count, uint thread_id, uint lane_id, uint simdgroup_id)

// Pointers tell threadgroup memory from the rest by their value, and code that is inlined by where they come from.
#define DEVICE_POINTER(array) (&(array)[0])
#define GROUP_MEMORY(type, name, count) __shared__ __align__(16) type name[count]
// What a launch asks for has no size here. It begins where tiles of wgmma may begin.
#define LARGE_GROUP_MEMORY(type, name, count, bytes)                                                   \
  static_assert(sizeof(type[count]) <= (bytes), "the launch asks for less memory than the array has"); \
  extern __shared__ __align__(1024) char russet_large_memory[];                                        \
  type* const name = reinterpret_cast<type*>(russet_large_memory)
