// needs: element.metal
// Indices that sort lines of a tensor: blocks are sorted in threadgroup memory, then merged in pairs, each element
// finding its place in the other block by halving. Position decides between equal elements, so that any way of sorting
// gives the same order. NaN counts as largest. Where only the first places of the order are wanted, no block keeps more.

struct SortValues {
  Axes lines;         // of the tensor, without the axis that is sorted
  Axes result_lines;  // of the result
  long stride, result_stride;  // along the sorted axis
  ulong line_count;
  uint length, width;  // of a line; of the blocks that are merged
  uint blocks;         // of a line
  uint wanted;         // places of the order
  uint descending, unused;
};

template <class Key>
bool precedes(Key a, uint a_position, Key b, uint b_position, bool descending) {
  const bool above = descending ? exceeds(a, b) : exceeds(b, a);
  const bool below = descending ? exceeds(b, a) : exceeds(a, b);
  return above || (!below && a_position < b_position);
}

/// Sorts blocks of 2 * THREADS elements, one a threadgroup. `keys` and `positions`: 2 * THREADS each. Positions beyond
/// the line's end come last.
template <class T, class R, uint THREADS>
void sort_block(device const T* x, device R* result, constant SortValues& values,
                threadgroup typename KeyOf<T>::type* keys, threadgroup uint* positions, uint group, uint thread_id) {
  typedef typename KeyOf<T>::type Key;
  const uint line = group / values.blocks;
  const uint first = (group - line * values.blocks) * (2 * THREADS);
  const long from = locate(values.lines, line);
  const bool descending = values.descending != 0;
  for (uint i = thread_id; i < 2 * THREADS; i += THREADS) {
    const uint at = first + i;
    keys[i] = at < values.length ? read_element<Key>(x, from + long(at) * values.stride) : Key(0);
    positions[i] = at < values.length ? at : 0xffffffffu;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint size = 2; size <= 2 * THREADS; size *= 2) {
    for (uint distance = size / 2; distance > 0; distance /= 2) {
      const uint low = thread_id / distance * (2 * distance) + thread_id % distance;
      const uint high = low + distance;
      const bool rising = (low & size) == 0 || size == 2 * THREADS;
      const uint a = positions[low];
      const uint b = positions[high];
      const bool ordered = b == 0xffffffffu || (a != 0xffffffffu && precedes(keys[low], a, keys[high], b, descending));
      if (ordered != rising) {
        const Key key = keys[low];
        keys[low] = keys[high];
        keys[high] = key;
        positions[low] = b;
        positions[high] = a;
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);
    }
  }
  const long to = locate(values.result_lines, line);
  for (uint i = thread_id; i < 2 * THREADS; i += THREADS) {
    const uint at = first + i;
    if (at < values.length && i < values.wanted) result[to + long(at) * values.result_stride] = R(positions[i]);
  }
}

/// Merges sorted blocks of `width` in pairs. `sorted`: [line, length]. An element that a block has kept a thread.
template <class T, class R>
void merge_blocks(device const T* x, device const uint* sorted, device R* result, constant SortValues& values,
                  ulong thread_position) {
  typedef typename KeyOf<T>::type Key;
  const uint kept = min(values.width, values.wanted);
  const uint blocks = (values.length - 1u) / values.width + 1u;
  const ulong block_number = thread_position / kept;
  const ulong line = block_number / blocks;
  if (line >= values.line_count) return;
  const uint block = uint(block_number - line * blocks);
  const uint offset = uint(thread_position - block_number * kept);
  const uint at = block * values.width + offset;
  if (at >= values.length) return;
  const bool descending = values.descending != 0;
  const long from = locate(values.lines, line);
  device const uint* const order = sorted + line * values.length;
  const uint position = order[at];
  const Key key = read_element<Key>(x, from + long(position) * values.stride);
  // How many elements of the other block come before this one.
  const uint pair = block / 2u * (2u * values.width);
  const uint other = min(block % 2u == 0u ? pair + values.width : pair, values.length);
  uint low = other;
  uint high = min(other + kept, values.length);
  while (low < high) {
    const uint half_way = low + (high - low) / 2;
    const uint candidate = order[half_way];
    if (precedes(read_element<Key>(x, from + long(candidate) * values.stride), candidate, key, position, descending)) {
      low = half_way + 1;
    } else {
      high = half_way;
    }
  }
  const uint rank = offset + (low - other);
  if (rank < values.wanted) {
    result[locate(values.result_lines, line) + long(pair + rank) * values.result_stride] = R(position);
  }
}
