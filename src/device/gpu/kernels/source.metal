// needs: element.metal
// Sources give the elements of what a contraction or a pool reads: `start` adds to where they begin, `at` gives an
// element by its offset, to be added up, `pair` it and its neighbour as they are stored (`floats`: their
// values), `key` to be compared. Prologues are sources that a kernel's own text declares. Some store what they compute for others
// to read, where `store_elements` says that no other threadgroup does.

/// Elements as they lie in memory.
template <class T, class Offset>
struct Memory {
  typedef typename SumOf<T>::type Sum;
  typedef typename KeyOf<T>::type Key;
  device const T* data;

  void store_elements(bool) {}
  void start(long offset) { data += offset; }
  Sum at(Offset offset) const { return read_element<Sum>(data, long(offset)); }
  Key key(Offset offset) const { return read_element<Key>(data, long(offset)); }
};

/// The same of floating types, in pairs. ALIGNED: each begins at an even place.
template <class T, class Offset, bool ALIGNED>
struct PairedMemory : Memory<T, Offset> {
  typedef typename PairOf<T>::type Pair;

  Pair pair(Offset offset) const {
    device const T* const first = this->data + offset;
    if constexpr (ALIGNED) return *(device const Pair*)first;
    return pair_of(first[0], first[1]);
  }
  Pair no_pair() const { return pair_of(T(0.0f), T(0.0f)); }
  float2 floats(Pair pair) const { return floats_of(T(0.0f), pair); }
};
