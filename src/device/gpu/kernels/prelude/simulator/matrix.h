#pragma once
// SIMD-group matrices of 8 x 8 (Metal Shading Language Specification 2.4, 6.7). As on Apple's GPUs each lane holds two
// neighbours of a row; a multiplication is executed once for all lanes.
#include "simdgroup.h"

extern "C" __attribute__((convergent, nomerge, visibility("hidden"))) void russet_matrix_access(const void* corner,
                                                                                                ulong elements_per_row,
                                                                                                bool transpose);

namespace russet_simulator {

constexpr uint matrix_size = 8;
inline uint matrix_row(uint lane) { return (lane >> 2 & 4) + (lane >> 1 & 3); }
inline uint matrix_column(uint lane) { return (lane >> 2 & 2) * 2 + (lane & 1) * 2; }

template <class T>
struct Pair {
  T values[2];
  T& operator[](uint i) { return values[i]; }
  T operator[](uint i) const { return values[i]; }
};

template <class T>
RUSSET_UNCHECKED inline void gather(float (&matrix)[8][8], const Pair<T>* (&lanes_of)[lanes]) {
  for (uint lane = 0; lane < lanes; ++lane) {
    const uint row = matrix_row(lane), column = matrix_column(lane);
    matrix[row][column] = static_cast<float>(lanes_of[lane]->values[0]);
    matrix[row][column + 1] = static_cast<float>(lanes_of[lane]->values[1]);
  }
}

/// All lanes of a simdgroup load or store a matrix together, from the same place.
[[gnu::always_inline]] inline void access_together([[maybe_unused]] const void* corner,
                                                   [[maybe_unused]] ulong elements_per_row,
                                                   [[maybe_unused]] bool transpose) {
#ifdef RUSSET_CHECKED
  russet_matrix_access(corner, elements_per_row, transpose);
#endif
}

template <class A, class B, class C>
struct Product3 {
  const Pair<A>* a;
  const Pair<B>* b;
  const Pair<C>* c;
};

typedef float Row __attribute__((vector_size(32)));

/// a * b + c, rounded once.
[[gnu::always_inline]] RUSSET_UNCHECKED inline Row multiply_add(Row a, Row b, Row c) {
#if __has_builtin(__builtin_elementwise_fma)
  return __builtin_elementwise_fma(a, b, c);
#elif defined(__FMA__)
  return __builtin_ia32_vfmaddps256(a, b, c);
#else
  for (uint i = 0; i < matrix_size; ++i) c[i] = __builtin_fmaf(a[i], b[i], c[i]);
  return c;
#endif
}

template <class D, class A, class B, class C>
RUSSET_UNCHECKED void multiply(const Lanes& all) {
  const Pair<A>* as[lanes];
  const Pair<B>* bs[lanes];
  const Pair<C>* cs[lanes];
  for (uint lane = 0; lane < lanes; ++lane) {
    const auto& operands = *static_cast<const Product3<A, B, C>*>(all.in[lane]);
    as[lane] = operands.a;
    bs[lane] = operands.b;
    cs[lane] = operands.c;
  }
  alignas(32) float a[8][8], b[8][8], c[8][8];
  gather(a, as);
  gather(b, bs);
  gather(c, cs);
  for (uint row = 0; row < matrix_size; ++row) {
    Row sum = *reinterpret_cast<const Row*>(c[row]);
    for (uint step = 0; step < matrix_size; ++step) {
      const uint k = all.coarse ? matrix_size - 1 - step : step;
      const float factor = a[row][k];
      const Row factors{factor, factor, factor, factor, factor, factor, factor, factor};
      sum = multiply_add(factors, *reinterpret_cast<const Row*>(b[k]), sum);
    }
    *reinterpret_cast<Row*>(c[row]) = sum;
  }
  for (uint lane = 0; lane < lanes; ++lane) {
    const uint row = matrix_row(lane), column = matrix_column(lane);
    Pair<D>& d = *static_cast<Pair<D>*>(all.out[lane]);
    d.values[0] = D(c[row][column]);
    d.values[1] = D(c[row][column + 1]);
  }
}

}  // namespace russet_simulator

namespace metal {

template <class T, int rows, int columns>
struct simdgroup_matrix {
  static_assert(rows == 8 && columns == 8, "SIMD-group matrices are 8 x 8");
  russet_simulator::Pair<T> pair;
  russet_simulator::Pair<T>& thread_elements() { return pair; }
  const russet_simulator::Pair<T>& thread_elements() const { return pair; }
};
typedef simdgroup_matrix<float, 8, 8> simdgroup_float8x8;
typedef simdgroup_matrix<half, 8, 8> simdgroup_half8x8;
typedef simdgroup_matrix<bfloat, 8, 8> simdgroup_bfloat8x8;

template <class T, int rows, int columns>
inline simdgroup_matrix<T, rows, columns> make_filled_simdgroup_matrix(T value) {
  return {{{value, value}}};
}

template <class T>
[[gnu::always_inline]] inline void simdgroup_load(simdgroup_matrix<T, 8, 8>& matrix, const T* source,
                                                  ulong elements_per_row = 8, ulong2 origin = ulong2{0, 0},
                                                  bool transpose = false) {
  const uint lane = russet_lane();
  const ulong row = russet_simulator::matrix_row(lane), column = russet_simulator::matrix_column(lane);
  const T* corner = source + origin.y * elements_per_row + origin.x;
  russet_simulator::access_together(corner, elements_per_row, transpose);
  for (uint i = 0; i < 2; ++i) {
    matrix.pair[i] =
        transpose ? corner[(column + i) * elements_per_row + row] : corner[row * elements_per_row + column + i];
  }
}

template <class T>
[[gnu::always_inline]] inline void simdgroup_store(const simdgroup_matrix<T, 8, 8>& matrix, T* target,
                                                   ulong elements_per_row = 8, ulong2 origin = ulong2{0, 0},
                                                   bool transpose = false) {
  const uint lane = russet_lane();
  const ulong row = russet_simulator::matrix_row(lane), column = russet_simulator::matrix_column(lane);
  T* corner = target + origin.y * elements_per_row + origin.x;
  russet_simulator::access_together(corner, elements_per_row, transpose);
  for (uint i = 0; i < 2; ++i) {
    (transpose ? corner[(column + i) * elements_per_row + row] : corner[row * elements_per_row + column + i]) =
        matrix.pair[i];
  }
}

/// d = a * b + c, each sum by fused multiply-add, in order of k or (`coarse`) from the last: Metal does not say.
template <class D, class A, class B, class C>
[[gnu::always_inline]] inline void simdgroup_multiply_accumulate(simdgroup_matrix<D, 8, 8>& d,
                                                                 const simdgroup_matrix<A, 8, 8>& a,
                                                                 const simdgroup_matrix<B, 8, 8>& b,
                                                                 const simdgroup_matrix<C, 8, 8>& c) {
  // Copies, so that operands are read and the result is written by the kernel's own code, which is checked.
  const russet_simulator::Pair<A> own_a = a.pair;
  const russet_simulator::Pair<B> own_b = b.pair;
  const russet_simulator::Pair<C> own_c = c.pair;
  const russet_simulator::Product3<A, B, C> operands{&own_a, &own_b, &own_c};
  russet_simulator::Pair<D> result;
  russet_simdgroup_function(russet_simulator::multiply<D, A, B, C>, &operands, &result);
  d.pair = result;
}

}  // namespace metal
