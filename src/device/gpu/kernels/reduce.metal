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

// The sum of squared distances from the mean, kept together with the mean and the number of elements.

/// Adds an element: Welford (1962), "Note on a method for calculating corrected sums of squares and products".
inline void add_deviation(thread float& squares, thread float& mean, thread float& count, float x) {
  count += 1.0f;
  const float distance = x - mean;
  mean += distance / count;
  squares += distance * (x - mean);
}

/// Adds what is known of other elements: Chan, Golub and LeVeque (1979), "Updating formulae and a pairwise algorithm
/// for computing sample variances".
inline void merge_deviations(thread float& squares, thread float& mean, thread float& count, float other_squares,
                             float other_mean, float other_count) {
  if (other_count == 0.0f) return;
  const float share = other_count / (count + other_count);
  const float distance = other_mean - mean;
  squares += other_squares + distance * distance * (count * share);
  mean += distance * share;
  count += other_count;
}

/// Both lanes of a pair merge what the upper one knows into what the lower one does: they get the same bits.
inline void merge_lanes(thread float& squares, thread float& mean, thread float& count, uint lane_id, uint step) {
  const float other_squares = lane_xor(squares, step);
  const float other_mean = lane_xor(mean, step);
  const float other_count = lane_xor(count, step);
  if ((lane_id & step) == 0u) {
    merge_deviations(squares, mean, count, other_squares, other_mean, other_count);
    return;
  }
  const float own_squares = squares;
  const float own_mean = mean;
  const float own_count = count;
  squares = other_squares;
  mean = other_mean;
  count = other_count;
  merge_deviations(squares, mean, count, own_squares, own_mean, own_count);
}
