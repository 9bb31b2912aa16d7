// needs: attention_fragments.metal
// Gradients of attention on tensor cores, by the blocks of attention_fragments.metal: scores are computed again.

/// Adds COUNT keys to the gradient for the query.
template <class Blocks, uint COUNT, bool WHOLE, class T, class Rules>
void add_query_gradient(thread SumFragment* sums, thread const LeftFragment* queries,
                        thread const LeftFragment* gradients, threadgroup const T* keys,
                        threadgroup const T* value_rows, thread const float* logsumexp, thread const float* delta,
                        thread Rules& rules, uint row, uint first, uint lane_id) {
  constexpr bool plain = WHOLE && Rules::masks == 0;
  const float weight = weight_of_kept(rules.keep);
  SumFragment scores[COUNT / 8];
  SumFragment slopes[COUNT / 8];
  multiply_by_columns<Blocks, COUNT>(scores, queries, keys, lane_id);
  multiply_by_columns<Blocks, COUNT>(slopes, gradients, value_rows, lane_id);
  UNROLL for (uint j = 0; j < COUNT / 8; j += 2u) {
    bool keeps[8];
    if constexpr (!plain) score_fragments<true, WHOLE>(scores + j, rules, row, first + j * 8u, lane_id);
    keep_fragments<true, WHOLE>(keeps, rules.keep, row, first + j * 8u, lane_id);
    UNROLL for (uint i = 0; i < 8u; ++i) {
      const uint which = i % 4u / 2u;
      const float p = score_power<plain>(rules, scores[j + i / 4u].at[i % 4u], in_powers_of_two(logsumexp[which]));
      const float slope = keeps[i] ? slopes[j + i / 4u].at[i % 4u] : 0.0f;
      slopes[j + i / 4u].at[i % 4u] = p * fma(slope, weight, -delta[which]);
    }
  }
  multiply_by_rows<Blocks, COUNT>(sums, slopes, keys, lane_id);
}

/// The gradient for the query.
template <class Blocks, class T, class Rules>
void query_gradient_fragments(thread const AttentionPointers<T>& at, thread Rules& rules,
                              constant AttentionValues& values, threadgroup uint4* memory, uint group,
                              thread const TileThread& self) {
  FragmentPlace<Blocks::rank> place = {};
  find_place_of_fragments<Blocks>(place, values, group, self);
  rules.start(values, place.batch, in_powers_of_two(1.0f));
  PassingKeys<Blocks, true, T> passing = {};
  passing.start(at, values, place.batch);
  AttentionMatrix<T> query;
  AttentionMatrix<T> gradient;
  AttentionMatrix<float> logsumexps;
  AttentionMatrix<float> deltas;
  query.start(at.query, values.query, place.batch);
  gradient.start(at.gradient, values.gradient, place.batch);
  logsumexps.start(at.logsumexp, values.logsumexp, place.batch);
  deltas.start(at.delta, values.delta, place.batch);
  const uint end = rules.causal ? min(values.columns, place.first + Blocks::rows) : values.columns;
  const uint last_row = place.own + Blocks::own_rows - 1u;
  const uint own_row = place.own + score_row<true>(self.lane_id, 0u, 0u);
  threadgroup T* const stages = (threadgroup T*)memory;
  UNROLL for (uint i = 0; i + 1u < Blocks::stages; ++i) {
    passing.bring(stages + i * Blocks::stage, i * Blocks::inner, end, self.thread_id);
  }
  LeftFragment queries[Blocks::steps];
  LeftFragment gradients[Blocks::steps];
  load_left_rows<Blocks, 8>(queries, query, own_row, values.rows, values.width, self.lane_id);
  load_left_rows<Blocks, 8>(gradients, gradient, own_row, values.rows, values.values, self.lane_id);
  float logsumexp[2];
  float delta[2];
  UNROLL for (uint i = 0; i < 2u; ++i) {
    const uint row = own_row + i * 8u;
    logsumexp[i] = row < values.rows ? logsumexps.at(row, 0u) : 0.0f;
    delta[i] = row < values.rows ? deltas.at(row, 0u) : 0.0f;
  }
  SumFragment sums[Blocks::width / 8];
  UNROLL for (uint j = 0; j < Blocks::width / 8; ++j) clear_fragment(sums[j]);
  StagesOfFragments<Blocks> stage = {0u, Blocks::stages - 1u};
  for (uint first = 0; first < end; first += Blocks::inner) {
    wait_for_fragment_copies<Blocks::stages - 2>();
    threadgroup_barrier(mem_flags::mem_threadgroup);
    passing.bring(stages + stage.free * Blocks::stage, first + stage.ahead(), end, self.thread_id);
    threadgroup const T* const now = stages + stage.now * Blocks::stage;
    const uint next = first + Blocks::inner;
    if (place.own < values.rows) {
      if (sees_fragments(rules, place.own, last_row, next - 1u)) {
        add_query_gradient<Blocks, Blocks::inner, true>(sums, queries, gradients, now, now + Blocks::block, logsumexp,
                                                        delta, rules, place.own, first, self.lane_id);
      } else {
        const uint seen = min(next, rules.causal ? min(end, last_row + 1u) : end);
        for (uint from = first; from < seen; from += Blocks::least) {
          threadgroup const T* const part = now + (from - first) * Blocks::width;
          add_query_gradient<Blocks, Blocks::least, false>(sums, queries, gradients, part, part + Blocks::block,
                                                           logsumexp, delta, rules, place.own, from, self.lane_id);
        }
      }
    }
    stage.move();
  }
  AttentionVisitor<T> visitor;
  visitor.start(at.result, values.result, place.batch);
  write_fragments<Blocks, 8>(sums, visitor, own_row, values.rows, values.width,
                             make_float2(values.scale, values.scale), self.lane_id);
}

