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

/// Clears the slopes of keys that are not there, which may be anything. `key`: the first of the lane's two.
template <uint COUNT>
void clear_slopes(thread SumFragment* slopes, uint key, uint keys) {
  UNROLL for (uint which = 0; which < COUNT / 8; ++which) {
    thread float* const at = slopes[which].at;
    if (key >= keys) at[0] = at[1] = 0.0f;
    if (key + 1u >= keys) at[2] = at[3] = 0.0f;
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

/// Of COUNT pairs in all lanes, half of them: sums of a lane's and those of the lane `step` away, the upper half in the
/// lanes whose bit `step` is set.
template <uint COUNT>
void add_up_halves(thread float2* pairs, uint step, uint lane_id) {
  const bool upper = (lane_id & step) != 0u;
  UNROLL for (uint i = 0; i < COUNT / 2u; ++i) {
    const float2 given = upper ? pairs[i] : pairs[i + COUNT / 2u];
    const float2 kept = upper ? pairs[i + COUNT / 2u] : pairs[i];
    pairs[i] = kept + make_float2(simd_shuffle_xor(given.x, ushort(step)), simd_shuffle_xor(given.y, ushort(step)));
  }
}

/// Puts the sums over a simdgroup's sixteen rows into `memory`. `row`: the first of the lane's two neighbours.
template <class Blocks>
void put_sums_of_rows(threadgroup float* memory, thread const SumFragment* sums, uint row, uint rows, uint lane_id) {
  enum : uint { count = Blocks::width / 8 };  // four or eight
  float2 pairs[count];
  UNROLL for (uint j = 0; j < count; ++j) {
    pairs[j] = row < rows ? make_float2(sums[j].at[0], sums[j].at[1]) : make_float2(0.0f, 0.0f);
    if (row + 1u < rows) pairs[j] = pairs[j] + make_float2(sums[j].at[2], sums[j].at[3]);
  }
  add_up_halves<count>(pairs, 16u, lane_id);
  add_up_halves<count / 2>(pairs, 8u, lane_id);
  if constexpr (count == 8) {
    add_up_halves<2>(pairs, 4u, lane_id);
  } else {
    pairs[0].x += simd_shuffle_xor(pairs[0].x, 4);
    pairs[0].y += simd_shuffle_xor(pairs[0].y, 4);
    if ((lane_id & 4u) != 0u) return;
  }
  threadgroup float* const own = memory + lane_id / (32u / count) * 8u + lane_id % 4u * 2u;
  own[0] = pairs[0].x;
  own[1] = pairs[0].y;
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

/// A simdgroup's squares of the gradient for the query, of which it has the same places in all blocks of queries, and
/// the sums over the lane's rows of all blocks.
template <class Blocks>
struct QuerySquares {
  enum : uint {
    simdgroups = Blocks::threads / 32,
    down = Blocks::inner / 16,
    all = down * Blocks::steps,
    own = (all + simdgroups - 1) / simdgroups  // at most
  };
  float4 sums[own];  // of the lane's two columns in both fragments
};

/// Puts the sums over a block's sixteen rows, one `down` of them after the other, into `memory`.
template <class Blocks>
void put_sums_of_queries(threadgroup float* memory, thread const QuerySquares<Blocks>& squares,
                         thread const TileThread& self) {
  typedef QuerySquares<Blocks> Squares;
  UNROLL for (uint i = 0; i < Squares::own; ++i) {
    const uint square = turn_of_simdgroup<Blocks>(self.simdgroup_id) + i * Squares::simdgroups;
    float4 sums = squares.sums[i];
    UNROLL for (uint step = 4; step < 32u; step *= 2u) {
      sums = sums + make_float4(simd_shuffle_xor(sums.x, ushort(step)), simd_shuffle_xor(sums.y, ushort(step)),
                                simd_shuffle_xor(sums.z, ushort(step)), simd_shuffle_xor(sums.w, ushort(step)));
    }
    if (square >= Squares::all || self.lane_id >= 4u) continue;
    threadgroup float* const own =
        memory + square % Squares::down * Blocks::width + square / Squares::down * 16u + self.lane_id * 2u;
    own[0] = sums.x;
    own[1] = sums.y;
    own[8] = sums.z;
    own[9] = sums.w;
  }
}

/// Hands out a matrix' sums of columns, of COUNT parts, times a factor.
template <class Blocks, uint COUNT>
void write_sums(thread const AttentionVisitor<float>& visitor, threadgroup const float* parts, uint step, uint columns,
                float factor, uint thread_id) {
  for (uint column = thread_id; column < columns; column += Blocks::threads) {
    float sum = 0.0f;
    UNROLL for (uint part = 0; part < COUNT; ++part) sum += parts[part * step + column];
    visitor.visit(0u, column, sum * factor);
  }
}

/// The gradient for a block of queries from `first` on; simdgroups share its squares of sixteen. SUMS: adds them up.
template <class Blocks, bool SUMS, class T>
void write_query_gradient(thread QuerySquares<Blocks>& squares, thread const AttentionVisitor<T>& visitor,
                          threadgroup const T* slopes, threadgroup const T* keys, constant AttentionValues& values,
                          uint first, thread const TileThread& self) {
  typedef QuerySquares<Blocks> Squares;
  UNROLL for (uint i = 0; i < Squares::own; ++i) {
    const uint square = turn_of_simdgroup<Blocks>(self.simdgroup_id) + i * Squares::simdgroups;
    const uint row = square % Squares::down * 16u;
    const uint column = square / Squares::down * 16u;
    if (square >= Squares::all || column >= values.width) continue;
    if (first + row >= values.rows) continue;
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
    if constexpr (SUMS) {  // rows that are not there are 0
      squares.sums[i] = squares.sums[i] + make_float4(sums[0].at[0] + sums[0].at[2], sums[0].at[1] + sums[0].at[3],
                                                      sums[1].at[0] + sums[1].at[2], sums[1].at[1] + sums[1].at[3]);
    }
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
/// result is one that has arrived. SUMS: those of each gradient's columns are stored, too.
template <class Blocks, bool DELTAS, bool SUMS, class T, class Rules>
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
  const uint own_column = own + score_column<false>(self.lane_id, 0u, 0u);
  const RowsInMemory<T> own_keys = {keys, own};
  const RowsInMemory<T> own_values = {value_rows, own};
  KeyValueSums<Blocks> sums = {};
  UNROLL for (uint j = 0; j < Blocks::width / 8; ++j) {
    clear_fragment(sums.key[j]);
    clear_fragment(sums.value[j]);
  }
  StagesOfFragments<Blocks> stage = {0u, Blocks::stages - 1u};
  QuerySquares<Blocks> squares = {};
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
      if (own + Blocks::own_rows > values.columns) {
        clear_slopes<Blocks::inner>(own_slopes, own_column, values.columns);
      }
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
    if (first > 0u) {
      write_query_gradient<Blocks, SUMS>(squares, query, slopes + slopes_at, keys, values, first - Blocks::inner, self);
    }
    stage.move();
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (values.rows > 0u) {
    const uint last = (values.rows - 1u) / Blocks::inner * Blocks::inner;
    write_query_gradient<Blocks, SUMS>(squares, query, slopes + (Memory::slopes - slopes_at), keys, values, last, self);
  }
  AttentionVisitor<T> visitor;
  visitor.start(at.result, values.result, batch);
  write_fragments<Blocks, 1>(sums.key, visitor, own_column, values.columns, values.width,
                             make_float2(values.scale, values.scale), self.lane_id);
  visitor.start(at.second, values.second, batch);
  const float weight = weight_of_kept(rules.keep);
  write_fragments<Blocks, 1>(sums.value, visitor, own_column, values.columns, values.values,
                             make_float2(weight, weight), self.lane_id);
  if constexpr (SUMS) {
    typedef QuerySquares<Blocks> Squares;
    enum : uint { step = 2 * Blocks::width, of_queries = Squares::simdgroups * step };
    static_assert((of_queries + Squares::down * Blocks::width) / 4 <= Blocks::memory, "stages have room for sums");
    threadgroup float* const parts = (threadgroup float*)stages;  // nobody reads blocks of queries any more
    threadgroup float* const own_parts = parts + self.simdgroup_id * step;
    put_sums_of_rows<Blocks>(own_parts, sums.key, own_column, values.columns, self.lane_id);
    put_sums_of_rows<Blocks>(own_parts + Blocks::width, sums.value, own_column, values.columns, self.lane_id);
    put_sums_of_queries<Blocks>(parts + of_queries, squares, self);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    AttentionVisitor<float> columns;
    columns.start(at.key_sums, values.key_sums, batch);
    write_sums<Blocks, Squares::simdgroups>(columns, parts, step, values.width, values.scale, self.thread_id);
    columns.start(at.value_sums, values.value_sums, batch);
    write_sums<Blocks, Squares::simdgroups>(columns, parts + Blocks::width, step, values.values, weight,
                                            self.thread_id);
    columns.start(at.query_sums, values.query_sums, batch);
    write_sums<Blocks, Squares::down>(columns, parts + of_queries, Blocks::width, values.width, values.scale,
                                      self.thread_id);
  }
}
