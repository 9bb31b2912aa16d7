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

/// x at what entry i names: the element at `position` of the result. T only says how many bytes an element has.
template <class T, class Index>
void take_element(device const T* x, device T* result, constant TakeValues& values, long at, bool inside, Index i,
                  Index j) {
  const long to = locate(values.to, i) + locate(values.to_piece, j);
  result[to] = inside ? x[at + locate(values.piece, j)] : T(0);
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
/// that all entries of a place are neighbours: the thread of a place's first entry adds up all of them in that order, or
/// the thread of the last one writes it. A thread an (entry, element of a piece); `position` is the thread's.
template <class T, class K, bool ACCUMULATES>
void put_pieces(device const uint* order, device const K* keys, device const T* x, device T* result,
                constant PutValues& values, ulong position) {
  typedef typename SumOf<T>::type Sum;
  const ulong entry = position / values.piece_size;
  if (entry >= values.count) return;
  const uint j = uint(position - entry * values.piece_size);
  const long place = long(keys[locate(values.keys, order[entry])]);
  if (place < 0 || place >= long(values.place_count)) return;
  const ulong neighbour = ACCUMULATES ? entry - 1 : entry + 1;
  const bool has_neighbour = ACCUMULATES ? entry > 0 : neighbour < values.count;
  if (has_neighbour && long(keys[locate(values.keys, order[neighbour])]) == place) return;
  const long to = locate(values.places, ulong(place)) + locate(values.piece, j);
  const long from = locate(values.from_piece, j);
  if constexpr (ACCUMULATES) {
    Sum sum = read_element<Sum>(result, to);
    for (ulong next = entry; next < values.count; ++next) {
      const uint i = order[next];
      if (long(keys[locate(values.keys, i)]) != place) break;
      sum += read_element<Sum>(x, locate(values.from, i) + from);
    }
    write_element(result, to, sum);
  } else {
    result[to] = x[locate(values.from, order[entry]) + from];
  }
}
