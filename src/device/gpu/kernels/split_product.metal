// needs: contraction.metal
// needs: fragments.metal
// Products of float32 on tensor cores: each number is the sum of two of TF32, of eleven bits each, so that three products
// give what one of float32 would (Ootomo and Yokota, "Recovering single precision accuracy from Tensor Cores", 2022,
// arXiv:2203.03341). Tensor cores truncate sums, so those of a slice of the depth are added in float32. What TF32 cannot
// split, infinities, NaN and lines of nothing but tiny numbers, is noticed; then a simdgroup computes its rows by fused
// multiply-add.
//
// Of a threadgroup's simdgroups four bring slices of the factors to threadgroup memory, the last eight multiply 16 rows
// each; a prelude that multiplies slices in its own way has the others split what was brought
// (prelude/cuda/warpgroups.h). A threadgroup computes one tile after the other: while those that multiply store what
// they have, the next one's slices come. Both factors are read in vectors of four elements, along the depth or along the
// lines. GPUs without such a prelude have no use for this: here it is what the simulated GPU runs.

enum : uint {
  split_rows = 128,
  split_bringing = 128,
  split_multiplying = 256,
  split_threads = 512,
  split_strip_line = 36,
  split_strip = 16 * split_strip_line
};

#ifdef RUSSET_OWN_WARPGROUPS
/// Floats between lines, and between steps where lines are neighbours, so that what is read together lies in different
/// banks: by rows of the left factor, by blocks of four by four of the right one.
enum : uint { split_line_gap = 4, split_left_gap = 8, split_right_gap = 4 };
#else
enum : uint { split_line_gap = 0, split_left_gap = 0, split_right_gap = 0 };
#endif

/// Brings slices of a factor: LINES lines, vectors ALONG the depth or along the lines. GAP: see above.
template <class Side, uint LINES, bool ALONG, uint GAP>
struct SplitLoader {
  enum : uint {
    bringing = split_bringing,
    strip = split_strip,
    depth = 32,
    lines = LINES,
    along = ALONG,
    stride = ALONG ? 32 + split_line_gap : LINES + GAP,
    floats = ALONG ? LINES * stride : 32 * stride,
    vectors = LINES * 8 / split_bringing,      // that a thread brings of a slice, all of one step
    across = ALONG ? 8 : split_bringing / 32,  // threads that bring a line, or the lines of a step
    apart = split_bringing / 8                 // lines from one of a thread's vectors to the next
  };
  typename Side::Line own_lines[vectors];

  static uint place(uint line, uint step) { return ALONG ? line * stride + step : step * stride + line; }
  static uint line_of(uint i, uint thread_id) {
    return (ALONG ? thread_id / across : thread_id % across * 4u) + i * apart;
  }
  static uint step_of(uint thread_id) { return ALONG ? thread_id % across * 4u : thread_id / across; }
  /// Whether TF32 has parts of numbers whose magnitudes add up to this: none is 2^127 or more, and they are not all below
  /// 2^-113.
  static bool can_split(float magnitudes) {
    const uint bits = as_type<uint>(magnitudes);
    return bits == 0u || (bits >= 0x0d800000u && bits < 0x7f000000u);
  }

  /// Nobody asks what comes of lines beyond the last: they are the last ones again, so that all are there.
  void start(thread const Side& side, uint first_line, uint thread_id) {
    UNROLL for (uint i = 0; i < vectors; ++i) {
      side.line(own_lines[i], min(first_line + line_of(i, thread_id), side.lines - (ALONG ? 1u : 4u)));
      own_lines[i].inside = true;
    }
  }
  /// `first`: of the slice's elements in memory.
  void bring(thread const Side& side, threadgroup float* memory, uint first, uint first_step, uint end,
             uint thread_id) const {
    typename Side::Step step;
    side.step(step, first_step + step_of(thread_id), end);
    const uint own = first + place(line_of(0u, thread_id), step_of(thread_id));
    UNROLL for (uint i = 0; i < vectors; ++i) {
      typename Side::Distance offset;
      const bool is_there = side.locate(offset, own_lines[i], step);
      copy_vector(memory, own + i * place(apart, 0u), side.source->data + offset, is_there);
    }
  }
};

