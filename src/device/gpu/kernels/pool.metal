// needs: element.metal
// needs: math.metal
// needs: source.metal
// Pooling: sums over windows, and what lies at the first maximum of a window; both with their transposes. An element of
// the result a thread, or several. "large" is what windows move over, "small" has an element for each window.

/// Axes: batch, channels, height, width.
struct PoolValues {
  long large_start, small_start, value_start;  // where the first elements lie
  long large_strides[4], small_strides[4], value_strides[4];
  uint large_sizes[4], small_sizes[4];
  AxisSize grid_sizes[3];   // of what threads go through, from the innermost on,
  uint images;              // and of these
  uint channels_last;       // in which order threads go through the result
  uint taps_channels_last;  // in which order the taps of maxima lie
};

/// Known when the kernel is compiled, so that positions are divided by constants.
template <int TAPS_Y, int TAPS_X, int STRIDE_Y, int STRIDE_X, int PADDING_Y, int PADDING_X, int DILATION_Y, int DILATION_X>
struct PoolWindow {
  enum : int {
    taps_y = TAPS_Y,
    taps_x = TAPS_X,
    taps = TAPS_Y * TAPS_X,
    // Taps of maxima that are read before the first of them is compared; 3 x 3 at most.
    taps_at_once = taps <= 9 ? taps : 1,
    stride_y = STRIDE_Y,
    stride_x = STRIDE_X,
    padding_y = PADDING_Y,
    padding_x = PADDING_X,
    // Windows one after the other, of which some tap may read a position of a block of STRIDE positions.
    windows_y = (TAPS_Y - 1) * DILATION_Y / STRIDE_Y + 1,
    windows_x = (TAPS_X - 1) * DILATION_X / STRIDE_X + 1,
  };
  /// The tap that reads `steps` positions behind its window's first, or -1.
  static int tap_y(int steps) { return tap<TAPS_Y, DILATION_Y>(steps); }
  static int tap_x(int steps) { return tap<TAPS_X, DILATION_X>(steps); }
  template <int TAPS, int DILATION>
  static int tap(int steps) {
    return steps % DILATION == 0 && steps / DILATION < TAPS ? steps / DILATION : -1;
  }
  static int top(int window_y) { return window_y * STRIDE_Y - PADDING_Y; }
  static int left(int window_x) { return window_x * STRIDE_X - PADDING_X; }
  static int down(int i) { return i * DILATION_Y; }
  static int across(int j) { return j * DILATION_X; }
  /// The window whose tap i, or j, reads position `at` along an axis, or -1.
  static int window_y(int at, int i, uint windows) { return window<STRIDE_Y>(at + PADDING_Y - i * DILATION_Y, windows); }
  static int window_x(int at, int j, uint windows) { return window<STRIDE_X>(at + PADDING_X - j * DILATION_X, windows); }
  template <int STRIDE>
  static int window(int shifted, uint windows) {
    if (shifted < 0 || shifted % STRIDE != 0) return -1;
    return shifted / STRIDE < int(windows) ? shifted / STRIDE : -1;
  }
};

struct Pixel {
  uint image, channel;
  int y, x;
  bool inside;
};

/// Takes the position along the innermost of axes off. GPUs divide 32 bits much faster than 64.
inline ulong take_axis(ulong position, constant AxisSize& size, thread uint& along) {
  if ((position >> 32u) == 0ul) {
    const uint low = uint(position);
    const uint rest = divide(low, size.multiplier, size.shift);
    along = low - rest * size.number;
    return rest;
  }
  const ulong rest = position / size.number;
  along = uint(position - rest * size.number);
  return rest;
}

/// What the thread at `position` of the grid computes; the first of LANES neighbouring channels.
template <uint LANES>
void find_pixel(thread Pixel& pixel, constant PoolValues& values, ulong position) {
  const bool channels_last = values.channels_last != 0;
  uint first, second, third;
  const ulong line = take_axis(position, values.grid_sizes[0], first);
  const ulong plane = take_axis(line, values.grid_sizes[1], second);
  const ulong image = take_axis(plane, values.grid_sizes[2], third);
  pixel.inside = image < values.images;
  pixel.image = uint(image);
  pixel.channel = (channels_last ? first : third) * LANES;
  pixel.y = int(channels_last ? third : second);
  pixel.x = int(channels_last ? second : first);
}

