// needs: contraction.metal
// needs: fragments.metal
// Products of float32 on tensor cores: each number is the sum of two of TF32, of eleven bits each, so that three products
// give what one of float32 would (Ootomo and Yokota, "Recovering single precision accuracy from Tensor Cores", 2022,
// arXiv:2203.03341). Tensor cores truncate sums, so those of sixteen products at a time are added in float32. What TF32
// cannot split, infinities, NaN and numbers near the ends of float32, is noticed; then the whole tile is computed by
// fused multiply-add.

/// Tiles of 128 x 128, in slices of 16: eight simdgroups, two by four, of 64 x 32 each.
enum : uint {
  split_rows = 128,
  split_columns = 128,
  split_depth = 16,
  split_groups_across = 4,  // simdgroups
  split_threads = 256,
  split_down = 4,  // fragments of a simdgroup
  split_across = 4,
  split_line = split_depth + 4,  // where depths are neighbours: a line, so that its fragments lie in different banks
  split_left = split_rows * split_line,  // floats of threadgroup memory
  split_right = split_columns * split_line,
  split_memory = split_left + split_right
};

/// What a thread brings of an operand of SIDE lines: vectors of four. ALONG_DEPTH: neighbours along the depth.
template <uint SIDE, bool ALONG_DEPTH>
struct SplitLoader {
  enum : uint { count = SIDE * split_depth / 4 / split_threads, step_stride = SIDE + 8 };

  static uint line(uint i, uint thread_id) {
    const uint at = i * split_threads + thread_id;
    return ALONG_DEPTH ? at / (split_depth / 4) : at % (SIDE / 4) * 4u;
  }
  static uint step(uint i, uint thread_id) {
    const uint at = i * split_threads + thread_id;
    return ALONG_DEPTH ? at % (split_depth / 4) * 4u : at / (SIDE / 4);
  }
  static uint place(uint line, uint step) { return ALONG_DEPTH ? line * split_line + step : step * step_stride + line; }

  template <class Source, class Offset>
  static void read(thread float4* elements, thread const Source& source, Offset line_stride, Offset depth_stride,
                   uint first_line, uint lines, uint first_step, uint end, uint thread_id) {
    UNROLL for (uint i = 0; i < count; ++i) {
      const uint at_line = first_line + line(i, thread_id);
      const uint at_step = first_step + step(i, thread_id);
      elements[i] = at_line < lines && at_step < end
                        ? source.quad(Offset(at_line) * line_stride + Offset(at_step) * depth_stride)
                        : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    }
  }

  /// `largest`: of the magnitudes of what this thread brings, by place in a slice, as bits, which order NaN last.
  static void store(threadgroup float* memory, thread const float4* elements, thread uint* largest, uint thread_id) {
    UNROLL for (uint i = 0; i < count; ++i) {
      *(threadgroup float4*)(memory + place(line(i, thread_id), step(i, thread_id))) = elements[i];
      note(largest[i * 4u], elements[i].x);
      note(largest[i * 4u + 1u], elements[i].y);
      note(largest[i * 4u + 2u], elements[i].z);
      note(largest[i * 4u + 3u], elements[i].w);
    }
  }
  static void note(thread uint& largest, float x) { largest = max(largest, as_type<uint>(x) & 0x7fffffffu); }
};

/// Whether numbers of these magnitudes have parts of TF32 that add up to them: none is 2^127 or more, and none is below
/// 2^-113 where nothing larger than 2^-100 lies beside it.
inline bool can_split(uint largest) { return largest < 0x7f000000u && (largest == 0u || largest >= 0x0d800000u); }

/// `high` is rounded to eleven bits. Of `low`, which is exact, tensor cores drop what they cannot take.
inline void split_float(float x, thread float& high, thread float& low) {
  high = as_type<float>((as_type<uint>(x) + 0x1000u) & 0xffffe000u);
  low = x - high;
}

/// Adds the products of a slice to the simdgroup's sums.
template <class Left, class Right>
void multiply_split_slice(thread SumFragment* sums, threadgroup const float* left, threadgroup const float* right,
                          uint first_row, uint first_column, uint lane_id) {
  SumFragment parts[split_down * split_across];
  UNROLL for (uint i = 0; i < split_down * split_across; ++i) clear_fragment(parts[i]);
  UNROLL for (uint k = 0; k < split_depth; k += 8u) {
    const uint step = k + lane_id % 4u;
    float right_high[split_across][2];
    float right_low[split_across][2];
    UNROLL for (uint j = 0; j < split_across; ++j) {
      const uint column = first_column + j * 8u + lane_id / 4u;
      split_float(right[Right::place(column, step)], right_high[j][0], right_low[j][0]);
      split_float(right[Right::place(column, step + 4u)], right_high[j][1], right_low[j][1]);
    }
    UNROLL for (uint i = 0; i < split_down; ++i) {
      const uint row = first_row + i * 16u + lane_id / 4u;
      float left_high[4];
      float left_low[4];
      UNROLL for (uint part = 0; part < 4u; ++part) {
        split_float(left[Left::place(row + part % 2u * 8u, step + part / 2u * 4u)], left_high[part], left_low[part]);
      }
      // Products that add to one sum wait for each other, so others stand between them.
      thread SumFragment* const row_parts = parts + i * split_across;
      UNROLL for (uint j = 0; j < split_across; ++j) multiply_tf32(row_parts[j], left_low, right_high[j], lane_id);
      UNROLL for (uint j = 0; j < split_across; ++j) multiply_tf32(row_parts[j], left_high, right_low[j], lane_id);
      UNROLL for (uint j = 0; j < split_across; ++j) multiply_tf32(row_parts[j], left_high, right_high[j], lane_id);
    }
  }
  UNROLL for (uint i = 0; i < split_down * split_across; ++i) {
    UNROLL for (uint e = 0; e < 4u; ++e) sums[i].at[e] += parts[i].at[e];
  }
}

