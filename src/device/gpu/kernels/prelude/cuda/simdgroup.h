#pragma once
// Barriers and functions of a simdgroup, which is a warp. They stand in uniform flow, so all lanes take part.

enum class mem_flags : uint { mem_none = 0, mem_device = 1, mem_threadgroup = 2 };
inline mem_flags operator|(mem_flags a, mem_flags b) {
  return static_cast<mem_flags>(static_cast<uint>(a) | static_cast<uint>(b));
}
/// CUDA's barriers order every memory space among the threads that meet there, so the flags ask for no more.
inline void threadgroup_barrier(mem_flags) { __syncthreads(); }
inline void simdgroup_barrier(mem_flags) { __syncwarp(); }

namespace russet_cuda {

enum : uint { all_lanes = 0xffffffffu };

inline uint lane() {
  uint id;
  asm("mov.u32 %0, %%laneid;" : "=r"(id));
  return id;
}

// What a warp's shuffles carry, and back.
inline uint to_bits(uint x) { return x; }
inline uint to_bits(int x) { return static_cast<uint>(x); }
inline uint to_bits(float x) { return __float_as_uint(x); }
inline uint to_bits(half x) { return x.bits; }
inline void from_bits(uint bits, uint& x) { x = bits; }
inline void from_bits(uint bits, int& x) { x = static_cast<int>(bits); }
inline void from_bits(uint bits, float& x) { x = __uint_as_float(bits); }
inline void from_bits(uint bits, half& x) { x.bits = static_cast<ushort>(bits); }
inline void from_bits(uint bits, short& x) { x = static_cast<short>(bits); }
inline void from_bits(uint bits, ushort& x) { x = static_cast<ushort>(bits); }
inline void from_bits(uint bits, char& x) { x = static_cast<char>(bits); }
inline void from_bits(uint bits, uchar& x) { x = static_cast<uchar>(bits); }

struct ByLane {
  ushort lane;
  uint of(uint bits) const { return __shfl_sync(all_lanes, bits, lane); }
};
struct ByXor {
  ushort mask;
  uint of(uint bits) const { return __shfl_xor_sync(all_lanes, bits, mask); }
};
struct Down {
  ushort delta;
  uint of(uint bits) const { return __shfl_down_sync(all_lanes, bits, delta); }
};
struct Up {
  ushort delta;
  uint of(uint bits) const { return __shfl_up_sync(all_lanes, bits, delta); }
};

template <class T, class From>
inline T moved(T x, From from) {
  T result;
  from_bits(from.of(to_bits(x)), result);
  return result;
}

struct Sum {
  template <class T>
  static T of(T a, T b) {
    return a + b;
  }
};
struct Product {
  template <class T>
  static T of(T a, T b) {
    return a * b;
  }
};
struct Least {
  template <class T>
  static T of(T a, T b) {
    return min(a, b);
  }
};
struct Greatest {
  template <class T>
  static T of(T a, T b) {
    return max(a, b);
  }
};

/// A tree over lanes, halved from 16 apart to neighbours; every lane gets the same bits.
template <class Join, class T>
inline T reduce(T x) {
  for (uint step = 16; step > 0; step /= 2) x = Join::template of<T>(x, moved(x, ByXor{static_cast<ushort>(step)}));
  return x;
}

template <class T>
inline T inclusive_sum(T x) {
  for (uint step = 1; step < 32; step *= 2) {
    const T before = moved(x, Up{static_cast<ushort>(step)});
    if (lane() >= step) x = static_cast<T>(before + x);
  }
  return x;
}
template <class T>
inline T exclusive_sum(T x) {
  const T before = moved(inclusive_sum(x), Up{1});
  return lane() == 0 ? T(0) : before;
}

}  // namespace russet_cuda

#define RUSSET_SHUFFLE(T)                                                                                   \
  inline T simd_shuffle(T x, ushort lane) { return russet_cuda::moved(x, russet_cuda::ByLane{lane}); }      \
  inline T simd_broadcast(T x, ushort lane) { return russet_cuda::moved(x, russet_cuda::ByLane{lane}); }    \
  inline T simd_broadcast_first(T x) { return russet_cuda::moved(x, russet_cuda::ByLane{0}); }              \
  inline T simd_shuffle_xor(T x, ushort mask) { return russet_cuda::moved(x, russet_cuda::ByXor{mask}); }   \
  inline T simd_shuffle_down(T x, ushort delta) { return russet_cuda::moved(x, russet_cuda::Down{delta}); } \
  inline T simd_shuffle_up(T x, ushort delta) { return russet_cuda::moved(x, russet_cuda::Up{delta}); }
