// needs: attention.metal
// needs: fragments.metal
// needs: math.metal
// Attention and its gradients on tensor cores, for half and bfloat and heads of at most 64: as the blocks of
// attention.metal, but the scores of sixteen rows a simdgroup stay in registers, and probabilities and slopes are rounded
// to T before they are multiplied. While a block of the rows that pass is multiplied, the next one is brought.

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
    steps = WIDTH / 16,
    aligned = ALIGNED ? 1 : 0,
    block = INNER * WIDTH,  // elements
    // Of the rows that pass there are two stages, each of a block of two matrices; rows that stay pass through the second
    // stage before.
    stage = 2 * block,
    memory = 2 * stage / 8,  // uint4s of threadgroup memory
    vectors = WIDTH / 8,     // a row
  };
  /// Where an element of a block lies: a row's vectors of eight are exchanged by the row's number, so that those of
  /// eight rows that are read together lie in different banks.
  static uint place(uint row, uint column) {
    return row * WIDTH + (column / 8u ^ row / (8u / vectors) % vectors) * 8u + column % 8u;
  }
};

/// Brings rows to threadgroup memory, zeros beyond the last row and column: they are there after
/// wait_for_fragment_copies() and a barrier.
template <class Blocks, uint LINES, class T>
void bring_fragment_rows(threadgroup T* memory, thread const AttentionMatrix<T>& matrix, uint first, uint rows,
                         uint columns, uint thread_id) {
  if constexpr (Blocks::aligned != 0) {
    UNROLL for (uint i = 0; i < LINES * Blocks::vectors / Blocks::threads; ++i) {
      const uint line = (i * Blocks::threads + thread_id) / Blocks::vectors;
      const uint column = (i * Blocks::threads + thread_id) % Blocks::vectors * 8u;
      const bool inside = first + line < rows && column < columns;
      copy_vector((threadgroup uint4*)(memory + Blocks::place(line, column)),
                  (device const uint4*)(matrix.data + (inside ? long(first + line) * matrix.row_stride + long(column) : 0l)),
                  inside);
    }
  } else {
    for (uint i = thread_id; i < LINES * Blocks::width; i += Blocks::threads) {
      const uint line = i / Blocks::width;
      const uint column = i % Blocks::width;
      const bool inside = first + line < rows && column < columns;
      memory[Blocks::place(line, column)] = inside ? T(matrix.at(first + line, column)) : T(0.0f);
    }
  }
}

