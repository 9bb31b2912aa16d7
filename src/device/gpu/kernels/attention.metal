// needs: element.metal
// needs: random.metal
// needs: tile.metal
// Attention and its gradients in blocks (Dao, "FlashAttention-2", 2023, arXiv:2307.08691): no score goes to memory.
//   result = softmax(scale * query key^T, masked) value        logsumexp: of each row's scores
//   p = exp(score - logsumexp)    slope = p * (kept * (gradient value^T) - delta)    delta: sum of result * gradient
//   query: scale * slope key      key: scale * slope^T query      value: (kept * p)^T gradient
// A threadgroup keeps a block of rows (of query, or of key and value) and goes through the others in their order: each
// result is written once, and has the same bits on every run. Eight rows a simdgroup; in a strip of their scores, four
// lanes a row.

/// Where an operand lies: strides in elements.
struct AttentionArray {
  long start;
  long batch[6];
  long row, column;
};

struct AttentionValues {
  AttentionArray query, key, value, gradient, logsumexp, delta, mask, uniform, result, second, third;
  AttentionArray key_sums, value_sums, query_sums;
  ulong seed, offset;
  uint batch_sizes[6];
  uint batches;
  uint rows, columns;  // of the scores
  uint width, values;  // of query and key, and of value
  uint tiles;          // blocks of rows a batch
  uint causal;         // not 0: a row sees the columns up to its own number
  float scale, dropout, kept;
};

template <class T>
struct AttentionPointers {
  device const T* query;
  device const T* key;
  device const T* value;
  device const T* gradient;
  device const float* logsumexp;
  device const float* delta;
  device const T* forward;  // the attention's result, by which a kernel computes delta itself
  device T* result;
  device T* second;
  device T* third;
  device float* statistics;
  device float* key_sums;  // sums over the rows of each matrix of a gradient
  device float* value_sums;
  device float* query_sums;
};

/// One matrix of a batch, by its number and by its index along each of the batch's RANK axes.
template <uint RANK>
struct AttentionBatch {
  uint number;
  uint at[RANK];
};

template <uint RANK>
void find_attention_batch(thread AttentionBatch<RANK>& batch, constant AttentionValues& values, uint number) {
  batch.number = number;
  UNROLL for (uint axis = RANK - 1u; axis > 0u; --axis) {
    const uint rest = number / values.batch_sizes[axis];
    batch.at[axis] = number - rest * values.batch_sizes[axis];
    number = rest;
  }
  batch.at[0] = number;
}

template <uint RANK>
long attention_start(constant AttentionArray& array, thread const AttentionBatch<RANK>& batch) {
  long offset = array.start;
  UNROLL for (uint axis = 0; axis < RANK; ++axis) offset += long(batch.at[axis]) * array.batch[axis];
  return offset;
}

/// A matrix of a batch.
template <class T>
struct AttentionMatrix {
  device const T* data;
  long row_stride, column_stride;

  template <uint RANK>
  void start(device const T* all, constant AttentionArray& array, thread const AttentionBatch<RANK>& batch) {
    data = all + attention_start(array, batch);
    row_stride = array.row;
    column_stride = array.column;
  }
  float at(uint row, uint column) const {
    return read_element<float>(data, long(row) * row_stride + long(column) * column_stride);
  }
};

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

// Masks: what a score becomes.

struct NoMask {
  enum : uint { reads = 0 };
  template <class Batch>
  void start(constant AttentionValues&, thread const Batch&) {}
  float apply(float score, uint, uint, float) const { return score; }
};

inline float masked_score(float score, bool seen, float) { return seen ? score : -INFINITY; }
inline float masked_score(float score, float added, float unit) { return fma(added, unit, score); }

template <class M>
struct ReadMask {
  enum : uint { reads = 1 };
  device const M* mask;
  AttentionMatrix<M> matrix;
  template <class Batch>
  void start(constant AttentionValues& values, thread const Batch& batch) { matrix.start(mask, values.mask, batch); }
  float apply(float score, uint row, uint column, float unit) const {
    return masked_score(score, matrix.data[long(row) * matrix.row_stride + long(column) * matrix.column_stride], unit);
  }
};

// Dropout: what a probability is multiplied by.

/// Nothing is dropped.
struct KeepAll {
  enum : uint { reads = 0 };
  template <class Batch>
  void start(constant AttentionValues&, thread const Batch&) {}
  float factor(uint, uint) const { return 1.0f; }
};

/// By random numbers by position among all scores. Four neighbours in a row come from one block of Philox; IN_BLOCKS: no
/// block reaches into the next row.
template <bool IN_BLOCKS>
struct KeepDrawn {
  enum : uint { reads = 0 };
  ulong seed, offset, first, block;
  uint4 words;
  uint columns, threshold;  // of a word, whose upper 24 bits count
  float kept;

