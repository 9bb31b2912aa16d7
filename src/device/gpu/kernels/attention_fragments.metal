// needs: attention.metal
// needs: fragments.metal
// Attention and its gradients on tensor cores, for half and bfloat and heads of at most 64: as the blocks of
// attention.metal, but the scores of sixteen rows a simdgroup stay in registers, and probabilities and slopes are rounded
// to T before they are multiplied.

/// Sixty-four rows that stay and INNER rows that pass, of at most WIDTH columns, zeros beyond. ALIGNED: all operands are
/// read and written in whole vectors.
template <class T, uint INNER, uint WIDTH, bool ALIGNED>
struct FragmentBlocks {
  typedef T Element;
  enum : uint {
    rows = 64,
    own_rows = 16,  // of a simdgroup
    threads = 128,
    inner = INNER,
    width = WIDTH,
    stride = WIDTH + 8,  // so that the rows of a fragment lie in different banks
    steps = WIDTH / 16,
    aligned = ALIGNED ? 1 : 0,
    // uint4s of threadgroup memory; rows that stay pass through it first.
    block = (INNER * (WIDTH + 8) + 7) / 8,
    memory = 2 * INNER < 64 ? (64 * (WIDTH + 8) + 7) / 8 : 2 * ((INNER * (WIDTH + 8) + 7) / 8),
  };
};

/// Brings rows to threadgroup memory, zeros beyond the last row and column.
template <class Blocks, uint LINES, class T>
void load_fragment_rows(threadgroup T* memory, thread const AttentionMatrix<T>& matrix, uint first, uint rows,
                        uint columns, uint thread_id) {
  if constexpr (Blocks::aligned != 0) {
    enum : uint { vectors = Blocks::width / 8 };
    UNROLL for (uint i = 0; i < LINES * vectors / Blocks::threads; ++i) {
      const uint line = (i * Blocks::threads + thread_id) / vectors;
      const uint column = (i * Blocks::threads + thread_id) % vectors * 8u;
      uint4 elements = make_uint4(0u, 0u, 0u, 0u);
      if (first + line < rows && column < columns) {
        elements = *(device const uint4*)(matrix.data + long(first + line) * matrix.row_stride + long(column));
      }
      *(threadgroup uint4*)(memory + line * Blocks::stride + column) = elements;
    }
  } else {
    for (uint i = thread_id; i < LINES * Blocks::width; i += Blocks::threads) {
      const uint line = i / Blocks::width;
      const uint column = i % Blocks::width;
      const bool inside = first + line < rows && column < columns;
      memory[line * Blocks::stride + column] = inside ? T(matrix.at(first + line, column)) : T(0.0f);
    }
  }
}

/// The simdgroup's sixteen rows of a block that stays, by way of threadgroup memory.
template <class Blocks, class T>
void load_left_rows(thread LeftFragment* fragments, threadgroup T* memory, thread const AttentionMatrix<T>& matrix,
                    uint first, uint rows, uint columns, thread const TileThread& self) {
  threadgroup_barrier(mem_flags::mem_threadgroup);
  load_fragment_rows<Blocks, Blocks::rows>(memory, matrix, first, rows, columns, self.thread_id);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  UNROLL for (uint s = 0; s < Blocks::steps; ++s) {
    load_left(fragments[s], memory + self.simdgroup_id * Blocks::own_rows * Blocks::stride + s * 16u, Blocks::stride,
              self.lane_id);
  }
}

/// products[row, j] = sum over k of left[row, k] * right[j, k], of the rows that pass.
template <class Blocks, class T>
void multiply_by_columns(thread SumFragment* products, thread const LeftFragment* left, threadgroup const T* right,
                         uint lane_id) {
  UNROLL for (uint j = 0; j < Blocks::inner / 8; ++j) clear_fragment(products[j]);
  UNROLL for (uint s = 0; s < Blocks::steps; ++s) {
    UNROLL for (uint j = 0; j < Blocks::inner / 16; ++j) {
      RightFragments columns;
      load_right_columns(columns, right + j * 16u * Blocks::stride + s * 16u, Blocks::stride, lane_id);
      multiply_fragments<T, 0>(products[j * 2], left[s], columns, lane_id);
      multiply_fragments<T, 1>(products[j * 2 + 1], left[s], columns, lane_id);
    }
  }
}

