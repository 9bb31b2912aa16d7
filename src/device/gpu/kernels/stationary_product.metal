// needs: contraction.metal
// needs: fragments.metal
// Products of half and bfloat on tensor cores of which memory is the limit: of many rows and a small depth, as
// convolutions of single pixels to many channels. A threadgroup keeps a block of the right factor's columns and goes
// through rows of the left one, sixty-four at a time; the next ones come while these are multiplied. A simdgroup has 32
// of the columns, so what is added up of each column stays in its registers.

/// A depth of at most DEPTH, a multiple of 16, filled with zeros; simdgroups that stand side by side, 32 columns each,
/// and that share the rows. RIGHT_ALONG: the right factor's neighbours lie along the depth, else along its columns.
template <uint DEPTH, uint ACROSS, uint DOWN, bool RIGHT_ALONG>
struct StationaryShape {
  enum : uint {
    depth = DEPTH,
    across = ACROSS,
    down = DOWN,
    right_along = RIGHT_ALONG ? 1 : 0,
    threads = ACROSS * DOWN * 32,
    columns = ACROSS * 32,
    rows = 64,
    own_rows = rows / DOWN,
    stages = 2,
    // Lines of threadgroup memory, so that those which are read together lie in different banks.
    left_line = DEPTH + 8,
    right_line = RIGHT_ALONG ? DEPTH + 8 : columns + 8,
    left = rows * left_line,
    right = RIGHT_ALONG ? columns * right_line : DEPTH * right_line,
    strip_line = 36,
    strip = 16 * strip_line,
    memory = (right + stages * left) / 8 + ACROSS * DOWN * strip / 4  // uint4s
  };
};

template <uint LINE>
struct StationaryLayout {
  enum : uint { linear = 1 };
  static uint place(uint row, uint column) { return row * LINE + column; }
};

/// Brings COUNT lines of a factor from `first` on, of WIDTH elements, zeros beyond `lines` and `width`.
template <uint COUNT, uint WIDTH, uint LINE, uint THREADS, class T>
void bring_stationary(threadgroup T* memory, device const T* data, long stride, uint first, uint lines, uint width,
                      uint thread_id) {
  enum : uint { vectors = WIDTH / 8, all = COUNT * vectors };
  UNROLL for (uint i = 0; i < (all + THREADS - 1u) / THREADS; ++i) {
    const uint at = thread_id + i * THREADS;
    const uint line = at / vectors;
    const uint column = at % vectors * 8u;
    if (all % THREADS != 0u && at >= all) continue;
    copy_vector(memory, line * LINE + column, data + (long(first + line) * stride + long(column)),
                first + line < lines && column < width);
  }
}

/// Multiplies 32 rows that lie in threadgroup memory from `row` on with 32 columns.
template <class Shape, class T>
void multiply_stationary(thread SumFragment* sums, threadgroup const T* left, threadgroup const T* right, uint row,
                         uint column, uint lane_id) {
  UNROLL for (uint i = 0; i < 8u; ++i) clear_fragment(sums[i]);
  UNROLL for (uint k = 0; k < Shape::depth; k += 16u) {
    LeftFragment rows[2];
    RightFragments columns[2];
    UNROLL for (uint i = 0; i < 2u; ++i) {
      load_left<StationaryLayout<Shape::left_line> >(rows[i], left, row + i * 16u, k, lane_id);
      if constexpr (Shape::right_along != 0) {
        load_right_columns<StationaryLayout<Shape::right_line> >(columns[i], right, column + i * 16u, k, lane_id);
      } else {
        load_right_rows<StationaryLayout<Shape::right_line> >(columns[i], right, k, column + i * 16u, lane_id);
      }
    }
    UNROLL for (uint i = 0; i < 2u; ++i) {
      UNROLL for (uint j = 0; j < 2u; ++j) {
        multiply_fragments<T, 0>(sums[i * 4u + j * 2u], rows[i], columns[j], lane_id);
        multiply_fragments<T, 1>(sums[i * 4u + j * 2u + 1u], rows[i], columns[j], lane_id);
      }
    }
  }
}