template <class Offset>
Offset plane_offset(long start, constant long* strides, thread const Pixel& pixel) {
  return Offset(start) + Offset(pixel.image) * Offset(strides[0]) + Offset(pixel.channel) * Offset(strides[1]);
}
template <class Offset>
Offset pixel_offset(long start, constant long* strides, thread const Pixel& pixel) {
  return plane_offset<Offset>(start, strides, pixel) + Offset(pixel.y) * Offset(strides[2]) +
         Offset(pixel.x) * Offset(strides[3]);
}

/// Stores results in their tensor, the LARGE one or the small one. Epilogues are visitors too, which a kernel's own text
/// declares.
template <class T, class Offset, bool LARGE>
struct StorePixel {
  device T* result;
  constant PoolValues* values;

  void visit(thread const Pixel& pixel, typename SumOf<T>::type sum) const {
    if constexpr (LARGE) {
      write_element(result, pixel_offset<Offset>(values->large_start, values->large_strides, pixel), sum);
    } else {
      write_element(result, pixel_offset<Offset>(values->small_start, values->small_strides, pixel), sum);
    }
  }
};

/// Gives the visitor the sum over each window of `large`.
template <class Window, class Offset, class T, class Visitor>
void sum_pool(device const T* large, thread Visitor& visitor, constant PoolValues& values, ulong position) {
  typedef typename SumOf<T>::type Sum;
  Pixel pixel;
  find_pixel<1>(pixel, values, position);
  if (!pixel.inside) return;
  const Offset plane = plane_offset<Offset>(values.large_start, values.large_strides, pixel);
  Sum sum = 0;
  for (int i = 0; i < Window::taps_y; ++i) {
    const int y = Window::top(pixel.y) + Window::down(i);
    if (y < 0 || y >= int(values.large_sizes[2])) continue;
    for (int j = 0; j < Window::taps_x; ++j) {
      const int x = Window::left(pixel.x) + Window::across(j);
      if (x < 0 || x >= int(values.large_sizes[3])) continue;
      sum += read_element<Sum>(
          large, plane + Offset(y) * Offset(values.large_strides[2]) + Offset(x) * Offset(values.large_strides[3]));
    }
  }
  visitor.visit(pixel, sum);
}

/// Gives the visitor what each position receives, if each element of `small` is added to all positions of its window.
template <class Window, class Offset, class T, class Visitor>
void sum_unpool(device const T* small, thread Visitor& visitor, constant PoolValues& values, ulong position) {
  typedef typename SumOf<T>::type Sum;
  Pixel pixel;
  find_pixel<1>(pixel, values, position);
  if (!pixel.inside) return;
  const Offset plane = plane_offset<Offset>(values.small_start, values.small_strides, pixel);
  Sum sum = 0;
  // From the last tap to the first: windows in their order.
  for (int i = Window::taps_y; i-- > 0;) {
    const int y = Window::window_y(pixel.y, i, values.small_sizes[2]);
    if (y < 0) continue;
    for (int j = Window::taps_x; j-- > 0;) {
      const int x = Window::window_x(pixel.x, j, values.small_sizes[3]);
      if (x < 0) continue;
      sum += read_element<Sum>(
          small, plane + Offset(y) * Offset(values.small_strides[2]) + Offset(x) * Offset(values.small_strides[3]));
    }
  }
  visitor.visit(pixel, sum);
}

// Searching maxima, a thread has LANES neighbouring channels: one, or two or four of a floating type, or eight of 16 bits.

/// The values of a pair of T.
template <class T, class S>
void unpack(thread S* values, typename PairOf<T>::type pair) {
  const float2 both = floats_of(T(0.0f), pair);
  values[0] = both.x;
  values[1] = both.y;
}

template <uint LANES, class T, class Offset, class S>
void read_lanes(thread S* values, device const T* data, Offset offset) {
  if constexpr (LANES == 2) {
    unpack<T>(values, *(device const typename PairOf<T>::type*)(data + offset));
  } else if constexpr (LANES == 4) {
    const float4 four = read_four(data, long(offset));
    values[0] = four.x;
    values[1] = four.y;
    values[2] = four.z;
    values[3] = four.w;
  } else if constexpr (LANES == 8) {
    const uint4 pairs = *(device const uint4*)(data + offset);
    unpack<T>(values, pairs.x);
    unpack<T>(values + 2, pairs.y);
    unpack<T>(values + 4, pairs.z);
    unpack<T>(values + 6, pairs.w);
  } else {
    values[0] = read_element<S>(data, long(offset));
  }
}