/// sums[row, j] += sum over k of left[row, k] * right[k, j], k being the rows that pass.
template <class Blocks, class T>
void multiply_by_rows(thread SumFragment* sums, thread const SumFragment* left, threadgroup const T* right,
                      uint lane_id) {
  UNROLL for (uint s = 0; s < Blocks::inner / 16; ++s) {
    LeftFragment factor;
    round_to_left<T>(factor, left[s * 2], left[s * 2 + 1]);
    UNROLL for (uint j = 0; j < Blocks::steps; ++j) {
      RightFragments rows;
      load_right_rows(rows, right + s * 16u * Blocks::stride + j * 16u, Blocks::stride, lane_id);
      multiply_fragments<T, 0>(sums[j * 2], factor, rows, lane_id);
      multiply_fragments<T, 1>(sums[j * 2 + 1], factor, rows, lane_id);
    }
  }
}

/// Hands out sums of the simdgroup's rows times a factor for each of the lane's two rows.
template <class Blocks, class T>
void write_fragments(thread const SumFragment* sums, thread const AttentionVisitor<T>& visitor, uint first_row,
                     uint rows, uint columns, float upper, float lower, uint lane_id) {
  UNROLL for (uint j = 0; j < Blocks::width / 8; ++j) {
    UNROLL for (uint i = 0; i < 4u; i += 2u) {
      const uint row = first_row + fragment_row(lane_id, i);
      const uint column = j * 8u + fragment_column(lane_id, i);
      if (row >= rows || column >= columns) continue;
      const float factor = i == 0u ? upper : lower;
      if constexpr (Blocks::aligned != 0) {
        write_pair(visitor.data, long(row) * visitor.row_stride + long(column),
                   make_float2(sums[j].at[i] * factor, sums[j].at[i + 1u] * factor));
      } else {
        visitor.visit(row, column, sums[j].at[i] * factor);
        if (column + 1u < columns) visitor.visit(row, column + 1u, sums[j].at[i + 1u] * factor);
      }
    }
  }
}

// What four elements of a lane are multiplied by for dropout: of a fragment of scores whose first element is at
// (row, column), or, TRANSPOSED, of one whose rows are columns of the scores.

template <bool TRANSPOSED, class Keep>
void keep_each(thread float* factors, thread Keep& keep, uint row, uint column, uint lane_id) {
  UNROLL for (uint i = 0; i < 4u; ++i) {
    const uint down = fragment_row(lane_id, i);
    const uint across = fragment_column(lane_id, i);
    factors[i] = keep.factor(row + (TRANSPOSED ? across : down), column + (TRANSPOSED ? down : across));
  }
}

template <bool TRANSPOSED, class U>
void keep_fragment(thread float* factors, thread KeepRead<U>& keep, uint row, uint column, bool whole, uint lane_id) {
  if (whole) {
    keep_each<TRANSPOSED>(factors, keep, row, column, lane_id);
    return;
  }
  UNROLL for (uint i = 0; i < 4u; ++i) {
    const uint down = fragment_row(lane_id, i);
    const uint across = fragment_column(lane_id, i);
    const uint at_row = row + (TRANSPOSED ? across : down);
    const uint at_column = column + (TRANSPOSED ? down : across);
    factors[i] = at_row < keep.rows && at_column < keep.columns ? keep.factor(at_row, at_column) : 0.0f;
  }
}

/// Two lanes share the four numbers of a block of Philox: each computes one of their two rows.
inline void keep_pairs(thread float* factors, thread const KeepDrawn& keep, uint row, uint column, uint lane_id) {
  const bool odd = (lane_id & 1u) != 0u;
  const uint own_row = row + lane_id / 4u + (odd ? 8u : 0u);
  const ulong position = keep.first + ulong(own_row) * ulong(keep.columns) + ulong(column + lane_id % 4u / 2u * 4u);
  const uint4 words = philox(keep.seed, keep.offset, position >> 2ul);
  const uint first = simd_shuffle_xor(odd ? words.x : words.z, 1);
  const uint second = simd_shuffle_xor(odd ? words.y : words.w, 1);
  factors[0] = keep.factor_of(odd ? first : words.x);
  factors[1] = keep.factor_of(odd ? second : words.y);
  factors[2] = keep.factor_of(odd ? words.z : first);
  factors[3] = keep.factor_of(odd ? words.w : second);
}