/// What a block of rows adds to the gradients for key and value.
template <class Blocks>
struct KeyValueSums {
  SumFragment key[Blocks::width / 8];
  SumFragment value[Blocks::width / 8];
};

/// Of COUNT rows, whose slopes it leaves. `statistics`: the rows' logsumexp; Blocks::inner after it, their delta.
template <class Blocks, uint COUNT, bool KEY, bool VALUE, bool WHOLE, class Left, class T, class Rules>
void add_key_value_gradient(thread KeyValueSums<Blocks>& sums, thread SumFragment* slopes, thread const Left& keys,
                            thread const Left& value_rows, threadgroup const T* queries,
                            threadgroup const T* gradients, threadgroup const float* statistics, thread Rules& rules,
                            uint first, uint column, uint lane_id) {
  constexpr bool plain = WHOLE && Rules::masks == 0;
  const float weight = weight_of_kept(rules.keep);
  SumFragment scores[COUNT / 8];
  multiply_by_columns<Blocks, COUNT>(scores, keys, queries, lane_id);
  if constexpr (KEY) multiply_by_columns<Blocks, COUNT>(slopes, value_rows, gradients, lane_id);
  UNROLL for (uint j = 0; j < COUNT / 8; j += 2u) {
    bool keeps[8];
    if constexpr (!plain) score_fragments<false, WHOLE>(scores + j, rules, first + j * 8u, column, lane_id);
    keep_fragments<false, WHOLE>(keeps, rules.keep, first + j * 8u, column, lane_id);
    UNROLL for (uint i = 0; i < 8u; ++i) {
      const uint row = j * 8u + score_row<false>(lane_id, i / 4u, i % 4u);
      const float p = score_power<plain>(rules, scores[j + i / 4u].at[i % 4u], in_powers_of_two(statistics[row]));
      scores[j + i / 4u].at[i % 4u] = keeps[i] ? p : 0.0f;
      if constexpr (KEY) {
        const float slope = keeps[i] ? slopes[j + i / 4u].at[i % 4u] : 0.0f;
        slopes[j + i / 4u].at[i % 4u] = p * fma(slope, weight, -statistics[Blocks::inner + row]);
      }
    }
  }
  if constexpr (VALUE) multiply_by_rows<Blocks, COUNT>(sums.value, scores, gradients, lane_id);
  if constexpr (KEY) multiply_by_rows<Blocks, COUNT>(sums.key, slopes, queries, lane_id);
}

/// Queries, their gradients and their statistics that pass keys and values.
template <class Blocks, bool KEY, class T>
struct PassingQueries {
  BroughtRows<Blocks, rows_in_order, T> query;
  BroughtRows<Blocks, rows_in_order, T> gradient;
  AttentionMatrix<float> logsumexp;
  AttentionMatrix<float> delta;

  template <uint RANK>
  void start(thread const AttentionPointers<T>& at, constant AttentionValues& values,
             thread const AttentionBatch<RANK>& batch) {
    query.start(at.query, values.query, batch, values.rows, values.width);
    gradient.start(at.gradient, values.gradient, batch, values.rows, values.values);
    logsumexp.start(at.logsumexp, values.logsumexp, batch);
    if constexpr (KEY) delta.start(at.delta, values.delta, batch);
  }
  /// The block from `first` on, if there is one. `statistics`: what the block has of them.
  void bring(threadgroup T* stage, threadgroup float* statistics, uint first, uint thread_id) const {
    if (first < query.rows) {
      query.template bring<Blocks::inner>(stage, first, thread_id);
      gradient.template bring<Blocks::inner>(stage + Blocks::block, first, thread_id);
    }
    if (first < query.rows && thread_id < Blocks::inner) {
      const bool inside = first + thread_id < query.rows;
      const long row = long(first + thread_id);
      copy_number(statistics, thread_id, logsumexp.data + row * logsumexp.row_stride, inside);
      if constexpr (KEY) copy_number(statistics, Blocks::inner + thread_id, delta.data + row * delta.row_stride, inside);
    }
    end_fragment_copies();
  }
};

