// needs: attention.metal
// Attention and its gradients in blocks (Dao, "FlashAttention-2", 2023, arXiv:2307.08691): no score goes to memory.
// A threadgroup keeps a block of rows (of query, or of key and value) and goes through the others in their order: each
// result is written once, and has the same bits on every run. Eight rows a simdgroup; in a strip of their scores, four
// lanes a row.

/// Brings rows to threadgroup memory, zeros beyond the last row and column.
template <class T, uint LINES, uint WIDTH, uint THREADS>
void load_rows(threadgroup float* memory, thread const AttentionMatrix<T>& matrix, uint first, uint rows, uint columns,
               uint thread_id) {
  for (uint i = 0; i < LINES * WIDTH / THREADS; ++i) {
    const uint line = (i * THREADS + thread_id) / WIDTH;
    const uint column = (i * THREADS + thread_id) % WIDTH;
    const bool inside = first + line < rows && column < columns;
    memory[line * (WIDTH + 4) + column] = inside ? matrix.at(first + line, column) : 0.0f;
  }
}

/// Blocks of ROWS rows that stay and INNER rows that pass, of at most WIDTH columns; matrices lie along RANK axes.
template <uint ROWS, uint INNER, uint WIDTH, uint RANK>
struct AttentionBlocks {
  enum : uint {
    rank = RANK,
    rows = ROWS,
    inner = INNER,
    width = WIDTH,
    threads = ROWS * 4,
    part = INNER / 4,  // of a strip's columns, a lane
    stride = WIDTH + 4,
    strip_stride = INNER + 4,
    strip = 8 * (INNER + 4),
    // Floats of threadgroup memory; handing out sums takes less.
    forward = (ROWS + 2 * INNER) * (WIDTH + 4) + ROWS / 8 * (8 * (INNER + 4) + 64),
    backward = 2 * (ROWS + INNER) * (WIDTH + 4) + ROWS / 8 * 8 * (INNER + 4) + 2 * INNER
  };
};

/// Where a thread stands in its block.
template <uint RANK>
struct AttentionPlace {
  AttentionBatch<RANK> batch;
  uint first;            // the block's first row
  uint row;              // the lane's
  uint own;              // the simdgroup's first row in the block
  uint strip_row, part;  // the lane's cells of the strip
};

template <class Blocks>
void find_place_in_blocks(thread AttentionPlace<Blocks::rank>& place, constant AttentionValues& values, uint group,
                          thread const TileThread& self) {
  const uint batch = group / values.tiles;
  find_attention_batch(place.batch, values, batch);
  place.first = (group - batch * values.tiles) * Blocks::rows;
  place.own = self.simdgroup_id * 8u;
  place.strip_row = self.lane_id / 4u;
  place.row = place.first + place.own + place.strip_row;
  place.part = self.lane_id % 4u * Blocks::part;
}

/// Products of a simdgroup's eight rows with the rows of a block that passes, of `depth` columns, in the strip.
template <class Blocks>
void multiply_into_strip(threadgroup float* strip, threadgroup const float* left, threadgroup const float* right,
                         uint depth) {
  typedef TileRows<Blocks::inner / 8> Rows;
  simdgroup_float8x8 products[Rows::count];
  Rows::clear(products);
  Rows::add_transposed(products, left, Blocks::stride, right, Blocks::stride, depth);
  Rows::store(products, strip, Blocks::strip_stride);
  simdgroup_barrier(mem_flags::mem_threadgroup);
}

template <class Blocks, class Visitor>
void visit_rows(thread const simdgroup_float8x8* sums, thread const Visitor& visitor,
                thread const AttentionPlace<Blocks::rank>& place, uint rows, uint columns, threadgroup float* memory, uint lane_id) {
  TileRows<Blocks::width / 8>::visit(sums, visitor, place.first + place.own, rows, columns,
                                     memory + place.own * Blocks::width, lane_id);
}