  template <class Batch>
  void start(constant AttentionValues& values, thread const Batch& batch) {
    seed = values.seed;
    offset = values.offset;
    first = ulong(batch.number) * ulong(values.rows) * ulong(values.columns);
    block = 0xfffffffffffffffful;
    columns = values.columns;
    // Where everything is dropped, what is kept counts for nothing.
    threshold = min(uint(precise::ceil(values.dropout * 16777216.0f)), 0xffffffu) << 8u;
    kept = values.kept;
  }
  bool keeps_word(uint word) const { return word >= threshold; }
  /// The block of Philox that begins at an element, whose column is a multiple of four.
  uint4 words_from(uint row, uint column) const {
    return philox(seed, offset, (first >> 2ul) + ulong(row) * ulong(columns >> 2u) + ulong(column >> 2u));
  }
  bool keeps(uint row, uint column) {
    const ulong position = first + ulong(row) * ulong(columns) + ulong(column);
    if (position >> 2ul != block) {
      block = position >> 2ul;
      words = philox(seed, offset, block);
    }
    const uint which = uint(position) & 3u;
    const uint low = which == 0u ? words.x : words.y;
    const uint high = which == 2u ? words.z : words.w;
    return keeps_word(which < 2u ? low : high);
  }
  float factor(uint row, uint column) { return keeps(row, column) ? kept : 0.0f; }
};

/// Random numbers that lie in memory.
template <class U>
struct KeepRead {
  enum : uint { reads = 1 };
  device const U* uniform;
  AttentionMatrix<U> matrix;
  uint rows, columns;
  float dropout, kept;

  template <class Batch>
  void start(constant AttentionValues& values, thread const Batch& batch) {
    matrix.start(uniform, values.uniform, batch);
    rows = values.rows;
    columns = values.columns;
    dropout = values.dropout;
    kept = values.kept;
  }
  bool keeps(uint row, uint column) const { return matrix.at(row, column) >= dropout; }
  float factor(uint row, uint column) const { return keeps(row, column) ? kept : 0.0f; }
};

// What random numbers keep, as bits that an attention's kernel stores for its gradients', where both are of fragments:
// sixteen bits for a row and a fourth of 64 columns, which are those of fragments by fours. Of column c they are the bit
// c % 64 / 16 * 4 + c % 4 of the fourth c % 16 / 4. The bits of a fourth lie in the order of rows, whose number is even.
// In `values`, they are where random numbers would be.

template <bool IN_BLOCKS>
struct KeepStored {
  enum : uint { reads = 0 };
  device short* bits;
  KeepDrawn<IN_BLOCKS> drawn;
  long stride;
  uint rows;
  uint found[2];  // of the lane's two rows, in the block that passes
  float kept;

  template <class Batch>
  void start(constant AttentionValues& values, thread const Batch& batch) {
    drawn.start(values, batch);
    bits += attention_start(values.uniform, batch);
    stride = values.uniform.row;
    rows = (values.rows + 1u) & ~1u;
    found[0] = found[1] = 0u;
    kept = values.kept;
  }
};

struct KeepBits {
  enum : uint { reads = 0 };
  device const short* bits;
  long stride;
  uint rows;
  float kept;

  template <class Batch>
  void start(constant AttentionValues& values, thread const Batch& batch) {
    bits += attention_start(values.uniform, batch);
    stride = values.uniform.row;
    rows = values.rows;
    kept = values.kept;
  }
};

/// Which scores count, and for what. Scores are in a unit of the reader's choice.
template <class Mask, class Keep>
struct AttentionRules {
  enum : uint { masks = Mask::reads, reads = Mask::reads != 0 || Keep::reads != 0 ? 1 : 0 };
  Mask mask;
  Keep keep;
  uint rows, columns;
  bool causal;
  float unit, scale;

  template <class Batch>
  void start(constant AttentionValues& values, thread const Batch& batch, float one) {
    mask.start(values, batch);
    keep.start(values, batch);
    rows = values.rows;
    columns = values.columns;
    causal = values.causal != 0u;
    unit = one;
    scale = values.scale * one;
  }
  bool sees(uint row, uint column) const {
    return row < rows && column < columns && (!causal || column <= row);
  }
  float score(float product, uint row, uint column) const {
    return sees(row, column) ? seen_score(product, row, column) : -INFINITY;
  }
  float seen_score(float product, uint row, uint column) const {
    return mask.apply(product * scale, row, column, unit);
  }
  float kept(uint row, uint column) { return sees(row, column) ? keep.factor(row, column) : 0.0f; }
};

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

/// Writes sums times a factor.
template <class T>
struct AttentionVisitor {
  device T* data;
  long row_stride, column_stride;
  float factor;

