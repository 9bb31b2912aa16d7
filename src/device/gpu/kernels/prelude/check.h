// The dialect for the check of address spaces: clang's front end for C++ in OpenCL reads kernels with the flags of
// scripts/check_dialect.py. No code comes of it, so what OpenCL lacks of Metal's functions is only declared.
// clang-format off
#pragma OPENCL EXTENSION cl_khr_fp16 : enable

#define device __global
#define constant __constant
#define threadgroup __local
#define thread __private

#define KERNEL(name, threads, ...)                                                                          \
  kernel void name(__VA_ARGS__, uint3 group_id, uint3 group_count, uint thread_id, uint lane_id, uint simdgroup_id)
#define RESIDENT_KERNEL(name, threads, groups, ...) KERNEL(name, threads, __VA_ARGS__)
#define IN(type, name, index) device const type* name
#define IN_APART(type, name, index) IN(type, name, index)
#define OUT(type, name, index) device type* name
#define VALUES(type, name, index) constant type& name
#define CHANGING_VALUES(type, name, index) VALUES(type, name, index)
#define TABLE(type, name, index) constant type* name
#define GROUP_MEMORY(type, name, count) threadgroup type name[count]
#define LARGE_GROUP_MEMORY(type, name, count, bytes) GROUP_MEMORY(type, name, count)
#define DEVICE_POINTER(array) ((device char*)0)  // which only GPUs have whose kernels are not Metal's
#define UNROLL

// Storage alone, as the dialect has it: no arithmetic, no implicit conversion, float(x) and bfloat(x).
enum class bfloat : ushort {};
// Vectors are copied between address spaces by members of each.
#define RUSSET_BFLOAT_VECTOR(name, fields)                           \
  struct name {                                                      \
    bfloat fields;                                                   \
    name() = default;                                                \
    name(const thread name&) = default;                              \
    name(const device name&);                                        \
    name(const threadgroup name&);                                   \
    thread name& operator=(const thread name&) thread = default;     \
    thread name& operator=(const device name&) thread;               \
    device name& operator=(name) device;                            \
    threadgroup name& operator=(name) threadgroup;                  \
  };
#define RUSSET_FIELDS_2 x, y
#define RUSSET_FIELDS_4 x, y, z, w
RUSSET_BFLOAT_VECTOR(bfloat2, RUSSET_FIELDS_2)
RUSSET_BFLOAT_VECTOR(bfloat4, RUSSET_FIELDS_4)
#undef RUSSET_BFLOAT_VECTOR

#define RUSSET_MAKE(T)                    \
  T##2 make_##T##2(T x);                  \
  T##2 make_##T##2(T x, T y);             \
  T##4 make_##T##4(T x);                  \
  T##4 make_##T##4(T x, T y, T z, T w);
RUSSET_MAKE(char)
RUSSET_MAKE(uchar)
RUSSET_MAKE(short)
RUSSET_MAKE(ushort)
RUSSET_MAKE(int)
RUSSET_MAKE(uint)
RUSSET_MAKE(half)
RUSSET_MAKE(float)
#undef RUSSET_MAKE
long2 make_long2(long x, long y);
ulong2 make_ulong2(ulong x, ulong y);
uint3 make_uint3(uint x, uint y, uint z);
bfloat2 make_bfloat2(bfloat x, bfloat y);
bfloat4 make_bfloat4(bfloat x, bfloat y, bfloat z, bfloat w);
half2 make_half2(float2 x);
half4 make_half4(float4 x);
bfloat2 make_bfloat2(float2 x);
bfloat4 make_bfloat4(float4 x);
float rounded_bfloat(float x);
float2 make_float2(half2 x);
float2 make_float2(const thread bfloat2& x);
float4 make_float4(half4 x);
float4 make_float4(const thread bfloat4& x);

template <class To, class From>
To as_type(From x);

int mulhi(int a, int b);
uint mulhi(uint a, uint b);
long mulhi(long a, long b);
ulong mulhi(ulong a, ulong b);
float select(float a, float b, bool c);
int select(int a, int b, bool c);
uint select(uint a, uint b, bool c);

enum class mem_flags : uint { mem_none = 0, mem_device = 1, mem_threadgroup = 2 };
mem_flags operator|(mem_flags a, mem_flags b);
void threadgroup_barrier(mem_flags flags);
void simdgroup_barrier(mem_flags flags);

