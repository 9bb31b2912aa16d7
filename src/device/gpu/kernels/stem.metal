// needs: contraction.metal
// needs: fragments.metal
// Convolutions of images of few channels, as the first one of a network is, and the gradients for their weights, on
// tensor cores, for half and bfloat. Channels lie side by side, and pixels of a line: so the taps of a row of a window
// are one run of elements, and a window is as many runs, a line apart. A threadgroup brings the lines that some lines of
// the result read to its memory, takes its fragments from there, and goes on with the next ones.

/// A convolution's shape, known when the kernel is compiled: a threadgroup has ROWS lines of the result at a time, and
/// LINE elements of each of the image's lines, padding included and whole runs; a pixel of these is PITCH apart from the
/// next one, with zeros behind its channels. COLUMNS channels of the result, 32 or 64. While a simdgroup computes sixteen
/// pixels, each of its threads brings AHEAD pixels for the next lines.
template <int CHANNELS, int PITCH, int TAPS_Y, int TAPS_X, int STRIDE_Y, int STRIDE_X, int PADDING_Y, int PADDING_X,
          int ROWS, int LINE, int COLUMNS, int AHEAD, bool KEEPS_WEIGHT>
struct StemShape {
  enum : int {
    keeps_weight = KEEPS_WEIGHT ? 1 : 0,  // in registers
    channels = CHANNELS,
    pitch = PITCH,
    taps_y = TAPS_Y,
    stride_y = STRIDE_Y,
    padding_y = PADDING_Y,
    padding_x = PADDING_X,
    run = TAPS_X * PITCH,
    taps = TAPS_Y * run,
    step = STRIDE_X * PITCH,  // from a pixel's run to its neighbour's
    rows = ROWS,
    line = LINE,
    lines = (ROWS - 1) * STRIDE_Y + TAPS_Y,
    pixels = LINE / PITCH,  // of a line
    ahead = AHEAD,
    columns = COLUMNS,
    across = COLUMNS / 16,  // the weight's fragments
    blocks = (run + 7) / 8,                         // of eight steps of the depth, in a run; zeros fill the last one
    slices = (TAPS_Y * blocks + 1) / 2,             // of sixteen steps
    kept = KEEPS_WEIGHT ? slices * across : 1,      // of the weight's fragments
    weight_line = slices * 16 + 8,                  // of the weight in threadgroup memory; rows lie in different banks
    last = run - (blocks - 1) * 8,                  // steps of a run's last block
    has_fours = step % 4 == 0 && LINE % 4 == 0 && blocks % 2 == 0 ? 1 : 0,  // four steps are loaded at once
    tap_blocks = (taps + 15) / 16,                  // of sixteen rows of the weight's gradient
    tap_sharers = tap_blocks > 2 ? 4 : tap_blocks,  // simdgroups that share these
    own_blocks = (tap_blocks + tap_sharers - 1) / tap_sharers,
    pixel_sharers = 4 / tap_sharers,                // simdgroups that share the pixels of such a block
    gradient_line = COLUMNS + 8
  };
};

enum : uint {
  stem_threads = 128,
  stem_simdgroups = 4,
  stem_chunk = 64,  // pixels of a gradient that come at once
};

/// Elements of a matrix in threadgroup memory by row and column.
template <int LINE>
struct StemLayout {
  enum : uint { linear = 1 };
  static uint place(uint row, uint column) { return row * LINE + column; }
};

/// Some lines of the result: the image, the first of them, and their pixels.
struct StemTile {
  uint image, line, pixels;
  uint first;  // of the pixels, among all
};

template <class Shape>
void find_tile(thread StemTile& tile, constant AxisSize* sizes, uint number) {
  const uint height = sizes[0].number;
  const uint tiles = (height + Shape::rows - 1u) / Shape::rows;
  tile.image = number / tiles;
  tile.line = (number - tile.image * tiles) * Shape::rows;
  tile.pixels = min(uint(Shape::rows), height - tile.line) * sizes[1].number;
  tile.first = (tile.image * height + tile.line) * sizes[1].number;
}