/// What a source gives to be compared: of memory by one access.
template <uint LANES, class Source, class Offset>
void read_keys(thread typename Source::Key* keys, thread const Source& source, Offset offset) {
  UNROLL for (uint lane = 0; lane < LANES; ++lane) keys[lane] = source.key(offset + Offset(lane));
}
template <uint LANES, class T, class Offset, bool ALIGNED>
void read_keys(thread typename KeyOf<T>::type* keys, thread const Memory<T, Offset, ALIGNED>& source, Offset offset) {
  read_lanes<LANES>(keys, source.data, offset);
}

template <uint LANES, class T, class Offset, class S>
void write_lanes(device T* data, Offset offset, thread const S* values) {
  if constexpr (LANES == 1) {
    data[offset] = T(values[0]);
  } else if constexpr (LANES == 2) {
    write_pair(data, long(offset), make_float2(values[0], values[1]));
  } else if constexpr (LANES == 8) {
    *(device uint4*)(data + offset) =
        make_uint4(pair_of(T(values[0]), T(values[1])), pair_of(T(values[2]), T(values[3])),
                   pair_of(T(values[4]), T(values[5])), pair_of(T(values[6]), T(values[7])));
  } else {
    write_four(data, long(offset), make_float4(values[0], values[1], values[2], values[3]));
  }
}

/// Taps are whole numbers: of four channels by one access.
template <uint LANES, class Tap, class Offset>
void read_lanes(thread int* found, device const Tap* taps, Offset offset) {
  if constexpr (LANES == 4) {
    const uchar4 four = *(device const uchar4*)(taps + offset);
    found[0] = int(four.x);
    found[1] = int(four.y);
    found[2] = int(four.z);
    found[3] = int(four.w);
  } else {
    UNROLL for (uint lane = 0; lane < LANES; ++lane) found[lane] = int(taps[offset + Offset(lane)]);
  }
}

/// Likewise, -1 as all bits.
template <uint LANES, class Tap, class Offset>
void write_lanes(device Tap* taps, Offset offset, thread const int* found) {
  if constexpr (LANES % 4 == 0) {
    UNROLL for (uint lane = 0; lane < LANES; lane += 4u) {
      *(device uchar4*)(taps + offset + Offset(lane)) =
          make_uchar4(uchar(found[lane]), uchar(found[lane + 1u]), uchar(found[lane + 2u]), uchar(found[lane + 3u]));
    }
  } else {
    UNROLL for (uint lane = 0; lane < LANES; ++lane) taps[offset + Offset(lane)] = Tap(found[lane]);
  }
}

/// Values, or taps, of channels that lie `stride` apart.
template <uint LANES, class T, class Offset, class S>
void write_channels(device T* data, Offset offset, Offset stride, thread const S* values) {
  if (LANES == 1 || stride == Offset(1)) {
    write_lanes<LANES>(data, offset, values);
  } else {
    UNROLL for (uint lane = 0; lane < LANES; ++lane) data[offset + Offset(lane) * stride] = T(values[lane]);
  }
}

/// What no element is below.
inline float lowest_key(float) { return -INFINITY; }
inline long lowest_key(long) { return long(0x8000000000000000ul); }

/// Of a window, for each lane: the first maximum, NaN counting as largest, and its tap, if TAPS; 0 and -1 if the window
/// holds padding alone. Taps count row by row.
template <class Window, uint LANES, bool TAPS, class Offset, class Source>
void find_maximum(thread typename Source::Key* largest, thread int* taps, thread const Source& large, Offset plane,
                  thread const Pixel& window, constant PoolValues& values) {
  typedef typename Source::Key Key;
  bool any = false;
  UNROLL for (uint lane = 0; lane < LANES; ++lane) {
    largest[lane] = lowest_key(Key(0));
    if constexpr (TAPS) taps[lane] = -1;
  }
  for (int first = 0; first < Window::taps; first += Window::taps_at_once) {
    Key keys[Window::taps_at_once][LANES];
    bool is_there[Window::taps_at_once];
    UNROLL for (int tap = 0; tap < Window::taps_at_once; ++tap) {
      const int y = Window::top(window.y) + Window::down((first + tap) / Window::taps_x);
      const int x = Window::left(window.x) + Window::across((first + tap) % Window::taps_x);
      is_there[tap] = y >= 0 && y < int(values.large_sizes[2]) && x >= 0 && x < int(values.large_sizes[3]);
      if (!is_there[tap]) continue;
      read_keys<LANES>(keys[tap], large, plane + Offset(y) * Offset(values.large_strides[2]) +
                                             Offset(x) * Offset(values.large_strides[3]));
    }
    UNROLL for (int tap = 0; tap < Window::taps_at_once; ++tap) {
      if (!is_there[tap]) continue;
      any = true;
      UNROLL for (uint lane = 0; lane < LANES; ++lane) {
        const Key key = keys[tap][lane];
        if constexpr (TAPS) {
          if (taps[lane] >= 0 && !exceeds(key, largest[lane])) continue;
          taps[lane] = first + tap;
          largest[lane] = key;
        } else {
          if (key > largest[lane] || key != key) largest[lane] = key;
        }
      }
    }
  }
  if (any) return;
  for (uint lane = 0; lane < LANES; ++lane) largest[lane] = Key(0);
}

