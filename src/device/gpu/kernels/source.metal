// needs: element.metal
// Sources give the elements of what a contraction or a pool reads: `start` adds to where they begin, `at` gives an
// element by its offset, to be added up, `pair` it and its neighbour as they are stored (`floats`: their
// values), `key` to be compared. Prologues are sources that a kernel's own text declares. Some store what they compute for others
// to read, where `store_elements` says that no other threadgroup does.

/// Elements as they lie in memory. ALIGNED: every pair that is asked for begins at an even place.
template <class T, class Offset, bool ALIGNED = false>
struct Memory {
  typedef T Element;
  typedef typename SumOf<T>::type Sum;
  typedef typename KeyOf<T>::type Key;
  typedef typename PairOf<T>::type Pair;
  device const T* data;

  void store_elements(bool) {}
  void start(long offset) { data += offset; }
  Sum at(Offset offset) const { return read_element<Sum>(data, long(offset)); }
  Pair pair(Offset offset) const {
    if constexpr (ALIGNED) return *(device const Pair*)(data + offset);
    return pair_of(data[offset], data[offset + Offset(1)]);
  }
  Pair no_pair() const { return pair_of(T(0.0f), T(0.0f)); }
  float2 floats(Pair pair) const { return floats_of(T(0.0f), pair); }
  Key key(Offset offset) const { return read_element<Key>(data, long(offset)); }
};