/// Where the window of each pixel of a tile begins in threadgroup memory.
template <class Shape>
void find_windows(threadgroup ushort* windows, constant AxisSize& width, uint thread_id) {
  for (uint i = thread_id; i < Shape::rows * width.number; i += stem_threads) {
    const uint y = divide(i, width.multiplier, width.shift);
    windows[i] = ushort(y * Shape::stride_y * Shape::line + (i - y * width.number) * Shape::step);
  }
}

// An image of float32 has planes of channels, which are rounded on their way; others have channels side by side.
template <class Shape, class T>
int pixel_stride(device const T*) {
  return Shape::channels;
}
template <class Shape>
int pixel_stride(device const float*) {
  return 1;
}
template <class T>
long channel_stride(device const T*, constant ContractionValues&) {
  return 1l;
}
inline long channel_stride(device const float*, constant ContractionValues& values) {
  return values.left_step.strides[2];
}

template <class T>
uint rounded_bits(T, T first, T second) {
  return pair_bits(first, second);
}
template <class T>
uint rounded_bits(T type, float first, float second) {
  return rounded_pair(type, make_float2(first, second));
}

/// Reads every stem_threads-th pixel of the lines that a tile reads, COUNT of them; zeros outside of the image. Those
/// behind the last line are read for nothing.
template <class Shape, uint COUNT, class S>
void read_pixels(thread S* numbers, device const S* image, constant ContractionValues& values,
                 thread const StemTile& tile, uint first) {
  const long plane = channel_stride(image, values);
  UNROLL for (uint i = 0; i < COUNT; ++i) {
    const uint at = first + i * stem_threads;
    const uint line = at / uint(Shape::pixels);
    const int x = int(at - line * uint(Shape::pixels)) - Shape::padding_x;
    const int y = int(tile.line) * Shape::stride_y - Shape::padding_y + int(line);
    const bool is_inside = x >= 0 && x < values.width && y >= 0 && y < values.height;
    device const S* const pixel =
        image + (is_inside ? long(y) * values.y_stride + long(x * pixel_stride<Shape>(image)) : 0l);
    UNROLL for (int channel = 0; channel < Shape::channels; ++channel) {
      numbers[i * uint(Shape::channels) + uint(channel)] = is_inside ? pixel[long(channel) * plane] : S(0.0f);
    }
  }
}

/// Writes them to threadgroup memory.
template <class Shape, uint COUNT, class T, class S>
void write_pixels(threadgroup T* memory, thread const S* numbers, uint first) {
  UNROLL for (uint i = 0; i < COUNT; ++i) {
    const uint at = first + i * stem_threads;
    if (at >= uint(Shape::lines * Shape::pixels)) continue;
    thread const S* const pixel = numbers + i * uint(Shape::channels);
    if constexpr (Shape::pitch == 4) {
      const S fourth = Shape::channels == 4 ? pixel[Shape::channels - 1] : S(0.0f);
      *(threadgroup uint2*)(memory + at * 4u) =
          make_uint2(rounded_bits(T(0.0f), pixel[0], pixel[1]), rounded_bits(T(0.0f), pixel[2], fourth));
    } else {
      UNROLL for (int channel = 0; channel < Shape::channels; ++channel) {
        memory[at * uint(Shape::pitch) + uint(channel)] = T(pixel[channel]);
      }
    }
  }
}

/// Brings the pixels from `first` on of the lines that a tile reads.
template <class Shape, class T, class S>
void bring_pixels(threadgroup T* memory, device const S* image, constant ContractionValues& values,
                  thread const StemTile& tile, uint first) {
  enum : uint { at_once = 4 };
  for (; first < uint(Shape::lines * Shape::pixels); first += at_once * stem_threads) {
    S numbers[at_once * Shape::channels] = {};
    read_pixels<Shape, at_once>(numbers, image, values, tile, first);
    write_pixels<Shape, at_once>(memory, numbers, first);
  }
}