  template <uint RANK>
  void start(device T* all, constant AttentionArray& array, thread const AttentionBatch<RANK>& batch) {
    data = all + attention_start(array, batch);
    row_stride = array.row;
    column_stride = array.column;
    factor = 1.0f;
  }
  void visit(uint row, uint column, float sum) const {
    write_element(data, long(row) * row_stride + long(column) * column_stride, sum * factor);
  }
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

// An element a thread: heads that no block holds.

/// The element of [batch, rows, columns] at a thread's position in the grid; false beyond the last.
template <uint RANK>
struct AttentionElement {
  AttentionBatch<RANK> batch;
  uint row, column;
};
template <uint RANK>
bool find_attention_element(thread AttentionElement<RANK>& element, constant AttentionValues& values, uint rows,
                            uint columns, ulong position) {
  if (position >= ulong(values.batches) * ulong(rows) * ulong(columns)) return false;
  const ulong line = position / ulong(columns);
  element.column = uint(position - line * ulong(columns));
  const ulong batch = line / ulong(rows);
  find_attention_batch(element.batch, values, uint(batch));
  element.row = uint(line - batch * ulong(rows));
  return true;
}

template <class T>
float dot_rows(thread const AttentionMatrix<T>& a, uint a_row, thread const AttentionMatrix<T>& b, uint b_row,
               uint width) {
  float sum = 0.0f;
  for (uint i = 0; i < width; ++i) sum = fma(a.at(a_row, i), b.at(b_row, i), sum);
  return sum;
}

/// The result (RESULT) or the logsumexp.
template <uint RANK, bool RESULT, class T, class Rules>
void attend_element(thread const AttentionPointers<T>& at, thread Rules& rules, constant AttentionValues& values,
                    ulong position) {
  AttentionElement<RANK> element = {};
  if (!find_attention_element(element, values, values.rows, RESULT ? values.values : 1u, position)) return;
  rules.start(values, element.batch, 1.0f);
  AttentionMatrix<T> query;
  AttentionMatrix<T> key;
  AttentionMatrix<T> value;
  query.start(at.query, values.query, element.batch);
  key.start(at.key, values.key, element.batch);
  if constexpr (RESULT) value.start(at.value, values.value, element.batch);
  float largest = -INFINITY;
  float total = 0.0f;
  float sum = 0.0f;
  for (uint column = 0; column < values.columns; ++column) {
    const float product = dot_rows(query, element.row, key, column, values.width);
    const float score = rules.score(product, element.row, column);
    const float next = max(largest, score);
    const float base = next == -INFINITY ? 0.0f : next;
    const float factor = precise::exp(largest - base);
    const float p = precise::exp(score - base);
    largest = next;
    total = fma(total, factor, p);
    if constexpr (RESULT) sum = sum * factor + p * rules.kept(element.row, column) * value.at(column, element.column);
  }
  if constexpr (RESULT) {
    AttentionVisitor<T> visitor;
    visitor.start(at.result, values.result, element.batch);
    visitor.visit(element.row, element.column, total == 0.0f ? 0.0f : sum / total);
  } else {
    device float* const statistics = at.statistics + attention_start(values.second, element.batch);
    statistics[long(element.row) * values.second.row] = total == 0.0f ? INFINITY : largest + precise::log(total);
  }
}

/// Which gradient an element belongs to.
enum AttentionGradient : uint { gradient_of_query = 0, gradient_of_key = 1, gradient_of_value = 2 };

template <uint RANK, uint WHICH, class T, class Rules>
void attention_gradient_element(thread const AttentionPointers<T>& at, thread Rules& rules,
                                constant AttentionValues& values, ulong position) {
  AttentionElement<RANK> element = {};
  const uint lines = WHICH == gradient_of_query ? values.rows : values.columns;
  if (!find_attention_element(element, values, lines, WHICH == gradient_of_value ? values.values : values.width,
                              position)) {
    return;
  }
  rules.start(values, element.batch, 1.0f);
  AttentionMatrix<T> query;
  AttentionMatrix<T> key;
  AttentionMatrix<T> value;
  AttentionMatrix<T> gradient;
  AttentionMatrix<float> logsumexp;
  AttentionMatrix<float> delta;
  query.start(at.query, values.query, element.batch);
  key.start(at.key, values.key, element.batch);
  gradient.start(at.gradient, values.gradient, element.batch);
  logsumexp.start(at.logsumexp, values.logsumexp, element.batch);
  if constexpr (WHICH != gradient_of_value) {
    value.start(at.value, values.value, element.batch);
    delta.start(at.delta, values.delta, element.batch);
  }
  float sum = 0.0f;
  const uint others = WHICH == gradient_of_query ? values.columns : values.rows;
  for (uint other = 0; other < others; ++other) {
    const uint row = WHICH == gradient_of_query ? element.row : other;
    const uint column = WHICH == gradient_of_query ? other : element.row;
    const float product = dot_rows(query, row, key, column, values.width);
    const float p = precise::exp(rules.score(product, row, column) - logsumexp.at(row, 0u));
    const float kept = rules.kept(row, column);
    if constexpr (WHICH == gradient_of_value) {
      sum = fma(p * kept, gradient.at(row, element.column), sum);
    } else {
      const float slope = dot_rows(gradient, row, value, column, values.values);
      const float factor = WHICH == gradient_of_query ? key.at(column, element.column) : query.at(row, element.column);
      sum = fma(p * (slope * kept - delta.at(row, 0u)), factor, sum);
    }
  }
  AttentionVisitor<T> visitor;
  if constexpr (WHICH == gradient_of_value) {
    visitor.start(at.second, values.second, element.batch);
  } else {
    visitor.start(at.result, values.result, element.batch);
    visitor.factor = values.scale;
  }
  visitor.visit(element.row, element.column, sum);
}