/// The gradients for key (result) and value (second), or one of them. `statistics`:
/// 2 * Blocks::inner floats a stage.
template <class Blocks, bool KEY, bool VALUE, class T, class Rules>
void key_value_gradient_fragments(thread const AttentionPointers<T>& at, thread Rules& rules,
                                  constant AttentionValues& values, threadgroup uint4* memory,
                                  threadgroup float* statistics, uint group, thread const TileThread& self) {
  FragmentPlace<Blocks::rank> place = {};
  find_place_of_fragments<Blocks>(place, values, group, self);
  rules.start(values, place.batch, in_powers_of_two(1.0f));
  PassingQueries<Blocks, KEY, T> passing = {};
  passing.start(at, values, place.batch);
  AttentionMatrix<T> key;
  AttentionMatrix<T> value;
  key.start(at.key, values.key, place.batch);
  if constexpr (KEY) value.start(at.value, values.value, place.batch);
  // Of a causal attention, earlier rows see none of these keys.
  const uint begin = rules.causal ? place.first : 0u;
  const uint last_column = place.own + Blocks::own_rows - 1u;
  const uint own_column = place.own + score_column<false>(self.lane_id, 0u, 0u);
  threadgroup T* const stages = (threadgroup T*)memory;
  UNROLL for (uint i = 0; i + 1u < Blocks::stages; ++i) {
    passing.bring(stages + i * Blocks::stage, statistics + i * 2u * Blocks::inner, begin + i * Blocks::inner,
                  self.thread_id);
  }
  LeftFragment keys[Blocks::steps];
  LeftFragment value_rows[Blocks::steps];
  load_left_rows<Blocks, 1>(keys, key, own_column, values.columns, values.width, self.lane_id);
  if constexpr (KEY) {
    load_left_rows<Blocks, 1>(value_rows, value, own_column, values.columns, values.values, self.lane_id);
  }
  KeyValueSums<Blocks> sums = {};
  UNROLL for (uint j = 0; j < Blocks::width / 8; ++j) {
    clear_fragment(sums.key[j]);
    clear_fragment(sums.value[j]);
  }
  StagesOfFragments<Blocks> stage = {0u, Blocks::stages - 1u};
  for (uint first = begin; first < values.rows; first += Blocks::inner) {
    wait_for_fragment_copies<Blocks::stages - 2>();
    threadgroup_barrier(mem_flags::mem_threadgroup);
    passing.bring(stages + stage.free * Blocks::stage, statistics + stage.free * 2u * Blocks::inner,
                  first + stage.ahead(), self.thread_id);
    threadgroup const T* const now = stages + stage.now * Blocks::stage;
    threadgroup const float* const numbers = statistics + stage.now * 2u * Blocks::inner;
    const uint next = first + Blocks::inner;
    if (place.own < values.columns) {
      SumFragment slopes[Blocks::inner / 8];
      if (sees_transposed_fragments(rules, first, next - 1u, last_column)) {
        add_key_value_gradient<Blocks, Blocks::inner, KEY, VALUE, true>(sums, slopes, keys, value_rows, now,
                                                                        now + Blocks::block, numbers, rules, first,
                                                                        place.own, self.lane_id);
      } else {
        for (uint from = first; from < min(next, values.rows); from += Blocks::least) {
          if (rules.causal && from + Blocks::least <= place.own) continue;
          threadgroup const T* const part = now + (from - first) * Blocks::width;
          add_key_value_gradient<Blocks, Blocks::least, KEY, VALUE, false>(
              sums, slopes, keys, value_rows, part, part + Blocks::block, numbers + (from - first), rules, from,
              place.own, self.lane_id);
        }
      }
    }
    stage.move();
  }
  AttentionVisitor<T> visitor;
  if constexpr (KEY) {
    visitor.start(at.result, values.result, place.batch);
    write_fragments<Blocks, 1>(sums.key, visitor, own_column, values.columns, values.width,
                               make_float2(values.scale, values.scale), self.lane_id);
  }
  if constexpr (VALUE) {
    visitor.start(at.second, values.second, place.batch);
    const float weight = weight_of_kept(rules.keep);
    write_fragments<Blocks, 1>(sums.value, visitor, own_column, values.columns, values.values,
                               make_float2(weight, weight), self.lane_id);
  }
}