/// Of a result, in a part of the depth.
struct SplitTile {
  uint first_row, first_column;
  uint begin, end;  // of the depth
  uint batch, split;
};

/// What a threadgroup computes: every `step`-th tile from `first` on, counted by columns, rows, parts of the depth and
/// batches. WIDTH: columns of a row that the visitor takes at once, four rows at a time (visit_rows); 0: it takes
/// elements.
template <uint COLUMNS, uint WIDTH, class LeftSide, class RightSide, class LeftSource, class RightSource, class Visitor>
struct SplitWork {
  typedef LeftSide Left;
  typedef RightSide Right;
  typedef LeftSource FromLeft;
  typedef RightSource FromRight;
  typedef SplitTile Tile;
  thread const LeftSource* left_source;
  thread const RightSource* right_source;
  thread const Visitor* visitor;
  constant ContractionValues* values;
  uint first, step;

  uint count() const { return values->batches * values->splits * values->row_tiles * values->column_tiles; }
  void find(thread SplitTile& tile, uint number) const {
    tile.first_column = number % values->column_tiles * COLUMNS;
    number /= values->column_tiles;
    tile.first_row = number % values->row_tiles * split_rows;
    number /= values->row_tiles;
    tile.split = number % values->splits;
    tile.batch = number / values->splits;
    tile.begin = tile.split * values->chunk;
    tile.end = min(tile.begin + values->chunk, values->depth);
  }
  /// Sources and sides are variables of their own: compilers keep those in registers.
  void start(thread LeftSource& own_left, thread RightSource& own_right, uint batch) const {
    own_left = *left_source;
    own_right = *right_source;
    start_sources(own_left, own_right, *values, batch);
  }

  /// Shows the visitor 16 rows, 32 columns at a time. `sums`: the fragments (fragments.metal) of the rows from
  /// `first_row` on and all columns. What could not be split is computed plainly.
  void finish(thread const SplitTile& tile, thread const float* sums, bool is_split, threadgroup float* strip,
              uint first_row, uint lane_id) const {
    Visitor own = *visitor;
    own.start(tile.batch, tile.split);
    UNROLL for (uint block = 0; block < COLUMNS / 32u; ++block) {
      const uint first_column = tile.first_column + block * 32u;
      if (is_split) {
        UNROLL for (uint i = 0; i < 16u; ++i) {
          strip[fragment_row(lane_id, i % 4u) * split_strip_line + i / 4u * 8u + fragment_column(lane_id, i % 4u)] =
              sums[block * 16u + i];
        }
      } else {
        compute_plainly(tile, strip, first_row, first_column + lane_id, lane_id);
      }
      simdgroup_barrier(mem_flags::mem_threadgroup);
      const FloatStrip floats = {strip, split_strip_line};
      LaneColumns<WIDTH, Visitor> columns = {};
      columns.read(own, first_column, values->columns, lane_id);
      show_strip<WIDTH, false>(own, columns, floats, first_row, values->rows, first_column, values->columns, lane_id);
      simdgroup_barrier(mem_flags::mem_threadgroup);
    }
  }

  /// The elements of a column, by fused multiply-add.
  void compute_plainly(thread const SplitTile& tile, threadgroup float* strip, uint first_row, uint column,
                       uint lane_id) const {
    LeftSource own_left;
    RightSource own_right;
    Left left;
    Right right;
    set_sides(left, right, own_left, own_right, *values);
    start(own_left, own_right, tile.batch);
    typename Right::Line right_line;
    right.line(right_line, column);
    for (uint i = 0; i < 16u; ++i) {
      typename Left::Line left_line;
      left.line(left_line, first_row + i);
      float sum = 0.0f;
      for (uint k = tile.begin; k < tile.end; ++k) {
        typename Left::Step left_step;
        typename Right::Step right_step;
        left.step(left_step, k, tile.end);
        right.step(right_step, k, tile.end);
        sum = fma(left.at(left_line, left_step), right.at(right_line, right_step), sum);
      }
      strip[i * split_strip_line + lane_id] = sum;
    }
  }
};

#ifndef RUSSET_OWN_WARPGROUPS
inline float high_part(float x) { return as_type<float>((as_type<uint>(x) + 0x1000u) & 0xffffe000u); }
inline float low_part(float x) { return as_type<float>(as_type<uint>(x - high_part(x)) & 0xffffe000u); }