/// Four lanes, each with four blocks of Philox in common with the others: each computes one, then they are transposed.
inline void keep_quads(thread float* factors, thread const KeepDrawn& keep, uint row, uint column, uint lane_id) {
  const uint own = lane_id / 4u % 4u;
  const uint own_row = row + lane_id % 4u * 2u + own % 2u;
  const uint own_column = column + lane_id / 16u * 4u + own / 2u * 8u;
  const ulong position = keep.first + ulong(own_row) * ulong(keep.columns) + ulong(own_column);
  const uint4 words = philox(keep.seed, keep.offset, position >> 2ul);
  const bool odd = (own & 1u) != 0u;
  const uint a = simd_shuffle_xor(odd ? words.x : words.y, 4);
  const uint b = simd_shuffle_xor(odd ? words.z : words.w, 4);
  // Of the lanes of one pair: word own % 2 of both, then word 2 + own % 2 of both.
  const uint low_first = odd ? a : words.x;
  const uint low_second = odd ? words.y : a;
  const uint high_first = odd ? b : words.z;
  const uint high_second = odd ? words.w : b;
  const bool upper = own >= 2u;
  const uint c = simd_shuffle_xor(upper ? low_first : high_first, 8);
  const uint d = simd_shuffle_xor(upper ? low_second : high_second, 8);
  factors[0] = keep.factor_of(upper ? c : low_first);
  factors[1] = keep.factor_of(upper ? d : low_second);
  factors[2] = keep.factor_of(upper ? high_first : c);
  factors[3] = keep.factor_of(upper ? high_second : d);
}

template <bool TRANSPOSED>
void keep_fragment(thread float* factors, thread KeepDrawn& keep, uint row, uint column, bool, uint lane_id) {
  if (keep.dropout == 0.0f) {
    UNROLL for (uint i = 0; i < 4u; ++i) factors[i] = 1.0f;
  } else if (keep.columns % 4u != 0u) {
    keep_each<TRANSPOSED>(factors, keep, row, column, lane_id);
  } else if constexpr (TRANSPOSED) {
    keep_quads(factors, keep, row, column, lane_id);
  } else {
    keep_pairs(factors, keep, row, column, lane_id);
  }
}

/// Scores of products, at (row, column) and on. `whole`: all of them are seen.
template <bool TRANSPOSED, class Rules>
void score_fragment(thread SumFragment& products, thread const Rules& rules, uint row, uint column, bool whole,
                    uint lane_id) {
  UNROLL for (uint i = 0; i < 4u; ++i) {
    const uint down = fragment_row(lane_id, i);
    const uint across = fragment_column(lane_id, i);
    const uint at_row = row + (TRANSPOSED ? across : down);
    const uint at_column = column + (TRANSPOSED ? down : across);
    products.at[i] = whole ? rules.seen_score(products.at[i], at_row, at_column)
                           : rules.score(products.at[i], at_row, at_column);
  }
}

struct FragmentPlace {
  uint batch, first;  // the block's first row
  uint own;           // the simdgroup's
};

template <class Blocks>
void find_place_of_fragments(thread FragmentPlace& place, constant AttentionValues& values, uint group,
                             thread const TileThread& self) {
  place.batch = group / values.tiles;
  place.first = (group - place.batch * values.tiles) * Blocks::rows;
  place.own = place.first + self.simdgroup_id * Blocks::own_rows;
}

