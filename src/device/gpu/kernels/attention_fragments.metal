// needs: attention.metal
// needs: fragments.metal
// needs: math.metal
// Attention on tensor cores, for half and bfloat and heads of at most 64: as in attention_blocks.metal, but the
// scores of sixteen rows a simdgroup stay in registers, and probabilities and slopes are rounded to T before they are
// multiplied. While a block of the rows that pass is multiplied, the next ones are brought. Scores are exponents of two,
// of which GPUs have an instruction.

/// Sixteen rows that stay for each of SIMDGROUPS, and INNER rows that pass in each of STAGES blocks, of at most WIDTH
/// columns, zeros beyond; matrices lie along RANK axes. ALIGNED: all operands are read and written in whole vectors.
template <class T, uint SIMDGROUPS, uint INNER, uint STAGES, uint WIDTH, uint RANK, bool ALIGNED>
struct FragmentBlocks {
  typedef T Element;
  enum : uint {
    rank = RANK,
    own_rows = 16,  // of a simdgroup
    rows = SIMDGROUPS * 16,
    threads = SIMDGROUPS * 32,
    inner = INNER,
    least = 16,  // passing rows that are multiplied at once, where not all of a block are needed
    width = WIDTH,
    steps = WIDTH / 16,
    aligned = ALIGNED ? 1 : 0,
    stages = STAGES,
    block = INNER * WIDTH,        // elements
    stage = 2 * block,            // of two matrices
    memory = STAGES * stage / 8,  // uint4s of threadgroup memory
    vectors = WIDTH / 8,          // a row
    lines = threads / vectors     // whose vectors are brought at once
  };
  /// Where an element of a block lies: a row's vectors of eight are exchanged by the row's number, so that those of
  /// eight rows that are read together lie in different banks.
  static uint place(uint row, uint column) {
    return row * WIDTH + (column / 8u ^ row / (8u / vectors) % vectors) * 8u + column % 8u;
  }
};

// Which scores a lane has of two neighbouring fragments. Where queries stay, the keys of sixteen columns are exchanged so
// that a lane has four neighbours in a row; where keys stay, so that it has two: as many as come from a block of Philox,
// or half of them.

/// The order of the rows that lie in sixteen lines of a block: one after the other; as a lane has four neighbours of
/// sixteen columns, where keys pass; as it has two of sixteen rows, where keys stay.
enum : uint { rows_in_order = 0, rows_by_fours = 1, rows_by_twos = 2 };
template <uint ORDER>
uint row_of_line(uint line) {
  if (ORDER == rows_by_fours) return (line & ~15u) | (line & 6u) << 1u | (line & 8u) >> 2u | (line & 1u);
  if (ORDER == rows_by_twos) return (line & ~15u) | (line & 7u) << 1u | (line & 8u) >> 3u;
  return line;
}
/// The column of a score that is element `i` of the first (0) or second (1) of two fragments, and its row.
template <bool QUERIES_STAY>
uint score_column(uint lane_id, uint which, uint i) {
  return QUERIES_STAY ? lane_id % 4u * 4u + which * 2u + i % 2u : lane_id / 4u * 2u + i / 2u;
}
template <bool QUERIES_STAY>
uint score_row(uint lane_id, uint which, uint i) {
  return QUERIES_STAY ? fragment_row(lane_id, i) : which * 8u + fragment_column(lane_id, i);
}

/// What a thread brings of a matrix, whose rows lie in the ORDER of row_of_line.
template <class Blocks, uint ORDER, class T>
struct BroughtRows {
  AttentionMatrix<T> matrix;
  uint rows, columns;  // of the matrix

