// needs: element.metal
// needs: source.metal
// Pooling: sums over windows, and what lies at the first maximum of a window; both with their transposes. An element of
// the result a thread. "large" is what windows move over, "small" has an element for each window.

/// Axes: batch, channels, height, width.
struct PoolValues {
  long large_start, small_start, value_start;  // where the first elements lie
  long large_strides[4], small_strides[4], value_strides[4];
  uint large_sizes[4], small_sizes[4];
  int window[2], stride[2], padding[2], dilation[2];
  uint channels_last;  // in which order threads go through the result
  uint unused;
};

struct Pixel {
  uint image, channel;
  int y, x;
  bool inside;
};

/// Takes the position along the innermost of axes off, of `size` elements. GPUs divide 32 bits much faster than 64.
inline ulong take_axis(ulong position, uint size, thread uint& along) {
  if ((position >> 32u) == 0ul) {
    const uint low = uint(position);
    const uint rest = low / size;
    along = low - rest * size;
    return rest;
  }
  const ulong rest = position / size;
  along = uint(position - rest * size);
  return rest;
}

/// The element of an array of `sizes` that the thread at `position` of the grid computes.
inline void find_pixel(thread Pixel& pixel, constant uint* sizes, bool channels_last, ulong position) {
  const uint inner = channels_last ? sizes[1] : sizes[3];
  const uint middle = channels_last ? sizes[3] : sizes[2];
  const uint outer = channels_last ? sizes[2] : sizes[1];
  uint first, second, third;
  const ulong line = take_axis(position, inner, first);
  const ulong plane = take_axis(line, middle, second);
  const ulong image = take_axis(plane, outer, third);
  pixel.inside = image < sizes[0];
  pixel.image = uint(image);
  pixel.channel = channels_last ? first : third;
  pixel.y = int(channels_last ? third : second);
  pixel.x = int(channels_last ? second : first);
}

inline long plane_offset(long start, constant long* strides, thread const Pixel& pixel) {
  return start + long(pixel.image) * strides[0] + long(pixel.channel) * strides[1];
}
inline long pixel_offset(long start, constant long* strides, thread const Pixel& pixel) {
  return plane_offset(start, strides, pixel) + long(pixel.y) * strides[2] + long(pixel.x) * strides[3];
}

/// Stores results in their tensor. Epilogues are visitors too, which a kernel's own text declares.
template <class T>
struct StorePixel {
  device T* small;
  constant PoolValues* values;

  void visit(thread const Pixel& pixel, typename SumOf<T>::type sum) const {
    write_element(small, pixel_offset(values->small_start, values->small_strides, pixel), sum);
  }
};

/// Gives the visitor the sum over each window of `large`.
template <class T, class Visitor>
void sum_pool(device const T* large, thread Visitor& visitor, constant PoolValues& values, ulong position) {
  typedef typename SumOf<T>::type Sum;
  Pixel pixel;
  find_pixel(pixel, values.small_sizes, values.channels_last != 0, position);
  if (!pixel.inside) return;
  const long plane = plane_offset(values.large_start, values.large_strides, pixel);
  const int top = pixel.y * values.stride[0] - values.padding[0];
  const int left = pixel.x * values.stride[1] - values.padding[1];
  Sum sum = 0;
  for (int i = 0; i < values.window[0]; ++i) {
    const int y = top + i * values.dilation[0];
    if (y < 0 || y >= int(values.large_sizes[2])) continue;
    for (int j = 0; j < values.window[1]; ++j) {
      const int x = left + j * values.dilation[1];
      if (x < 0 || x >= int(values.large_sizes[3])) continue;
      sum += read_element<Sum>(large, plane + long(y) * values.large_strides[2] + long(x) * values.large_strides[3]);
    }
  }
  visitor.visit(pixel, sum);
}

/// The window whose tap `i` reads position `at` along an axis, or -1.
inline int window_of(int at, int i, int padding, int dilation, int stride, uint windows) {
  const int shifted = at + padding - i * dilation;
  if (shifted < 0) return -1;
  const int window = shifted / stride;
  return window * stride == shifted && window < int(windows) ? window : -1;
}

/// Adds each element of `small` to all positions of its window.
template <class T>
void sum_unpool(device const T* small, device T* large, constant PoolValues& values, ulong position) {
  typedef typename SumOf<T>::type Sum;
  Pixel pixel;
  find_pixel(pixel, values.large_sizes, values.channels_last != 0, position);
  if (!pixel.inside) return;
  const long plane = plane_offset(values.small_start, values.small_strides, pixel);
  Sum sum = 0;
  // From the last tap to the first: windows in their order.
  for (int i = values.window[0]; i-- > 0;) {
    const int y = window_of(pixel.y, i, values.padding[0], values.dilation[0], values.stride[0], values.small_sizes[2]);
    if (y < 0) continue;
    for (int j = values.window[1]; j-- > 0;) {
      const int x =
          window_of(pixel.x, j, values.padding[1], values.dilation[1], values.stride[1], values.small_sizes[3]);
      if (x < 0) continue;
      sum += read_element<Sum>(small, plane + long(y) * values.small_strides[2] + long(x) * values.small_strides[3]);
    }
  }
  write_element(large, pixel_offset(values.large_start, values.large_strides, pixel), sum);
}

