// Matrices of half and bfloat in the registers of a simdgroup, as tensor cores take them (PTX ISA 9.7.14, mma.m16n8k16):
// products of a left factor's 16 x 16 with a right factor's 16 x 8, added to sums of float. A lane holds, of
//   the left factor    pairs along the depth: rows lane / 4 and that + 8, at depths lane % 4 * 2 and that + 8
//   the right factor   pairs along the depth, of the column lane / 4; here two such factors side by side, 16 columns
//   the sums           pairs of columns from lane % 4 * 2 on: rows lane / 4 and that + 8
// A prelude may have them in its own way (prelude/cuda/fragments.h). Other GPUs have no use for them: here they are made
// of shuffles, so that what is written with them runs on the simulated GPU.

struct LeftFragment {
  uint pairs[4];  // (row, depth), (row + 8, depth), (row, depth + 8), (row + 8, depth + 8)
};
struct RightFragments {
  uint pairs[4];  // (depth, column), (depth + 8, column), the same of column + 8
};
struct SumFragment {
  float at[4];  // (row, column), (row, column + 1), (row + 8, column), (row + 8, column + 1)
};

inline uint fragment_row(uint lane_id, uint i) { return lane_id / 4u + i / 2u * 8u; }
inline uint fragment_column(uint lane_id, uint i) { return lane_id % 4u * 2u + i % 2u; }

inline void clear_fragment(thread SumFragment& sum) {
  UNROLL for (uint i = 0; i < 4u; ++i) sum.at[i] = 0.0f;
}

// Two elements as the bits of one uint, the first in the lower half.
inline uint pair_bits(half first, half second) { return as_type<uint>(make_half2(first, second)); }
inline uint pair_bits(bfloat first, bfloat second) { return as_type<uint>(make_bfloat2(first, second)); }

inline uint rounded_pair(half, float2 pair) { return as_type<uint>(make_half2(pair)); }
inline uint rounded_pair(bfloat, float2 pair) { return as_type<uint>(make_bfloat2(pair)); }

/// Stores sums of 16 rows and 32 columns to lines LINE apart.
template <uint LINE>
void store_fragments(threadgroup float* strip, thread const SumFragment* sums, uint lane_id) {
  UNROLL for (uint i = 0; i < 16u; ++i) {
    strip[fragment_row(lane_id, i % 4u) * LINE + i / 4u * 8u + fragment_column(lane_id, i % 4u)] =
        sums[i / 4u].at[i % 4u];
  }
}

/// Sums of 16 columns, rounded to T, as a left factor whose depth they are.
template <class T>
void round_to_left(thread LeftFragment& left, thread const SumFragment& first, thread const SumFragment& second) {
  left.pairs[0] = rounded_pair(T(0.0f), make_float2(first.at[0], first.at[1]));
  left.pairs[1] = rounded_pair(T(0.0f), make_float2(first.at[2], first.at[3]));
  left.pairs[2] = rounded_pair(T(0.0f), make_float2(second.at[0], second.at[1]));
  left.pairs[3] = rounded_pair(T(0.0f), make_float2(second.at[2], second.at[3]));
}

#ifndef RUSSET_OWN_FRAGMENTS
// Copies to memory[element] and on that may run ahead: of sixteen bytes, or zeros, and of a number, or zero. Those up to
// an end are a group. They are there after the thread has waited for all groups but the last PENDING, and for others
// after a barrier besides.
template <class T>
void copy_vector(threadgroup T* memory, uint element, device const T* from, bool is_there) {
  *(threadgroup uint4*)(memory + element) = is_there ? *(device const uint4*)from : make_uint4(0u, 0u, 0u, 0u);
}
inline void copy_number(threadgroup float* memory, uint element, device const float* from, bool is_there) {
  memory[element] = is_there ? *from : 0.0f;
}
inline void end_fragment_copies() {}
template <uint PENDING>
void wait_for_fragment_copies() {}

inline float first_of_pair(half, uint bits) { return float(as_type<half2>(bits).x); }
inline float second_of_pair(half, uint bits) { return float(as_type<half2>(bits).y); }
inline float first_of_pair(bfloat, uint bits) { return float(as_type<bfloat2>(bits).x); }
inline float second_of_pair(bfloat, uint bits) { return float(as_type<bfloat2>(bits).y); }