/// Of sixteen places, two fragments' of eight each, where the one at `place` stands for: so that a lane, which has two
/// neighbours of either fragment, has four.
inline uint four_beside(uint place) { return place % 8u / 2u * 4u + place / 8u % 2u * 2u + place % 2u; }

/// Brings the weight: a row for each channel of the result, in whose depth each run begins with a block. Of sixteen rows
/// each lane's sums are of four neighbouring channels; where it loads four steps of the depth at once, these likewise.
template <class Shape, class T>
void bring_weight(threadgroup T* memory, device const T* weight, constant ContractionValues& values, uint thread_id) {
  enum : uint { ahead = 8, count = Shape::columns * Shape::weight_line };
  constant Axis& step = values.right_step;
  for (uint first = thread_id; first < count; first += ahead * stem_threads) {
    T elements[ahead] = {};
    UNROLL for (uint j = 0; j < ahead; ++j) {
      const uint line = (first + j * stem_threads) / Shape::weight_line;
      const uint place = (first + j * stem_threads) % Shape::weight_line;
      const uint column = line / 16u * 16u + four_beside(line);
      const uint depth = Shape::has_fours != 0 ? place / 16u * 16u + four_beside(place) : place;
      const uint row = depth / (Shape::blocks * 8);
      const uint rest = depth % (Shape::blocks * 8);
      const uint channel = rest % Shape::pitch;
      const bool is_there = column < values.columns && row < uint(Shape::taps_y) && rest < uint(Shape::run) &&
                            channel < uint(Shape::channels);
      const long at = long(column) * values.right_line.strides[2] + long(row) * step.strides[0] +
                      long(rest / Shape::pitch) * step.strides[1] + long(channel) * step.strides[2];
      elements[j] = is_there ? weight[at] : T(0.0f);
    }
    UNROLL for (uint j = 0; j < ahead; ++j) {
      if (first + j * stem_threads < count) memory[first + j * stem_threads] = elements[j];
    }
  }
}

/// Two neighbouring elements of a line.
template <class Shape, class T>
uint stem_pair(threadgroup const T* memory, uint at) {
  if constexpr (Shape::step % 2 == 0 && Shape::line % 2 == 0) {
    return *(threadgroup const uint*)(memory + at);
  } else {
    return pair_bits(memory[at], memory[at + 1u]);
  }
}

/// A slice of the depth of sixteen pixels. `windows`: where those of this lane's rows begin, at its steps.
template <class Shape, class T>
void load_pixels(thread LeftFragment& left, threadgroup const T* thread const* windows, uint slice, uint lane_id) {
  enum : uint { slices = Shape::blocks / 2 };  // of a run
  const uint in_run = slice % slices;
  const uint at = slice / slices * Shape::line + in_run * 16u;
  const bool is_there = in_run * 16u + lane_id % 4u * 4u < uint(Shape::run);
  UNROLL for (uint i = 0; i < 2u; ++i) {
    const uint2 four = *(threadgroup const uint2*)(windows[i] + at);
    left.pairs[i] = is_there ? four.x : 0u;
    left.pairs[i + 2u] = is_there ? four.y : 0u;
  }
}
/// The same by pairs.
template <class Shape, class T>
void load_pixel_pairs(thread LeftFragment& left, threadgroup const T* thread const* windows, uint slice, uint lane_id) {
  const uint column = lane_id % 4u * 2u;
  const uint mask = (column < uint(Shape::last) ? 0xffffu : 0u) | (column + 1u < uint(Shape::last) ? 0xffff0000u : 0u);
  UNROLL for (uint half_slice = 0; half_slice < 2u; ++half_slice) {
    const uint block = slice * 2u + half_slice;
    const uint in_run = block % Shape::blocks;
    const uint at = block / Shape::blocks * Shape::line + in_run * 8u;
    UNROLL for (uint i = 0; i < 2u; ++i) {
      uint pair = 0u;
      if (block < uint(Shape::taps_y * Shape::blocks)) pair = stem_pair<Shape>(windows[i], at);
      left.pairs[half_slice * 2u + i] = in_run + 1u == uint(Shape::blocks) ? pair & mask : pair;
    }
  }
}