/// The grid: threadgroups in turn for each block of columns, along x; those of a block share the rows. WIDTH: see
/// show_strip. SUMS: the visitor adds up columns; a simdgroup leaves one part of each.
template <class Shape, uint WIDTH, bool SUMS, class T, class LeftSource, class RightSource, class Visitor>
void stationary_product(thread const LeftSource& left, thread const RightSource& right, thread const Visitor& visitor,
                        constant ContractionValues& values, threadgroup uint4* memory, uint group, uint group_count,
                        thread const TileThread& self) {
  threadgroup T* const held = (threadgroup T*)memory;
  threadgroup T* const stages = held + Shape::right;
  threadgroup float* const strip = (threadgroup float*)(memory + (Shape::right + Shape::stages * Shape::left) / 8) +
                                   self.simdgroup_id * Shape::strip;
  LeftSource own_left = left;
  RightSource own_right = right;
  Visitor own = visitor;
  start_sources(own_left, own_right, values, 0u);
  own.start(0u, 0u);
  const uint first_column = group % values.column_tiles * Shape::columns;
  const uint first_tile = group / values.column_tiles;
  const uint step = group_count / values.column_tiles;
  if constexpr (Shape::right_along != 0) {
    bring_stationary<Shape::columns, Shape::depth, Shape::right_line, Shape::threads>(
        held, own_right.data, values.right_line.strides[2], first_column, values.columns, values.depth, self.thread_id);
  } else {
    bring_stationary<Shape::depth, Shape::columns, Shape::right_line, Shape::threads>(
        held, own_right.data + long(first_column), values.right_step.strides[2], 0u, values.depth,
        values.columns - first_column, self.thread_id);
  }
  const long stride = values.left_line.strides[2];
  bring_stationary<Shape::rows, Shape::depth, Shape::left_line, Shape::threads>(
      stages, own_left.data, stride, first_tile * Shape::rows, values.rows, values.depth, self.thread_id);
  end_fragment_copies();
  const uint own_column = self.simdgroup_id % Shape::across * 32u;
  const uint own_row = self.simdgroup_id / Shape::across * Shape::own_rows;
  const uint end_column = min(first_column + own_column + 32u, values.columns);
  LaneColumns<WIDTH, Visitor> columns = {};
  columns.read(own, first_column + own_column, end_column, self.lane_id);
  uint turn = 0u;
  for (uint tile = first_tile; tile < values.row_tiles; tile += step) {
    wait_for_fragment_copies<0>();
    threadgroup_barrier(mem_flags::mem_threadgroup);
    bring_stationary<Shape::rows, Shape::depth, Shape::left_line, Shape::threads>(
        stages + (turn ^ 1u) * Shape::left, own_left.data, stride, (tile + step) * Shape::rows, values.rows,
        values.depth, self.thread_id);
    end_fragment_copies();
    const uint first_row = tile * Shape::rows + own_row;
    for (uint part = 0; part < Shape::own_rows; part += 32u) {
      SumFragment sums[8];
      multiply_stationary<Shape>(sums, stages + turn * Shape::left, held, own_row + part, own_column, self.lane_id);
      UNROLL for (uint i = 0; i < 2u; ++i) {
        store_fragments<Shape::strip_line>(strip, sums + i * 4u, self.lane_id);
        simdgroup_barrier(mem_flags::mem_threadgroup);
        const FloatStrip floats = {strip, Shape::strip_line};
        show_strip<WIDTH, false>(own, columns, floats, first_row + part + i * 16u, values.rows,
                                 first_column + own_column, end_column, self.lane_id);
        simdgroup_barrier(mem_flags::mem_threadgroup);
      }
    }
    if constexpr (SUMS) own.end_block();
    turn ^= 1u;
  }
  if constexpr (SUMS) {
    own.finish(first_tile * Shape::down + self.simdgroup_id / Shape::across, first_column + own_column, end_column,
               self.lane_id);
  }
}
