// The one tile of matrix work: a threadgroup of 128 computes a tile of
//   result[i, j] = sum over k of left[i, k] * right[k, j]
// in float32 and hands each element to a visitor with its row and column.
//
// A side says where the elements of a factor lie:
//   side.line(line, i)        what is known from the index along the result's axis; beyond the end it reads zeros
//   side.step(step, k, end)   what is known from the index along the depth; from `end` on it reads zeros
//   side.at(line, step)       the element, as float
// The four simdgroups are two by two, each with a quarter of the tile in 8x8 matrices; side by side in a tile of 32
// rows whose visitor adds up columns, for it is shown 32 rows at once. While the products of one slice of the depth are
// added, the elements of the next are on their way to registers. Sums run over k in its order, eight at a time, whatever
// the size of the tile: all sizes give the same bits.

/// Brings slices of a side to threadgroup memory: EXTENT lines, DEPTH steps, `count` elements a thread. ALONG_DEPTH:
/// neighbouring threads read neighbouring steps, else neighbouring lines.
template <class Side, uint EXTENT, uint DEPTH, bool ALONG_DEPTH>
struct TileLoader {
  typedef typename Side::Line Line;
  typedef typename Side::Step Step;
  enum : uint { count = EXTENT * DEPTH / 128, line_count = ALONG_DEPTH ? EXTENT * DEPTH / 128 : 1 };

  static uint line_of(uint i, uint thread_id) {
    return ALONG_DEPTH ? thread_id / DEPTH + i * (128 / DEPTH) : thread_id % EXTENT;
  }
  static uint step_of(uint i, uint thread_id) {
    return ALONG_DEPTH ? thread_id % DEPTH : thread_id / EXTENT + i * (128 / EXTENT);
  }

  static void start(thread Line* lines, thread const Side& side, uint first, uint thread_id) {
    for (uint i = 0; i < line_count; ++i) side.line(lines[i], first + line_of(i, thread_id));
  }

  static void read(thread float* elements, thread const Line* lines, thread const Side& side, uint first, uint end,
                   uint thread_id) {
    Step step;
    for (uint i = 0; i < count; ++i) {
      if (i == 0 || !ALONG_DEPTH) side.step(step, first + step_of(i, thread_id), end);
      elements[i] = side.at(lines[ALONG_DEPTH ? i : 0], step);
    }
  }

  static void place(threadgroup float* memory, thread const float* elements, uint line_stride, uint step_stride,
                    uint thread_id) {
    for (uint i = 0; i < count; ++i) {
      memory[line_of(i, thread_id) * line_stride + step_of(i, thread_id) * step_stride] = elements[i];
    }
  }
};

/// The floats of threadgroup memory that a tile takes.
template <uint ROWS, uint COLUMNS, uint DEPTH>
struct TileMemory {
  enum : uint { left_stride = DEPTH + 4, right_stride = COLUMNS + 4 };
  enum : uint { left = ROWS * left_stride, count = left + DEPTH * right_stride };
};

/// Floats of it in which a simdgroup shows its sums to the visitor.
enum : uint { strip_floats = 256 };

/// What a tile covers: rows and columns from the first ones up to the limits, and the part of the depth.
struct TileRange {
  uint first_row, first_column;
  uint rows, columns;
  uint begin, end;
};

/// Where a thread stands.
struct TileThread {
  uint thread_id, lane_id, simdgroup_id;
};

// A simdgroup's sums, DOWN x ACROSS matrices of 8x8. A prelude may keep them in its own way (prelude/cuda/tile.h).
#ifndef RUSSET_OWN_TILE_SUMS
typedef simdgroup_float8x8 TileSum;
template <uint DOWN, uint ACROSS>
struct TileSums {
  enum : uint { count = DOWN * ACROSS };
};

inline void clear_sum(thread TileSum& sum) { sum = make_filled_simdgroup_matrix<float, 8, 8>(0.0f); }

/// Adds the products of a slice. `left` and `right` are where the simdgroup's part of the tile starts.
template <uint DOWN, uint ACROSS, uint DEPTH>
void accumulate_slice(thread TileSum* sums, threadgroup const float* left, uint left_stride,
                      threadgroup const float* right, uint right_stride) {
  for (uint k = 0; k < DEPTH; k += 8) {
    simdgroup_float8x8 from_left[DOWN];
    simdgroup_float8x8 from_right[ACROSS];
    UNROLL for (uint i = 0; i < DOWN; ++i) simdgroup_load(from_left[i], left + i * 8 * left_stride + k, left_stride);
    UNROLL for (uint j = 0; j < ACROSS; ++j) {
      simdgroup_load(from_right[j], right + k * right_stride + j * 8, right_stride);
    }
    UNROLL for (uint i = 0; i < DOWN; ++i) {
      UNROLL for (uint j = 0; j < ACROSS; ++j) {
        simdgroup_multiply_accumulate(sums[i * ACROSS + j], from_left[i], from_right[j], sums[i * ACROSS + j]);
      }
    }
  }
}

