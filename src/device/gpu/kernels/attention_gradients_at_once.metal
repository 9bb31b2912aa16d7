// needs: attention_gradient_fragments.metal
// The three gradients of an attention on tensor cores, by one threadgroup for all keys of a matrix of the batch, sixteen a
// simdgroup: so scores and slopes are computed once for all of them, five products instead of seven. Slopes go through
// threadgroup memory, where they are what the gradient for the query is multiplied from.

/// What lies in threadgroup memory: keys and values, by twos, slopes of two blocks, and the stages of what passes.
template <class Blocks>
struct GradientMemory {
  enum : uint {
    held = Blocks::rows * Blocks::width,
    slopes = Blocks::rows * Blocks::inner,
    results = Blocks::block,                             // of the attention, where deltas are made of them
    vectors = 2 * (held + slopes) / 8 + Blocks::memory,  // uint4s
    vectors_with_results = vectors + results / 8
  };
  /// Of a slope, by the line of its key and by its query.
  static uint place(uint line, uint query) {
    return line * Blocks::inner + (query / 8u ^ line / 2u % 4u) * 8u + query % 8u;
  }
};

/// Stores the slopes of a simdgroup's sixteen keys, for COUNT queries.
template <class Blocks, uint COUNT, class T>
void store_slopes(threadgroup T* memory, thread const SumFragment* slopes, uint line, uint query, uint lane_id) {
  UNROLL for (uint which = 0; which < COUNT / 8; ++which) {
    UNROLL for (uint i = 0; i < 2u; ++i) {
      const uint at = GradientMemory<Blocks>::place(line + fragment_row(lane_id, i * 2u),
                                                    query + which * 8u + fragment_column(lane_id, 0u));
      *(threadgroup uint*)(memory + at) =
          rounded_pair(T(0.0f), make_float2(slopes[which].at[i * 2u], slopes[which].at[i * 2u + 1u]));
    }
  }
}

/// Hands out sixteen columns of sixteen rows, times a factor.
template <class Blocks, class T>
void write_square(thread const SumFragment* sums, thread const AttentionVisitor<T>& visitor, uint row, uint rows,
                  uint column, uint columns, float factor, uint lane_id) {
  UNROLL for (uint i = 0; i < 4u; ++i) {
    const uint own_row = row + fragment_row(lane_id, i % 2u * 2u);
    const uint own_column = column + i / 2u * 8u + fragment_column(lane_id, 0u);
    const float first = sums[i / 2u].at[i % 2u * 2u] * factor;
    const float second = sums[i / 2u].at[i % 2u * 2u + 1u] * factor;
    if (own_row >= rows || own_column >= columns) continue;
    if constexpr (Blocks::aligned != 0) {
      *(device uint*)(visitor.data + (long(own_row) * visitor.row_stride + long(own_column))) =
          rounded_pair(T(0.0f), make_float2(first, second));
    } else {
      visitor.visit(own_row, own_column, first);
      if (own_column + 1u < columns) visitor.visit(own_row, own_column + 1u, second);
    }
  }
}

/// The order in which simdgroups take squares: the quarters of a core have every fourth simdgroup each, and those come
/// first whose quarter has one less.
template <class Blocks>
uint turn_of_simdgroup(uint simdgroup_id) {
  enum : uint { count = Blocks::threads / 32, more = count % 4, first = count / 4 * (4 - more) };
  const uint quarter = simdgroup_id % 4u;
  const uint row = simdgroup_id / 4u;
  return quarter < more ? first + row * more + quarter : row * (4u - more) + quarter - more;
}

