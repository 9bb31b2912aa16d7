// needs: contraction.metal
// needs: fragments.metal
// Convolutions of images of few channels, as the first one of a network is, and the gradients for their weights, on
// tensor cores, for half and bfloat. Channels lie side by side, and pixels of a line: so the taps of a row of a window
// are one run of elements, and a window is as many runs, a line apart. A threadgroup brings the lines that some lines of
// the result read to its memory, takes its fragments from there, and goes on with the next ones.

/// A convolution's shape, known when the kernel is compiled: a threadgroup has ROWS lines of the result at a time, and
/// LINE elements of each of the image's lines, padding included and whole runs; COLUMNS channels of the result, 32 or 64.
template <int CHANNELS, int TAPS_Y, int TAPS_X, int STRIDE_Y, int STRIDE_X, int PADDING_Y, int PADDING_X, int ROWS,
          int LINE, int COLUMNS, bool KEEPS_WEIGHT>
struct StemShape {
  enum : int {
    keeps_weight = KEEPS_WEIGHT ? 1 : 0,  // in registers
    channels = CHANNELS,
    taps_y = TAPS_Y,
    stride_y = STRIDE_Y,
    padding_y = PADDING_Y,
    padding = PADDING_X * CHANNELS,  // elements before a line
    run = TAPS_X * CHANNELS,
    taps = TAPS_Y * run,
    step = STRIDE_X * CHANNELS,  // from a pixel's run to its neighbour's
    rows = ROWS,
    line = LINE,
    lines = (ROWS - 1) * STRIDE_Y + TAPS_Y,
    columns = COLUMNS,
    blocks = (run + 7) / 8,                           // of eight steps of the depth, in a run; zeros fill the last one
    slices = (TAPS_Y * blocks + 1) / 2,               // of sixteen steps
    weight_line = slices * 16 + 8,                    // of the weight in threadgroup memory; rows lie in different banks
    last = run - (blocks - 1) * 8,                    // steps of a run's last block
    tap_blocks = (taps + 15) / 16,                    // of sixteen rows of the weight's gradient
    tap_sharers = tap_blocks > 2 ? 4 : tap_blocks,    // simdgroups that share these
    own_blocks = (tap_blocks + tap_sharers - 1) / tap_sharers,
    pixel_sharers = 4 / tap_sharers,                  // simdgroups that share the pixels of such a block
    gradient_line = COLUMNS + 8
  };
};

