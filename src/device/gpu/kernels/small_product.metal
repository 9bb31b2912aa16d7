// needs: contraction.metal
// needs: fragments.metal
// Contractions of little work: factors go from memory to fragments in registers at once, for a tile that threadgroup
// memory would share has too few readers, and loading one slice of the depth behind another takes longer than all the
// products. Tensor cores multiply numbers of 16 bits, fused multiply-add those of float32. A simdgroup has a tile of 16 rows and 8 or 16 columns, or every SLICES-th slice of the
// depth of one; then the sums of a tile's simdgroups are added in their order. Where the left factor's steps lie is found
// once for a threadgroup, unless the depth is flat; so are the fragments of the right one, where several tiles share them.
//
// Which four steps of a slice a lane holds does not matter, as long as both factors agree: here they are neighbours.

enum : uint { small_simdgroups = 8, small_threads = small_simdgroups * 32 };

// Places in threadgroup memory, member by member: between their members lies memory that nothing writes.
template <class P>
void put_place(threadgroup P& to, thread const P& from) {
  to.offset = from.offset;
  to.y = from.y;
  to.x = from.x;
  to.inside = from.inside;
}
template <class P>
void take_place(thread P& to, threadgroup const P& from) {
  to.offset = from.offset;
  to.y = from.y;
  to.x = from.x;
  to.inside = from.inside;
}

/// Four steps of a line in a lane's registers, and a slice of the depth: two lines of the left factor, 8 rows apart, and
/// ACROSS of the right one, 8 columns apart. Steps and lines of the lanes are those of fragments.metal.
template <class T>
struct SmallSlice {
  typedef uint2 Four;
  static Four zeros() { return make_uint2(0u, 0u); }
  static Four joined(uint first, uint second) { return make_uint2(first, second); }
  static Four joined(T a, T b, T c, T d) { return make_uint2(pair_bits(a, b), pair_bits(c, d)); }

  template <uint ACROSS>
  static void add(thread SumFragment* sums, thread const Four* left, thread const Four* right, uint lane_id) {
    LeftFragment rows;
    RightFragments columns;
    UNROLL for (uint i = 0; i < 2u; ++i) {
      rows.pairs[i] = left[i].x;
      rows.pairs[i + 2u] = left[i].y;
    }
    UNROLL for (uint j = 0; j < ACROSS; ++j) {
      columns.pairs[j * 2u] = right[j].x;
      columns.pairs[j * 2u + 1u] = right[j].y;
    }
    multiply_fragments<T, 0>(sums[0], rows, columns, lane_id);
    if constexpr (ACROSS == 2) multiply_fragments<T, 1>(sums[1], rows, columns, lane_id);
  }
};

template <>
struct SmallSlice<float> {
  typedef float4 Four;
  static Four zeros() { return make_float4(0.0f, 0.0f, 0.0f, 0.0f); }
  static Four joined(float2 first, float2 second) { return make_float4(first.x, first.y, second.x, second.y); }
  static Four joined(float a, float b, float c, float d) { return make_float4(a, b, c, d); }

  template <uint ACROSS>
  static void add(thread SumFragment* sums, thread const Four* left, thread const Four* right, uint lane_id) {
    UNROLL for (uint four = 0; four < 4u; ++four) {
      const ushort from_row = ushort(lane_id / 4u * 4u + four);
      add_step<ACROSS>(sums, left[0].x, left[1].x, right[0].x, right[ACROSS - 1].x, from_row, lane_id);
      add_step<ACROSS>(sums, left[0].y, left[1].y, right[0].y, right[ACROSS - 1].y, from_row, lane_id);
      add_step<ACROSS>(sums, left[0].z, left[1].z, right[0].z, right[ACROSS - 1].z, from_row, lane_id);
      add_step<ACROSS>(sums, left[0].w, left[1].w, right[0].w, right[ACROSS - 1].w, from_row, lane_id);
    }
  }

