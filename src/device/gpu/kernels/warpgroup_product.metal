// needs: contraction.metal
// needs: fragments.metal
// Products of half and bfloat on tensor cores of which these are the limit: of many rows and columns, whatever comes
// after them. Of a threadgroup's twenty simdgroups sixteen multiply, eight of them a tile of 128 x 128 in turn: these leave
// its elements in threadgroup memory, rounded, and run what comes after them while the other eight multiply the next tile.
// Of the rest one has slices of both factors brought to threadgroup memory, ahead of all, by a copier that needs no thread
// (TensorMap). A prelude may run the tiles in its own way (prelude/cuda/warpgroup_product.h). Other GPUs have no use for
// this: here it is what the simulated GPU runs.

#ifndef RUSSET_OWN_WARPGROUP_TILES
/// What the copier knows of a matrix.
struct TensorMap {
  ulong words[16];
};
#endif

/// A part of a tile in threadgroup memory as show_strip takes it. Of a line, pieces of eight are exchanged by the line's
/// number, so that those which are written or read together lie in different banks.
template <class T>
struct TileStrip {
  enum : uint { side = 128 };
  threadgroup const T* tile;
  uint row, column;

  static uint place(uint row, uint column) { return row * side + (column / 8u ^ row % 8u) * 8u + column % 8u; }
  float at(uint i, uint j) const { return float(tile[place(row + i, column + j)]); }
  float4 four(uint i, uint j) const {
    const uint2 words = *(threadgroup const uint2*)(tile + place(row + i, column + j));
    const float2 first = floats_of(T(0.0f), words.x);
    const float2 second = floats_of(T(0.0f), words.y);
    return make_float4(first.x, first.y, second.x, second.y);
  }
};

/// What a threadgroup computes: every `step`-th tile from `first` on, counted by rows, then columns. WIDTH: see show_strip.
/// SUMS: the visitor adds up columns; there are two parts for each tile.
template <uint WIDTH, bool SUMS, bool RIGHT_ALONG, class T, class LeftSource, class RightSource, class Visitor>
struct WarpgroupWork {
  typedef T Element;
  typedef TileStrip<T> Strip;
  enum : uint { right_along = RIGHT_ALONG ? 1 : 0, side = Strip::side, parts = 2 };
  thread const LeftSource* left;
  thread const RightSource* right;
  thread const Visitor* visitor;
  constant ContractionValues* values;
  constant TensorMap* left_map;
  constant TensorMap* right_map;
  uint first, step;

  uint count() const { return values->row_tiles * values->column_tiles; }
  uint first_row(uint number) const { return number % values->row_tiles * side; }
  uint first_column(uint number) const { return number / values->row_tiles * side; }

  /// Leaves sixteen rows of a tile, rounded. `sums`: their fragments (fragments.metal).
  void leave(threadgroup T* tile, thread const float* sums, uint row, uint lane_id) const {
    UNROLL for (uint i = 0; i < side / 2u; i += 2u) {
      const uint at = Strip::place(row + fragment_row(lane_id, i % 4u), i / 4u * 8u + fragment_column(lane_id, 0u));
      *(threadgroup uint*)(tile + at) = rounded_pair(T(0.0f), make_float2(sums[i], sums[i + 1u]));
    }
  }
  /// Shows the visitor the eighth of a tile that is a simdgroup's: 64 rows of 32 columns.
  void show(uint number, threadgroup const T* tile, uint eighth, uint lane_id) const {
    const uint part = eighth / 4u;
    Strip strip = {tile, part * (side / parts), eighth % 4u * 32u};
    const uint row = first_row(number) + strip.row;
    const uint column = first_column(number) + strip.column;
    const uint end_column = min(column + 32u, values->columns);
    Visitor own = *visitor;
    own.start(0u, 0u);
    for (uint i = 0; i < side / parts; i += 16u) {
      show_strip<WIDTH>(own, strip, row + i, values->rows, column, end_column, lane_id);
      strip.row += 16u;
    }
    if constexpr (SUMS) {
      own.end_block();
      own.finish(number % values->row_tiles * parts + part, column, end_column, lane_id);
    }
  }
};

#ifndef RUSSET_OWN_WARPGROUP_TILES
/// Computes the work's tiles, here without a copier: eight simdgroups multiply what lies in memory.
template <uint BYTES, class Work>
void run_warpgroup_tiles(thread const Work& work, threadgroup uint4* memory, uint thread_id) {
  typedef typename Work::Element T;
  constant ContractionValues& values = *work.values;
  const uint simdgroup_id = thread_id / 32u;
  const uint lane_id = thread_id % 32u;
  const bool multiplies = simdgroup_id < Work::side / 16u;
  threadgroup T* const tile = (threadgroup T*)memory;
  const long left_line = values.left_line.strides[2];
  const long right_line = values.right_line.strides[2];
  const long right_step = values.right_step.strides[2];
  for (uint number = work.first; number < work.count(); number += work.step) {
    float sums[Work::side / 2];
    for (uint i = 0; multiplies && i < Work::side / 2u; ++i) {
      const uint row = work.first_row(number) + simdgroup_id * 16u + fragment_row(lane_id, i % 4u);
      const uint column = work.first_column(number) + i / 4u * 8u + fragment_column(lane_id, i % 4u);
      float sum = 0.0f;
      if (row < values.rows && column < values.columns) {
        for (uint k = 0; k < values.depth; ++k) {
          sum = fma(float(work.left->data[values.left_start + long(row) * left_line + long(k)]),
                    float(work.right->data[values.right_start + long(column) * right_line + long(k) * right_step]), sum);
        }
      }
      sums[i] = sum;
    }
    if (multiplies) work.leave(tile, sums, simdgroup_id * 16u, lane_id);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (multiplies) work.show(number, tile, simdgroup_id, lane_id);
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
}
#endif

/// The grid: as many threadgroups as shall share the tiles, along x. BYTES: of memory that the launch asks for; where
/// threadgroups need not ask, `memory` has a tile. RIGHT_ALONG: the right factor's neighbours lie along the depth, else
/// along its columns; the left one's lie along the depth.
template <uint BYTES, uint WIDTH, bool SUMS, bool RIGHT_ALONG, class T, class LeftSource, class RightSource,
          class Visitor>
void warpgroup_product(thread const LeftSource& left, thread const RightSource& right, thread const Visitor& visitor,
                       constant ContractionValues& values, constant TensorMap& left_map, constant TensorMap& right_map,
                       threadgroup uint4* memory, uint group, uint group_count, uint thread_id) {
  WarpgroupWork<WIDTH, SUMS, RIGHT_ALONG, T, LeftSource, RightSource, Visitor> work;
  work.left = &left;
  work.right = &right;
  work.visitor = &visitor;
  work.values = &values;
  work.left_map = &left_map;
  work.right_map = &right_map;
  work.first = group;
  work.step = group_count;
  run_warpgroup_tiles<BYTES>(work, memory, thread_id);
}
