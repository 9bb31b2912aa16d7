// needs: contraction.metal
// needs: fragments.metal
// Products of float32 on tensor cores: each number is the sum of two of TF32, of eleven bits each, so that three products
// give what one of float32 would (Ootomo and Yokota, "Recovering single precision accuracy from Tensor Cores", 2022,
// arXiv:2203.03341). Tensor cores truncate sums, so those of a slice of the depth are added in float32. What TF32 cannot
// split, infinities, NaN and lines of nothing but tiny numbers, is noticed; then the tile is computed by fused
// multiply-add.
//
// Of a threadgroup's simdgroups eight bring slices of the factors to threadgroup memory, eight multiply 16 rows each.
// Both factors are read in vectors of four elements, along the depth or along the lines. A prelude may multiply slices in
// its own way (prelude/cuda/warpgroups.h). Other GPUs have no use for this: here it is what the simulated GPU runs.

enum : uint { split_rows = 128, split_bringing = 256, split_threads = 512, split_strip = 16 * 40 };

#ifdef RUSSET_OWN_WARPGROUPS
/// Floats between lines, and between steps where lines are neighbours, so that what is read together lies in different
/// banks: by rows of the left factor, by blocks of four by four of the right one.
enum : uint { split_line_gap = 4, split_left_gap = 8, split_right_gap = 4 };
#else
enum : uint { split_line_gap = 0, split_left_gap = 0, split_right_gap = 0 };

inline void copy_four(threadgroup float* to, device const float* from, bool is_there) {
  *(threadgroup float4*)to = is_there ? *(device const float4*)from : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
}
#endif

/// Brings slices of a factor: LINES lines, vectors ALONG the depth or along the lines. GAP: see above.
template <class Side, uint LINES, bool ALONG, uint GAP>
struct SplitLoader {
  enum : uint {
    bringing = split_bringing,
    depth = 32,
    lines = LINES,
    along = ALONG,
    stride = ALONG ? 32 + split_line_gap : LINES + GAP,
    floats = ALONG ? LINES * stride : 32 * stride,
    vectors = LINES * 8 / split_bringing,  // that a thread brings of a slice
    across = ALONG ? 8 : LINES / 4         // vectors of a line, or of a step
  };
  typename Side::Line own_lines[ALONG ? vectors : 1];

  static uint place(uint line, uint step) { return ALONG ? line * stride + step : step * stride + line; }
  static uint line_of(uint i, uint thread_id) {
    return ALONG ? thread_id / across + i * (split_bringing / across) : thread_id % across * 4u;
  }
  static uint step_of(uint i, uint thread_id) {
    return ALONG ? thread_id % across * 4u : thread_id / across + i * (split_bringing / across);
  }
  /// Whether TF32 has parts of numbers whose magnitudes add up to this: none is 2^127 or more, and they are not all below
  /// 2^-113.
  static bool can_split(float magnitudes) {
    const uint bits = as_type<uint>(magnitudes);
    return bits == 0u || (bits >= 0x0d800000u && bits < 0x7f000000u);
  }

  void start(thread const Side& side, uint first_line, uint thread_id) {
    UNROLL for (uint i = 0; i < (ALONG ? vectors : 1u); ++i) side.line(own_lines[i], first_line + line_of(i, thread_id));
  }
  void bring(thread const Side& side, threadgroup float* memory, uint first_step, uint end, uint thread_id) const {
    typename Side::Step step;
    UNROLL for (uint i = 0; i < vectors; ++i) {
      if (i == 0 || !ALONG) side.step(step, first_step + step_of(i, thread_id), end);
      typename Side::Distance offset;
      const bool is_there = side.find(offset, own_lines[ALONG ? i : 0u], step);
      copy_four(memory + place(line_of(i, thread_id), step_of(i, thread_id)), side.source->data + offset, is_there);
    }
  }
};

#ifndef RUSSET_OWN_WARPGROUPS
inline float high_part(float x) { return as_type<float>((as_type<uint>(x) + 0x1000u) & 0xffffe000u); }
inline float low_part(float x) { return as_type<float>(as_type<uint>(x - high_part(x)) & 0xffffe000u); }

