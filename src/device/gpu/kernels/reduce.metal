// needs: math.metal
// Combining values across the lanes of a simdgroup. Every lane of the simdgroup calls together; every lane gets the
// same bits, since the pairs of a butterfly are the same from both ends.

inline float lane_xor(float x, uint mask) { return simd_shuffle_xor(x, ushort(mask)); }
inline int lane_xor(int x, uint mask) { return simd_shuffle_xor(x, ushort(mask)); }
inline uint lane_xor(uint x, uint mask) { return simd_shuffle_xor(x, ushort(mask)); }
inline long lane_xor(long x, uint mask) {
  const uint low = simd_shuffle_xor(uint(ulong(x)), ushort(mask));
  const uint high = simd_shuffle_xor(uint(ulong(x) >> 32u), ushort(mask));
  return long((ulong(high) << 32u) | ulong(low));
}

/// What another lane of the simdgroup has.
inline float lane_at(float x, uint lane) { return simd_shuffle(x, ushort(lane)); }
inline int lane_at(int x, uint lane) { return simd_shuffle(x, ushort(lane)); }
inline uint lane_at(uint x, uint lane) { return simd_shuffle(x, ushort(lane)); }
inline long lane_at(long x, uint lane) {
  const uint low = simd_shuffle(uint(ulong(x)), ushort(lane));
  const uint high = simd_shuffle(uint(ulong(x) >> 32u), ushort(lane));
  return long((ulong(high) << 32u) | ulong(low));
}

// The sum of squared distances from the mean, kept together with the mean and the number of elements. The mean is a sum
// of two numbers, `rest` being what `mean` is too coarse for: distances that are small beside it keep their digits.

/// Moves what `mean` can hold out of `rest`.
inline void settle_mean(thread float& mean, thread float& rest) {
  const float sum = mean + rest;
  rest -= sum - mean;
  mean = sum;
}

/// Adds an element: Welford (1962), "Note on a method for calculating corrected sums of squares and products".
inline void add_deviation(thread float& squares, thread float& mean, thread float& rest, thread float& count, float x) {
  count += 1.0f;
  const float distance = (x - mean) - rest;
  rest += distance / count;
  squares += distance * ((x - mean) - rest);
  settle_mean(mean, rest);
}

/// The same for several elements at once, whose distances from the mean so far, without its rest, are added up first;
/// before there is one, from the first element.
inline void add_distance(thread float& sum, thread float& sum_of_squares, thread float& mean, float x, bool is_first) {
  mean = is_first ? x : mean;
  const float distance = x - mean;
  sum += distance;
  sum_of_squares = fma(distance, distance, sum_of_squares);
}
/// The last of `counted` elements have these sums, which begin anew: about the mean with its rest first; then squares
/// about the new mean are those about the old one less what its move is worth (Chan, Golub and LeVeque, as below).
/// `share`: one of them, of all.
inline void add_distances(thread float& squares, thread float& mean, thread float& rest, thread float& count,
                          thread float& sum, thread float& sum_of_squares, float counted, float share) {
  const float shift = (counted - count) * rest;
  sum_of_squares += rest * (shift - 2.0f * sum);
  sum -= shift;
  count = counted;
  const float move = sum * share;
  squares += sum_of_squares - sum * move;
  rest += move;
  settle_mean(mean, rest);
  sum = 0.0f;
  sum_of_squares = 0.0f;
}

/// Adds what is known of other elements: Chan, Golub and LeVeque (1979), "Updating formulae and a pairwise algorithm
/// for computing sample variances". Without branches, for barriers may follow.
inline void merge_deviations(thread float& squares, thread float& mean, thread float& rest, thread float& count,
                             float other_squares, float other_mean, float other_rest, float other_count) {
  const float total = count + other_count;
  const float share = total > 0.0f ? other_count * fast_reciprocal(total) : 0.0f;
  mean = count > 0.0f ? mean : other_mean;
  rest = count > 0.0f ? rest : other_rest;
  const float distance = other_count > 0.0f ? (other_mean - mean) + (other_rest - rest) : 0.0f;
  squares += other_squares + distance * distance * (count * share);
  rest += distance * share;
  settle_mean(mean, rest);
  count = total;
}

/// Both lanes of a pair merge what the upper one knows into what the lower one does: they get the same bits.
inline void merge_lanes(thread float& squares, thread float& mean, thread float& rest, thread float& count, uint lane_id,
                        uint step) {
  const float other_squares = lane_xor(squares, step);
  const float other_mean = lane_xor(mean, step);
  const float other_rest = lane_xor(rest, step);
  const float other_count = lane_xor(count, step);
  const bool lower = (lane_id & step) == 0u;
  const float upper_squares = lower ? other_squares : squares;
  const float upper_mean = lower ? other_mean : mean;
  const float upper_rest = lower ? other_rest : rest;
  const float upper_count = lower ? other_count : count;
  squares = lower ? squares : other_squares;
  mean = lower ? mean : other_mean;
  rest = lower ? rest : other_rest;
  count = lower ? count : other_count;
  merge_deviations(squares, mean, rest, count, upper_squares, upper_mean, upper_rest, upper_count);
}