/// An element by fused multiply-add.
template <class Offset, class Left, class Right>
float plain_product(thread const Left& left, thread const Right& right, constant ContractionValues& values, uint row,
                    uint column, uint begin, uint end) {
  float sum = 0.0f;
  for (uint k = begin; k < end; ++k) {
    sum = fma(left.at(Offset(row) * Offset(values.left_line.strides[2]) + Offset(k) * Offset(values.left_step.strides[2])),
              right.at(Offset(column) * Offset(values.right_line.strides[2]) +
                       Offset(k) * Offset(values.right_step.strides[2])),
              sum);
  }
  return sum;
}

/// A tile of the result. The grid: column tiles, row tiles, splits, batches, all along x. `flags`: one a simdgroup.
template <class Offset, bool LEFT_ALONG, bool RIGHT_ALONG, class LeftSource, class RightSource, class Visitor>
void split_product(thread LeftSource& left, thread RightSource& right, thread Visitor& visitor,
                   constant ContractionValues& values, threadgroup float4* memory, threadgroup uint* flags, uint group,
                   thread const TileThread& self) {
  typedef SplitLoader<split_rows, LEFT_ALONG> LeftLoader;
  typedef SplitLoader<split_columns, RIGHT_ALONG> RightLoader;
  const uint column_tile = group % values.column_tiles;
  group /= values.column_tiles;
  const uint row_tile = group % values.row_tiles;
  group /= values.row_tiles;
  const uint split = group % values.splits;
  const uint batch = group / values.splits;
  const uint tile_row = row_tile * split_rows;
  const uint tile_column = column_tile * split_columns;
  const uint begin = split * values.chunk;
  const uint end = min(begin + values.chunk, values.depth);
  left.start(batch_offset(values.left_start, values.left_batch, values, batch));
  right.start(batch_offset(values.right_start, values.right_batch, values, batch));
  const Offset left_line = Offset(values.left_line.strides[2]);
  const Offset left_step = Offset(values.left_step.strides[2]);
  const Offset right_line = Offset(values.right_line.strides[2]);
  const Offset right_step = Offset(values.right_step.strides[2]);
  const uint first_row = self.simdgroup_id / split_groups_across * (split_down * 16u);
  const uint first_column = self.simdgroup_id % split_groups_across * (split_across * 8u);

  SumFragment sums[split_down * split_across];
  UNROLL for (uint i = 0; i < split_down * split_across; ++i) clear_fragment(sums[i]);
  enum : uint { watched = 4 * (LeftLoader::count + RightLoader::count) };
  uint largest[watched];
  UNROLL for (uint i = 0; i < watched; ++i) largest[i] = 0u;
  float4 from_left[LeftLoader::count];
  float4 from_right[RightLoader::count];
  LeftLoader::read(from_left, left, left_line, left_step, tile_row, values.rows, begin, end, self.thread_id);
  RightLoader::read(from_right, right, right_line, right_step, tile_column, values.columns, begin, end, self.thread_id);
  threadgroup float* const left_memory = (threadgroup float*)memory;
  threadgroup float* const right_memory = left_memory + split_left;
  for (uint k = begin; k < end; k += split_depth) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    LeftLoader::store(left_memory, from_left, largest, self.thread_id);
    RightLoader::store(right_memory, from_right, largest + 4 * LeftLoader::count, self.thread_id);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const uint next = k + split_depth;
    if (next < end) {
      LeftLoader::read(from_left, left, left_line, left_step, tile_row, values.rows, next, end, self.thread_id);
      RightLoader::read(from_right, right, right_line, right_step, tile_column, values.columns, next, end,
                        self.thread_id);
    }
    multiply_split_slice<LeftLoader, RightLoader>(sums, left_memory, right_memory, first_row, first_column,
                                                  self.lane_id);
  }
  bool splits = true;
  UNROLL for (uint i = 0; i < watched; ++i) splits = splits && can_split(largest[i]);
  const uint flag = simd_max(splits ? 0u : 1u);
  if (self.lane_id == 0u) flags[self.simdgroup_id] = flag;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  bool plain = false;
  UNROLL for (uint i = 0; i < split_threads / 32; ++i) plain = plain || flags[i] != 0u;
  visitor.start(batch, split);
  // Sixteen rows of a simdgroup at a time, so that neighbouring lanes have neighbouring columns.
  enum : uint { width = split_across * 8 };
  threadgroup float* const strip = (threadgroup float*)memory + self.simdgroup_id * (16u * width);
  UNROLL for (uint i = 0; i < split_down; ++i) {
    UNROLL for (uint j = 0; j < split_across; ++j) {
      UNROLL for (uint e = 0; e < 4u; ++e) {
        strip[fragment_row(self.lane_id, e) * width + j * 8u + fragment_column(self.lane_id, e)] =
            sums[i * split_across + j].at[e];
      }
    }
    simdgroup_barrier(mem_flags::mem_threadgroup);
    for (uint e = self.lane_id; e < 16u * width; e += 32u) {
      const uint row = tile_row + first_row + i * 16u + e / width;
      const uint column = tile_column + first_column + e % width;
      if (row >= values.rows || column >= values.columns) continue;
      visitor.visit(row, column,
                    plain ? plain_product<Offset>(left, right, values, row, column, begin, end) : strip[e]);
    }
    simdgroup_barrier(mem_flags::mem_threadgroup);
  }
}