#define RUSSET_SIMD(T)                        \
  T simd_sum(T x);                            \
  T simd_product(T x);                        \
  T simd_min(T x);                            \
  T simd_max(T x);                            \
  T simd_prefix_inclusive_sum(T x);           \
  T simd_prefix_exclusive_sum(T x);           \
  T simd_shuffle(T x, ushort lane);           \
  T simd_shuffle_xor(T x, ushort mask);       \
  T simd_shuffle_down(T x, ushort delta);     \
  T simd_shuffle_up(T x, ushort delta);       \
  T simd_broadcast(T x, ushort lane);         \
  T simd_broadcast_first(T x);
RUSSET_SIMD(int)
RUSSET_SIMD(uint)
RUSSET_SIMD(short)
RUSSET_SIMD(ushort)
RUSSET_SIMD(char)
RUSSET_SIMD(uchar)
RUSSET_SIMD(half)
RUSSET_SIMD(float)
#undef RUSSET_SIMD
bool simd_all(bool x);
bool simd_any(bool x);

// OpenCL has a type and functions of these names, which are not Metal's.
struct russet_atomic_uint { uint value; };
#define atomic_uint russet_atomic_uint
#define memory_order_relaxed 0
#define atomic_fetch_min_explicit russet_fetch_min
uint atomic_fetch_min_explicit(volatile device russet_atomic_uint* object, uint operand, int order);

namespace precise {
#define RUSSET_FUNCTION(name) float name(float x);
RUSSET_FUNCTION(exp) RUSSET_FUNCTION(exp2) RUSSET_FUNCTION(exp10) RUSSET_FUNCTION(log) RUSSET_FUNCTION(log2)
RUSSET_FUNCTION(log10) RUSSET_FUNCTION(sin) RUSSET_FUNCTION(cos) RUSSET_FUNCTION(tan) RUSSET_FUNCTION(asin)
RUSSET_FUNCTION(acos) RUSSET_FUNCTION(atan) RUSSET_FUNCTION(sinh) RUSSET_FUNCTION(cosh) RUSSET_FUNCTION(tanh)
RUSSET_FUNCTION(asinh) RUSSET_FUNCTION(acosh) RUSSET_FUNCTION(atanh) RUSSET_FUNCTION(sqrt) RUSSET_FUNCTION(rsqrt)
RUSSET_FUNCTION(floor) RUSSET_FUNCTION(ceil) RUSSET_FUNCTION(trunc) RUSSET_FUNCTION(rint) RUSSET_FUNCTION(round)
RUSSET_FUNCTION(fabs)
#undef RUSSET_FUNCTION
float pow(float x, float y);
float powr(float x, float y);
float atan2(float y, float x);
float fmod(float x, float y);
float divide(float x, float y);
float fma(float a, float b, float c);
}  // namespace precise

template <class T, int rows, int columns>
struct simdgroup_matrix {
  T pair[2];
  simdgroup_matrix() = default;
  simdgroup_matrix(const thread simdgroup_matrix&);
  thread simdgroup_matrix& operator=(simdgroup_matrix);
  thread T* thread_elements();
};
typedef simdgroup_matrix<float, 8, 8> simdgroup_float8x8;
typedef simdgroup_matrix<half, 8, 8> simdgroup_half8x8;
template <class T, int rows, int columns>
simdgroup_matrix<T, rows, columns> make_filled_simdgroup_matrix(T value);
template <class T>
void simdgroup_load(thread simdgroup_matrix<T, 8, 8>& matrix, device const T* source, ulong stride = 8);
template <class T>
void simdgroup_load(thread simdgroup_matrix<T, 8, 8>& matrix, threadgroup const T* source, ulong stride = 8);
template <class T>
void simdgroup_load(thread simdgroup_matrix<T, 8, 8>& matrix, threadgroup const T* source, ulong stride, ulong2 origin,
                    bool transpose);
template <class T>
void simdgroup_store(thread const simdgroup_matrix<T, 8, 8>& matrix, device T* target, ulong stride = 8);
template <class T>
void simdgroup_store(thread const simdgroup_matrix<T, 8, 8>& matrix, threadgroup T* target, ulong stride = 8);
template <class D, class A, class B, class C>
void simdgroup_multiply_accumulate(thread simdgroup_matrix<D, 8, 8>& d, thread const simdgroup_matrix<A, 8, 8>& a,
                                   thread const simdgroup_matrix<B, 8, 8>& b,
                                   thread const simdgroup_matrix<C, 8, 8>& c);
