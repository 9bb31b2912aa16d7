// needs: contraction.metal
// Contractions of which one matrix is small, as of convolutions of few channels: a tile of columns would be mostly empty,
// and a library pads. Factors that all threads of a threadgroup read lie in its memory, and so does where they lie.

// Places, member by member: between their members lies memory that nothing writes.
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

/// A row and COLUMNS columns a thread. `memory`: all of the right factor's columns, [depth][COLUMNS], then
/// what the threads give, THREADS * (COLUMNS + 1). `steps`: of the left factor, as many as the depth. SLICES threads
/// share a row: each takes every SLICES-th of the depth, and their sums are added in their order. ALONG: neighbouring
/// columns of the result lie side by side. The grid: column tiles, then row tiles, along x.
template <class Left, class Right, class Visitor, uint COLUMNS, uint SLICES, uint THREADS, bool ALONG,
          class LeftSource, class RightSource>
void narrow_rows(thread LeftSource& left_source, thread RightSource& right_source, thread Visitor& visitor,
                 constant ContractionValues& values, threadgroup float4* memory,
                 threadgroup typename Left::Step* steps, uint group, uint thread_id) {
  enum : uint { rows = THREADS / SLICES, pitch = COLUMNS + 1 };
  threadgroup float* const floats = (threadgroup float*)memory;
  const uint row_tile = group / values.column_tiles;
  const uint first_column = (group - row_tile * values.column_tiles) * COLUMNS;
  Left left;
  Right right;
  start_sides(left, right, left_source, right_source, values, 0u);
  visitor.start(0u, 0u);
  for (uint i = thread_id; i < values.depth * COLUMNS; i += THREADS) {
    typename Right::Line line;
    typename Right::Step step;
    right.line(line, first_column + i % COLUMNS);
    right.step(step, i / COLUMNS, values.depth);
    floats[i] = right.at(line, step);
  }
  for (uint k = thread_id; k < values.depth; k += THREADS) {
    typename Left::Step step;
    left.step(step, k, values.depth);
    put_place(steps[k], step);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const uint first_row = row_tile * rows;
  typename Left::Line line;
  left.line(line, first_row + thread_id % rows);
  float sums[COLUMNS];
  UNROLL for (uint c = 0; c < COLUMNS; ++c) sums[c] = 0.0f;
  for (uint k = thread_id / rows; k < values.depth; k += SLICES) {
    typename Left::Step step;
    take_place(step, steps[k]);
    const float x = left.at(line, step);
    UNROLL for (uint c = 0; c < COLUMNS; c += 4u) {
      const float4 factor = memory[(k * COLUMNS + c) / 4u];
      sums[c] = fma(x, factor.x, sums[c]);
      sums[c + 1u] = fma(x, factor.y, sums[c + 1u]);
      sums[c + 2u] = fma(x, factor.z, sums[c + 2u]);
      sums[c + 3u] = fma(x, factor.w, sums[c + 3u]);
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  UNROLL for (uint c = 0; c < COLUMNS; ++c) floats[thread_id * pitch + c] = sums[c];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint i = thread_id; i < rows * COLUMNS; i += THREADS) {
    const uint r = ALONG ? i / COLUMNS : i % rows;
    const uint c = ALONG ? i % COLUMNS : i / rows;
    if (first_row + r >= values.rows || first_column + c >= values.columns) continue;
    float sum = floats[r * pitch + c];
    UNROLL for (uint slice = 1; slice < SLICES; ++slice) sum += floats[(slice * rows + r) * pitch + c];
    visitor.visit(first_row + r, first_column + c, sum);
  }
}

/// Where the lines of a side lie, which a threadgroup reads again and again.
template <class Side>
void note_lines(threadgroup typename Side::Line* lines, thread const Side& side, uint count, uint threads,
                uint thread_id) {
  for (uint i = thread_id; i < count; i += threads) {
    typename Side::Line line;
    side.line(line, i);
    put_place(lines[i], line);
  }
}

/// Elements of a side at some steps, [DEPTH][LINES].
template <uint LINES, uint DEPTH, uint THREADS, class Side>
void stage_side(threadgroup float* stage, threadgroup const typename Side::Line* lines,
                threadgroup const typename Side::Step* steps, thread const Side& side, uint thread_id) {
  for (uint i = thread_id; i < LINES * DEPTH; i += THREADS) {
    typename Side::Line line;
    typename Side::Step step;
    take_place(line, lines[i % LINES]);
    take_place(step, steps[i / LINES]);
    stage[i] = side.at(line, step);
  }
}

/// All of the result, of ROWS x COLUMNS (multiples of four) at most, from a part of the depth (values.chunk of it), DEPTH
/// of it at a time: four rows and four columns a thread, in SLICES that each take every SLICES-th of what is staged and
/// whose sums are added in their order. `memory`: DEPTH * (ROWS + COLUMNS) floats, and at least THREADS * 16. `lines`:
/// ROWS + COLUMNS, `steps`: 2 * DEPTH. The grid: parts of the depth.
template <class Left, class Right, class Visitor, uint ROWS, uint COLUMNS, uint DEPTH, uint SLICES, uint THREADS,
          class LeftSource, class RightSource>
void narrow_depth(thread LeftSource& left_source, thread RightSource& right_source, thread Visitor& visitor,
                  constant ContractionValues& values, threadgroup float4* memory,
                  threadgroup typename Left::Line* lines, threadgroup typename Left::Step* steps, uint group,
                  uint thread_id) {
  enum : uint { across = COLUMNS / 4, tiles = ROWS / 4 * across, lanes = THREADS / SLICES };
  threadgroup float* const floats = (threadgroup float*)memory;
  Left left;
  Right right;
  start_sides(left, right, left_source, right_source, values, 0u);
  visitor.start(0u, group);
  note_lines(lines, left, ROWS, THREADS, thread_id);
  note_lines(lines + ROWS, right, COLUMNS, THREADS, thread_id);
  const uint slice = thread_id / lanes;
  const uint lane = thread_id % lanes;
  const uint tile_row = lane / across;
  const uint tile_column = lane % across;
  float sums[16];
  UNROLL for (uint i = 0; i < 16u; ++i) sums[i] = 0.0f;
  const uint begin = group * values.chunk;
  const uint end = min(begin + values.chunk, values.depth);
  for (uint first = begin; first < end; first += DEPTH) {
    for (uint k = thread_id; k < DEPTH; k += THREADS) {
      typename Left::Step left_step;
      typename Right::Step right_step;
      left.step(left_step, first + k, end);
      right.step(right_step, first + k, end);
      put_place(steps[k], left_step);
      put_place(steps[DEPTH + k], right_step);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    stage_side<ROWS, DEPTH, THREADS>(floats, lines, steps, left, thread_id);
    stage_side<COLUMNS, DEPTH, THREADS>(floats + DEPTH * ROWS, lines + ROWS, steps + DEPTH, right, thread_id);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (lane < tiles) {
      for (uint k = slice; k < DEPTH; k += SLICES) {
        const float4 a = memory[(k * ROWS) / 4u + tile_row];
        const float4 b = memory[(DEPTH * ROWS + k * COLUMNS) / 4u + tile_column];
        const float down[4] = {a.x, a.y, a.z, a.w};
        UNROLL for (uint i = 0; i < 4u; ++i) {
          sums[i * 4u] = fma(down[i], b.x, sums[i * 4u]);
          sums[i * 4u + 1u] = fma(down[i], b.y, sums[i * 4u + 1u]);
          sums[i * 4u + 2u] = fma(down[i], b.z, sums[i * 4u + 2u]);
          sums[i * 4u + 3u] = fma(down[i], b.w, sums[i * 4u + 3u]);
        }
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  if constexpr (SLICES > 1) {
    UNROLL for (uint i = 0; i < 16u; ++i) floats[i * THREADS + thread_id] = sums[i];
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  if (slice > 0u || lane >= tiles) return;
  UNROLL for (uint i = 0; i < 16u; ++i) {
    for (uint other = 1; other < SLICES; ++other) sums[i] += floats[i * THREADS + other * lanes + lane];
    const uint row = tile_row * 4u + i / 4u;
    const uint column = tile_column * 4u + i % 4u;
    if (row < values.rows && column < values.columns) visitor.visit(row, column, sums[i]);
  }
}