  template <uint RANK>
  void start(device const T* all, constant AttentionArray& array, thread const AttentionBatch<RANK>& batch, uint height,
             uint width) {
    matrix.start(all, array, batch);
    rows = height;
    columns = width;
  }
  /// Brings COUNT rows from `first` on, zeros beyond the last row and column: they are there after
  /// wait_for_fragment_copies and a barrier.
  template <uint COUNT>
  void bring(threadgroup T* memory, uint first, uint thread_id) const {
    if constexpr (Blocks::aligned != 0) {
      const uint column = thread_id % Blocks::vectors * 8u;
      UNROLL for (uint i = 0; i < (COUNT + Blocks::lines - 1u) / Blocks::lines; ++i) {
        const uint line = i * Blocks::lines + thread_id / Blocks::vectors;
        const uint row = first + row_of_line<ORDER>(line);
        device const T* const from = matrix.data + (long(row) * matrix.row_stride + long(column));
        if (COUNT % Blocks::lines == 0u || line < COUNT) {
          copy_vector(memory, Blocks::place(line, column), from, row < rows && column < columns);
        }
      }
    } else {
      for (uint i = thread_id; i < COUNT * Blocks::width; i += Blocks::threads) {
        const uint line = i / Blocks::width;
        const uint column = i % Blocks::width;
        const uint row = first + row_of_line<ORDER>(line);
        const bool inside = row < rows && column < columns;
        memory[Blocks::place(line, column)] = inside ? T(matrix.at(row, column)) : T(0.0f);
      }
    }
  }
};

/// Keys, and values (VALUES), that pass queries.
template <class Blocks, bool VALUES, class T>
struct PassingKeys {
  BroughtRows<Blocks, rows_by_fours, T> key;
  BroughtRows<Blocks, rows_by_fours, T> value;

  template <uint RANK>
  void start(thread const AttentionPointers<T>& at, constant AttentionValues& values,
             thread const AttentionBatch<RANK>& batch) {
    key.start(at.key, values.key, batch, values.columns, values.width);
    if constexpr (VALUES) value.start(at.value, values.value, batch, values.columns, values.values);
  }
  /// The block from `first` on, if it begins before `end`.
  void bring(threadgroup T* stage, uint first, uint end, uint thread_id) const {
    if (first < end) {
      key.template bring<Blocks::inner>(stage, first, thread_id);
      if constexpr (VALUES) value.template bring<Blocks::inner>(stage + Blocks::block, first, thread_id);
    }
    end_fragment_copies();
  }
};

/// Of the stages, the one that is multiplied and the one before it, to which the block that is `ahead` comes.
template <class Blocks>
struct StagesOfFragments {
  uint now, free;
  static uint ahead() { return (Blocks::stages - 1u) * Blocks::inner; }
  void move() {
    free = now;
    now = now + 1u == Blocks::stages ? 0u : now + 1u;
  }
};

/// Four words of each of four neighbouring lanes: a lane's word i becomes the word of its own number of lane i.
inline void exchange_words(thread uint* words, uint lane_id) {
  UNROLL for (uint step = 1; step <= 2u; ++step) {
    const bool upper = (lane_id & step) != 0u;
    UNROLL for (uint i = 0; i < 2u; ++i) {
      const uint low = i * (3u - step);
      const uint high = low + step;
      const uint other = simd_shuffle_xor(upper ? words[low] : words[high], ushort(step));
      words[low] = upper ? other : words[low];
      words[high] = upper ? words[high] : other;
    }
  }
}

/// The lane's pairs of four times eight columns of a row from `column` on, zeros beyond the last row and column. Where
/// rows are vectors, each of four lanes reads one.
template <class Blocks, class T>
void read_fragment_pairs(thread uint* pairs, thread const AttentionMatrix<T>& matrix, uint row, uint column, uint rows,
                         uint columns, uint lane_id) {
  if constexpr (Blocks::aligned != 0) {
    const uint own = column + lane_id % 4u * 8u;
    const bool inside = row < rows && own < columns;
    const uint4 vector = inside ? *(device const uint4*)(matrix.data + (long(row) * matrix.row_stride + long(own)))
                                : make_uint4(0u, 0u, 0u, 0u);
    pairs[0] = vector.x;
    pairs[1] = vector.y;
    pairs[2] = vector.z;
    pairs[3] = vector.w;
    exchange_words(pairs, lane_id);
  } else {
    UNROLL for (uint i = 0; i < 4u; ++i) {
      const uint own = column + i * 8u + lane_id % 4u * 2u;
      const T first = row < rows && own < columns ? T(matrix.at(row, own)) : T(0.0f);
      const T second = row < rows && own + 1u < columns ? T(matrix.at(row, own + 1u)) : T(0.0f);
      pairs[i] = pair_bits(first, second);
    }
  }
}

