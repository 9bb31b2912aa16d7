// Random numbers by position: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011), the
// same bits as on every device.

/// The four words of counter (block, offset) under key `seed`.
inline uint4 philox(ulong seed, ulong offset, ulong block) {
  uint a = uint(block);
  uint b = uint(block >> 32ul);
  uint c = uint(offset);
  uint d = uint(offset >> 32ul);
  uint key0 = uint(seed);
  uint key1 = uint(seed >> 32ul);
  for (uint round = 0u; round < 10u; ++round) {
    const uint high0 = mulhi(0xD2511F53u, a);
    const uint low0 = 0xD2511F53u * a;
    const uint high1 = mulhi(0xCD9E8D57u, c);
    const uint low1 = 0xCD9E8D57u * c;
    a = high1 ^ b ^ key0;
    b = low1;
    c = high0 ^ d ^ key1;
    d = low0;
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return make_uint4(a, b, c, d);
}

/// Words 2 * (position % 2) and the next of block position / 2.
inline uint2 random_pair(ulong seed, ulong offset, ulong position) {
  const uint4 words = philox(seed, offset, position >> 1ul);
  return (position & 1ul) != 0ul ? make_uint2(words.z, words.w) : make_uint2(words.x, words.y);
}

/// In [0, 1): the upper 24 bits.
inline float uniform_of(uint word) { return float(word >> 8u) * 5.9604644775390625e-8f; }

inline float uniform_at(ulong seed, ulong offset, ulong position) {
  const uint4 words = philox(seed, offset, position >> 2ul);
  const uint which = uint(position) & 3u;
  const uint low = which == 0u ? words.x : words.y;
  const uint high = which == 2u ? words.z : words.w;
  return uniform_of(which < 2u ? low : high);
}

inline long random_bits_at(ulong seed, ulong offset, ulong position) {
  const uint2 words = random_pair(seed, offset, position);
  return long(((ulong(words.x) << 32ul) | ulong(words.y)) >> 1ul);
}

/// -log(n / 2^24) for n in [1, 2^24], within 1 ulp: n = m * 2^e with m in [0.70, 1.41), log m by atanh's series on
/// z = (m - 1) / (m + 1), whose leading terms are carried in two floats.
inline float minus_log_of(uint n) {
  int e = 31 - int(clz(n));
  float m = ldexp(float(n), -e);
  if (m > 1.41421354f) {
    m *= 0.5f;
    e += 1;
  }
  const float k = float(e - 24);
  const float f = m - 1.0f;        // exact
  const float g = m + 1.0f;        // rounded: its rest is g_low
  const float g_low = (1.0f - (g - m)) + 0.0f;
  const float z = f / g;
  const float z_low = fma(-z, g, f);            // f - z g, exact
  const float z_rest = fma(-z, g_low, z_low) / g;  // so z + z_rest is f / (g + g_low)
  const float s = z * z;
  float r = 0.117f;
  r = fma(r, s, 0.14285715f);
  r = fma(r, s, 0.2f);
  r = fma(r, s, 0.33333334f);
  // log m = 2 z + 2 z_rest + 2 z s r
  const float small = fma(2.0f * z * s, r, 2.0f * z_rest);
  const float big = k * 0.693145751953125f;      // exact: the high bits of log 2
  const float rest = fma(k, 1.42860682e-6f, small);
  const float sum = big + 2.0f * z;
  const float lost = (big - sum) + 2.0f * z;     // |big| >= |2 z| or big is 0
  return -(sum + (lost + rest));
}

/// cos(2 pi n / 2^24), within 1 ulp: the angle is reduced exactly, in integers, to an eighth of a turn.
inline float cos_of_turn(uint n) {
  uint a = n & 0xffffffu;
  if (a > 0x800000u) a = 0x1000000u - a;  // cos is even: [0, 1/2]
  const bool negative = a > 0x400000u;
  if (negative) a = 0x800000u - a;        // [0, 1/4]
  float result;
  if (a <= 0x200000u) {
    const float t = float(a) * 5.9604644775390625e-8f;  // turns, at most 1/8, exact
    const float x = t * 6.2831855f;
    const float x_low = fma(t, 6.2831855f, -x) + t * -1.7484555e-7f;
    const float s = x * x;
    float r = 2.4433157e-5f;
    r = fma(r, s, -1.3887316e-3f);
    r = fma(r, s, 4.1666645e-2f);
    const float half_square = 0.5f * s;
    const float square_low = fma(x, x, -s) * 0.5f + x * x_low;
    const float w = 1.0f - half_square;
    result = w + (((1.0f - w) - half_square) + (s * s * r - square_low));
  } else {
    const float t = float(0x400000u - a) * 5.9604644775390625e-8f;  // sin of the rest of the quarter
    const float x = t * 6.2831855f;
    const float x_low = fma(t, 6.2831855f, -x) + t * -1.7484555e-7f;
    const float s = x * x;
    float r = 2.7183114e-6f;
    r = fma(r, s, -1.9839335e-4f);
    r = fma(r, s, 8.3333293e-3f);
    r = fma(r, s, -1.6666667e-1f);
    result = x + (x * s * r + x_low);
  }
  return negative ? -result : result;
}

/// Box and Muller (1958): u1 in (0, 1] and u2 in [0, 1) are the upper 24 bits of two words.
inline float normal_at(ulong seed, ulong offset, ulong position) {
  const uint2 words = random_pair(seed, offset, position);
  const float radius = precise::sqrt(2.0f * minus_log_of((words.x >> 8u) + 1u));
  return radius * cos_of_turn(words.y >> 8u);
}
