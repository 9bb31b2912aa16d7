// needs: element.metal
// Sources give the elements of what a contraction or a pool reads: `start` adds to where they begin, `at` gives an
// element by its offset, to be added up, `pair` it and its neighbour, `key` to be compared. Prologues are sources that a
// kernel's own text declares. Some store what they compute for others to read, where `store_elements` says that no other threadgroup does.

/// Elements as they lie in memory. PAIRED: every pair that is asked for begins at an even place.
template <class T, class Offset, bool PAIRED = false>
struct Memory {
  typedef typename SumOf<T>::type Sum;
  typedef typename KeyOf<T>::type Key;
  device const T* data;

  void store_elements(bool) {}
  void start(long offset) { data += offset; }
  Sum at(Offset offset) const { return read_element<Sum>(data, long(offset)); }
  float2 pair(Offset offset) const {
    if constexpr (PAIRED) {
      return read_pair(data, long(offset));
    } else {
      return make_float2(at(offset), at(offset + Offset(1)));
    }
  }
  Key key(Offset offset) const { return read_element<Key>(data, long(offset)); }
};