/// The simdgroup's rows of a matrix that stays; the lane's are `row` and the one BELOW it.
template <class Blocks, uint BELOW, class T>
void load_left_rows(thread LeftFragment* fragments, thread const AttentionMatrix<T>& matrix, uint row, uint rows,
                    uint columns, uint lane_id) {
  UNROLL for (uint i = 0; i < 2u; ++i) {
    UNROLL for (uint s = 0; s < Blocks::steps; s += 2u) {
      uint pairs[4];
      read_fragment_pairs<Blocks>(pairs, matrix, row + i * BELOW, s * 16u, rows, columns, lane_id);
      UNROLL for (uint k = 0; k < 4u; ++k) fragments[s + k / 2u].pairs[i + k % 2u * 2u] = pairs[k];
    }
  }
}

/// Sixteen rows that stay in threadgroup memory.
template <class T>
struct RowsInMemory {
  threadgroup const T* rows;
  uint first;
};

// Sixteen columns of the rows that stay, `step` times as many from the first one on.
template <class Blocks>
void take_left(thread LeftFragment& fragment, thread const LeftFragment* rows, uint step, uint) {
  fragment = rows[step];
}
template <class Blocks, class T>
void take_left(thread LeftFragment& fragment, thread const RowsInMemory<T>& left, uint step, uint lane_id) {
  load_left<Blocks>(fragment, left.rows, left.first, step * 16u, lane_id);
}

/// products[row, j] = sum over k of left[row, k] * right[j, k], of COUNT rows that pass.
template <class Blocks, uint COUNT, class Left, class T>
void multiply_by_columns(thread SumFragment* products, thread const Left& left, threadgroup const T* right,
                         uint lane_id) {
  UNROLL for (uint s = 0; s < Blocks::steps; ++s) {
    LeftFragment rows;
    take_left<Blocks>(rows, left, s, lane_id);
    UNROLL for (uint j = 0; j < COUNT / 16; ++j) {
      RightFragments columns;
      load_right_columns<Blocks>(columns, right, j * 16u, s * 16u, lane_id);
      if (s == 0u) {
        start_product<T, 0>(products[j * 2], rows, columns, lane_id);
        start_product<T, 1>(products[j * 2 + 1], rows, columns, lane_id);
      } else {
        multiply_fragments<T, 0>(products[j * 2], rows, columns, lane_id);
        multiply_fragments<T, 1>(products[j * 2 + 1], rows, columns, lane_id);
      }
    }
  }
}