/// The result and the logsumexp, or one of them.
template <class Blocks, bool RESULT, bool LOGSUMEXP, class T, class Rules>
void attend_fragments(thread const AttentionPointers<T>& at, thread Rules& rules, constant AttentionValues& values,
                      threadgroup uint4* memory, uint group, thread const TileThread& self) {
  FragmentPlace place;
  find_place_of_fragments<Blocks>(place, values, group, self);
  rules.start(values, place.batch);
  AttentionMatrix<T> query;
  AttentionMatrix<T> key;
  AttentionMatrix<T> value;
  query.start(at.query, values.query, values, place.batch);
  key.start(at.key, values.key, values, place.batch);
  if constexpr (RESULT) value.start(at.value, values.value, values, place.batch);
  threadgroup T* const keys = (threadgroup T*)memory;
  threadgroup T* const value_rows = (threadgroup T*)(memory + Blocks::block);
  LeftFragment queries[Blocks::steps];
  load_left_rows<Blocks>(queries, keys, query, place.first, values.rows, values.width, self);
  SumFragment sums[Blocks::width / 8];
  UNROLL for (uint j = 0; j < Blocks::width / 8; ++j) clear_fragment(sums[j]);
  float largest[2] = {-INFINITY, -INFINITY};
  float total[2] = {0.0f, 0.0f};
  const uint end = rules.causal ? min(values.columns, place.first + Blocks::rows) : values.columns;
  for (uint first = 0; first < end; first += Blocks::inner) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    load_fragment_rows<Blocks, Blocks::inner>(keys, key, first, values.columns, values.width, self.thread_id);
    if constexpr (RESULT) {
      load_fragment_rows<Blocks, Blocks::inner>(value_rows, value, first, values.columns, values.values,
                                                self.thread_id);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (place.own >= values.rows) continue;
    const bool whole = rules.sees_all(place.own + Blocks::own_rows - 1u, first + Blocks::inner - 1u);
    SumFragment scores[Blocks::inner / 8];
    multiply_by_columns<Blocks>(scores, queries, keys, self.lane_id);
    float next[2] = {largest[0], largest[1]};
    UNROLL for (uint j = 0; j < Blocks::inner / 8; ++j) {
      score_fragment<false>(scores[j], rules, place.own, first + j * 8u, whole, self.lane_id);
      UNROLL for (uint i = 0; i < 4u; ++i) next[i / 2u] = max(next[i / 2u], scores[j].at[i]);
    }
    float base[2];
    float factor[2];
    UNROLL for (uint i = 0; i < 2u; ++i) {
      next[i] = max(next[i], simd_shuffle_xor(next[i], 1));
      next[i] = max(next[i], simd_shuffle_xor(next[i], 2));
      base[i] = next[i] == -INFINITY ? 0.0f : next[i];  // of a row that has seen nothing yet
      factor[i] = precise::exp(largest[i] - base[i]);
      largest[i] = next[i];
      total[i] *= factor[i];
    }
    UNROLL for (uint j = 0; j < Blocks::inner / 8; ++j) {
      float kept[4];
      if constexpr (RESULT) keep_fragment<false>(kept, rules.keep, place.own, first + j * 8u, whole, self.lane_id);
      UNROLL for (uint i = 0; i < 4u; ++i) {
        const float p = precise::exp(scores[j].at[i] - base[i / 2u]);
        total[i / 2u] += p;
        if constexpr (RESULT) scores[j].at[i] = p * kept[i];
      }
    }
    if constexpr (RESULT) {
      UNROLL for (uint j = 0; j < Blocks::width / 8; ++j) {
        UNROLL for (uint i = 0; i < 4u; ++i) sums[j].at[i] *= factor[i / 2u];
      }
      multiply_by_rows<Blocks>(sums, scores, value_rows, self.lane_id);
    }
  }
  UNROLL for (uint i = 0; i < 2u; ++i) {
    total[i] += simd_shuffle_xor(total[i], 1);
    total[i] += simd_shuffle_xor(total[i], 2);
  }
  if constexpr (RESULT) {
    AttentionVisitor<T> visitor;
    visitor.start(at.result, values.result, values, place.batch);
    write_fragments<Blocks>(sums, visitor, place.own, values.rows, values.values, total[0] == 0.0f ? 0.0f : 1.0f / total[0],
                            total[1] == 0.0f ? 0.0f : 1.0f / total[1], self.lane_id);
  }
  if constexpr (LOGSUMEXP) {
    device float* const statistics = at.statistics + attention_start(values.second, values, place.batch);
    UNROLL for (uint i = 0; i < 2u; ++i) {
      const uint row = place.own + fragment_row(self.lane_id, i * 2u);
      if (self.lane_id % 4u != 0u || row >= values.rows) continue;
      statistics[long(row) * values.second.row] = total[i] == 0.0f ? INFINITY : largest[i] + precise::log(total[i]);
    }
  }
}