  /// The products of a step that a quarter of the lanes holds: `from_row` has it of the lane's rows.
  template <uint ACROSS>
  static void add_step(thread SumFragment* sums, float upper, float lower, float first, float last, ushort from_row,
                       uint lane_id) {
    const float above = simd_shuffle(upper, from_row);
    const float below = simd_shuffle(lower, from_row);
    UNROLL for (uint i = 0; i < 2u; ++i) {
      const ushort from_column = ushort((lane_id % 4u * 2u + i) * 4u + uint(from_row) % 4u);
      UNROLL for (uint j = 0; j < ACROSS; ++j) {
        const float column = simd_shuffle(j == 0u ? first : last, from_column);
        sums[j].at[i] = fma(above, column, sums[j].at[i]);
        sums[j].at[i + 2u] = fma(below, column, sums[j].at[i + 2u]);
      }
    }
  }
};

/// A factor's part of the depth: WIDTH (1, 2 or 4) steps lie side by side, at a multiple of their size. NOTED: threads
/// find steps in `steps`, not each by itself.
template <class T, class Side, uint WIDTH, bool NOTED>
struct SmallFactor {
  typedef SmallSlice<T> Slice;
  Side side;
  threadgroup typename Side::Step* steps;
  uint begin, end;

  /// `count`: those of the depth, and beyond it as far as slices go.
  void note_steps(uint count, uint thread_id) const {
    if constexpr (NOTED) {
      for (uint k = thread_id; k < count; k += small_threads) {
        typename Side::Step step;
        side.step(step, begin + k, end);
        put_place(steps[k], step);
      }
    }
  }

  bool find(thread typename Side::Distance& offset, thread const typename Side::Line& line, uint k) const {
    typename Side::Step step;
    if constexpr (NOTED) {
      take_place(step, steps[k]);
    } else {
      side.step(step, begin + k, end);
    }
    return side.find(offset, line, step);
  }

  /// A line's elements at four steps, the first of which is the part's k-th.
  typename Slice::Four four(thread const typename Side::Line& line, uint k) const {
    typename Side::Distance offset;
    if constexpr (WIDTH == 4) {
      if (!find(offset, line, k)) return Slice::zeros();
      return *(device const typename Slice::Four*)(side.source->data + offset);
    } else if constexpr (WIDTH == 2) {
      typedef typename PairOf<T>::type Pair;
      Pair pairs[2];
      UNROLL for (uint i = 0; i < 2u; ++i) {
        const bool is_there = find(offset, line, k + i * 2u);
        pairs[i] = is_there ? *(device const Pair*)(side.source->data + offset) : pair_of(T(0.0f), T(0.0f));
      }
      return Slice::joined(pairs[0], pairs[1]);
    } else {
      T each[4];
      UNROLL for (uint i = 0; i < 4u; ++i) {
        each[i] = find(offset, line, k + i) ? side.source->data[offset] : T(0.0f);
      }
      return Slice::joined(each[0], each[1], each[2], each[3]);
    }
  }
};

/// `memory`: a tile for each simdgroup. `steps` and `fragments`: as many steps of the left factor as values.chunk, rounded
/// up to whole rounds of SLICES * AHEAD slices, and the right factor's fragments of so many, ACROSS * 32 of each slice;
/// one where they are not noted. AHEAD slices are loaded before any is multiplied. The grid: column tiles of ACROSS * 8,
/// row tiles of as many tiles as a threadgroup has, parts of the depth, batches, all along x.
template <class T, class Left, class Right, class Visitor, uint SLICES, uint AHEAD, uint ACROSS, uint LEFT_WIDTH,
          uint RIGHT_WIDTH, class LeftSource, class RightSource>