/// Where a kernel's parts lie in threadgroup memory.
template <class T>
struct StemMemory {
  threadgroup T* lines;
  threadgroup T* other;  // the weight, or what comes of a gradient
  threadgroup ushort* windows;
  threadgroup float* sums;  // that simdgroups add up
};

/// Which of sixteen pixels a lane has in its fragments' rows i, 0 and 1: pairs of lanes have every fourth one.
inline uint stem_pixel(uint lane_id, uint i) { return lane_id / 8u + lane_id / 4u % 2u * 8u + i * 4u; }
/// The first of four columns that a lane shows, of 32.
inline uint stem_column(uint lane_id) { return lane_id / 4u % 2u * 16u + lane_id % 4u * 4u; }

/// Takes the weight's fragments from threadgroup memory, where they are kept in registers.
template <class Shape, class T>
void keep_weight(thread RightFragments* kept, threadgroup const T* weight, uint lane_id) {
  if constexpr (Shape::keeps_weight != 0) {
    UNROLL for (uint i = 0; i < uint(Shape::kept); ++i) {
      load_right_columns<StemLayout<Shape::weight_line>>(kept[i], weight, i % uint(Shape::across) * 16u,
                                                         i / uint(Shape::across) * 16u, lane_id);
    }
  }
}

/// Where in `lines` the windows of this lane's two of sixteen pixels begin, at its steps; behind the tile's last pixel,
/// this one's.
template <class Shape, class T>
void find_strip(threadgroup const T* thread* windows, threadgroup const T* lines, threadgroup const ushort* all,
                uint first, uint pixels, uint lane_id) {
  enum : uint { lane_steps = Shape::has_fours != 0 ? 4 : 2 };
  UNROLL for (uint i = 0; i < 2u; ++i) {
    const uint window = all[min(first + stem_pixel(lane_id, i), pixels - 1u)];
    windows[i] = lines + (window + lane_id % 4u * lane_steps);
  }
}

/// Products of sixteen pixels with the weight, which lies in threadgroup memory, or `kept` in registers.
template <class Shape, class T>
void multiply_pixels(thread SumFragment* products, threadgroup const T* thread const* windows,
                     thread const RightFragments* kept, threadgroup const T* weight, uint lane_id) {
  UNROLL for (uint slice = 0; slice < uint(Shape::slices); ++slice) {
    LeftFragment left;
    if constexpr (Shape::has_fours != 0) {
      load_pixels<Shape>(left, windows, slice, lane_id);
    } else {
      load_pixel_pairs<Shape>(left, windows, slice, lane_id);
    }
    UNROLL for (uint i = 0; i < uint(Shape::across); ++i) {
      RightFragments right;
      if constexpr (Shape::keeps_weight != 0) {
        right = kept[slice * uint(Shape::across) + i];
      } else {
        load_right_columns<StemLayout<Shape::weight_line>>(right, weight, i * 16u, slice * 16u, lane_id);
      }
      if (slice == 0u) {
        start_product<T, 0>(products[i * 2u], left, right, lane_id);
        start_product<T, 1>(products[i * 2u + 1u], left, right, lane_id);
      } else {
        multiply_fragments<T, 0>(products[i * 2u], left, right, lane_id);
        multiply_fragments<T, 1>(products[i * 2u + 1u], left, right, lane_id);
      }
    }
  }
}

/// Exchanges what pairs of lanes have of 32 columns, so that either has four neighbouring ones of every fourth pixel, and
/// eight lanes store 64 bytes of a pixel together: stores of 32 bytes kept the second level of an H200's memory busy
/// (vgg16's first convolution took 157 us with these and takes 142).
inline void exchange_columns(thread float* shown, thread const SumFragment* sums, uint lane_id) {
  const bool is_second = lane_id / 4u % 2u != 0u;
  UNROLL for (uint i = 0; i < 8u; ++i) {
    const float first = sums[i / 2u % 2u].at[i / 4u * 2u + i % 2u];
    const float second = sums[2u + i / 2u % 2u].at[i / 4u * 2u + i % 2u];
    const float other = simd_shuffle_xor(is_second ? first : second, ushort(4));
    shown[i] = is_second ? other : first;
    shown[8u + i] = is_second ? second : other;
  }
}