#define RUSSET_SIMD(T)                                                                \
  RUSSET_SHUFFLE(T)                                                                   \
  inline T simd_sum(T x) { return russet_cuda::reduce<russet_cuda::Sum>(x); }         \
  inline T simd_product(T x) { return russet_cuda::reduce<russet_cuda::Product>(x); } \
  inline T simd_min(T x) { return russet_cuda::reduce<russet_cuda::Least>(x); }       \
  inline T simd_max(T x) { return russet_cuda::reduce<russet_cuda::Greatest>(x); }    \
  inline T simd_prefix_inclusive_sum(T x) { return russet_cuda::inclusive_sum(x); }   \
  inline T simd_prefix_exclusive_sum(T x) { return russet_cuda::exclusive_sum(x); }
RUSSET_SIMD(char)
RUSSET_SIMD(uchar)
RUSSET_SIMD(short)
RUSSET_SIMD(ushort)
RUSSET_SIMD(int)
RUSSET_SIMD(uint)
RUSSET_SIMD(half)
RUSSET_SIMD(float)
#undef RUSSET_SIMD
#undef RUSSET_SHUFFLE

#define RUSSET_BITS(T)                                                                                               \
  inline T simd_and(T x) { return static_cast<T>(__reduce_and_sync(russet_cuda::all_lanes, static_cast<uint>(x))); } \
  inline T simd_or(T x) { return static_cast<T>(__reduce_or_sync(russet_cuda::all_lanes, static_cast<uint>(x))); }   \
  inline T simd_xor(T x) { return static_cast<T>(__reduce_xor_sync(russet_cuda::all_lanes, static_cast<uint>(x))); }
RUSSET_BITS(int)
RUSSET_BITS(uint)
RUSSET_BITS(short)
RUSSET_BITS(ushort)
#undef RUSSET_BITS

// Vectors by element.
#define RUSSET_SHUFFLE_2(name, T) \
  inline T##2 name(T##2 x, ushort which) { return make_##T##2(name(x.x, which), name(x.y, which)); }
#define RUSSET_SHUFFLE_4(name, T)                                                               \
  inline T##4 name(T##4 x, ushort which) {                                                      \
    return make_##T##4(name(x.x, which), name(x.y, which), name(x.z, which), name(x.w, which)); \
  }
#define RUSSET_SHUFFLES(T)               \
  RUSSET_SHUFFLE_2(simd_shuffle, T)      \
  RUSSET_SHUFFLE_4(simd_shuffle, T)      \
  RUSSET_SHUFFLE_2(simd_broadcast, T)    \
  RUSSET_SHUFFLE_4(simd_broadcast, T)    \
  RUSSET_SHUFFLE_2(simd_shuffle_xor, T)  \
  RUSSET_SHUFFLE_4(simd_shuffle_xor, T)  \
  RUSSET_SHUFFLE_2(simd_shuffle_down, T) \
  RUSSET_SHUFFLE_4(simd_shuffle_down, T) RUSSET_SHUFFLE_2(simd_shuffle_up, T) RUSSET_SHUFFLE_4(simd_shuffle_up, T)
RUSSET_SHUFFLES(int)
RUSSET_SHUFFLES(uint)
RUSSET_SHUFFLES(half)
RUSSET_SHUFFLES(float)
#undef RUSSET_SHUFFLE_2
#undef RUSSET_SHUFFLE_4
#undef RUSSET_SHUFFLES
#define RUSSET_REDUCE(name)                                                  \
  inline float2 name(float2 x) { return make_float2(name(x.x), name(x.y)); } \
  inline float4 name(float4 x) { return make_float4(name(x.x), name(x.y), name(x.z), name(x.w)); }
RUSSET_REDUCE(simd_sum)
RUSSET_REDUCE(simd_max)
RUSSET_REDUCE(simd_min)
#undef RUSSET_REDUCE

inline bool simd_all(bool x) { return __all_sync(russet_cuda::all_lanes, x) != 0; }
inline bool simd_any(bool x) { return __any_sync(russet_cuda::all_lanes, x) != 0; }