void small_product(thread LeftSource& left_source, thread RightSource& right_source, thread Visitor& visitor,
                   constant ContractionValues& values, threadgroup float* memory,
                   threadgroup typename Left::Step* steps, threadgroup typename SmallSlice<T>::Four* fragments,
                   uint group, uint thread_id) {
  enum : uint { tiles = small_simdgroups / SLICES, round = SLICES * AHEAD * 16, width = ACROSS * 8 };
  const uint column_tile = group % values.column_tiles;
  group /= values.column_tiles;
  const uint row_tile = group % values.row_tiles;
  group /= values.row_tiles;
  const uint split = group % values.splits;
  const uint batch = group / values.splits;
  const uint simdgroup_id = thread_id / 32u;
  const uint lane_id = thread_id % 32u;
  const uint first_row = row_tile * (tiles * 16u);
  const uint first_column = column_tile * width;
  SmallFactor<T, Left, LEFT_WIDTH, Left::splits_steps != 0> left = {};
  SmallFactor<T, Right, RIGHT_WIDTH, false> right = {};
  start_sides(left.side, right.side, left_source, right_source, values, batch);
  left.steps = steps;
  left.begin = right.begin = split * values.chunk;
  left.end = right.end = min(left.begin + values.chunk, values.depth);
  const uint depth = left.end - left.begin;
  const uint count = (depth + (round - 1u)) / round * round;
  left.note_steps(count, thread_id);
  typename Left::Line left_lines[2];
  typename Right::Line right_lines[ACROSS];
  UNROLL for (uint i = 0; i < 2u; ++i) {
    left.side.line(left_lines[i], first_row + simdgroup_id / SLICES * 16u + lane_id / 4u + i * 8u);
  }
  UNROLL for (uint j = 0; j < ACROSS; ++j) right.side.line(right_lines[j], first_column + lane_id / 4u + j * 8u);
  if constexpr (tiles != 1) {
    for (uint slice = simdgroup_id * 16u; slice < count; slice += small_simdgroups * 16u) {
      UNROLL for (uint j = 0; j < ACROSS; ++j) {
        fragments[(slice / 16u * ACROSS + j) * 32u + lane_id] = right.four(right_lines[j], slice + lane_id % 4u * 4u);
      }
    }
  }
  SumFragment sums[ACROSS];
  UNROLL for (uint j = 0; j < ACROSS; ++j) clear_fragment(sums[j]);
  if constexpr (tiles != 1 || Left::splits_steps != 0) threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint slice = simdgroup_id % SLICES * 16u; slice < depth; slice += round) {
    typename SmallSlice<T>::Four left_fours[AHEAD * 2];
    typename SmallSlice<T>::Four right_fours[AHEAD * ACROSS];
    UNROLL for (uint ahead = 0; ahead < AHEAD; ++ahead) {
      const uint first = slice + ahead * (SLICES * 16u);
      UNROLL for (uint i = 0; i < 2u; ++i) {
        left_fours[ahead * 2u + i] = left.four(left_lines[i], first + lane_id % 4u * 4u);
      }
      UNROLL for (uint j = 0; j < ACROSS; ++j) {
        if constexpr (tiles != 1) {
          right_fours[ahead * ACROSS + j] = fragments[(first / 16u * ACROSS + j) * 32u + lane_id];
        } else {
          right_fours[ahead * ACROSS + j] = right.four(right_lines[j], first + lane_id % 4u * 4u);
        }
      }
    }
    UNROLL for (uint ahead = 0; ahead < AHEAD; ++ahead) {
      SmallSlice<T>::template add<ACROSS>(sums, left_fours + ahead * 2u, right_fours + ahead * ACROSS, lane_id);
    }
  }
  threadgroup float* const own = memory + simdgroup_id * (16u * width);
  UNROLL for (uint i = 0; i < 4u; ++i) {
    UNROLL for (uint j = 0; j < ACROSS; ++j) {
      own[fragment_row(lane_id, i) * width + j * 8u + fragment_column(lane_id, i)] = sums[j].at[i];
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  visitor.start(batch, split);
  const uint across = min(uint(width), values.columns - first_column);
  const uint down = min(uint(tiles) * 16u, values.rows - first_row);
  for (uint i = thread_id; i < down * across; i += small_threads) {
    const uint row = i / across;
    const uint column = i - row * across;
    threadgroup const float* const parts =
        memory + row / 16u * (SLICES * 16u * width) + row % 16u * width + column;
    float sum = parts[0];
    UNROLL for (uint part = 1; part < SLICES; ++part) sum += parts[part * (16u * width)];
    visitor.visit(first_row + row, first_column + column, sum);
  }
}
