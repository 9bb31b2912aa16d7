// Elements of tensors: the types in which they are added up and compared, reading and writing, and where they lie.

/// The type in which elements of T are added up. Integers wrap around, so they are added without sign.
template <class T>
struct SumOf {
  typedef ulong type;
};
template <>
struct SumOf<half> {
  typedef float type;
};
template <>
struct SumOf<bfloat> {
  typedef float type;
};
template <>
struct SumOf<float> {
  typedef float type;
};

/// The type in which elements of T are compared.
template <class T>
struct KeyOf {
  typedef long type;
};
template <>
struct KeyOf<half> {
  typedef float type;
};
template <>
struct KeyOf<bfloat> {
  typedef float type;
};
template <>
struct KeyOf<float> {
  typedef float type;
};

template <class S, class T>
S read_element(device const T* data, long at) {
  return S(data[at]);
}

template <class T, class S>
void write_element(device T* data, long at, S value) {
  data[at] = T(value);
}

/// Two neighbours as they are stored, of a floating type: bits that move as one.
template <class T>
struct PairOf {
  typedef uint type;
};
template <>
struct PairOf<float> {
  typedef float2 type;
};

inline uint pair_of(half x, half y) { return as_type<uint>(make_half2(x, y)); }
inline uint pair_of(bfloat x, bfloat y) { return as_type<uint>(make_bfloat2(x, y)); }
inline float2 pair_of(float x, float y) { return make_float2(x, y); }

// The values of a pair of the first argument's type.
inline float2 floats_of(half, uint pair) { return make_float2(as_type<half2>(pair)); }
inline float2 floats_of(bfloat, uint pair) {
  const bfloat2 both = as_type<bfloat2>(pair);
  return make_float2(both);
}
inline float2 floats_of(float, float2 pair) { return pair; }

inline void write_pair(device half* data, long at, float2 pair) {
  *(device half2*)(data + at) = make_half2(pair);
}
inline void write_pair(device bfloat* data, long at, float2 pair) {
  *(device bfloat2*)(data + at) = make_bfloat2(pair);
}
inline void write_pair(device float* data, long at, float2 pair) { *(device float2*)(data + at) = pair; }

// Four neighbours, at a multiple of four.
inline float4 read_four(device const half* data, long at) {
  const half4 four = *(device const half4*)(data + at);
  return make_float4(four);
}
inline float4 read_four(device const bfloat* data, long at) {
  const bfloat4 four = *(device const bfloat4*)(data + at);
  return make_float4(four);
}
inline float4 read_four(device const float* data, long at) { return *(device const float4*)(data + at); }
inline void write_four(device half* data, long at, float4 four) { *(device half4*)(data + at) = make_half4(four); }
inline void write_four(device bfloat* data, long at, float4 four) {
  *(device bfloat4*)(data + at) = make_bfloat4(four);
}
inline void write_four(device float* data, long at, float4 four) { *(device float4*)(data + at) = four; }

inline float multiply_add(float a, float b, float sum) { return fma(a, b, sum); }
inline ulong multiply_add(ulong a, ulong b, ulong sum) { return a * b + sum; }

/// Whether `a` exceeds `b` when NaN counts as larger than all.
inline bool exceeds(float a, float b) { return a > b || (a != a && b == b); }
inline bool exceeds(long a, long b) { return a > b; }

/// Axes of a strided array, `rank` of them, in row-major order.
struct Axes {
  long strides[8];
  long start;  // where the first element lies
  uint sizes[8];
  uint rank;
  uint unused;
};

/// Where the element at a row-major position lies. Index is uint where positions fit it, else ulong.
template <class Index>
long locate(constant Axes& axes, Index position) {
  long at = axes.start;
  for (uint axis = axes.rank; axis-- > 1;) {
    const Index size = axes.sizes[axis];
    const Index rest = position / size;
    at += long(position - rest * size) * axes.strides[axis];
    position = rest;
  }
  return axes.rank > 0 ? at + long(position) * axes.strides[0] : at;
}