/// Eight rows of the sums into `strip`: those of the matrices i.
template <uint ACROSS>
void store_strip(thread const TileSum* sums, uint i, threadgroup float* strip) {
  UNROLL for (uint j = 0; j < ACROSS; ++j) simdgroup_store(sums[i * ACROSS + j], strip + j * 8, ACROSS * 8);
}
#endif

/// Hands the sums to the visitor, eight rows at a time through `strip`, eight rows of the simdgroup's own. A lane sees
/// one column.
template <uint DOWN, uint ACROSS, class Visitor>
void visit_strips(thread const TileSum* sums, thread Visitor& visitor, thread const TileRange& range, uint first_row,
                  uint first_column, threadgroup float* strip, uint lane_id) {
  enum : uint { width = ACROSS * 8 };
  UNROLL for (uint i = 0; i < DOWN; ++i) {
    store_strip<ACROSS>(sums, i, strip);
    simdgroup_barrier(mem_flags::mem_threadgroup);
    for (uint e = lane_id; e < 8 * width; e += 32) {
      const uint row = first_row + i * 8 + e / width;
      const uint column = first_column + e % width;
      if (row < range.rows && column < range.columns) visitor.visit(row, column, strip[e]);
    }
    simdgroup_barrier(mem_flags::mem_threadgroup);
  }
}

/// The same for a visitor that adds up what it sees of a column, of 32 rows: a part. The order of the sum is the same in
/// every tile: a lane sees eight rows of a column, and the visitor folds those sums in the order of the rows. Where the
/// simdgroup has fewer columns than lanes, several lanes have rows of one, through a strip of several matrices' rows.
template <uint DOWN, uint ACROSS, class Visitor>
void visit_columns(thread const TileSum* sums, thread Visitor& visitor, thread const TileRange& range, uint first_row,
                   uint first_column, threadgroup float* strip, uint lane_id) {
  enum : uint { width = ACROSS * 8, high = 32 / width };
  const uint column = first_column + lane_id % width;
  UNROLL for (uint i = 0; i < DOWN; i += high) {
    UNROLL for (uint j = 0; j < high; ++j) store_strip<ACROSS>(sums, i + j, strip + j * 8 * width);
    simdgroup_barrier(mem_flags::mem_threadgroup);
    const uint top = lane_id / width * 8;  // of the strip
    for (uint y = top; y < top + 8; ++y) {
      const uint row = first_row + i * 8 + y;
      if (row < range.rows && column < range.columns) visitor.visit(row, column, strip[y * width + lane_id % width]);
    }
    visitor.fold(width, lane_id);
    simdgroup_barrier(mem_flags::mem_threadgroup);
  }
  if (lane_id < width && first_row < range.rows && column < range.columns) visitor.finish(first_row / 32, column);
}

#ifndef RUSSET_OWN_TILE_SUMS
template <uint DOWN, uint ACROSS, class Visitor>
void visit_sums(thread const TileSum* sums, thread Visitor& visitor, thread const TileRange& range, uint first_row,
                uint first_column, threadgroup float* strip, uint lane_id) {
  visit_strips<DOWN, ACROSS>(sums, visitor, range, first_row, first_column, strip, lane_id);
}
#endif