/// Shows a visitor four neighbouring columns of every fourth row from `row` on, of which `live` are there. WIDTH: columns
/// that the visitor takes at once, 1 or 4.
template <uint WIDTH, class Visitor>
void show_pixels(thread const Visitor& visitor, thread const typename Visitor::Columns& columns,
                 thread const float* shown, uint row, uint column, uint live) {
  if constexpr (WIDTH == 4) {
    visitor.visit_rows(row, column, live, shown, columns);
  } else {
    UNROLL for (uint i = 0; i < 16u; ++i) {
      if (i / 4u >= live) continue;
      typename Visitor::Columns own = {};
      visitor.read_columns(own, column + i % 4u);
      const float one[4] = {shown[i], 0.0f, 0.0f, 0.0f};  // a visitor takes up to four rows
      visitor.visit_rows(row + i / 4u * 4u, column + i % 4u, 1u, one, own);
    }
  }
}

/// Shows what sixteen pixels of a tile, from `first` on, have become; `end_column` is where the result's columns end.
template <class Shape, uint WIDTH, class Visitor>
void show_strip(thread const Visitor& visitor, thread const typename Visitor::Columns* columns,
                thread const SumFragment* products, thread const StemTile& tile, uint first, uint end_column,
                uint lane_id) {
  const uint pixel = first + lane_id / 8u;
  const uint live = pixel < tile.pixels ? min((tile.pixels - pixel + 3u) / 4u, 4u) : 0u;
  const bool is_whole = first + 16u <= tile.pixels && end_column == uint(Shape::columns);
  UNROLL for (uint i = 0; i < uint(Shape::columns) / 32u; ++i) {
    float shown[16];
    exchange_columns(shown, products + i * 4u, lane_id);
    const uint column = i * 32u + stem_column(lane_id);
    if (is_whole) {
      show_pixels<WIDTH>(visitor, columns[i], shown, tile.first + pixel, column, 4u);
    } else if (column < end_column) {
      show_pixels<WIDTH>(visitor, columns[i], shown, tile.first + pixel, column, live);
    }
  }
}