/// The simdgroup's sixteen rows of a block that stays, by way of threadgroup memory.
template <class Blocks, class T>
void load_left_rows(thread LeftFragment* fragments, threadgroup T* memory, thread const AttentionMatrix<T>& matrix,
                    uint first, uint rows, uint columns, thread const TileThread& self) {
  threadgroup_barrier(mem_flags::mem_threadgroup);
  bring_fragment_rows<Blocks, Blocks::rows>(memory, matrix, first, rows, columns, self.thread_id);
  end_fragment_copies();
  wait_for_fragment_copies();
  threadgroup_barrier(mem_flags::mem_threadgroup);
  UNROLL for (uint s = 0; s < Blocks::steps; ++s) {
    load_left<Blocks>(fragments[s], memory, self.simdgroup_id * Blocks::own_rows, s * 16u, self.lane_id);
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
      load_right_columns<Blocks>(columns, right, j * 16u, s * 16u, lane_id);
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
      load_right_rows<Blocks>(rows, right, s * 16u, j * 16u, lane_id);
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
inline void keep_pairs(thread float* factors, thread const KeepDrawn<true>& keep, uint row, uint column, uint lane_id) {
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
inline void keep_quads(thread float* factors, thread const KeepDrawn<true>& keep, uint row, uint column, uint lane_id) {
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
void keep_fragment(thread float* factors, thread KeepAll&, uint, uint, bool, uint) {
  UNROLL for (uint i = 0; i < 4u; ++i) factors[i] = 1.0f;
}

template <bool TRANSPOSED>
void keep_fragment(thread float* factors, thread KeepDrawn<false>& keep, uint row, uint column, bool, uint lane_id) {
  keep_each<TRANSPOSED>(factors, keep, row, column, lane_id);
}

template <bool TRANSPOSED>
void keep_fragment(thread float* factors, thread KeepDrawn<true>& keep, uint row, uint column, bool, uint lane_id) {
  if constexpr (TRANSPOSED) {
    keep_quads(factors, keep, row, column, lane_id);
  } else {
    keep_pairs(factors, keep, row, column, lane_id);
  }
}

/// Scores of products, at (row, column) and on. WHOLE: all of them are seen.
template <bool TRANSPOSED, bool WHOLE, class Rules>
void score_fragment(thread SumFragment& products, thread const Rules& rules, uint row, uint column, uint lane_id) {
  UNROLL for (uint i = 0; i < 4u; ++i) {
    const uint down = fragment_row(lane_id, i);
    const uint across = fragment_column(lane_id, i);
    const uint at_row = row + (TRANSPOSED ? across : down);
    const uint at_column = column + (TRANSPOSED ? down : across);
    products.at[i] = WHOLE ? rules.seen_score(products.at[i], at_row, at_column)
                           : rules.score(products.at[i], at_row, at_column);
  }
}

/// Of e: exponentials are powers of two, of which GPUs have an instruction.
enum : uint { binary_logarithm_bits = 0x3fb8aa3bu };
inline float in_powers_of_two(float exponent) { return exponent * as_type<float>(uint(binary_logarithm_bits)); }

struct FragmentPlace {
  AttentionBatch batch;
  uint first;  // the block's first row
  uint own;           // the simdgroup's
};

template <class Blocks>
void find_place_of_fragments(thread FragmentPlace& place, constant AttentionValues& values, uint group,
                             thread const TileThread& self) {
  const uint batch = group / values.tiles;
  find_attention_batch(place.batch, values, batch);
  place.first = (group - batch * values.tiles) * Blocks::rows;
  place.own = place.first + self.simdgroup_id * Blocks::own_rows;
}

/// What a lane knows of its two rows, and of their result.
template <class Blocks>
struct AttendedRows {
  SumFragment sums[Blocks::width / 8];
  float largest[2];  // scores
  float base[2];     // the exponent of two that is taken off all exponents
  float total[2];
};

template <class Blocks, bool RESULT, bool WHOLE, class T, class Rules>
void attend_block(thread AttendedRows<Blocks>& rows, thread const LeftFragment* queries, threadgroup const T* keys,
                  threadgroup const T* value_rows, thread Rules& rules, uint row, uint first, uint lane_id) {
  SumFragment scores[Blocks::inner / 8];
  multiply_by_columns<Blocks>(scores, queries, keys, lane_id);
  float next[2] = {rows.largest[0], rows.largest[1]};
  UNROLL for (uint j = 0; j < Blocks::inner / 8; ++j) {
    score_fragment<false, WHOLE>(scores[j], rules, row, first + j * 8u, lane_id);
    UNROLL for (uint i = 0; i < 4u; ++i) next[i / 2u] = max(next[i / 2u], scores[j].at[i]);
  }
  float factor[2];
  UNROLL for (uint i = 0; i < 2u; ++i) {
    next[i] = max(next[i], simd_shuffle_xor(next[i], 1));
    next[i] = max(next[i], simd_shuffle_xor(next[i], 2));
    const float base = next[i] == -INFINITY ? 0.0f : in_powers_of_two(next[i]);  // of a row that has seen nothing yet
    factor[i] = rows.largest[i] == -INFINITY ? 0.0f : fast_exp2(rows.base[i] - base);
    rows.largest[i] = next[i];
    rows.base[i] = base;
    rows.total[i] *= factor[i];
  }
  UNROLL for (uint j = 0; j < Blocks::inner / 8; ++j) {
    float kept[4];
    if constexpr (RESULT) keep_fragment<false>(kept, rules.keep, row, first + j * 8u, WHOLE, lane_id);
    UNROLL for (uint i = 0; i < 4u; ++i) {
      const float p = fast_exp2(fma(scores[j].at[i], in_powers_of_two(1.0f), -rows.base[i / 2u]));
      rows.total[i / 2u] += p;
      if constexpr (RESULT) scores[j].at[i] = p * kept[i];
    }
  }
  if constexpr (RESULT) {
    UNROLL for (uint j = 0; j < Blocks::width / 8; ++j) {
      UNROLL for (uint i = 0; i < 4u; ++i) rows.sums[j].at[i] *= factor[i / 2u];
    }
    multiply_by_rows<Blocks>(rows.sums, scores, value_rows, lane_id);
  }
}

/// The result and the logsumexp, or one of them.
template <class Blocks, bool RESULT, bool LOGSUMEXP, class T, class Rules>
void attend_fragments(thread const AttentionPointers<T>& at, thread Rules& rules, constant AttentionValues& values,
                      threadgroup uint4* memory, uint group, thread const TileThread& self) {
  FragmentPlace place = {};
  find_place_of_fragments<Blocks>(place, values, group, self);
  rules.start(values, place.batch);
  AttentionMatrix<T> query;
  AttentionMatrix<T> key;
  AttentionMatrix<T> value;
  query.start(at.query, values.query, place.batch);
  key.start(at.key, values.key, place.batch);
  if constexpr (RESULT) value.start(at.value, values.value, place.batch);
  threadgroup T* const stages = (threadgroup T*)memory;
  threadgroup T* now = stages;
  threadgroup T* later = stages + Blocks::stage;
  bring_fragment_rows<Blocks, Blocks::inner>(now, key, 0u, values.columns, values.width, self.thread_id);
  if constexpr (RESULT) {
    bring_fragment_rows<Blocks, Blocks::inner>(now + Blocks::block, value, 0u, values.columns, values.values,
                                               self.thread_id);
  }
  LeftFragment queries[Blocks::steps];
  load_left_rows<Blocks>(queries, later, query, place.first, values.rows, values.width, self);
  AttendedRows<Blocks> rows = {};
  UNROLL for (uint j = 0; j < Blocks::width / 8; ++j) clear_fragment(rows.sums[j]);
  UNROLL for (uint i = 0; i < 2u; ++i) {
    rows.largest[i] = -INFINITY;
    rows.base[i] = 0.0f;
    rows.total[i] = 0.0f;
  }
  const uint end = rules.causal ? min(values.columns, place.first + Blocks::rows) : values.columns;
  for (uint first = 0; first < end; first += Blocks::inner) {
    wait_for_fragment_copies();
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const uint next = first + Blocks::inner;
    if (next < end) {
      bring_fragment_rows<Blocks, Blocks::inner>(later, key, next, values.columns, values.width, self.thread_id);
      if constexpr (RESULT) {
        bring_fragment_rows<Blocks, Blocks::inner>(later + Blocks::block, value, next, values.columns, values.values,
                                                   self.thread_id);
      }
      end_fragment_copies();
    }
    if (place.own < values.rows) {
      if (rules.sees_all(place.own + Blocks::own_rows - 1u, next - 1u)) {
        attend_block<Blocks, RESULT, true>(rows, queries, now, now + Blocks::block, rules, place.own, first,
                                           self.lane_id);
      } else {
        attend_block<Blocks, RESULT, false>(rows, queries, now, now + Blocks::block, rules, place.own, first,
                                            self.lane_id);
      }
    }
    threadgroup T* const used = now;
    now = later;
    later = used;
  }
  float total[2];
  UNROLL for (uint i = 0; i < 2u; ++i) {
    total[i] = rows.total[i] + simd_shuffle_xor(rows.total[i], 1);
    total[i] += simd_shuffle_xor(total[i], 2);
  }
  if constexpr (RESULT) {
    AttentionVisitor<T> visitor;
    visitor.start(at.result, values.result, place.batch);
    write_fragments<Blocks>(rows.sums, visitor, place.own, values.rows, values.values,
                            total[0] == 0.0f ? 0.0f : 1.0f / total[0], total[1] == 0.0f ? 0.0f : 1.0f / total[1],
                            self.lane_id);
  }
  if constexpr (LOGSUMEXP) {
    device float* const statistics = at.statistics + attention_start(values.second, place.batch);
    UNROLL for (uint i = 0; i < 2u; ++i) {
      const uint row = place.own + fragment_row(self.lane_id, i * 2u);
      if (self.lane_id % 4u != 0u || row >= values.rows) continue;
      statistics[long(row) * values.second.row] = total[i] == 0.0f ? INFINITY : rows.largest[i] + precise::log(total[i]);
    }
  }
}

/// Adds a block's keys to the gradient for the query. `logsumexp`: as exponents of two.
template <class Blocks, bool WHOLE, class T, class Rules>
void add_query_gradient(thread SumFragment* sums, thread const LeftFragment* queries,
                        thread const LeftFragment* gradients, threadgroup const T* keys,
                        threadgroup const T* value_rows, thread const float* logsumexp, thread const float* delta,
                        thread Rules& rules, uint row, uint first, uint lane_id) {
  SumFragment scores[Blocks::inner / 8];
  SumFragment slopes[Blocks::inner / 8];
  multiply_by_columns<Blocks>(scores, queries, keys, lane_id);
  multiply_by_columns<Blocks>(slopes, gradients, value_rows, lane_id);
  UNROLL for (uint j = 0; j < Blocks::inner / 8; ++j) {
    float kept[4];
    score_fragment<false, WHOLE>(scores[j], rules, row, first + j * 8u, lane_id);
    keep_fragment<false>(kept, rules.keep, row, first + j * 8u, WHOLE, lane_id);
    UNROLL for (uint i = 0; i < 4u; ++i) {
      const float p = fast_exp2(fma(scores[j].at[i], in_powers_of_two(1.0f), -logsumexp[i / 2u]));
      slopes[j].at[i] = p * (slopes[j].at[i] * kept[i] - delta[i / 2u]);
    }
  }
  multiply_by_rows<Blocks>(sums, slopes, keys, lane_id);
}

/// The gradient for the query.
template <class Blocks, class T, class Rules>
void query_gradient_fragments(thread const AttentionPointers<T>& at, thread Rules& rules,
                              constant AttentionValues& values, threadgroup uint4* memory, uint group,
                              thread const TileThread& self) {
  FragmentPlace place = {};
  find_place_of_fragments<Blocks>(place, values, group, self);
  rules.start(values, place.batch);
  AttentionMatrix<T> query;
  AttentionMatrix<T> key;
  AttentionMatrix<T> value;
  AttentionMatrix<T> gradient;
  query.start(at.query, values.query, place.batch);
  key.start(at.key, values.key, place.batch);
  value.start(at.value, values.value, place.batch);
  gradient.start(at.gradient, values.gradient, place.batch);
  threadgroup T* const stages = (threadgroup T*)memory;
  threadgroup T* now = stages;
  threadgroup T* later = stages + Blocks::stage;
  bring_fragment_rows<Blocks, Blocks::inner>(now, key, 0u, values.columns, values.width, self.thread_id);
  bring_fragment_rows<Blocks, Blocks::inner>(now + Blocks::block, value, 0u, values.columns, values.values,
                                             self.thread_id);
  LeftFragment queries[Blocks::steps];
  LeftFragment gradients[Blocks::steps];
  load_left_rows<Blocks>(queries, later, query, place.first, values.rows, values.width, self);
  load_left_rows<Blocks>(gradients, later, gradient, place.first, values.rows, values.values, self);
  AttentionMatrix<float> logsumexps;
  AttentionMatrix<float> deltas;
  logsumexps.start(at.logsumexp, values.logsumexp, place.batch);
  deltas.start(at.delta, values.delta, place.batch);
  float logsumexp[2];
  float delta[2];
  UNROLL for (uint i = 0; i < 2u; ++i) {
    const uint row = place.own + fragment_row(self.lane_id, i * 2u);
    logsumexp[i] = row < values.rows ? in_powers_of_two(logsumexps.at(row, 0u)) : 0.0f;
    delta[i] = row < values.rows ? deltas.at(row, 0u) : 0.0f;
  }
  SumFragment sums[Blocks::width / 8];
  UNROLL for (uint j = 0; j < Blocks::width / 8; ++j) clear_fragment(sums[j]);
  const uint end = rules.causal ? min(values.columns, place.first + Blocks::rows) : values.columns;
  for (uint first = 0; first < end; first += Blocks::inner) {
    wait_for_fragment_copies();
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const uint next = first + Blocks::inner;
    if (next < end) {
      bring_fragment_rows<Blocks, Blocks::inner>(later, key, next, values.columns, values.width, self.thread_id);
      bring_fragment_rows<Blocks, Blocks::inner>(later + Blocks::block, value, next, values.columns, values.values,
                                                 self.thread_id);
      end_fragment_copies();
    }
    if (place.own < values.rows) {
      if (rules.sees_all(place.own + Blocks::own_rows - 1u, next - 1u)) {
        add_query_gradient<Blocks, true>(sums, queries, gradients, now, now + Blocks::block, logsumexp, delta, rules,
                                         place.own, first, self.lane_id);
      } else {
        add_query_gradient<Blocks, false>(sums, queries, gradients, now, now + Blocks::block, logsumexp, delta, rules,
                                          place.own, first, self.lane_id);
      }
    }
    threadgroup T* const used = now;
    now = later;
    later = used;
  }
  AttentionVisitor<T> visitor;
  visitor.start(at.result, values.result, place.batch);
  write_fragments<Blocks>(sums, visitor, place.own, values.rows, values.width, values.scale, values.scale,
                          self.lane_id);
}

/// What a block of rows adds to the gradients for key and value.
template <class Blocks>
struct KeyValueSums {
  SumFragment key[Blocks::width / 8];
  SumFragment value[Blocks::width / 8];
};

/// `statistics`: the rows' logsumexp, then their delta.
template <class Blocks, bool KEY, bool VALUE, bool WHOLE, class T, class Rules>
void add_key_value_gradient(thread KeyValueSums<Blocks>& sums, thread const LeftFragment* keys,
                            thread const LeftFragment* value_rows, threadgroup const T* queries,
                            threadgroup const T* gradients, threadgroup const float* statistics, thread Rules& rules,
                            uint first, uint column, uint lane_id) {
  SumFragment scores[Blocks::inner / 8];
  SumFragment slopes[Blocks::inner / 8];
  multiply_by_columns<Blocks>(scores, keys, queries, lane_id);
  if constexpr (KEY) multiply_by_columns<Blocks>(slopes, value_rows, gradients, lane_id);
  UNROLL for (uint j = 0; j < Blocks::inner / 8; ++j) {
    float kept[4];
    score_fragment<true, WHOLE>(scores[j], rules, first + j * 8u, column, lane_id);
    keep_fragment<true>(kept, rules.keep, first + j * 8u, column, WHOLE, lane_id);
    UNROLL for (uint i = 0; i < 4u; ++i) {
      const uint row = j * 8u + fragment_column(lane_id, i);
      const float p = fast_exp2(in_powers_of_two(scores[j].at[i] - statistics[row]));
      scores[j].at[i] = p * kept[i];
      if constexpr (KEY) slopes[j].at[i] = p * (slopes[j].at[i] * kept[i] - statistics[Blocks::inner + row]);
    }
  }
  if constexpr (VALUE) multiply_by_rows<Blocks>(sums.value, scores, gradients, lane_id);
  if constexpr (KEY) multiply_by_rows<Blocks>(sums.key, slopes, queries, lane_id);
}

/// Queries, their gradients and their statistics that pass keys and values.
template <class Blocks, bool KEY, class T>
struct PassingQueries {
  AttentionMatrix<T> query;
  AttentionMatrix<T> gradient;
  AttentionMatrix<float> logsumexp;
  AttentionMatrix<float> delta;

  void bring(threadgroup T* stage, threadgroup float* statistics, uint first, constant AttentionValues& values,
             uint thread_id) const {
    bring_fragment_rows<Blocks, Blocks::inner>(stage, query, first, values.rows, values.width, thread_id);
    bring_fragment_rows<Blocks, Blocks::inner>(stage + Blocks::block, gradient, first, values.rows, values.values,
                                               thread_id);
    if (thread_id < Blocks::inner) {
      const bool inside = first + thread_id < values.rows;
      const long row = inside ? long(first + thread_id) : 0l;
      copy_number(statistics + thread_id, logsumexp.data + row * logsumexp.row_stride, inside);
      if constexpr (KEY) {
        copy_number(statistics + Blocks::inner + thread_id, delta.data + row * delta.row_stride, inside);
      }
    }
    end_fragment_copies();
  }
};

/// The gradients for key (result) and value (second), or one of them. `statistics`: 4 * Blocks::inner floats.
template <class Blocks, bool KEY, bool VALUE, class T, class Rules>
void key_value_gradient_fragments(thread const AttentionPointers<T>& at, thread Rules& rules,
                                  constant AttentionValues& values, threadgroup uint4* memory,
                                  threadgroup float* statistics, uint group, thread const TileThread& self) {
  FragmentPlace place = {};
  find_place_of_fragments<Blocks>(place, values, group, self);
  rules.start(values, place.batch);
  PassingQueries<Blocks, KEY, T> passing = {};
  AttentionMatrix<T> key;
  AttentionMatrix<T> value;
  passing.query.start(at.query, values.query, place.batch);
  passing.gradient.start(at.gradient, values.gradient, place.batch);
  passing.logsumexp.start(at.logsumexp, values.logsumexp, place.batch);
  if constexpr (KEY) passing.delta.start(at.delta, values.delta, place.batch);
  key.start(at.key, values.key, place.batch);
  // Of a causal attention, earlier rows see none of these keys.
  const uint begin = rules.causal ? place.first : 0u;
  threadgroup T* const stages = (threadgroup T*)memory;
  threadgroup T* now = stages;
  threadgroup T* later = stages + Blocks::stage;
  threadgroup float* numbers_now = statistics;
  threadgroup float* numbers_later = statistics + 2 * Blocks::inner;
  passing.bring(now, numbers_now, begin, values, self.thread_id);
  LeftFragment keys[Blocks::steps];
  LeftFragment value_rows[Blocks::steps];
  load_left_rows<Blocks>(keys, later, key, place.first, values.columns, values.width, self);
  if constexpr (KEY) {
    value.start(at.value, values.value, place.batch);
    load_left_rows<Blocks>(value_rows, later, value, place.first, values.columns, values.values, self);
  }
  KeyValueSums<Blocks> sums = {};
  UNROLL for (uint j = 0; j < Blocks::width / 8; ++j) {
    clear_fragment(sums.key[j]);
    clear_fragment(sums.value[j]);
  }
  for (uint first = begin; first < values.rows; first += Blocks::inner) {
    wait_for_fragment_copies();
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const uint next = first + Blocks::inner;
    if (next < values.rows) passing.bring(later, numbers_later, next, values, self.thread_id);
    if (place.own < values.columns) {
      if (rules.sees_all(next - 1u, place.own + Blocks::own_rows - 1u)) {
        add_key_value_gradient<Blocks, KEY, VALUE, true>(sums, keys, value_rows, now, now + Blocks::block, numbers_now,
                                                         rules, first, place.own, self.lane_id);
      } else {
        add_key_value_gradient<Blocks, KEY, VALUE, false>(sums, keys, value_rows, now, now + Blocks::block,
                                                          numbers_now, rules, first, place.own, self.lane_id);
      }
    }
    threadgroup T* const used = now;
    now = later;
    later = used;
    threadgroup float* const used_numbers = numbers_now;
    numbers_now = numbers_later;
    numbers_later = used_numbers;
  }
  AttentionVisitor<T> visitor;
  if constexpr (KEY) {
    visitor.start(at.result, values.result, place.batch);
    write_fragments<Blocks>(sums.key, visitor, place.own, values.columns, values.width, values.scale, values.scale,
                            self.lane_id);
  }
  if constexpr (VALUE) {
    visitor.start(at.second, values.second, place.batch);
    write_fragments<Blocks>(sums.value, visitor, place.own, values.columns, values.values, 1.0f, 1.0f, self.lane_id);
  }
}