/// The sums of products of a tile's part of the depth go to tile.finish(), with whether all numbers could be split: those
/// of thread split_bringing + t are the fragments (fragments.metal) of the rows from t / 32 * 16 on and all columns. By
/// then nobody uses the memory any more. The other threads are done.
template <uint BYTES, class Left, class Right, class Tile>
void multiply_slices(thread Tile& tile, threadgroup float* memory, uint thread_id) {
  Left left = {};
  Right right = {};
  float sums[Right::lines / 2];
  for (uint i = 0; i < Right::lines / 2u; ++i) sums[i] = 0.0f;
  threadgroup float* const right_memory = memory + Left::floats;
  const bool brings = thread_id < Left::bringing;
  const uint own_row = (thread_id - Left::bringing) / 32u * 16u;
  if (brings) {
    left.start(*tile.left, tile.first_row, thread_id);
    right.start(*tile.right, tile.first_column, thread_id);
  }
  bool splits = true;
  for (uint slice = tile.begin; slice < tile.end; slice += Left::depth) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (brings) {
      left.bring(*tile.left, memory, slice, tile.end, thread_id);
      right.bring(*tile.right, right_memory, slice, tile.end, thread_id);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (brings) continue;
    for (uint i = 0; i < Right::lines / 2u; ++i) {
      const uint row = own_row + fragment_row(thread_id % 32u, i % 4u);
      const uint column = i / 4u * 8u + fragment_column(thread_id % 32u, i % 4u);
      float part = 0.0f;
      float left_magnitudes = 0.0f;
      float right_magnitudes = 0.0f;
      for (uint k = 0; k < Left::depth; ++k) {
        const float x = memory[Left::place(row, k)];
        const float y = right_memory[Right::place(column, k)];
        left_magnitudes += precise::fabs(x);
        right_magnitudes += precise::fabs(y);
        part = fma(low_part(x), high_part(y), part);
        part = fma(high_part(x), low_part(y), part);
        part = fma(high_part(x), high_part(y), part);
      }
      splits = splits && Left::can_split(left_magnitudes) && Left::can_split(right_magnitudes);
      sums[i] += part;
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const uint flag = simd_max(splits ? 0u : 1u);
  if (thread_id % 32u == 0u) memory[thread_id / 32u] = float(flag);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  bool all_split = true;
  for (uint i = 0; i < split_threads / 32u; ++i) all_split = all_split && memory[i] == 0.0f;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (!brings) tile.finish(sums, all_split, memory, thread_id);
}
#endif

/// An element by fused multiply-add.
template <class Left, class Right>
float plain_product(thread const Left& left, thread const Right& right, uint row, uint column, uint begin, uint end) {
  typename Left::Line left_line;
  typename Right::Line right_line;
  left.line(left_line, row);
  right.line(right_line, column);
  float sum = 0.0f;
  for (uint k = begin; k < end; ++k) {
    typename Left::Step left_step;
    typename Right::Step right_step;
    left.step(left_step, k, end);
    right.step(right_step, k, end);
    sum = fma(left.at(left_line, left_step), right.at(right_line, right_step), sum);
  }
  return sum;
}

/// What a threadgroup computes.
template <uint COLUMNS, class Left, class Right, class Visitor>
struct SplitTile {
  thread const Left* left;
  thread const Right* right;
  thread Visitor* visitor;
  constant ContractionValues* values;
  uint first_row, first_column;
  uint begin, end;  // of the depth
  uint batch, split;

  /// Shows the visitor 16 rows, 32 columns at a time, so that neighbouring lanes have neighbouring columns. What could not
  /// be split is computed plainly.
  void finish(thread const float* sums, bool all_split, threadgroup float* memory, uint thread_id) {
    visitor->start(batch, split);
    const uint lane_id = thread_id % 32u;
    const uint own_group = (thread_id - split_bringing) / 32u;
    threadgroup float* const strip = memory + own_group * split_strip;
    UNROLL for (uint block = 0; block < COLUMNS / 32u; ++block) {
      UNROLL for (uint i = 0; i < 16u; ++i) {
        strip[fragment_row(lane_id, i % 4u) * 40u + i / 4u * 8u + fragment_column(lane_id, i % 4u)] =
            sums[block * 16u + i];
      }
      simdgroup_barrier(mem_flags::mem_threadgroup);
      const uint column = first_column + block * 32u + lane_id;
      for (uint i = 0; i < 16u; ++i) {
        const uint row = first_row + own_group * 16u + i;
        if (row >= values->rows || column >= values->columns) continue;
        visitor->visit(row, column,
                       all_split ? strip[i * 40u + lane_id] : plain_product(*left, *right, row, column, begin, end));
      }
      simdgroup_barrier(mem_flags::mem_threadgroup);
    }
  }
};

/// The grid: column tiles, row tiles, splits, batches, all along x. BYTES: of memory that the launch asks for; where
/// threadgroups need not ask, `memory` has a slice of each factor.
template <uint COLUMNS, uint BYTES, class Left, class Right, bool LEFT_ALONG, bool RIGHT_ALONG, class LeftSource,
          class RightSource, class Visitor>
void split_product(thread LeftSource& left_source, thread RightSource& right_source, thread Visitor& visitor,
                   constant ContractionValues& values, threadgroup float* memory, uint group, uint thread_id) {
  typedef SplitLoader<Left, split_rows, LEFT_ALONG, split_left_gap> LeftLoader;
  typedef SplitLoader<Right, COLUMNS, RIGHT_ALONG, split_right_gap> RightLoader;
  SplitTile<COLUMNS, Left, Right, Visitor> tile;
  tile.first_column = group % values.column_tiles * COLUMNS;
  group /= values.column_tiles;
  tile.first_row = group % values.row_tiles * split_rows;
  group /= values.row_tiles;
  tile.split = group % values.splits;
  tile.batch = group / values.splits;
  tile.begin = tile.split * values.chunk;
  tile.end = min(tile.begin + values.chunk, values.depth);
  Left left;
  Right right;
  start_sides(left, right, left_source, right_source, values, tile.batch);
  tile.left = &left;
  tile.right = &right;
  tile.visitor = &visitor;
  tile.values = &values;
  multiply_slices<BYTES, LeftLoader, RightLoader>(tile, memory, thread_id);
}
