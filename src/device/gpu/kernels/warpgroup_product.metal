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

  static uint place(uint row, uint column) { return row * side + (column ^ row % 8u * 8u); }
  float at(uint i, uint j) const { return float(tile[place(row + i, column + j)]); }
  float4 four(uint i, uint j) const {
    const uint2 words = *(threadgroup const uint2*)(tile + place(row + i, column + j));
    const float2 first = floats_of(T(0.0f), words.x);
    const float2 second = floats_of(T(0.0f), words.y);
    return make_float4(first.x, first.y, second.x, second.y);
  }
};

/// What a simdgroup shows a visitor of a tile.
template <uint WIDTH, class Visitor>
struct TileShow {
  LaneColumns<WIDTH, Visitor> columns;
  uint part;                     // of the sums
  uint row, column, end_column;  // where it begins
};

/// What a threadgroup computes: every `step`-th tile from `first` on, counted by rows, then columns. WIDTH: see show_strip.
/// SUMS: the visitor adds up columns; there are two parts for each tile.
template <uint WIDTH, bool SUMS, bool RIGHT_ALONG, class T, class LeftSource, class RightSource, class Visitor>
struct WarpgroupWork {
  typedef T Element;
  typedef TileStrip<T> Strip;
  typedef TileShow<WIDTH, Visitor> Show;
  typedef Visitor Shown;  // a copy of the visitor
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

  /// Leaves sixteen rows of a tile, rounded. `sums`: their fragments (fragments.metal). Eight columns further, a place
  /// differs by exclusive or; 64 columns or eight rows further, by what the compiler puts into the store.
  void leave(threadgroup T* tile, thread const float* sums, uint row, uint lane_id) const {
    const uint first = Strip::place(row + fragment_row(lane_id, 0u), fragment_column(lane_id, 0u));
    UNROLL for (uint i = 0; i < 8u; ++i) {
      threadgroup T* const at = tile + (first ^ i * 8u);
      UNROLL for (uint j = 0; j < 4u; ++j) {
        thread const float* const pair = sums + j / 2u * (side / 4u) + i * 4u + j % 2u * 2u;
        *(threadgroup uint*)(at + j / 2u * 64u + j % 2u * (8u * side)) = rounded_pair(T(0.0f), make_float2(pair[0], pair[1]));
      }
    }
  }
  /// Begins to show a visitor the eighth of a tile that is a simdgroup's, before it is there: 64 rows of 32 columns.
  void begin(thread Show& show, thread Visitor& own, uint number, uint eighth, uint lane_id) const {
    show.part = number % values->row_tiles * parts + eighth / 4u;
    show.row = show.part * (side / parts);
    show.column = first_column(number) + eighth % 4u * 32u;
    show.end_column = min(show.column + 32u, values->columns);
    own.start(0u, 0u);
    show.columns.read(own, show.column, show.end_column, lane_id);
  }
  void show_tile(thread const Show& show, thread Visitor& own, threadgroup const T* tile, uint eighth, uint lane_id) const {
    Strip strip = {tile, eighth / 4u * (side / parts), eighth % 4u * 32u};
    const bool is_whole = show.row + side / parts <= values->rows && show.column + 32u <= values->columns;
    for (uint i = 0; i < side / parts; i += 16u, strip.row += 16u) {
      if (is_whole) {
        show_rows<true>(show, own, strip, show.row + i, lane_id);
      } else {
        show_rows<false>(show, own, strip, show.row + i, lane_id);
      }
    }
    if constexpr (SUMS) {
      own.end_block();
      own.finish(show.part, show.column, show.end_column, lane_id);
    }
  }
  template <bool WHOLE>
  void show_rows(thread const Show& show, thread Visitor& own, thread const Strip& strip, uint row, uint lane_id) const {
    show_strip<WIDTH, WHOLE>(own, show.columns, strip, row, values->rows, show.column, show.end_column, lane_id);
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
    typename Work::Show show = {};
    typename Work::Shown own = *work.visitor;
    if (multiplies) {
      work.begin(show, own, number, simdgroup_id, lane_id);
      work.leave(tile, sums, simdgroup_id * 16u, lane_id);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (multiplies) work.show_tile(show, own, tile, simdgroup_id, lane_id);
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