enum : uint {
  stem_threads = 128,
  stem_simdgroups = 4,
  stem_strip_line = 40,  // so that pairs which are written together lie in different banks
  stem_strip = 16 * stem_strip_line,
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
void find_windows(threadgroup uint* windows, constant AxisSize& width, uint thread_id) {
  for (uint i = thread_id; i < Shape::rows * width.number; i += stem_threads) {
    const uint y = divide(i, width.multiplier, width.shift);
    windows[i] = y * Shape::stride_y * Shape::line + (i - y * width.number) * Shape::step;
  }
}

/// Brings the lines that a tile reads, zeros outside of the image.
template <class Shape, class T>
void bring_lines(threadgroup T* memory, device const T* image, constant ContractionValues& values,
                 thread const StemTile& tile, uint simdgroup_id, uint lane_id) {
  enum : uint { ahead = 8 };
  const int end = values.width * Shape::channels;
  for (int i = int(simdgroup_id); i < Shape::lines; i += int(stem_simdgroups)) {
    const int y = int(tile.line) * Shape::stride_y - Shape::padding_y + i;
    const bool is_inside = y >= 0 && y < values.height;
    device const T* const line = image + (is_inside ? long(y) * values.y_stride : 0l);
    for (int first = int(lane_id); first < Shape::line; first += 32 * int(ahead)) {
      T elements[ahead] = {};
      UNROLL for (uint j = 0; j < ahead; ++j) {
        const int at = first + int(j) * 32 - Shape::padding;
        elements[j] = is_inside && at >= 0 && at < end ? line[at] : T(0.0f);
      }
      UNROLL for (uint j = 0; j < ahead; ++j) {
        const int at = first + int(j) * 32;
        if (at < Shape::line) memory[i * Shape::line + at] = elements[j];
      }
    }
  }
}

/// The same of float32 planes, whose numbers are rounded.
template <class Shape, class T>
void bring_lines(threadgroup T* memory, device const float* image, constant ContractionValues& values,
                 thread const StemTile& tile, uint simdgroup_id, uint lane_id) {
  enum : int { ahead = 8, channels = Shape::channels, pixels = (Shape::line + Shape::channels - 1) / Shape::channels };
  for (int i = int(simdgroup_id); i < Shape::lines * channels; i += int(stem_simdgroups)) {
    const int line = i / channels;
    const int channel = i - line * channels;
    const int y = int(tile.line) * Shape::stride_y - Shape::padding_y + line;
    const bool is_inside = y >= 0 && y < values.height;
    device const float* const plane =
        image + (is_inside ? long(y) * values.y_stride + long(channel) * values.left_step.strides[2] : 0l);
    for (int first = int(lane_id); first < pixels; first += 32 * ahead) {
      float elements[ahead] = {};
      UNROLL for (int j = 0; j < ahead; ++j) {
        const int x = first + j * 32 - Shape::padding / channels;
        elements[j] = is_inside && x >= 0 && x < values.width ? plane[x] : 0.0f;
      }
      UNROLL for (int j = 0; j < ahead; ++j) {
        const int at = (first + j * 32) * channels + channel;
        if (at < Shape::line) memory[line * Shape::line + at] = T(elements[j]);
      }
    }
  }
}

/// Brings the weight: a row for each channel of the result, in whose depth each run begins with a block.
template <class Shape, class T>
void bring_weight(threadgroup T* memory, device const T* weight, constant ContractionValues& values, uint thread_id) {
  enum : uint { ahead = 8, count = Shape::columns * Shape::weight_line };
  constant Axis& step = values.right_step;
  for (uint first = thread_id; first < count; first += ahead * stem_threads) {
    T elements[ahead] = {};
    UNROLL for (uint j = 0; j < ahead; ++j) {
      const uint column = (first + j * stem_threads) / Shape::weight_line;
      const uint depth = (first + j * stem_threads) % Shape::weight_line;
      const uint row = depth / (Shape::blocks * 8);
      const uint rest = depth % (Shape::blocks * 8);
      const bool is_there = column < values.columns && row < uint(Shape::taps_y) && rest < uint(Shape::run);
      const long at = long(column) * values.right_line.strides[2] + long(row) * step.strides[0] +
                      long(rest / Shape::channels) * step.strides[1] + long(rest % Shape::channels) * step.strides[2];
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

/// A slice of the depth of sixteen pixels. `windows`: where those of this lane's rows begin, at its column.
template <class Shape, class T>
void load_pixels(thread LeftFragment& left, threadgroup const T* thread const* windows, uint slice, uint lane_id) {
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
  threadgroup uint* windows;
  threadgroup float* sums;  // strips of results, or sums that simdgroups add up
};

/// The grid: as many threadgroups as shall share the tiles, along x. WIDTH: columns that the visitor takes at once, four
/// rows at a time.
template <class Shape, uint WIDTH, class T, class ImageSource, class WeightSource, class Visitor>
void stem_convolution(thread const ImageSource& image, thread const WeightSource& weight,
                      thread const Visitor& visitor, constant ContractionValues& values,
                      thread const StemMemory<T>& memory, uint group, uint group_count, thread const TileThread& self) {
  typedef StemLayout<Shape::weight_line> Layout;
  enum : uint {
    sums = Shape::columns / 8,
    across = Shape::columns / 16,
    kept = Shape::keeps_weight != 0 ? Shape::slices * Shape::columns / 16 : 1,
  };
  const uint lane_id = self.lane_id;
  ImageSource own_image = image;
  WeightSource own_weight = weight;
  Visitor own = visitor;
  start_sources(own_image, own_weight, values, 0u);
  own.start(0u, 0u);
  bring_weight<Shape>(memory.other, own_weight.data, values, self.thread_id);
  find_windows<Shape>(memory.windows, values.left_line.sizes[1], self.thread_id);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  RightFragments weights[kept];
  if constexpr (Shape::keeps_weight != 0) {
    UNROLL for (uint i = 0; i < kept; ++i) {
      load_right_columns<Layout>(weights[i], memory.other, i % across * 16u, i / across * 16u, lane_id);
    }
  }
  threadgroup float* const strip = memory.sums + self.simdgroup_id * stem_strip;
  for (uint number = group; number < values.row_tiles; number += group_count) {
    StemTile tile;
    find_tile<Shape>(tile, values.left_line.sizes, number);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    bring_lines<Shape>(memory.lines, own_image.data + long(tile.image) * values.left_line.strides[0], values, tile,
                       self.simdgroup_id, lane_id);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint first = self.simdgroup_id * 16u; first < tile.pixels; first += stem_simdgroups * 16u) {
      SumFragment products[sums];
      UNROLL for (uint i = 0; i < sums; ++i) clear_fragment(products[i]);
      threadgroup const T* windows[2];
      UNROLL for (uint i = 0; i < 2u; ++i) {
        const uint window = memory.windows[min(first + fragment_row(lane_id, i * 2u), tile.pixels - 1u)];
        windows[i] = memory.lines + (window + lane_id % 4u * 2u);
      }
      UNROLL for (uint slice = 0; slice < uint(Shape::slices); ++slice) {
        LeftFragment left;
        load_pixels<Shape>(left, windows, slice, lane_id);
        UNROLL for (uint i = 0; i < sums; i += 2u) {
          RightFragments right;
          if constexpr (Shape::keeps_weight != 0) {
            right = weights[slice * across + i / 2u];
          } else {
            load_right_columns<Layout>(right, memory.other, i * 8u, slice * 16u, lane_id);
          }
          multiply_fragments<T, 0>(products[i], left, right, lane_id);
          multiply_fragments<T, 1>(products[i + 1u], left, right, lane_id);
        }
      }
      UNROLL for (uint column = 0; column < uint(Shape::columns); column += 32u) {
        store_fragments<stem_strip_line>(strip, products + column / 8u, lane_id);
        simdgroup_barrier(mem_flags::mem_threadgroup);
        const FloatStrip floats = {strip, stem_strip_line};
        const uint end_column = min(column + 32u, values.columns);
        LaneColumns<WIDTH, Visitor> columns = {};
        columns.read(own, column, end_column, lane_id);
        const uint row = tile.first + first;
        const uint end_row = tile.first + tile.pixels;
        if (row + 16u <= end_row && column + 32u <= values.columns) {
          show_strip<WIDTH, true>(own, columns, floats, row, end_row, column, end_column, lane_id);
        } else {
          show_strip<WIDTH, false>(own, columns, floats, row, end_row, column, end_column, lane_id);
        }
        simdgroup_barrier(mem_flags::mem_threadgroup);
      }
    }
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
void load_taps(thread LeftFragment& left, threadgroup const T* lines, threadgroup const uint* windows,
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
    bring_lines<Shape>(memory.lines, own_image.data + long(tile.image) * values.right_step.strides[0], values, tile,
                       self.simdgroup_id, lane_id);
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
