// The dialect for Metal's compiler (MSL 3.1). Not yet tried on a Mac: nothing that this was developed on has one.
// clang-format off: Metal's attributes are written as its specification writes them.
#include <metal_simdgroup_matrix>
#include <metal_stdlib>
using namespace metal;

// Only an explicit fma contracts: Metal's pragma, which its specification names, and clang's, which its compiler knows.
#pragma METAL fp contract(off)
#pragma clang fp contract(off)

// Matrices lie in registers, which have no addresses: what indexes them must be known when the kernel is compiled.
#define UNROLL _Pragma("clang loop unroll(full)")

#define KERNEL(name, threads, ...)                                                                               \
  [[kernel, max_total_threads_per_threadgroup(threads)]] void name(                                              \
      __VA_ARGS__, uint3 group_id [[threadgroup_position_in_grid]], uint3 group_count [[threadgroups_per_grid]], \
      uint thread_id [[thread_index_in_threadgroup]], uint lane_id [[thread_index_in_simdgroup]],                \
      uint simdgroup_id [[simdgroup_index_in_threadgroup]])
#define RESIDENT_KERNEL(name, threads, groups, ...) KERNEL(name, threads, __VA_ARGS__)
#define IN(type, name, index) device const type* name [[buffer(index)]]
#define IN_APART(type, name, index) IN(type, name, index)
#define OUT(type, name, index) device type* name [[buffer(index)]]
#define VALUES(type, name, index) constant type& name [[buffer(index)]]
#define CHANGING_VALUES(type, name, index) VALUES(type, name, index)
#define TABLE(type, name, index) constant type* name [[buffer(index)]]
#define GROUP_MEMORY(type, name, count) alignas(16) threadgroup type name[count]
#define LARGE_GROUP_MEMORY(type, name, count, bytes) GROUP_MEMORY(type, name, count)

inline float rounded_bfloat(float x) { return float(bfloat(x)); }

#define make_char2 char2
#define make_char4 char4
#define make_uchar2 uchar2
#define make_uchar4 uchar4
#define make_short2 short2
#define make_short4 short4
#define make_ushort2 ushort2
#define make_ushort4 ushort4
#define make_int2 int2
#define make_int4 int4
#define make_uint2 uint2
#define make_uint3 uint3
#define make_uint4 uint4
#define make_long2 long2
#define make_long4 long4
#define make_ulong2 ulong2
#define make_ulong4 ulong4
#define make_half2 half2
#define make_half4 half4
#define make_bfloat2 bfloat2
#define make_bfloat4 bfloat4
#define make_float2 float2
#define make_float4 float4