/// The gradient for a block of queries from `first` on; simdgroups share its squares of sixteen.
template <class Blocks, class T>
void write_query_gradient(thread const AttentionVisitor<T>& visitor, threadgroup const T* slopes,
                          threadgroup const T* keys, constant AttentionValues& values, uint first,
                          thread const TileThread& self) {
  enum : uint { down = Blocks::inner / 16, squares = down * Blocks::steps };
  for (uint square = turn_of_simdgroup<Blocks>(self.simdgroup_id); square < squares; square += Blocks::threads / 32u) {
    const uint row = square % down * 16u;
    const uint column = square / down * 16u;
    if (first + row >= values.rows || column >= values.width) continue;
    SumFragment sums[2];
    clear_fragment(sums[0]);
    clear_fragment(sums[1]);
    UNROLL for (uint s = 0; s < Blocks::rows / 16; ++s) {
      LeftFragment left;
      RightFragments right;
      load_left_columns<GradientMemory<Blocks>>(left, slopes, s * 16u, row, self.lane_id);
      load_right_rows<Blocks>(right, keys, s * 16u, column, self.lane_id);
      multiply_fragments<T, 0>(sums[0], left, right, self.lane_id);
      multiply_fragments<T, 1>(sums[1], left, right, self.lane_id);
    }
    write_square<Blocks>(sums, visitor, first + row, values.rows, column, values.width, values.scale, self.lane_id);
  }
}

/// Of each query of a block, the sum of the attention's result times its gradient: a thread has a vector of both.
template <class Blocks, class T>
void add_up_deltas(threadgroup float* deltas, threadgroup const T* results, threadgroup const T* gradients,
                   uint thread_id) {
  enum : uint { all = Blocks::inner * Blocks::vectors };
  UNROLL for (uint i = 0; i < (all + Blocks::threads - 1u) / Blocks::threads; ++i) {
    const uint at = i * Blocks::threads + thread_id;
    if (at >= all) continue;  // whole simdgroups
    const uint row = at / Blocks::vectors;
    const uint place = Blocks::place(row, at % Blocks::vectors * 8u);
    const uint4 x = *(threadgroup const uint4*)(results + place);
    const uint4 y = *(threadgroup const uint4*)(gradients + place);
    const float2 first = floats_of(T(0.0f), x.x) * floats_of(T(0.0f), y.x);
    const float2 second = floats_of(T(0.0f), x.y) * floats_of(T(0.0f), y.y);
    const float2 third = floats_of(T(0.0f), x.z) * floats_of(T(0.0f), y.z);
    const float2 fourth = floats_of(T(0.0f), x.w) * floats_of(T(0.0f), y.w);
    const float2 pair = first + second + (third + fourth);
    float sum = pair.x + pair.y;
    UNROLL for (uint step = Blocks::vectors / 2u; step > 0u; step /= 2u) sum += simd_shuffle_xor(sum, ushort(step));
    if (at % Blocks::vectors == 0u) deltas[row] = sum;
  }
}