/// The first maximum of each window of `large`; 0 for windows of padding alone.
template <class Window, uint LANES, class Offset, class Source, class U>
void max_pool(thread const Source& large, device U* small, constant PoolValues& values, ulong position) {
  Pixel pixel;
  find_pixel<LANES>(pixel, values, position);
  if (!pixel.inside) return;
  typename Source::Key largest[LANES];
  find_maximum<Window, LANES, false, Offset>(largest, nullptr, large,
                                             plane_offset<Offset>(values.large_start, values.large_strides, pixel),
                                             pixel, values);
  write_channels<LANES>(small, pixel_offset<Offset>(values.small_start, values.small_strides, pixel),
                        Offset(values.small_strides[1]), largest);
}

/// Where the tap of a window's maximum lies.
template <class Offset>
Offset tap_offset(thread const Pixel& pixel, int y, int x, constant PoolValues& values) {
  const Offset channels = Offset(values.small_sizes[1]);
  const Offset height = Offset(values.small_sizes[2]);
  const Offset width = Offset(values.small_sizes[3]);
  return values.taps_channels_last != 0
             ? ((Offset(pixel.image) * height + Offset(y)) * width + Offset(x)) * channels + Offset(pixel.channel)
             : ((Offset(pixel.image) * channels + Offset(pixel.channel)) * height + Offset(y)) * width + Offset(x);
}

/// Likewise, with the tap of each maximum, or -1.
template <class Window, uint LANES, class Offset, class Source, class U, class Tap>
void max_pool_and_taps(thread const Source& large, device U* small, device Tap* taps, constant PoolValues& values,
                       ulong position) {
  Pixel pixel;
  find_pixel<LANES>(pixel, values, position);
  if (!pixel.inside) return;
  typename Source::Key largest[LANES];
  int found[LANES];
  find_maximum<Window, LANES, true, Offset>(largest, found, large,
                                            plane_offset<Offset>(values.large_start, values.large_strides, pixel),
                                            pixel, values);
  write_channels<LANES>(small, pixel_offset<Offset>(values.small_start, values.small_strides, pixel),
                        Offset(values.small_strides[1]), largest);
  const Offset taps_stride =
      values.taps_channels_last != 0 ? Offset(1) : Offset(values.small_sizes[2]) * Offset(values.small_sizes[3]);
  write_channels<LANES>(taps, tap_offset<Offset>(pixel, pixel.y, pixel.x, values), taps_stride, found);
}

/// What `chosen` holds where `large` has the first maximum of each window; 0 for windows of padding alone.
template <class Window, class Offset, class Large, class Chosen, class U>
void max_pool_chosen(thread const Large& large, thread const Chosen& chosen, device U* small,
                     constant PoolValues& values, ulong position) {
  Pixel pixel;
  find_pixel<1>(pixel, values, position);
  if (!pixel.inside) return;
  typename Large::Key largest[1];
  int taps[1];
  find_maximum<Window, 1, true, Offset>(largest, taps, large,
                                        plane_offset<Offset>(values.large_start, values.large_strides, pixel), pixel,
                                        values);
  const Offset to = pixel_offset<Offset>(values.small_start, values.small_strides, pixel);
  if (taps[0] < 0) {
    small[to] = U(0.0f);
    return;
  }
  const int y = Window::top(pixel.y) + Window::down(taps[0] / Window::taps_x);
  const int x = Window::left(pixel.x) + Window::across(taps[0] % Window::taps_x);
  write_element(small, long(to),
                chosen.at(plane_offset<Offset>(values.value_start, values.value_strides, pixel) +
                          Offset(y) * Offset(values.value_strides[2]) + Offset(x) * Offset(values.value_strides[3])));
}