/// sums[row, j] += sum over k of left[row, k] * right[k, j], k being COUNT rows that pass.
template <class Blocks, uint COUNT, class T>
void multiply_by_rows(thread SumFragment* sums, thread const SumFragment* left, threadgroup const T* right,
                      uint lane_id) {
  UNROLL for (uint s = 0; s < COUNT / 16; ++s) {
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

/// Hands out sums of the lane's rows, `row` and the one BELOW it, times a factor each.
template <class Blocks, uint BELOW, class T>
void write_fragments(thread const SumFragment* sums, thread const AttentionVisitor<T>& visitor, uint row, uint rows,
                     uint columns, float2 factors, uint lane_id) {
  UNROLL for (uint i = 0; i < 2u; ++i) {
    const uint own_row = row + i * BELOW;
    const float factor = i == 0u ? factors.x : factors.y;
    UNROLL for (uint j = 0; j < Blocks::width / 8; j += 4u) {
      if constexpr (Blocks::aligned != 0) {
        uint words[4];
        UNROLL for (uint k = 0; k < 4u; ++k) {
          words[k] = rounded_pair(T(0.0f), make_float2(sums[j + k].at[i * 2u] * factor,
                                                       sums[j + k].at[i * 2u + 1u] * factor));
        }
        exchange_words(words, lane_id);
        const uint column = j * 8u + lane_id % 4u * 8u;
        if (own_row < rows && column < columns) {
          *(device uint4*)(visitor.data + (long(own_row) * visitor.row_stride + long(column))) =
              make_uint4(words[0], words[1], words[2], words[3]);
        }
      } else {
        UNROLL for (uint k = 0; k < 8u; ++k) {
          const uint column = j * 8u + k / 2u * 8u + fragment_column(lane_id, k % 2u);
          if (own_row < rows && column < columns) {
            visitor.visit(own_row, column, sums[j + k / 2u].at[i * 2u + k % 2u] * factor);
          }
        }
      }
    }
  }
}

// Which of a lane's eight elements dropout keeps, of two neighbouring fragments of scores whose first element is at
// (row, column). WHOLE: all of them are seen. What they are multiplied by is multiplied once, in the end.

inline float weight_of_kept(thread const KeepAll&) { return 1.0f; }
template <class Keep>
float weight_of_kept(thread const Keep& keep) {
  return keep.kept;
}

template <bool QUERIES_STAY, bool WHOLE>
void keep_fragments(thread bool* keeps, thread KeepAll&, uint, uint, uint) {
  UNROLL for (uint i = 0; i < 8u; ++i) keeps[i] = true;
}

template <bool QUERIES_STAY, bool WHOLE, class U>
void keep_fragments(thread bool* keeps, thread KeepRead<U>& keep, uint row, uint column, uint lane_id) {
  UNROLL for (uint i = 0; i < 8u; ++i) {
    const uint at_row = row + score_row<QUERIES_STAY>(lane_id, i / 4u, i % 4u);
    const uint at_column = column + score_column<QUERIES_STAY>(lane_id, i / 4u, i % 4u);
    keeps[i] = (WHOLE || (at_row < keep.rows && at_column < keep.columns)) && keep.keeps(at_row, at_column);
  }
}

template <bool QUERIES_STAY, bool WHOLE>
void keep_fragments(thread bool* keeps, thread KeepDrawn<false>& keep, uint row, uint column, uint lane_id) {
  UNROLL for (uint i = 0; i < 8u; ++i) {
    keeps[i] = keep.keeps(row + score_row<QUERIES_STAY>(lane_id, i / 4u, i % 4u),
                          column + score_column<QUERIES_STAY>(lane_id, i / 4u, i % 4u));
  }
}

/// Where queries stay, a lane has whole blocks of Philox. Where keys stay, it has the halves of two blocks whose other
/// halves another lane has: each computes one of them.
template <bool QUERIES_STAY, bool WHOLE>
void keep_fragments(thread bool* keeps, thread KeepDrawn<true>& keep, uint row, uint column, uint lane_id) {
  if constexpr (QUERIES_STAY) {
    UNROLL for (uint i = 0; i < 2u; ++i) {
      const uint4 words = keep.words_from(row + fragment_row(lane_id, i * 2u), column + lane_id % 4u * 4u);
      keeps[i * 2u] = keep.keeps_word(words.x);
      keeps[i * 2u + 1u] = keep.keeps_word(words.y);
      keeps[i * 2u + 4u] = keep.keeps_word(words.z);
      keeps[i * 2u + 5u] = keep.keeps_word(words.w);
    }
  } else {
    const bool odd = (lane_id & 4u) != 0u;
    UNROLL for (uint i = 0; i < 2u; ++i) {
      const uint4 words =
          keep.words_from(row + i * 8u + lane_id % 4u * 2u + (odd ? 1u : 0u), column + lane_id / 8u * 4u);
      const uint own_first = odd ? words.z : words.x;
      const uint own_second = odd ? words.w : words.y;
      const uint first = simd_shuffle_xor(odd ? words.x : words.z, 4);
      const uint second = simd_shuffle_xor(odd ? words.y : words.w, 4);
      keeps[i * 4u] = keep.keeps_word(odd ? first : own_first);
      keeps[i * 4u + 1u] = keep.keeps_word(odd ? own_first : first);
      keeps[i * 4u + 2u] = keep.keeps_word(odd ? second : own_second);
      keeps[i * 4u + 3u] = keep.keeps_word(odd ? own_second : second);
    }
  }
}

template <bool QUERIES_STAY, bool WHOLE, bool IN_BLOCKS>
void keep_fragments(thread bool* keeps, thread KeepStored<IN_BLOCKS>& keep, uint row, uint column, uint lane_id) {
  keep_fragments<QUERIES_STAY, WHOLE>(keeps, keep.drawn, row, column, lane_id);
  const uint first = column % 64u / 4u;
  UNROLL for (uint i = 0; i < 8u; ++i) {
    keep.found[i % 4u / 2u] |= (keeps[i] ? 1u : 0u) << (first + i / 4u * 2u + i % 2u);
  }
}

/// Where keys stay: of each two neighbouring rows, two neighbouring columns.
template <bool QUERIES_STAY, bool WHOLE>
void keep_fragments(thread bool* keeps, thread KeepBits& keep, uint row, uint column, uint lane_id) {
  const uint first = column % 64u / 4u + lane_id / 4u % 2u * 2u;
  device const short* const bits = keep.bits + long(column / 64u * 4u + lane_id / 8u) * keep.stride;
  UNROLL for (uint i = 0; i < 2u; ++i) {
    const uint own = row + i * 8u + lane_id % 4u * 2u;
    const uint pair = WHOLE || own < keep.rows ? *(device const uint*)(bits + own) : 0u;
    UNROLL for (uint k = 0; k < 4u; ++k) {
      keeps[i * 4u + k] = (pair >> (first + k % 2u * 16u + k / 2u) & 1u) != 0u;
    }
  }
}

/// Stores what is kept of a block of 64 columns, for the lane's two rows.
template <class Keep>
void store_kept(thread Keep&, uint, uint, uint) {}
template <bool IN_BLOCKS>
void store_kept(thread KeepStored<IN_BLOCKS>& keep, uint row, uint first, uint lane_id) {
  device short* const bits = keep.bits + long(first / 16u + lane_id % 4u) * keep.stride;
  UNROLL for (uint i = 0; i < 2u; ++i) {
    if (row + i * 8u < keep.rows) bits[row + i * 8u] = short(keep.found[i]);
    keep.found[i] = 0u;
  }
}

/// Exponents of two of the products of two neighbouring fragments whose first element is at (row, column).
template <bool QUERIES_STAY, bool WHOLE, class Rules>
void score_fragments(thread SumFragment* products, thread const Rules& rules, uint row, uint column, uint lane_id) {
  UNROLL for (uint i = 0; i < 8u; ++i) {
    const uint at_row = row + score_row<QUERIES_STAY>(lane_id, i / 4u, i % 4u);
    const uint at_column = column + score_column<QUERIES_STAY>(lane_id, i / 4u, i % 4u);
    const float product = products[i / 4u].at[i % 4u];
    products[i / 4u].at[i % 4u] =
        WHOLE ? rules.seen_score(product, at_row, at_column) : rules.score(product, at_row, at_column);
  }
}

/// Powers of two of scores less a base, of which there may be products alone: those that no rule changes.
template <bool PLAIN, class Rules>
float score_power(thread const Rules& rules, float score, float base) {
  return fast_exp2(PLAIN ? fma(score, rules.scale, -base) : score - base);
}

/// The logarithm of e to the base of two, and its inverse.
enum : uint { log2_of_e_bits = 0x3fb8aa3bu, log_of_2_bits = 0x3f317218u };
inline float in_powers_of_two(float exponent) { return exponent * as_type<float>(uint(log2_of_e_bits)); }
inline float in_powers_of_e(float exponent) { return exponent * as_type<float>(uint(log_of_2_bits)); }

template <uint RANK>
struct FragmentPlace {
  AttentionBatch<RANK> batch;
  uint first;  // the block's first row
  uint own;    // the simdgroup's
};

template <class Blocks>
void find_place_of_fragments(thread FragmentPlace<Blocks::rank>& place, constant AttentionValues& values, uint group,
                             thread const TileThread& self) {
  const uint batch = group / values.tiles;
  find_attention_batch(place.batch, values, batch);
  place.first = (group - batch * values.tiles) * Blocks::rows;
  place.own = place.first + self.simdgroup_id * Blocks::own_rows;
}

// Whether no rule hides any of the scores from (row, column) on, up to the last ones, and none that lies beyond is looked
// at. Rows beyond the last one that stay are nobody's: their scores may be anything, but what is read lies inside.

template <class Rules>
bool sees_fragments(thread const Rules& rules, uint row, uint last_row, uint last_column) {
  return last_column < rules.columns && (Rules::reads == 0 || last_row < rules.rows) &&
         (!rules.causal || last_column <= row);
}
template <class Rules>
bool sees_transposed_fragments(thread const Rules& rules, uint row, uint last_row, uint last_column) {
  return last_row < rules.rows && (Rules::reads == 0 || last_column < rules.columns) &&
         (!rules.causal || last_column <= row);
}

/// What a lane knows of its two rows, and of their result.
template <class Blocks>
struct AttendedRows {
  SumFragment sums[Blocks::width / 8];
  float base[2];  // the exponent of two that is taken off all scores
  float total[2];

  /// Scores of up to `largest` come, of each row. The base follows only when powers would grow beyond 2^8, which is
  /// seldom: they are as exact, and what was added up need not be multiplied.
  void raise_base(thread const float* largest) {
    constexpr float slack = 8.0f;
    const bool follows[2] = {largest[0] > base[0] + slack, largest[1] > base[1] + slack};
    if (!simd_any(follows[0] || follows[1])) return;
    UNROLL for (uint i = 0; i < 2u; ++i) {
      const float factor = follows[i] ? fast_exp2(base[i] - largest[i]) : 1.0f;
      if (follows[i]) base[i] = largest[i];
      total[i] *= factor;
      UNROLL for (uint j = 0; j < Blocks::width / 8; ++j) {
        sums[j].at[i * 2u] *= factor;
        sums[j].at[i * 2u + 1u] *= factor;
      }
    }
  }
  /// Of a row that has seen nothing yet, 0.
  float finite_base(uint i) const { return base[i] == -INFINITY ? 0.0f : base[i]; }
};

template <class Blocks, uint COUNT, bool RESULT, bool WHOLE, class T, class Rules>
void attend_block(thread AttendedRows<Blocks>& rows, thread const LeftFragment* queries, threadgroup const T* keys,
                  threadgroup const T* value_rows, thread Rules& rules, uint row, uint first, uint lane_id) {
  constexpr bool plain = WHOLE && Rules::masks == 0;
  SumFragment scores[COUNT / 8];
  multiply_by_columns<Blocks, COUNT>(scores, queries, keys, lane_id);
  float largest[2] = {-INFINITY, -INFINITY};
  UNROLL for (uint j = 0; j < COUNT / 8; j += 2u) {
    if constexpr (!plain) score_fragments<true, WHOLE>(scores + j, rules, row, first + j * 8u, lane_id);
    UNROLL for (uint i = 0; i < 8u; ++i) largest[i % 4u / 2u] = max(largest[i % 4u / 2u], scores[j + i / 4u].at[i % 4u]);
  }
  UNROLL for (uint i = 0; i < 2u; ++i) {
    largest[i] = max(largest[i], simd_shuffle_xor(largest[i], 1));
    largest[i] = max(largest[i], simd_shuffle_xor(largest[i], 2));
    if constexpr (plain) largest[i] *= rules.scale;
  }
  rows.raise_base(largest);
  const float base[2] = {rows.finite_base(0u), rows.finite_base(1u)};
  UNROLL for (uint j = 0; j < COUNT / 8; j += 2u) {
    bool keeps[8];
    if constexpr (RESULT) keep_fragments<true, WHOLE>(keeps, rules.keep, row, first + j * 8u, lane_id);
    UNROLL for (uint i = 0; i < 8u; ++i) {
      const float p = score_power<plain>(rules, scores[j + i / 4u].at[i % 4u], base[i % 4u / 2u]);
      rows.total[i % 4u / 2u] += p;
      if constexpr (RESULT) scores[j + i / 4u].at[i % 4u] = keeps[i] ? p : 0.0f;
    }
  }
  if constexpr (RESULT) multiply_by_rows<Blocks, COUNT>(rows.sums, scores, value_rows, lane_id);
}

/// The result and the logsumexp, or one of them.
template <class Blocks, bool RESULT, bool LOGSUMEXP, class T, class Rules>
void attend_fragments(thread const AttentionPointers<T>& at, thread Rules& rules, constant AttentionValues& values,
                      threadgroup uint4* memory, uint group, thread const TileThread& self) {
  FragmentPlace<Blocks::rank> place = {};
  find_place_of_fragments<Blocks>(place, values, group, self);
  rules.start(values, place.batch, in_powers_of_two(1.0f));
  PassingKeys<Blocks, RESULT, T> passing = {};
  passing.start(at, values, place.batch);
  AttentionMatrix<T> query;
  query.start(at.query, values.query, place.batch);
  const uint end = rules.causal ? min(values.columns, place.first + Blocks::rows) : values.columns;
  const uint last_row = place.own + Blocks::own_rows - 1u;
  const uint own_row = place.own + score_row<true>(self.lane_id, 0u, 0u);
  threadgroup T* const stages = (threadgroup T*)memory;
  UNROLL for (uint i = 0; i + 1u < Blocks::stages; ++i) {
    passing.bring(stages + i * Blocks::stage, i * Blocks::inner, end, self.thread_id);
  }
  LeftFragment queries[Blocks::steps];
  load_left_rows<Blocks, 8>(queries, query, own_row, values.rows, values.width, self.lane_id);
  AttendedRows<Blocks> rows = {};
  UNROLL for (uint j = 0; j < Blocks::width / 8; ++j) clear_fragment(rows.sums[j]);
  rows.base[0] = rows.base[1] = -INFINITY;
  StagesOfFragments<Blocks> stage = {0u, Blocks::stages - 1u};
  for (uint first = 0; first < end; first += Blocks::inner) {
    wait_for_fragment_copies<Blocks::stages - 2>();
    threadgroup_barrier(mem_flags::mem_threadgroup);
    passing.bring(stages + stage.free * Blocks::stage, first + stage.ahead(), end, self.thread_id);
    threadgroup const T* const now = stages + stage.now * Blocks::stage;
    const uint next = first + Blocks::inner;
    if (place.own < values.rows) {
      if (sees_fragments(rules, place.own, last_row, next - 1u)) {
        attend_block<Blocks, Blocks::inner, RESULT, true>(rows, queries, now, now + Blocks::block, rules, place.own,
                                                          first, self.lane_id);
      } else {
        const uint seen = min(next, rules.causal ? min(end, last_row + 1u) : end);
        for (uint from = first; from < seen; from += Blocks::least) {
          threadgroup const T* const part = now + (from - first) * Blocks::width;
          attend_block<Blocks, Blocks::least, RESULT, false>(rows, queries, part, part + Blocks::block, rules,
                                                             place.own, from, self.lane_id);
        }
      }
      store_kept(rules.keep, own_row, first, self.lane_id);
    }
    stage.move();
  }
  float factors[2];
  UNROLL for (uint i = 0; i < 2u; ++i) {
    rows.total[i] += simd_shuffle_xor(rows.total[i], 1);
    rows.total[i] += simd_shuffle_xor(rows.total[i], 2);
    factors[i] = rows.total[i] == 0.0f ? 0.0f : weight_of_kept(rules.keep) * fast_reciprocal(rows.total[i]);
  }
  if constexpr (RESULT) {
    AttentionVisitor<T> visitor;
    visitor.start(at.result, values.result, place.batch);
    write_fragments<Blocks, 8>(rows.sums, visitor, own_row, values.rows, values.values,
                               make_float2(factors[0], factors[1]), self.lane_id);
  }
  if constexpr (LOGSUMEXP) {
    device float* const statistics = at.statistics + attention_start(values.second, place.batch);
    UNROLL for (uint i = 0; i < 2u; ++i) {
      const uint row = own_row + i * 8u;
      if (self.lane_id % 4u != 0u || row >= values.rows) continue;
      statistics[long(row) * values.second.row] =
          rows.total[i] == 0.0f ? INFINITY : in_powers_of_e(rows.base[i]) + precise::log(rows.total[i]);
    }
  }
}
