#pragma once
// The sums of tile.metal in registers: no matrices of a simdgroup, but fused multiply-add in float32, in the order of
// k, on blocks of 2 * DOWN x ACROSS sums a lane. That is exact float32 for every type of element: no TF32.

#define RUSSET_OWN_TILE_SUMS

/// Of a simdgroup's 8 * DOWN x 8 * ACROSS sums, lane (y, x) of 4 x 8 has the rows y, y + 4, ... and the columns x,
/// x + 8, ...
typedef float TileSum;
template <uint DOWN, uint ACROSS>
struct TileSums {
  enum : uint { count = 2 * DOWN * ACROSS };
};

inline void clear_sum(TileSum& sum) { sum = 0.0f; }

template <uint DOWN, uint ACROSS, uint DEPTH>
inline void accumulate_slice(TileSum* sums, const float* left, uint left_stride, const float* right,
                             uint right_stride) {
  const float* const own_left = left + russet_cuda::lane() / 8 * left_stride;
  const float* const own_right = right + russet_cuda::lane() % 8;
  UNROLL for (uint k = 0; k < DEPTH; ++k) {
    float from_left[2 * DOWN];
    float from_right[ACROSS];
    UNROLL for (uint i = 0; i < 2 * DOWN; ++i) from_left[i] = own_left[i * 4 * left_stride + k];
    UNROLL for (uint j = 0; j < ACROSS; ++j) from_right[j] = own_right[k * right_stride + j * 8];
    UNROLL for (uint i = 0; i < 2 * DOWN; ++i) {
      UNROLL for (uint j = 0; j < ACROSS; ++j) {
        sums[i * ACROSS + j] = fmaf(from_left[i], from_right[j], sums[i * ACROSS + j]);
      }
    }
  }
}

template <uint ACROSS>
inline void store_strip(const TileSum* sums, uint i, float* strip) {
  UNROLL for (uint half = 0; half < 2; ++half) {
    UNROLL for (uint j = 0; j < ACROSS; ++j) {
      strip[(russet_cuda::lane() / 8 + half * 4) * ACROSS * 8 + russet_cuda::lane() % 8 + j * 8] =
          sums[(2 * i + half) * ACROSS + j];
    }
  }
}

template <uint DOWN, uint ACROSS, class Visitor, class Range>
inline void visit_sums(const TileSum* sums, Visitor& visitor, const Range& range, uint first_row, uint first_column,
                       float*, uint lane_id) {
  UNROLL for (uint i = 0; i < 2 * DOWN; ++i) {
    UNROLL for (uint j = 0; j < ACROSS; ++j) {
      const uint row = first_row + lane_id / 8 + i * 4;
      const uint column = first_column + lane_id % 8 + j * 8;
      if (row < range.rows && column < range.columns) visitor.visit(row, column, sums[i * ACROSS + j]);
    }
  }
}