/// The tap of each window's first maximum, or -1.
template <class Window, uint LANES, class Offset, class Source, class Tap>
void find_maxima(thread const Source& large, device Tap* taps, constant PoolValues& values, ulong position) {
  Pixel pixel;
  find_pixel<LANES>(pixel, values, position);
  if (!pixel.inside) return;
  typename Source::Key largest[LANES];
  int found[LANES];
  find_maximum<Window, LANES, true, Offset>(largest, found, large,
                                            plane_offset<Offset>(values.large_start, values.large_strides, pixel),
                                            pixel, values);
  write_lanes<LANES>(taps, tap_offset<Offset>(pixel, pixel.y, pixel.x, values), found);
}

/// The part of a block of as many positions as windows move by, along an axis, that a thread has: all of it, or one
/// position. Block b begins where window b does, and no window behind it reads there.
struct BlockPart {
  int block;
  int phase;  // the first position of the part

  template <int STRIDE, int PADDING, int EXTENT>
  void find(int at) {
    block = EXTENT == STRIDE ? at : (at + PADDING) / STRIDE;
    phase = EXTENT == STRIDE ? 0 : (at + PADDING) % STRIDE;
  }
};

/// Adds each element of `small` (strides value_strides) to the position of its window's first maximum. `taps` is what
/// find_maxima found. A thread has EXTENT_Y x EXTENT_X positions: a whole block, or one.
template <class Window, uint LANES, int EXTENT_Y, int EXTENT_X, class Offset, class U, class Tap>
void max_unpool(device const Tap* taps, device const U* small, device U* result, constant PoolValues& values,
                ulong position) {
  typedef typename SumOf<U>::type Sum;
  Pixel pixel;
  find_pixel<LANES>(pixel, values, position);
  if (!pixel.inside) return;
  BlockPart down, across;
  down.find<Window::stride_y, Window::padding_y, EXTENT_Y>(pixel.y);
  across.find<Window::stride_x, Window::padding_x, EXTENT_X>(pixel.x);
  const Offset plane = plane_offset<Offset>(values.value_start, values.value_strides, pixel);
  Sum sums[EXTENT_Y][EXTENT_X][LANES] = {};
  // From the last tap to the first: windows in their order.
  for (int m = Window::windows_y; m-- > 0;) {
    const int y = down.block - m;
    if (y < 0 || y >= int(values.small_sizes[2])) continue;
    for (int n = Window::windows_x; n-- > 0;) {
      const int x = across.block - n;
      if (x < 0 || x >= int(values.small_sizes[3])) continue;
      int found[LANES];
      Sum elements[LANES];
      read_lanes<LANES>(found, taps, tap_offset<Offset>(pixel, y, x, values));
      read_lanes<LANES>(elements, small,
                        plane + Offset(y) * Offset(values.value_strides[2]) + Offset(x) * Offset(values.value_strides[3]));
      UNROLL for (int a = 0; a < EXTENT_Y; ++a) {
        UNROLL for (int b = 0; b < EXTENT_X; ++b) {
          const int i = Window::tap_y(m * Window::stride_y + down.phase + a);
          const int j = Window::tap_x(n * Window::stride_x + across.phase + b);
          if (i < 0 || j < 0) continue;
          UNROLL for (uint lane = 0; lane < LANES; ++lane) {
            if (found[lane] == int(Tap(i * Window::taps_x + j))) sums[a][b][lane] += elements[lane];
          }
        }
      }
    }
  }
  UNROLL for (int a = 0; a < EXTENT_Y; ++a) {
    UNROLL for (int b = 0; b < EXTENT_X; ++b) {
      pixel.y = Window::top(down.block) + down.phase + a;
      pixel.x = Window::left(across.block) + across.phase + b;
      if (uint(pixel.y) >= values.large_sizes[2] || uint(pixel.x) >= values.large_sizes[3]) continue;
      write_lanes<LANES>(result, pixel_offset<Offset>(values.large_start, values.large_strides, pixel), sums[a][b]);
    }
  }
}