/// `memory`: TileMemory<ROWS, COLUMNS, DEPTH>::count floats. All 128 threads call it.
template <class Left, class Right, class Visitor, uint ROWS, uint COLUMNS, uint DEPTH, bool LEFT_ALONG, bool RIGHT_ALONG>
void multiply_tile(thread const Left& left, thread const Right& right, thread Visitor& visitor,
                   thread const TileRange& range, threadgroup float* memory, thread const TileThread& self) {
  typedef TileMemory<ROWS, COLUMNS, DEPTH> Memory;
  enum : uint { groups_across = Visitor::sums_columns != 0 && ROWS == 32 ? 4 : 2 };
  enum : uint { own_rows = ROWS * groups_across / 4, own_columns = COLUMNS / groups_across };
  enum : uint { down = own_rows / 8, across = own_columns / 8 };
  threadgroup float* const left_memory = memory;
  threadgroup float* const right_memory = memory + Memory::left;
  const uint row = self.simdgroup_id / groups_across * own_rows;
  const uint column = self.simdgroup_id % groups_across * own_columns;
  TileSum sums[TileSums<down, across>::count];
  UNROLL for (uint i = 0; i < TileSums<down, across>::count; ++i) clear_sum(sums[i]);

  typedef TileLoader<Left, ROWS, DEPTH, LEFT_ALONG> LeftLoader;
  typedef TileLoader<Right, COLUMNS, DEPTH, RIGHT_ALONG> RightLoader;
  typename Left::Line left_lines[LeftLoader::line_count];
  typename Right::Line right_lines[RightLoader::line_count];
  float left_elements[LeftLoader::count];
  float right_elements[RightLoader::count];
  LeftLoader::start(left_lines, left, range.first_row, self.thread_id);
  RightLoader::start(right_lines, right, range.first_column, self.thread_id);
  LeftLoader::read(left_elements, left_lines, left, range.begin, range.end, self.thread_id);
  RightLoader::read(right_elements, right_lines, right, range.begin, range.end, self.thread_id);
  for (uint k = range.begin; k < range.end; k += DEPTH) {
    LeftLoader::place(left_memory, left_elements, Memory::left_stride, 1, self.thread_id);
    RightLoader::place(right_memory, right_elements, 1, Memory::right_stride, self.thread_id);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (k + DEPTH < range.end) {
      LeftLoader::read(left_elements, left_lines, left, k + DEPTH, range.end, self.thread_id);
      RightLoader::read(right_elements, right_lines, right, k + DEPTH, range.end, self.thread_id);
    }
    accumulate_slice<down, across, DEPTH>(sums, left_memory + row * Memory::left_stride, Memory::left_stride,
                                          right_memory + column, Memory::right_stride);
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  threadgroup float* const strip = memory + self.simdgroup_id * strip_floats;
  if constexpr (Visitor::sums_columns != 0) {
    visit_columns<down, across>(sums, visitor, range, range.first_row + row, range.first_column + column, strip,
                                self.lane_id);
  } else {
    visit_sums<down, across>(sums, visitor, range, range.first_row + row, range.first_column + column, strip,
                             self.lane_id);
  }
}

/// Work on the sums of eight rows, which belong to one simdgroup: ACROSS matrices side by side, of which those beyond
/// the `columns` that there are take no work. Kernels that go on with their sums (attention) are written with it.
template <uint ACROSS>
struct TileRows {
  enum : uint { count = ACROSS };

  static void clear(thread simdgroup_float8x8* sums) {
    UNROLL for (uint j = 0; j < ACROSS; ++j) sums[j] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
  }

  /// Adds the sum over k of left[row, k] * right[k, column].
  template <uint DEPTH>
  static void add(thread simdgroup_float8x8* sums, threadgroup const float* left, uint left_stride,
                  threadgroup const float* right, uint right_stride, uint columns) {
    for (uint k = 0; k < DEPTH; k += 8) {
      simdgroup_float8x8 from_left;
      simdgroup_load(from_left, left + k, left_stride);
      UNROLL for (uint j = 0; j < ACROSS; ++j) {
        if (j * 8 >= columns) continue;
        simdgroup_float8x8 from_right;
        simdgroup_load(from_right, right + k * right_stride + j * 8, right_stride);
        simdgroup_multiply_accumulate(sums[j], from_left, from_right, sums[j]);
      }
    }
  }

  /// Adds the sum over k < depth of left[row, k] * right[column, k], in steps of eight.
  static void add_transposed(thread simdgroup_float8x8* sums, threadgroup const float* left, uint left_stride,
                             threadgroup const float* right, uint right_stride, uint depth) {
    for (uint k = 0; k < depth; k += 8) {
      simdgroup_float8x8 from_left;
      simdgroup_load(from_left, left + k, left_stride);
      UNROLL for (uint j = 0; j < ACROSS; ++j) {
        simdgroup_float8x8 from_right;
        simdgroup_load(from_right, right + j * 8 * right_stride + k, right_stride, make_ulong2(0ul, 0ul), true);
        simdgroup_multiply_accumulate(sums[j], from_left, from_right, sums[j]);
      }
    }
  }

  /// Multiplies each element by the one of an 8x8 matrix in its row, and its column of eight.
  static void scale(thread simdgroup_float8x8* sums, threadgroup const float* factors) {
    simdgroup_float8x8 factor;
    simdgroup_load(factor, factors, 8);
    UNROLL for (uint j = 0; j < ACROSS; ++j) {
      sums[j].thread_elements()[0] *= factor.thread_elements()[0];
      sums[j].thread_elements()[1] *= factor.thread_elements()[1];
    }
  }

  static void store(thread const simdgroup_float8x8* sums, threadgroup float* strip, uint stride) {
    UNROLL for (uint j = 0; j < ACROSS; ++j) simdgroup_store(sums[j], strip + j * 8, stride);
  }

  /// Hands the sums within the first `rows` and `columns` to a visitor, through 64 * ACROSS floats of its own.
  template <class Visitor>
  static void visit(thread const simdgroup_float8x8* sums, thread const Visitor& visitor, uint first_row, uint rows,
                    uint columns, threadgroup float* strip, uint lane_id) {
    store(sums, strip, ACROSS * 8);
    simdgroup_barrier(mem_flags::mem_threadgroup);
    for (uint e = lane_id; e < ACROSS * 64; e += 32) {
      const uint row = first_row + e / (ACROSS * 8);
      const uint column = e % (ACROSS * 8);
      if (row < rows && column < columns) visitor.visit(row, column, strip[e]);
    }
  }
};