/// The result and the logsumexp, or one of them. `memory`: Blocks::forward floats.
template <class Blocks, bool RESULT, bool LOGSUMEXP, class T, class Rules>
void attend(thread const AttentionPointers<T>& at, thread Rules& rules, constant AttentionValues& values,
            threadgroup float* memory, uint group, thread const TileThread& self) {
  AttentionPlace<Blocks::rank> place = {};
  find_place_in_blocks<Blocks>(place, values, group, self);
  rules.start(values, place.batch, 1.0f);
  AttentionMatrix<T> query;
  AttentionMatrix<T> key;
  AttentionMatrix<T> value;
  query.start(at.query, values.query, place.batch);
  key.start(at.key, values.key, place.batch);
  if constexpr (RESULT) value.start(at.value, values.value, place.batch);
  threadgroup float* const queries = memory;
  threadgroup float* const keys = queries + Blocks::rows * Blocks::stride;
  threadgroup float* const value_rows = keys + Blocks::inner * Blocks::stride;
  threadgroup float* const strip =
      value_rows + Blocks::inner * Blocks::stride + self.simdgroup_id * (Blocks::strip + 64);
  threadgroup float* const factors = strip + Blocks::strip;
  threadgroup float* const cells = strip + place.strip_row * Blocks::strip_stride + place.part;
  threadgroup float* const factor_cells = factors + self.lane_id * 2;

  float largest = -INFINITY;
  float total = 0.0f;
  typedef TileRows<Blocks::width / 8> Sums;
  simdgroup_float8x8 sums[Sums::count];
  Sums::clear(sums);
  load_rows<T, Blocks::rows, Blocks::width, Blocks::threads>(queries, query, place.first, values.rows, values.width,
                                                             self.thread_id);
  const uint end = rules.causal ? min(values.columns, place.first + Blocks::rows) : values.columns;
  for (uint first = 0; first < end; first += Blocks::inner) {
    load_rows<T, Blocks::inner, Blocks::width, Blocks::threads>(keys, key, first, values.columns, values.width,
                                                                self.thread_id);
    if constexpr (RESULT) {
      load_rows<T, Blocks::inner, Blocks::width, Blocks::threads>(value_rows, value, first, values.columns,
                                                                   values.values, self.thread_id);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    multiply_into_strip<Blocks>(strip, queries + place.own * Blocks::stride, keys, values.width);
    float scores[Blocks::part];
    float next = largest;
    for (uint i = Blocks::part; i-- > 0;) {
      scores[i] = rules.score(cells[i], place.row, first + place.part + i);
      next = max(next, scores[i]);
    }
    next = max(next, simd_shuffle_xor(next, 1));
    next = max(next, simd_shuffle_xor(next, 2));
    // A row that has seen nothing yet.
    const float base = next == -INFINITY ? 0.0f : next;
    const float factor = precise::exp(largest - base);
    largest = next;
    float sum = 0.0f;
    for (uint i = Blocks::part; i-- > 0;) {
      const float p = precise::exp(scores[i] - base);
      sum += p;
      if constexpr (RESULT) cells[i] = p * rules.kept(place.row, first + place.part + i);
    }
    sum += simd_shuffle_xor(sum, 1);
    sum += simd_shuffle_xor(sum, 2);
    total = fma(total, factor, sum);
    if constexpr (RESULT) {
      factor_cells[0] = factor;
      factor_cells[1] = factor;
      simdgroup_barrier(mem_flags::mem_threadgroup);
      Sums::scale(sums, factors);
      Sums::template add<Blocks::inner>(sums, strip, Blocks::strip_stride, value_rows, Blocks::stride, values.values);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  if constexpr (RESULT) {
    factor_cells[0] = total == 0.0f ? 0.0f : 1.0f / total;
    factor_cells[1] = factor_cells[0];
    simdgroup_barrier(mem_flags::mem_threadgroup);
    Sums::scale(sums, factors);
    AttentionVisitor<T> visitor;
    visitor.start(at.result, values.result, place.batch);
    visit_rows<Blocks>(sums, visitor, place, values.rows, values.values, memory, self.lane_id);
  }
  if constexpr (LOGSUMEXP) {
    if (place.part == 0u && place.row < values.rows) {
      device float* const statistics = at.statistics + attention_start(values.second, place.batch);
      statistics[long(place.row) * values.second.row] = total == 0.0f ? INFINITY : largest + precise::log(total);
    }
  }
}

/// The gradient for the query. `memory`: Blocks::backward floats.
template <class Blocks, class T, class Rules>
void query_gradient(thread const AttentionPointers<T>& at, thread Rules& rules, constant AttentionValues& values,
                    threadgroup float* memory, uint group, thread const TileThread& self) {
  AttentionPlace<Blocks::rank> place = {};
  find_place_in_blocks<Blocks>(place, values, group, self);
  rules.start(values, place.batch, 1.0f);
  AttentionMatrix<T> query;
  AttentionMatrix<T> key;
  AttentionMatrix<T> value;
  AttentionMatrix<T> gradient;
  query.start(at.query, values.query, place.batch);
  key.start(at.key, values.key, place.batch);
  value.start(at.value, values.value, place.batch);
  gradient.start(at.gradient, values.gradient, place.batch);
  threadgroup float* const queries = memory;
  threadgroup float* const gradients = queries + Blocks::rows * Blocks::stride;
  threadgroup float* const keys = gradients + Blocks::rows * Blocks::stride;
  threadgroup float* const value_rows = keys + Blocks::inner * Blocks::stride;
  threadgroup float* const strip =
      value_rows + Blocks::inner * Blocks::stride + self.simdgroup_id * Blocks::strip;
  threadgroup float* const cells = strip + place.strip_row * Blocks::strip_stride + place.part;

  typedef TileRows<Blocks::width / 8> Sums;
  simdgroup_float8x8 sums[Sums::count];
  Sums::clear(sums);
  load_rows<T, Blocks::rows, Blocks::width, Blocks::threads>(queries, query, place.first, values.rows, values.width,
                                                             self.thread_id);
  load_rows<T, Blocks::rows, Blocks::width, Blocks::threads>(gradients, gradient, place.first, values.rows,
                                                              values.values, self.thread_id);
  AttentionMatrix<float> logsumexps;
  AttentionMatrix<float> deltas;
  logsumexps.start(at.logsumexp, values.logsumexp, place.batch);
  deltas.start(at.delta, values.delta, place.batch);
  const float logsumexp = place.row < values.rows ? logsumexps.at(place.row, 0u) : 0.0f;
  const float delta = place.row < values.rows ? deltas.at(place.row, 0u) : 0.0f;
  const uint end = rules.causal ? min(values.columns, place.first + Blocks::rows) : values.columns;
  for (uint first = 0; first < end; first += Blocks::inner) {
    load_rows<T, Blocks::inner, Blocks::width, Blocks::threads>(keys, key, first, values.columns, values.width,
                                                                self.thread_id);
    load_rows<T, Blocks::inner, Blocks::width, Blocks::threads>(value_rows, value, first, values.columns,
                                                                 values.values, self.thread_id);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    multiply_into_strip<Blocks>(strip, queries + place.own * Blocks::stride, keys, values.width);
    float p[Blocks::part];
    for (uint i = Blocks::part; i-- > 0;) {
      p[i] = precise::exp(rules.score(cells[i], place.row, first + place.part + i) - logsumexp);
    }
    simdgroup_barrier(mem_flags::mem_threadgroup);
    multiply_into_strip<Blocks>(strip, gradients + place.own * Blocks::stride, value_rows, values.values);
    for (uint i = Blocks::part; i-- > 0;) {
      cells[i] = p[i] * (cells[i] * rules.kept(place.row, first + place.part + i) - delta);
    }
    simdgroup_barrier(mem_flags::mem_threadgroup);
    Sums::template add<Blocks::inner>(sums, strip, Blocks::strip_stride, keys, Blocks::stride, values.width);
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  AttentionVisitor<T> visitor;
  visitor.start(at.result, values.result, place.batch);
  visitor.factor = values.scale;
  visit_rows<Blocks>(sums, visitor, place, values.rows, values.width, memory, self.lane_id);
}

/// The gradients for key (result) and value (second), or one of them. `memory`: Blocks::backward floats.
template <class Blocks, bool KEY, bool VALUE, class T, class Rules>
void key_value_gradient(thread const AttentionPointers<T>& at, thread Rules& rules, constant AttentionValues& values,
                        threadgroup float* memory, uint group, thread const TileThread& self) {
  AttentionPlace<Blocks::rank> place = {};
  find_place_in_blocks<Blocks>(place, values, group, self);
  rules.start(values, place.batch, 1.0f);
  AttentionMatrix<T> query;
  AttentionMatrix<T> key;
  AttentionMatrix<T> value;
  AttentionMatrix<T> gradient;
  AttentionMatrix<float> logsumexp;
  AttentionMatrix<float> delta;
  query.start(at.query, values.query, place.batch);
  key.start(at.key, values.key, place.batch);
  gradient.start(at.gradient, values.gradient, place.batch);
  logsumexp.start(at.logsumexp, values.logsumexp, place.batch);
  if constexpr (KEY) {
    value.start(at.value, values.value, place.batch);
    delta.start(at.delta, values.delta, place.batch);
  }
  threadgroup float* const keys = memory;
  threadgroup float* const value_rows = keys + Blocks::rows * Blocks::stride;
  threadgroup float* const queries = value_rows + Blocks::rows * Blocks::stride;
  threadgroup float* const gradients = queries + Blocks::inner * Blocks::stride;
  threadgroup float* const statistics = gradients + Blocks::inner * Blocks::stride;
  threadgroup float* const strip = statistics + 2 * Blocks::inner + self.simdgroup_id * Blocks::strip;
  threadgroup float* const cells = strip + place.strip_row * Blocks::strip_stride + place.part;

  typedef TileRows<Blocks::width / 8> Sums;
  simdgroup_float8x8 key_sums[Sums::count];
  simdgroup_float8x8 value_sums[Sums::count];
  Sums::clear(key_sums);
  Sums::clear(value_sums);
  load_rows<T, Blocks::rows, Blocks::width, Blocks::threads>(keys, key, place.first, values.columns, values.width,
                                                             self.thread_id);
  if constexpr (KEY) {
    load_rows<T, Blocks::rows, Blocks::width, Blocks::threads>(value_rows, value, place.first, values.columns,
                                                                values.values, self.thread_id);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  // Of a causal attention, earlier rows see none of these keys.
  const uint begin = rules.causal ? place.first : 0u;
  for (uint first = begin; first < values.rows; first += Blocks::inner) {
    load_rows<T, Blocks::inner, Blocks::width, Blocks::threads>(queries, query, first, values.rows, values.width,
                                                                self.thread_id);
    load_rows<T, Blocks::inner, Blocks::width, Blocks::threads>(gradients, gradient, first, values.rows, values.values,
                                                                 self.thread_id);
    if (self.thread_id < Blocks::inner) {
      const uint row = first + self.thread_id;
      statistics[self.thread_id] = row < values.rows ? logsumexp.at(row, 0u) : 0.0f;
      if constexpr (KEY) statistics[Blocks::inner + self.thread_id] = row < values.rows ? delta.at(row, 0u) : 0.0f;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    multiply_into_strip<Blocks>(strip, keys + place.own * Blocks::stride, queries, values.width);
    float p[Blocks::part];
    float kept[Blocks::part];
    for (uint i = Blocks::part; i-- > 0;) {
      const uint row = first + place.part + i;
      p[i] = precise::exp(rules.score(cells[i], row, place.row) - statistics[place.part + i]);
      kept[i] = rules.kept(row, place.row);
    }
    if constexpr (VALUE) {
      for (uint i = Blocks::part; i-- > 0;) cells[i] = p[i] * kept[i];
      simdgroup_barrier(mem_flags::mem_threadgroup);
      Sums::template add<Blocks::inner>(value_sums, strip, Blocks::strip_stride, gradients, Blocks::stride,
                                        values.values);
    }
    if constexpr (KEY) {
      simdgroup_barrier(mem_flags::mem_threadgroup);
      multiply_into_strip<Blocks>(strip, value_rows + place.own * Blocks::stride, gradients, values.values);
      for (uint i = Blocks::part; i-- > 0;) {
        cells[i] = p[i] * (cells[i] * kept[i] - statistics[Blocks::inner + place.part + i]);
      }
      simdgroup_barrier(mem_flags::mem_threadgroup);
      Sums::template add<Blocks::inner>(key_sums, strip, Blocks::strip_stride, queries, Blocks::stride, values.width);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  if constexpr (KEY) {
    AttentionVisitor<T> visitor;
    visitor.start(at.result, values.result, place.batch);
    visitor.factor = values.scale;
    visit_rows<Blocks>(key_sums, visitor, place, values.columns, values.width, memory, self.lane_id);
  }
  if constexpr (KEY && VALUE) threadgroup_barrier(mem_flags::mem_threadgroup);
  if constexpr (VALUE) {
    AttentionVisitor<T> visitor;
    visitor.start(at.second, values.second, place.batch);
    visit_rows<Blocks>(value_sums, visitor, place, values.columns, values.values, memory, self.lane_id);
  }
}
