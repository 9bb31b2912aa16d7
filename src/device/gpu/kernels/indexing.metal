// needs: element.metal
// Rows by index. An index that is out of range reads a row of zeros, and writes nothing; the smallest number of such an
// index goes to `stray`.

struct IndexValues {
  Axes row;     // of a row of the array
  Axes lead;    // of the index, and of the rows that go along with it: strides in those rows
  Axes index;   // of the index
  Axes along;   // of a row that goes along with the index
  Axes base;    // of a row of the array that is copied first (put)
  long row_stride, base_stride;  // from row to row
  ulong count;                   // entries of the index
  ulong row_size, rows;
};

inline void note_stray(device atomic_uint* stray, ulong entry) {
  atomic_fetch_min_explicit(stray, uint(min(entry, ulong(0xfffffffeu))), memory_order_relaxed);
}

/// x[index[i]]: the element at `position` of the result. T only says how many bytes an element has, or several that lie
/// together.
template <class T, class I, class Index>
void take_rows(device const T* x, device const I* index, device T* result, device atomic_uint* stray,
               constant IndexValues& values, ulong position) {
  const Index i = Index(position) / Index(values.row_size);
  if (position >= values.count * values.row_size) return;
  const Index j = Index(position) - i * Index(values.row_size);
  const long row = long(index[locate(values.index, i)]);
  const bool inside = row >= 0 && row < long(values.rows);
  const long to = locate(values.lead, i) + locate(values.along, j);
  if (inside) {
    result[to] = x[row * values.row_stride + locate(values.row, j)];
  } else {
    result[to] = T(0);
    if (j == 0) note_stray(stray, i);
  }
}

/// Copies the array that rows are put into.
template <class T, class Index>
void copy_rows(device const T* base, device T* result, constant IndexValues& values, ulong position) {
  if (position >= values.rows * values.row_size) return;
  const Index row = Index(position) / Index(values.row_size);
  const Index j = Index(position) - row * Index(values.row_size);
  result[long(row) * values.row_stride + locate(values.row, j)] =
      base[long(row) * values.base_stride + locate(values.base, j)];
}

/// The index in one line.
template <class I>
void copy_index(device const I* index, device long* result, constant IndexValues& values, ulong position) {
  if (position < values.count) result[position] = long(index[locate(values.index, position)]);
}

/// The row that an entry of the index names.
template <class I>
long row_of(device const I* index, constant IndexValues& values, uint entry) {
  return long(index[locate(values.index, entry)]);
}

/// Puts rows where the index says. `order` sorts the index, equal entries in their order, so that all entries of a row
/// are neighbours: the thread of a row's first entry adds up all of them in that order, or the thread of the last one
/// writes it. A thread an (entry, element of a row); `position` is the thread's.
template <class T, class I, bool ACCUMULATES>
void put_rows(device const uint* order, device const I* index, device const T* x, device T* result,
              device atomic_uint* stray, constant IndexValues& values, ulong position) {
  typedef typename SumOf<T>::type Sum;
  const ulong entry = position / values.row_size;
  if (entry >= values.count) return;
  const uint j = uint(position - entry * values.row_size);
  const long row = row_of(index, values, order[entry]);
  if (row < 0 || row >= long(values.rows)) {
    if (j == 0) note_stray(stray, order[entry]);
    return;
  }
  const ulong neighbour = ACCUMULATES ? entry - 1 : entry + 1;
  const bool has_neighbour = ACCUMULATES ? entry > 0 : neighbour < values.count;
  if (has_neighbour && row_of(index, values, order[neighbour]) == row) return;
  const long to = row * values.row_stride + locate(values.row, j);
  const long along = locate(values.along, j);
  if constexpr (ACCUMULATES) {
    Sum sum = read_element<Sum>(result, to);
    for (ulong next = entry; next < values.count; ++next) {
      const uint i = order[next];
      if (row_of(index, values, i) != row) break;
      sum += read_element<Sum>(x, locate(values.lead, i) + along);
    }
    write_element(result, to, sum);
  } else {
    result[to] = x[locate(values.lead, order[entry]) + along];
  }
}