/// The gradients for key (result), value (second) and query (third). `statistics`: 2 * Blocks::inner floats a stage.
/// DELTAS: the attention's result is given, and deltas are not; blocks come in two stages then, so that a block of the
/// result is one that has arrived.
template <class Blocks, bool DELTAS, class T, class Rules>
void attention_gradients_at_once(thread const AttentionPointers<T>& at, thread Rules& rules,
                                 constant AttentionValues& values, threadgroup uint4* memory,
                                 threadgroup float* statistics, uint group, thread const TileThread& self) {
  typedef GradientMemory<Blocks> Memory;
  AttentionBatch<Blocks::rank> batch = {};
  find_attention_batch(batch, values, group);
  rules.start(values, batch, in_powers_of_two(1.0f));
  threadgroup T* const keys = (threadgroup T*)memory;
  threadgroup T* const value_rows = keys + Memory::held;
  threadgroup T* const slopes = value_rows + Memory::held;
  threadgroup T* const stages = slopes + 2 * Memory::slopes;
  BroughtRows<Blocks, rows_by_twos, T> key = {};
  BroughtRows<Blocks, rows_by_twos, T> value = {};
  key.start(at.key, values.key, batch, values.columns, values.width);
  value.start(at.value, values.value, batch, values.columns, values.values);
  key.template bring<Blocks::rows>(keys, 0u, self.thread_id);
  value.template bring<Blocks::rows>(value_rows, 0u, self.thread_id);
  PassingQueries<Blocks, !DELTAS, T> passing = {};
  passing.start(at, values, batch);
  BroughtRows<Blocks, rows_in_order, T> forward = {};
  threadgroup T* const results = keys + Memory::vectors * 8u;
  if constexpr (DELTAS) {
    forward.start(at.forward, values.delta, batch, values.rows, values.values);
    forward.template bring<Blocks::inner>(results, 0u, self.thread_id);
  }
  UNROLL for (uint i = 0; i + 1u < Blocks::stages; ++i) {
    passing.bring(stages + i * Blocks::stage, statistics + i * 2u * Blocks::inner, i * Blocks::inner, self.thread_id);
  }
  AttentionVisitor<T> query;
  query.start(at.third, values.third, batch);
  const uint own = self.simdgroup_id * Blocks::own_rows;
  const RowsInMemory<T> own_keys = {keys, own};
  const RowsInMemory<T> own_values = {value_rows, own};
  KeyValueSums<Blocks> sums = {};
  UNROLL for (uint j = 0; j < Blocks::width / 8; ++j) {
    clear_fragment(sums.key[j]);
    clear_fragment(sums.value[j]);
  }
  StagesOfFragments<Blocks> stage = {0u, Blocks::stages - 1u};
  uint slopes_at = 0u;  // where the block's slopes go; the other half has those of the one before
  for (uint first = 0; first < values.rows; first += Blocks::inner) {
    wait_for_fragment_copies<Blocks::stages - 2>();
    threadgroup_barrier(mem_flags::mem_threadgroup);
    threadgroup const T* const now = stages + stage.now * Blocks::stage;
    threadgroup float* const numbers = statistics + stage.now * 2u * Blocks::inner;
    if constexpr (DELTAS) {
      add_up_deltas<Blocks>(numbers + Blocks::inner, results, now + Blocks::block, self.thread_id);
      threadgroup_barrier(mem_flags::mem_threadgroup);
      if (first + Blocks::inner < values.rows) {
        forward.template bring<Blocks::inner>(results, first + Blocks::inner, self.thread_id);
      }
    }
    passing.bring(stages + stage.free * Blocks::stage, statistics + stage.free * 2u * Blocks::inner,
                  first + stage.ahead(), self.thread_id);
    if (sees_transposed_fragments(rules, first, first + Blocks::inner - 1u, own + Blocks::own_rows - 1u)) {
      SumFragment own_slopes[Blocks::inner / 8];
      add_key_value_gradient<Blocks, Blocks::inner, true, true, true>(sums, own_slopes, own_keys, own_values, now,
                                                                      now + Blocks::block, numbers, rules, first, own,
                                                                      self.lane_id);
      store_slopes<Blocks, Blocks::inner>(slopes + slopes_at, own_slopes, own, 0u, self.lane_id);
    } else {
      for (uint from = 0; from < Blocks::inner && first + from < values.rows; from += Blocks::least) {
        threadgroup const T* const part = now + from * Blocks::width;
        SumFragment own_slopes[Blocks::least / 8];
        add_key_value_gradient<Blocks, Blocks::least, true, true, false>(
            sums, own_slopes, own_keys, own_values, part, part + Blocks::block, numbers + from, rules, first + from,
            own, self.lane_id);
        store_slopes<Blocks, Blocks::least>(slopes + slopes_at, own_slopes, own, from, self.lane_id);
      }
    }
    slopes_at = Memory::slopes - slopes_at;
    if (first > 0u) write_query_gradient<Blocks>(query, slopes + slopes_at, keys, values, first - Blocks::inner, self);
    stage.move();
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (values.rows > 0u) {
    const uint last = (values.rows - 1u) / Blocks::inner * Blocks::inner;
    write_query_gradient<Blocks>(query, slopes + (Memory::slopes - slopes_at), keys, values, last, self);
  }
  const uint own_column = own + score_column<false>(self.lane_id, 0u, 0u);
  AttentionVisitor<T> visitor;
  visitor.start(at.result, values.result, batch);
  write_fragments<Blocks, 1>(sums.key, visitor, own_column, values.columns, values.width,
                             make_float2(values.scale, values.scale), self.lane_id);
  visitor.start(at.second, values.second, batch);
  const float weight = weight_of_kept(rules.keep);
  write_fragments<Blocks, 1>(sums.value, visitor, own_column, values.columns, values.values,
                             make_float2(weight, weight), self.lane_id);
}