/// Computes the work's tiles: of those that multiply, thread t has the fragments of the rows from t / 32 * 16 on.
template <uint BYTES, class LeftLoader, class RightLoader, class Work>
void multiply_slices(thread const Work& work, threadgroup float* memory, uint thread_id) {
  typename Work::FromLeft left_source;
  typename Work::FromRight right_source;
  typename Work::Left left_side;
  typename Work::Right right_side;
  set_sides(left_side, right_side, left_source, right_source, *work.values);
  SplitTile tile;
  LeftLoader left = {};
  RightLoader right = {};
  threadgroup float* const right_memory = memory + LeftLoader::floats;
  const bool brings = thread_id < split_bringing;
  const uint first_multiplying = split_threads - split_multiplying;
  const bool multiplies = thread_id >= first_multiplying;
  const uint own_row = (thread_id - first_multiplying) / 32u * 16u;
  for (uint number = work.first; number < work.count(); number += work.step) {
    work.find(tile, number);
    work.start(left_source, right_source, tile.batch);
    if (brings) {
      left.start(left_side, tile.first_row, thread_id);
      right.start(right_side, tile.first_column, thread_id);
    }
    float sums[RightLoader::lines / 2];
    for (uint i = 0; i < RightLoader::lines / 2u; ++i) sums[i] = 0.0f;
    bool splits = true;
    for (uint slice = tile.begin; slice < tile.end; slice += LeftLoader::depth) {
      threadgroup_barrier(mem_flags::mem_threadgroup);
      if (brings) {
        left.bring(left_side, memory, 0u, slice, tile.end, thread_id);
        right.bring(right_side, right_memory, 0u, slice, tile.end, thread_id);
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);
      if (!multiplies) continue;
      for (uint i = 0; i < RightLoader::lines / 2u; ++i) {
        const uint row = own_row + fragment_row(thread_id % 32u, i % 4u);
        const uint column = i / 4u * 8u + fragment_column(thread_id % 32u, i % 4u);
        float part = 0.0f;
        float left_magnitudes = 0.0f;
        float right_magnitudes = 0.0f;
        for (uint k = 0; k < LeftLoader::depth; ++k) {
          const float x = memory[LeftLoader::place(row, k)];
          const float y = right_memory[RightLoader::place(column, k)];
          left_magnitudes += precise::fabs(x);
          right_magnitudes += precise::fabs(y);
          part = fma(low_part(x), high_part(y), part);
          part = fma(high_part(x), low_part(y), part);
          part = fma(high_part(x), high_part(y), part);
        }
        splits = splits && LeftLoader::can_split(left_magnitudes) && RightLoader::can_split(right_magnitudes);
        sums[i] += part;
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const bool is_split = simd_max(splits ? 0u : 1u) == 0u;
    if (!multiplies) continue;
    work.finish(tile, sums, is_split, memory + own_row / 16u * split_strip, tile.first_row + own_row, thread_id % 32u);
  }
}
#endif

/// The grid: as many threadgroups as shall share the tiles, along x. BYTES: of memory that the launch asks for; where
/// threadgroups need not ask, `memory` has a slice of each factor.
template <uint COLUMNS, uint BYTES, uint WIDTH, class Left, class Right, bool LEFT_ALONG, bool RIGHT_ALONG,
          class LeftSource, class RightSource, class Visitor>
void split_product(thread const LeftSource& left_source, thread const RightSource& right_source,
                   thread const Visitor& visitor, constant ContractionValues& values, threadgroup float* memory,
                   uint group, uint group_count, uint thread_id) {
  typedef SplitLoader<Left, split_rows, LEFT_ALONG, split_left_gap> LeftLoader;
  typedef SplitLoader<Right, COLUMNS, RIGHT_ALONG, split_right_gap> RightLoader;
  SplitWork<COLUMNS, WIDTH, Left, Right, LeftSource, RightSource, Visitor> work;
  work.left_source = &left_source;
  work.right_source = &right_source;
  work.visitor = &visitor;
  work.values = &values;
  work.first = group;
  work.step = group_count;
  multiply_slices<BYTES, LeftLoader, RightLoader>(work, memory, thread_id);
}