// Fragments of a matrix whose elements lie at memory[Layout::place(row, column)], from (row, column) on: multiples of 8.
// Eight neighbours of a row lie side by side, at a multiple of 16 bytes. A layout that is `linear`, whose places are a
// multiple of the row and one of the column added up, says so.

/// The matrix's rows are the factor's.
template <class Layout, class T>
void load_left(thread LeftFragment& left, threadgroup const T* memory, uint row, uint column, uint lane_id) {
  UNROLL for (uint i = 0; i < 4u; ++i) {
    const uint at = Layout::place(row + lane_id / 4u + i % 2u * 8u, column + lane_id % 4u * 2u + i / 2u * 8u);
    left.pairs[i] = pair_bits(memory[at], memory[at + 1u]);
  }
}

/// The matrix's rows go along the factor's depth: those from `row` on, for the factor's rows from `column` on.
template <class Layout, class T>
void load_left_columns(thread LeftFragment& left, threadgroup const T* memory, uint row, uint column, uint lane_id) {
  UNROLL for (uint i = 0; i < 4u; ++i) {
    const uint down = row + lane_id % 4u * 2u + i / 2u * 8u;
    const uint across = column + lane_id / 4u + i % 2u * 8u;
    left.pairs[i] = pair_bits(memory[Layout::place(down, across)], memory[Layout::place(down + 1u, across)]);
  }
}

/// The matrix's rows are the factor's columns.
template <class Layout, class T>
void load_right_columns(thread RightFragments& right, threadgroup const T* memory, uint row, uint column,
                        uint lane_id) {
  UNROLL for (uint i = 0; i < 4u; ++i) {
    const uint at = Layout::place(row + lane_id / 4u + i / 2u * 8u, column + lane_id % 4u * 2u + i % 2u * 8u);
    right.pairs[i] = pair_bits(memory[at], memory[at + 1u]);
  }
}

/// The matrix's rows go along the factor's depth.
template <class Layout, class T>
void load_right_rows(thread RightFragments& right, threadgroup const T* memory, uint row, uint column, uint lane_id) {
  UNROLL for (uint i = 0; i < 4u; ++i) {
    const uint down = row + lane_id % 4u * 2u + i % 2u * 8u;
    const uint across = column + lane_id / 4u + i / 2u * 8u;
    right.pairs[i] = pair_bits(memory[Layout::place(down, across)], memory[Layout::place(down + 1u, across)]);
  }
}

/// Adds the product with the first (WHICH = 0) or the second eight columns.
template <class T, uint WHICH>
void multiply_fragments(thread SumFragment& sum, thread const LeftFragment& left, thread const RightFragments& right,
                        uint lane_id) {
  const T type = T(0.0f);
  UNROLL for (uint k = 0; k < 8u; ++k) {
    const ushort from_row = ushort(lane_id / 4u * 4u + k % 4u);
    const uint upper = simd_shuffle(left.pairs[k / 4u * 2u], from_row);
    const uint lower = simd_shuffle(left.pairs[k / 4u * 2u + 1u], from_row);
    UNROLL for (uint i = 0; i < 2u; ++i) {
      const ushort from_column = ushort((lane_id % 4u * 2u + i) * 4u + k % 4u);
      const uint column = simd_shuffle(right.pairs[WHICH * 2u + k / 4u], from_column);
      sum.at[i] = fma(first_of_pair(type, upper), first_of_pair(type, column), sum.at[i]);
      sum.at[i] = fma(second_of_pair(type, upper), second_of_pair(type, column), sum.at[i]);
      sum.at[i + 2u] = fma(first_of_pair(type, lower), first_of_pair(type, column), sum.at[i + 2u]);
      sum.at[i + 2u] = fma(second_of_pair(type, lower), second_of_pair(type, column), sum.at[i + 2u]);
    }
  }
}
/// Makes `product` that product.
template <class T, uint WHICH>
void start_product(thread SumFragment& product, thread const LeftFragment& left, thread const RightFragments& right,
                   uint lane_id) {
  clear_fragment(product);
  multiply_fragments<T, WHICH>(product, left, right, lane_id);
}
#endif
