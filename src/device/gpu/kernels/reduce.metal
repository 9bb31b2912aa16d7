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