/// The gradient for the query.
template <class Blocks, class T, class Rules>
void query_gradient_fragments(thread const AttentionPointers<T>& at, thread Rules& rules,
                              constant AttentionValues& values, threadgroup uint4* memory, uint group,
                              thread const TileThread& self) {
  FragmentPlace place;
  find_place_of_fragments<Blocks>(place, values, group, self);
  rules.start(values, place.batch);
  AttentionMatrix<T> query;
  AttentionMatrix<T> key;
  AttentionMatrix<T> value;
  AttentionMatrix<T> gradient;
  query.start(at.query, values.query, values, place.batch);
  key.start(at.key, values.key, values, place.batch);
  value.start(at.value, values.value, values, place.batch);
  gradient.start(at.gradient, values.gradient, values, place.batch);
  threadgroup T* const keys = (threadgroup T*)memory;
  threadgroup T* const value_rows = (threadgroup T*)(memory + Blocks::block);
  LeftFragment queries[Blocks::steps];
  LeftFragment gradients[Blocks::steps];
  load_left_rows<Blocks>(queries, keys, query, place.first, values.rows, values.width, self);
  load_left_rows<Blocks>(gradients, keys, gradient, place.first, values.rows, values.values, self);
  AttentionMatrix<float> logsumexps;
  AttentionMatrix<float> deltas;
  logsumexps.start(at.logsumexp, values.logsumexp, values, place.batch);
  deltas.start(at.delta, values.delta, values, place.batch);
  float logsumexp[2];
  float delta[2];
  UNROLL for (uint i = 0; i < 2u; ++i) {
    const uint row = place.own + fragment_row(self.lane_id, i * 2u);
    logsumexp[i] = row < values.rows ? logsumexps.at(row, 0u) : 0.0f;
    delta[i] = row < values.rows ? deltas.at(row, 0u) : 0.0f;
  }
  SumFragment sums[Blocks::width / 8];
  UNROLL for (uint j = 0; j < Blocks::width / 8; ++j) clear_fragment(sums[j]);
  const uint end = rules.causal ? min(values.columns, place.first + Blocks::rows) : values.columns;
  for (uint first = 0; first < end; first += Blocks::inner) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    load_fragment_rows<Blocks, Blocks::inner>(keys, key, first, values.columns, values.width, self.thread_id);
    load_fragment_rows<Blocks, Blocks::inner>(value_rows, value, first, values.columns, values.values, self.thread_id);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (place.own >= values.rows) continue;
    const bool whole = rules.sees_all(place.own + Blocks::own_rows - 1u, first + Blocks::inner - 1u);
    SumFragment scores[Blocks::inner / 8];
    SumFragment slopes[Blocks::inner / 8];
    multiply_by_columns<Blocks>(scores, queries, keys, self.lane_id);
    multiply_by_columns<Blocks>(slopes, gradients, value_rows, self.lane_id);
    UNROLL for (uint j = 0; j < Blocks::inner / 8; ++j) {
      float kept[4];
      score_fragment<false>(scores[j], rules, place.own, first + j * 8u, whole, self.lane_id);
      keep_fragment<false>(kept, rules.keep, place.own, first + j * 8u, whole, self.lane_id);
      UNROLL for (uint i = 0; i < 4u; ++i) {
        const float p = precise::exp(scores[j].at[i] - logsumexp[i / 2u]);
        slopes[j].at[i] = p * (slopes[j].at[i] * kept[i] - delta[i / 2u]);
      }
    }
    multiply_by_rows<Blocks>(sums, slopes, keys, self.lane_id);
  }
  AttentionVisitor<T> visitor;
  visitor.start(at.result, values.result, values, place.batch);
  write_fragments<Blocks>(sums, visitor, place.own, values.rows, values.width, values.scale, values.scale,
                          self.lane_id);
}

