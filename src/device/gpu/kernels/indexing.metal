// needs: element.metal
// Elements, or sub-arrays ("pieces"), of an array by index: an entry of the index names a piece by its place along the
// array's first axes, some of which index tensors give. Whoever launches this has checked the indices. One that names
// nothing all the same takes zeros, and puts nothing: no memory outside is touched.

/// An axis of the array whose positions an index tensor gives.
struct IndexedAxis {
  Axes index;  // from an entry to the tensor's element
  long size;
  long step;  // from position to position, in what is added up
};

/// Adds what an entry names on an axis. Returns whether it names anything.
template <class I>
bool add_position(thread long& sum, device const I* index, constant IndexedAxis& axis, ulong entry, bool from_end) {
  long position = long(index[locate(axis.index, entry)]);
  if (from_end && position < 0) position += axis.size;
  sum += position * axis.step;
  return position >= 0 && position < axis.size;
}

struct TakeValues {
  Axes along;     // what an entry's own place adds in the array
  Axes to;        // from an entry to its piece of the result
  Axes piece;     // from an element of a piece to where it lies in the array's
  Axes to_piece;  // and in the result's
  ulong count;    // entries of the index
  ulong piece_size;
};

/// A thread takes so many elements of a piece, as far from each other as there are threads for it: their addresses are
/// found once, and their loads do not wait for each other.
enum : uint { elements_at_once = 4 };

template <class Index>
Index threads_of_piece(ulong piece_size) {
  return (Index(piece_size) + Index(elements_at_once - 1)) / Index(elements_at_once);
}

/// x at what entry i names: elements `first`, first + `threads`, ... of its piece. T only says how many bytes an element
/// has.
template <class T, class Index>
void take_elements(device const T* x, device T* result, constant TakeValues& values, long at, bool inside, Index i,
                   Index first, Index threads) {
  T elements[elements_at_once];
  UNROLL for (uint k = 0u; k < elements_at_once; ++k) {
    const Index j = first + Index(k) * threads;
    elements[k] = inside && ulong(j) < values.piece_size ? x[at + locate(values.piece, j)] : T(0);
  }
  const long to = locate(values.to, i);
  UNROLL for (uint k = 0u; k < elements_at_once; ++k) {
    const Index j = first + Index(k) * threads;
    if (ulong(j) < values.piece_size) result[to + locate(values.to_piece, j)] = elements[k];
  }
}

struct KeyValues {
  Axes along;   // what an entry's own place adds to the number of a place
  ulong count;  // entries of the index
};

struct PutValues {
  Axes places;       // from the number of a place to the piece that lies there
  Axes piece;        // from an element of a piece to where it lies
  Axes base_places;  // the same of the array that is copied first
  Axes base_piece;
  Axes from;        // from an entry to its piece of the values
  Axes from_piece;  // from an element of a piece to where it lies in the values'
  Axes keys;        // from an entry to its key
  ulong count;      // entries of the index
  ulong piece_size, place_count;
};

/// Copies the array that pieces are put into.
template <class T, class Index>
void copy_pieces(device const T* base, device T* result, constant PutValues& values, ulong position) {
  if (position >= values.place_count * values.piece_size) return;
  const Index place = Index(position) / Index(values.piece_size);
  const Index j = Index(position) - place * Index(values.piece_size);
  result[locate(values.places, place) + locate(values.piece, j)] =
      base[locate(values.base_places, place) + locate(values.base_piece, j)];
}

/// Puts pieces where the keys say: numbers of places, one an entry. `order` sorts them, equal ones in their order, so
/// that all entries of a place are neighbours: the threads of a place's first entry add up all of them in that order, or
/// those of the last one write it. `position` is the thread's, of threads_of_piece() for each entry.
template <class T, class K, bool ACCUMULATES>
void put_pieces(device const uint* order, device const K* keys, device const T* x, device T* result,
                constant PutValues& values, ulong position) {
  typedef typename SumOf<T>::type Sum;
  const ulong threads = threads_of_piece<ulong>(values.piece_size);
  const ulong entry = position / threads;
  if (entry >= values.count) return;
  const ulong first = position - entry * threads;
  const long place = long(keys[locate(values.keys, order[entry])]);
  if (place < 0 || place >= long(values.place_count)) return;
  const ulong neighbour = ACCUMULATES ? entry - 1 : entry + 1;
  const bool has_neighbour = ACCUMULATES ? entry > 0 : neighbour < values.count;
  if (has_neighbour && long(keys[locate(values.keys, order[neighbour])]) == place) return;
  const long to = locate(values.places, ulong(place));
  const uint count = uint((values.piece_size - first + threads - 1ul) / threads);  // of the thread's elements
  long to_element[elements_at_once];
  long from_element[elements_at_once];
  UNROLL for (uint k = 0u; k < elements_at_once; ++k) {
    const ulong j = first + ulong(k) * threads;
    const uint own = uint(k < count ? j : first);
    to_element[k] = to + locate(values.piece, own);
    from_element[k] = locate(values.from_piece, own);
  }
  if constexpr (ACCUMULATES) {
    Sum sums[elements_at_once];
    UNROLL for (uint k = 0u; k < elements_at_once; ++k) {
      sums[k] = k < count ? read_element<Sum>(result, to_element[k]) : Sum(0);
    }
    for (ulong next = entry; next < values.count; ++next) {
      const uint i = order[next];
      if (long(keys[locate(values.keys, i)]) != place) break;
      const long from = locate(values.from, i);
      UNROLL for (uint k = 0u; k < elements_at_once; ++k) sums[k] += read_element<Sum>(x, from + from_element[k]);
    }
    UNROLL for (uint k = 0u; k < elements_at_once; ++k) {
      if (k < count) write_element(result, to_element[k], sums[k]);
    }
  } else {
    const long from = locate(values.from, order[entry]);
    for (uint k = 0u; k < count; ++k) result[to_element[k]] = x[from + from_element[k]];
  }
}