/// The tap of the first maximum of the window at (window_y, window_x), NaN counting as largest; -1 if it holds padding
/// alone. Taps count row by row.
template <class Source>
int first_maximum(thread const Source& large, long plane, int window_y, int window_x, constant PoolValues& values) {
  typedef typename Source::Key Key;
  const int top = window_y * values.stride[0] - values.padding[0];
  const int left = window_x * values.stride[1] - values.padding[1];
  int best = -1;
  Key largest = 0;
  for (int i = 0; i < values.window[0]; ++i) {
    const int y = top + i * values.dilation[0];
    if (y < 0 || y >= int(values.large_sizes[2])) continue;
    for (int j = 0; j < values.window[1]; ++j) {
      const int x = left + j * values.dilation[1];
      if (x < 0 || x >= int(values.large_sizes[3])) continue;
      const Key key = large.key(plane + long(y) * values.large_strides[2] + long(x) * values.large_strides[3]);
      if (best >= 0 && !exceeds(key, largest)) continue;
      best = i * values.window[1] + j;
      largest = key;
    }
  }
  return best;
}

/// What `chosen` holds where `large` has the first maximum of each window; 0 for windows of padding alone.
template <class Large, class Chosen, class U>
void max_pool(thread const Large& large, thread const Chosen& chosen, device U* small, constant PoolValues& values,
              ulong position) {
  Pixel pixel;
  find_pixel(pixel, values.small_sizes, values.channels_last != 0, position);
  if (!pixel.inside) return;
  const long to = pixel_offset(values.small_start, values.small_strides, pixel);
  const int tap = first_maximum(large, plane_offset(values.large_start, values.large_strides, pixel), pixel.y, pixel.x, values);
  if (tap < 0) {
    small[to] = U(0.0f);
    return;
  }
  const int i = tap / values.window[1];
  const int y = pixel.y * values.stride[0] - values.padding[0] + i * values.dilation[0];
  const int x = pixel.x * values.stride[1] - values.padding[1] + (tap - i * values.window[1]) * values.dilation[1];
  const long from = plane_offset(values.value_start, values.value_strides, pixel) + long(y) * values.value_strides[2] +
                    long(x) * values.value_strides[3];
  write_element(small, to, chosen.at(from));
}

/// The tap of each window's first maximum, or -1: [batch, channels, height, width] of small, row-major.
template <class Source>
void find_maxima(thread const Source& large, device int* taps, constant PoolValues& values, ulong position) {
  Pixel pixel;
  find_pixel(pixel, values.small_sizes, values.channels_last != 0, position);
  if (!pixel.inside) return;
  const long to =
      ((long(pixel.image) * long(values.small_sizes[1]) + long(pixel.channel)) * long(values.small_sizes[2]) +
       long(pixel.y)) *
          long(values.small_sizes[3]) +
      long(pixel.x);
  taps[to] = first_maximum(large, plane_offset(values.large_start, values.large_strides, pixel), pixel.y, pixel.x, values);
}

/// Adds each element of `small` (strides value_strides) to the position of its window's first maximum. `taps` is what
/// find_maxima found.
template <class U>
void max_unpool(device const int* taps, device const U* small, device U* result, constant PoolValues& values,
                ulong position) {
  typedef typename SumOf<U>::type Sum;
  Pixel pixel;
  find_pixel(pixel, values.large_sizes, values.channels_last != 0, position);
  if (!pixel.inside) return;
  const long plane = plane_offset(values.value_start, values.value_strides, pixel);
  const long tap_plane = (long(pixel.image) * long(values.small_sizes[1]) + long(pixel.channel)) *
                         long(values.small_sizes[2]) * long(values.small_sizes[3]);
  Sum sum = 0;
  for (int i = values.window[0]; i-- > 0;) {
    const int y = window_of(pixel.y, i, values.padding[0], values.dilation[0], values.stride[0], values.small_sizes[2]);
    if (y < 0) continue;
    for (int j = values.window[1]; j-- > 0;) {
      const int x =
          window_of(pixel.x, j, values.padding[1], values.dilation[1], values.stride[1], values.small_sizes[3]);
      if (x < 0) continue;
      if (taps[tap_plane + long(y) * long(values.small_sizes[3]) + long(x)] != i * values.window[1] + j) continue;
      sum += read_element<Sum>(small, plane + long(y) * values.value_strides[2] + long(x) * values.value_strides[3]);
    }
  }
  write_element(result, pixel_offset(values.large_start, values.large_strides, pixel), sum);
}