/// The gradients for key (result) and value (second), or one of them. `statistics`: 2 * Blocks::inner floats.
template <class Blocks, bool KEY, bool VALUE, class T, class Rules>
void key_value_gradient_fragments(thread const AttentionPointers<T>& at, thread Rules& rules,
                                  constant AttentionValues& values, threadgroup uint4* memory,
                                  threadgroup float* statistics, uint group, thread const TileThread& self) {
  FragmentPlace place;
  find_place_of_fragments<Blocks>(place, values, group, self);
  rules.start(values, place.batch);
  AttentionMatrix<T> query;
  AttentionMatrix<T> key;
  AttentionMatrix<T> value;
  AttentionMatrix<T> gradient;
  AttentionMatrix<float> logsumexp;
  AttentionMatrix<float> delta;
  query.start(at.query, values.query, values, place.batch);
  key.start(at.key, values.key, values, place.batch);
  gradient.start(at.gradient, values.gradient, values, place.batch);
  logsumexp.start(at.logsumexp, values.logsumexp, values, place.batch);
  threadgroup T* const queries = (threadgroup T*)memory;
  threadgroup T* const gradients = (threadgroup T*)(memory + Blocks::block);
  LeftFragment keys[Blocks::steps];
  LeftFragment value_rows[Blocks::steps];
  load_left_rows<Blocks>(keys, queries, key, place.first, values.columns, values.width, self);
  if constexpr (KEY) {
    value.start(at.value, values.value, values, place.batch);
    delta.start(at.delta, values.delta, values, place.batch);
    load_left_rows<Blocks>(value_rows, queries, value, place.first, values.columns, values.values, self);
  }
  SumFragment key_sums[Blocks::width / 8];
  SumFragment value_sums[Blocks::width / 8];
  UNROLL for (uint j = 0; j < Blocks::width / 8; ++j) {
    clear_fragment(key_sums[j]);
    clear_fragment(value_sums[j]);
  }
  // Of a causal attention, earlier rows see none of these keys.
  const uint begin = rules.causal ? place.first : 0u;
  for (uint first = begin; first < values.rows; first += Blocks::inner) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    load_fragment_rows<Blocks, Blocks::inner>(queries, query, first, values.rows, values.width, self.thread_id);
    load_fragment_rows<Blocks, Blocks::inner>(gradients, gradient, first, values.rows, values.values, self.thread_id);
    if (self.thread_id < Blocks::inner) {
      const uint row = first + self.thread_id;
      statistics[self.thread_id] = row < values.rows ? logsumexp.at(row, 0u) : 0.0f;
      if constexpr (KEY) statistics[Blocks::inner + self.thread_id] = row < values.rows ? delta.at(row, 0u) : 0.0f;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (place.own >= values.columns) continue;
    const bool whole = rules.sees_all(first + Blocks::inner - 1u, place.own + Blocks::own_rows - 1u);
    SumFragment scores[Blocks::inner / 8];
    SumFragment slopes[Blocks::inner / 8];
    multiply_by_columns<Blocks>(scores, keys, queries, self.lane_id);
    if constexpr (KEY) multiply_by_columns<Blocks>(slopes, value_rows, gradients, self.lane_id);
    UNROLL for (uint j = 0; j < Blocks::inner / 8; ++j) {
      float kept[4];
      score_fragment<true>(scores[j], rules, first + j * 8u, place.own, whole, self.lane_id);
      keep_fragment<true>(kept, rules.keep, first + j * 8u, place.own, whole, self.lane_id);
      UNROLL for (uint i = 0; i < 4u; ++i) {
        const uint row = j * 8u + fragment_column(self.lane_id, i);
        const float p = precise::exp(scores[j].at[i] - statistics[row]);
        scores[j].at[i] = p * kept[i];
        if constexpr (KEY) slopes[j].at[i] = p * (slopes[j].at[i] * kept[i] - statistics[Blocks::inner + row]);
      }
    }
    if constexpr (VALUE) multiply_by_rows<Blocks>(value_sums, scores, gradients, self.lane_id);
    if constexpr (KEY) multiply_by_rows<Blocks>(key_sums, slopes, queries, self.lane_id);
  }
  AttentionVisitor<T> visitor;
  if constexpr (KEY) {
    visitor.start(at.result, values.result, values, place.batch);
    write_fragments<Blocks>(key_sums, visitor, place.own, values.columns, values.width, values.scale, values.scale,
                            self.lane_id);
  }
  if constexpr (VALUE) {
    visitor.start(at.second, values.second, values, place.batch);
    write_fragments<Blocks>(value_sums, visitor, place.own, values.columns, values.values, 1.0f, 1.0f, self.lane_id);
  }
}
