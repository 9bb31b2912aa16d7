// needs: element.metal
// Running sums and products along an axis.

struct ScanValues {
  Axes lines;         // of the tensor, without the axis
  Axes result_lines;  // of the result
  long stride, result_stride;
  ulong line_count;
  uint length, unused;
};

struct Sums {
  template <class T>
  static T start() {
    return T(0);
  }
  template <class T>
  static T combine(T a, T b) {
    return a + b;
  }
};

struct Products {
  template <class T>
  static T start() {
    return T(1);
  }
  template <class T>
  static T combine(T a, T b) {
    return a * b;
  }
};

/// A line a thread.
template <class Kind, class T, class R>
void scan_lines(device const T* x, device R* result, constant ScanValues& values, ulong line) {
  typedef typename SumOf<R>::type Sum;
  if (line >= values.line_count) return;
  long from = locate(values.lines, line);
  long to = locate(values.result_lines, line);
  Sum sum = Kind::template start<Sum>();
  for (uint i = 0; i < values.length; ++i) {
    sum = Kind::combine(sum, read_element<Sum>(x, from));
    write_element(result, to, sum);
    from += values.stride;
    to += values.result_stride;
  }
}

/// A line a threadgroup of THREADS, four elements a thread at a time. `totals`: THREADS sums.
template <class Kind, class T, class R, uint THREADS>
void scan_line(device const T* x, device R* result, constant ScanValues& values,
               threadgroup typename SumOf<R>::type* totals, uint line, uint thread_id) {
  typedef typename SumOf<R>::type Sum;
  const long from = locate(values.lines, line);
  const long to = locate(values.result_lines, line);
  Sum carry = Kind::template start<Sum>();
  for (uint first = 0; first < values.length; first += 4 * THREADS) {
    const uint begin = first + 4 * thread_id;
    Sum sums[4];
    Sum sum = Kind::template start<Sum>();
    for (uint i = 0; i < 4; ++i) {
      if (begin + i < values.length) {
        sum = Kind::combine(sum, read_element<Sum>(x, from + long(begin + i) * values.stride));
      }
      sums[i] = sum;
    }
    totals[thread_id] = sum;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint distance = 1; distance < THREADS; distance *= 2) {
      const Sum before = thread_id >= distance ? totals[thread_id - distance] : Kind::template start<Sum>();
      threadgroup_barrier(mem_flags::mem_threadgroup);
      totals[thread_id] = Kind::combine(before, totals[thread_id]);
      threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    const Sum before = thread_id > 0 ? Kind::combine(carry, totals[thread_id - 1]) : carry;
    carry = Kind::combine(carry, totals[THREADS - 1]);
    for (uint i = 0; i < 4; ++i) {
      if (begin + i < values.length) {
        write_element(result, to + long(begin + i) * values.result_stride, Kind::combine(before, sums[i]));
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
}
