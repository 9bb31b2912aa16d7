#pragma once
// Matrices of 8 x 8 spread over a simdgroup as on Apple's GPUs: two neighbours of a row a lane. A product fetches its
// operands from other lanes and adds by fused multiply-add in the order of k, in float32: right for every type, slow.
// The tile of tile.metal does not use it here (tile.h).

namespace russet_cuda {

inline uint matrix_row(uint lane) { return (lane >> 2 & 4) + (lane >> 1 & 3); }
inline uint matrix_column(uint lane) { return (lane >> 2 & 2) * 2 + (lane & 1) * 2; }
/// The lane that holds (row, column) and its neighbour.
inline uint matrix_lane(uint row, uint column) {
  return (row >> 2 & 1) << 4 | (column >> 2 & 1) << 3 | (row & 3) << 1 | (column >> 1 & 1);
}

template <class T>
struct Pair {
  T values[2];
  T& operator[](uint i) { return values[i]; }
  T operator[](uint i) const { return values[i]; }
};

}  // namespace russet_cuda

template <class T, int rows, int columns>
struct simdgroup_matrix {
  static_assert(rows == 8 && columns == 8, "SIMD-group matrices are 8 x 8");
  russet_cuda::Pair<T> pair;
  russet_cuda::Pair<T>& thread_elements() { return pair; }
  const russet_cuda::Pair<T>& thread_elements() const { return pair; }
};
typedef simdgroup_matrix<float, 8, 8> simdgroup_float8x8;
typedef simdgroup_matrix<half, 8, 8> simdgroup_half8x8;
typedef simdgroup_matrix<bfloat, 8, 8> simdgroup_bfloat8x8;

template <class T, int rows, int columns>
inline simdgroup_matrix<T, rows, columns> make_filled_simdgroup_matrix(T value) {
  simdgroup_matrix<T, rows, columns> matrix;
  matrix.pair.values[0] = value;
  matrix.pair.values[1] = value;
  return matrix;
}

template <class T>
inline void simdgroup_load(simdgroup_matrix<T, 8, 8>& matrix, const T* source, ulong elements_per_row = 8,
                           ulong2 origin = ulong2{0, 0}, bool transpose = false) {
  const ulong row = russet_cuda::matrix_row(russet_cuda::lane());
  const ulong column = russet_cuda::matrix_column(russet_cuda::lane());
  const T* corner = source + origin.y * elements_per_row + origin.x;
  for (uint i = 0; i < 2; ++i) {
    matrix.pair[i] =
        transpose ? corner[(column + i) * elements_per_row + row] : corner[row * elements_per_row + column + i];
  }
}

template <class T>
inline void simdgroup_store(const simdgroup_matrix<T, 8, 8>& matrix, T* target, ulong elements_per_row = 8,
                            ulong2 origin = ulong2{0, 0}, bool transpose = false) {
  const ulong row = russet_cuda::matrix_row(russet_cuda::lane());
  const ulong column = russet_cuda::matrix_column(russet_cuda::lane());
  T* corner = target + origin.y * elements_per_row + origin.x;
  for (uint i = 0; i < 2; ++i) {
    (transpose ? corner[(column + i) * elements_per_row + row] : corner[row * elements_per_row + column + i]) =
        matrix.pair[i];
  }
}

/// d = a * b + c.
template <class D, class A, class B, class C>
inline void simdgroup_multiply_accumulate(simdgroup_matrix<D, 8, 8>& d, const simdgroup_matrix<A, 8, 8>& a,
                                          const simdgroup_matrix<B, 8, 8>& b, const simdgroup_matrix<C, 8, 8>& c) {
  const uint row = russet_cuda::matrix_row(russet_cuda::lane());
  const uint column = russet_cuda::matrix_column(russet_cuda::lane());
  float first = float(c.pair[0]);
  float second = float(c.pair[1]);
  for (uint k = 0; k < 8; ++k) {
    const float even = simd_shuffle(float(a.pair[0]), static_cast<ushort>(russet_cuda::matrix_lane(row, k)));
    const float odd = simd_shuffle(float(a.pair[1]), static_cast<ushort>(russet_cuda::matrix_lane(row, k)));
    const float left = k % 2 == 0 ? even : odd;
    const ushort from = static_cast<ushort>(russet_cuda::matrix_lane(k, column));
    first = fmaf(left, simd_shuffle(float(b.pair[0]), from), first);
    second = fmaf(left, simd_shuffle(float(b.pair[1]), from), second);
  }
  d.pair[0] = D(first);
  d.pair[1] = D(second);
}
