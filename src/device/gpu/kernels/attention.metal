// needs: element.metal
// needs: random.metal
// needs: tile.metal
// What all kernels of attention and its gradients share: operands, and the rules by which scores count.
//   result = softmax(scale * query key^T, masked) value        logsumexp: of each row's scores
//   p = exp(score - logsumexp)    slope = p * (kept * (gradient value^T) - delta)    delta: sum of result * gradient
//   query: scale * slope key      key: scale * slope^T query      value: (kept * p)^T gradient

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