/// The grid: as many threadgroups as shall share the tiles, along x. While a tile's lines are in use, the next tile's come
/// to the other half of `lines`.
template <class Shape, uint WIDTH, class T, class ImageSource, class WeightSource, class Visitor>
void stem_convolution(thread const ImageSource& image, thread const WeightSource& weight,
                      thread const Visitor& visitor, constant ContractionValues& values,
                      thread const StemMemory<T>& memory, uint group, uint group_count, thread const TileThread& self) {
  enum : uint {
    shows = Shape::columns / 32,
    all_pixels = Shape::lines * Shape::pixels,
    lines_size = Shape::lines * Shape::line,
  };
  const uint lane_id = self.lane_id;
  const uint own_column = stem_column(lane_id);
  ImageSource own_image = image;
  WeightSource own_weight = weight;
  Visitor own = visitor;
  start_sources(own_image, own_weight, values, 0u);
  own.start(0u, 0u);
  const long image_stride = values.left_line.strides[0];
  StemTile tile;
  find_tile<Shape>(tile, values.left_line.sizes, group);
  bring_weight<Shape>(memory.other, own_weight.data, values, self.thread_id);
  find_windows<Shape>(memory.windows, values.left_line.sizes[1], self.thread_id);
  bring_pixels<Shape>(memory.lines, own_image.data + long(tile.image) * image_stride, values, tile, self.thread_id);
  typename Visitor::Columns columns[shows] = {};
  if constexpr (WIDTH == 4) {
    UNROLL for (uint i = 0; i < shows; ++i) {
      if (i * 32u + own_column < values.columns) own.read_columns(columns[i], i * 32u + own_column);
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  RightFragments kept[Shape::kept];
  keep_weight<Shape>(kept, memory.other, lane_id);
  for (uint number = group, turn = 0; number < values.row_tiles; turn ^= 1u) {
    number += group_count;
    StemTile next = tile;
    if (number < values.row_tiles) find_tile<Shape>(next, values.left_line.sizes, number);
    uint coming = number < values.row_tiles ? self.thread_id : uint(all_pixels);  // pixel of the next tile
    device const typename ImageSource::Element* const next_image = own_image.data + long(next.image) * image_stride;
    threadgroup const T* const lines = memory.lines + turn * lines_size;
    threadgroup T* const next_lines = memory.lines + (turn ^ 1u) * lines_size;
    for (uint first = self.simdgroup_id * 16u; first < tile.pixels; first += stem_simdgroups * 16u) {
      typename ImageSource::Element numbers[Shape::ahead * Shape::channels] = {};
      if (coming < all_pixels) read_pixels<Shape, Shape::ahead>(numbers, next_image, values, next, coming);
      threadgroup const T* windows[2];
      find_strip<Shape>(windows, lines, memory.windows, first, tile.pixels, lane_id);
      SumFragment products[Shape::across * 2];
      multiply_pixels<Shape>(products, windows, kept, memory.other, lane_id);
      show_strip<Shape, WIDTH>(own, columns, products, tile, first, values.columns, lane_id);
      if (coming < all_pixels) write_pixels<Shape, Shape::ahead>(next_lines, numbers, coming);
      coming += uint(Shape::ahead) * stem_threads;
    }
    bring_pixels<Shape>(next_lines, next_image, values, next, coming);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    tile = next;
  }
}

/// Brings a chunk of a gradient's pixels, zeros beyond the tile's.
template <class Shape, class T>
void bring_gradient(threadgroup T* memory, device const T* gradient, constant ContractionValues& values,
                    thread const StemTile& tile, uint first, uint thread_id) {
  enum : uint { vectors = Shape::columns / 8 };
  UNROLL for (uint i = 0; i < stem_chunk * vectors / stem_threads; ++i) {
    const uint pixel = (thread_id + i * stem_threads) / vectors;
    const uint column = (thread_id + i * stem_threads) % vectors * 8u;
    const bool is_there = first + pixel < tile.pixels && column < values.rows;
    const long at = is_there ? long(tile.first + first + pixel) * long(values.rows) + long(column) : 0l;
    copy_vector(memory, pixel * Shape::gradient_line + column, gradient + at, is_there);
  }
  end_fragment_copies();
}

/// Sixteen taps of sixteen pixels: `taps` has where those of this lane's rows lie in a window.
template <class T>
void load_taps(thread LeftFragment& left, threadgroup const T* lines, threadgroup const ushort* windows,
               thread const uint* taps, uint first, uint end, uint lane_id) {
  UNROLL for (uint half_depth = 0; half_depth < 2u; ++half_depth) {
    const uint pixel = first + half_depth * 8u + lane_id % 4u * 2u;
    const uint mask = (pixel < end ? 0xffffu : 0u) | (pixel + 1u < end ? 0xffff0000u : 0u);
    const uint one = windows[min(pixel, end - 1u)];
    const uint two = windows[min(pixel + 1u, end - 1u)];
    UNROLL for (uint i = 0; i < 2u; ++i) {
      left.pairs[half_depth * 2u + i] = pair_bits(lines[one + taps[i]], lines[two + taps[i]]) & mask;
    }
  }
}

/// The gradient for the weight, of which a threadgroup leaves the sum over every group_count-th tile: simdgroups share
/// the taps, and where these are few, the pixels.
template <class Shape, class T, class GradientSource, class ImageSource, class Visitor>
void stem_weight(thread const GradientSource& gradient, thread const ImageSource& image, thread const Visitor& visitor,
                 constant ContractionValues& values, thread const StemMemory<T>& memory, uint group, uint group_count,
                 thread const TileThread& self) {
  typedef StemLayout<Shape::gradient_line> Layout;
  enum : uint { sums = Shape::columns / 8, chunk_elements = stem_chunk * Shape::gradient_line };
  const uint lane_id = self.lane_id;
  const uint first_block = self.simdgroup_id % Shape::tap_sharers * Shape::own_blocks;
  const uint sharer = self.simdgroup_id / Shape::tap_sharers;
  GradientSource own_gradient = gradient;
  ImageSource own_image = image;
  start_sources(own_gradient, own_image, values, 0u);
  find_windows<Shape>(memory.windows, values.right_step.sizes[1], self.thread_id);
  uint taps[Shape::own_blocks][2];
  SumFragment products[Shape::own_blocks][sums];
  UNROLL for (uint block = 0; block < uint(Shape::own_blocks); ++block) {
    UNROLL for (uint i = 0; i < sums; ++i) clear_fragment(products[block][i]);
    UNROLL for (uint i = 0; i < 2u; ++i) {
      const uint tap = (first_block + block) * 16u + fragment_row(lane_id, i * 2u);
      taps[block][i] = tap < uint(Shape::taps) ? tap / Shape::run * Shape::line + tap % Shape::run : 0u;
    }
  }
  for (uint number = group; number < values.row_tiles; number += group_count) {
    StemTile tile;
    find_tile<Shape>(tile, values.right_step.sizes, number);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    bring_gradient<Shape>(memory.other, own_gradient.data, values, tile, 0u, self.thread_id);
    bring_pixels<Shape>(memory.lines, own_image.data + long(tile.image) * values.right_step.strides[0], values, tile,
                        self.thread_id);
    for (uint first = 0, turn = 0; first < tile.pixels; first += stem_chunk, turn ^= 1u) {
      wait_for_fragment_copies<0>();
      threadgroup_barrier(mem_flags::mem_threadgroup);
      if (first + stem_chunk < tile.pixels) {
        bring_gradient<Shape>(memory.other + (turn ^ 1u) * chunk_elements, own_gradient.data, values, tile,
                              first + stem_chunk, self.thread_id);
      }
      for (uint slice = sharer; slice < stem_chunk / 16u; slice += Shape::pixel_sharers) {
        RightFragments right[sums / 2];
        UNROLL for (uint i = 0; i < sums / 2u; ++i) {
          load_right_rows<Layout>(right[i], memory.other + turn * chunk_elements, slice * 16u, i * 16u, lane_id);
        }
        UNROLL for (uint block = 0; block < uint(Shape::own_blocks); ++block) {
          LeftFragment left;
          load_taps(left, memory.lines, memory.windows, taps[block], first + slice * 16u, tile.pixels, lane_id);
          UNROLL for (uint i = 0; i < sums; i += 2u) {
            multiply_fragments<T, 0>(products[block][i], left, right[i / 2u], lane_id);
            multiply_fragments<T, 1>(products[block][i + 1u], left, right[i / 2u], lane_id);
          }
        }
      }
    }
  }
  Visitor own = visitor;
  own.start(0u, group);
  // Those that share pixels add up one after the other; the last one shows the sums.
  for (uint turn = 0; turn < uint(Shape::pixel_sharers); ++turn) {
    if (turn > 0) threadgroup_barrier(mem_flags::mem_threadgroup);
    if (sharer != turn) continue;
    UNROLL for (uint block = 0; block < uint(Shape::own_blocks); ++block) {
      UNROLL for (uint i = 0; i < sums * 4u; ++i) {
        const uint tap = (first_block + block) * 16u + fragment_row(lane_id, i % 4u);
        const uint column = i / 4u * 8u + fragment_column(lane_id, i % 4u);
        float sum = products[block][i / 4u].at[i % 4u];
        threadgroup float* const shared = memory.sums + tap * Shape::columns + column;
        if (turn > 0) sum += *shared;
        if (turn + 1u < uint(Shape::pixel_sharers)) {
          *shared = sum;
        } else if (tap < uint(Shape::taps) && column < values.rows) {
          own.visit(column, tap, sum);
        }
      }
    }
  }
}
