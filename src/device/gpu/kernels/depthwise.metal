// needs: contraction.metal
// Depthwise convolutions and their gradients, of tensors whose neighbouring channels lie side by side. A thread has two
// channels; it goes along lines of pixels, a strip of them at a time, whose sums and whose window it keeps in registers.

/// The window of a convolution along one axis, known when the kernel is compiled. TRANSPOSED: a pixel of the input
/// finds those of the result that read it. Pixels are computed a STRIP at a time: LENGTH of them, of SOURCE_LENGTH, where
/// these are whole strips, else 0 and as many as are told at run time.
template <int TAPS, int STRIDE, int PADDING, int DILATION, bool TRANSPOSED, int STRIP, int LENGTH, int SOURCE_LENGTH>
struct DepthwiseAxis {
  enum : int {
    strip = STRIP,  // where the axis is transposed, a multiple of the stride
    taps = TAPS,
    /// What is read for a strip begins at its first pixel's place, and `before` it.
    before = TRANSPOSED ? ((TAPS - 1) * DILATION - PADDING + STRIDE - 1) / STRIDE : PADDING,
    last = TRANSPOSED ? (strip - 1 + PADDING) / STRIDE : (strip - 1) * STRIDE + (TAPS - 1) * DILATION - PADDING,
    count = last + before + 1,
    /// From strip to strip, in what is read.
    step = TRANSPOSED ? STRIP / STRIDE : STRIP * STRIDE,
    last_strip = LENGTH - STRIP,
    last_place = last_strip / STRIP * step - before,
    /// Whether only the first strip reads before the line, and only the last one behind it, whole as all others.
    even = LENGTH > 0 && step >= before && last_place - step + count <= SOURCE_LENGTH
  };
  static int place(int pixel) { return (TRANSPOSED ? pixel / STRIDE : pixel * STRIDE) - before; }
  /// Whether number i of what is read for the strip at `pixel` is in the line. Where strips are even, this depends on
  /// whether the strip is the first or the last one alone.
  static bool is_inside(int pixel, int i, int source_length) {
    if (even != 0) {
      return (i >= before || pixel > 0) && (last_place + i < SOURCE_LENGTH || pixel < last_strip);
    }
    const int at = place(pixel) + i;
    return at >= 0 && at < source_length;
  }
  /// Whether the strip's pixel j is one.
  static bool is_pixel(int pixel, int j, int length) { return LENGTH > 0 || pixel + j < length; }
  /// Whether tap k reads anything for pixel j of a strip, and which of what is read.
  static bool hits(int j, int k) { return !TRANSPOSED || (j + PADDING - k * DILATION) % STRIDE == 0; }
  static int which(int j, int k) {
    return (TRANSPOSED ? (j + PADDING - k * DILATION) / STRIDE : j * STRIDE - PADDING + k * DILATION) + before;
  }
  /// Of `lines` neighbouring pixels, the tap by which number i reads what all of them read at a step.
  static int tap(int step, int i, int lines) { return TRANSPOSED ? step - (lines - 1) + i : step - i; }
  /// The place that tap k reads for a pixel, -1 if there is none.
  static int find(int pixel, int k, int source_length) {
    const int at = TRANSPOSED ? pixel + PADDING - k * DILATION : pixel * STRIDE - PADDING + k * DILATION;
    if (at < 0 || (TRANSPOSED && at % STRIDE != 0)) return -1;
    const int found = TRANSPOSED ? at / STRIDE : at;
    return found < source_length ? found : -1;
  }
};

/// Where a thread works: channels `channel` and the next one, and lines of pixels. The grid: groups of channels, then
/// groups of lines, along x.
struct DepthwisePlace {
  uint channel, lane, line_group;
};

template <uint PAIRS>
void find_channels(thread DepthwisePlace& place, constant ContractionValues& values, uint group, uint thread_id) {
  place.line_group = group / values.column_tiles;
  place.lane = thread_id % PAIRS * 2u;
  place.channel = (group - place.line_group * values.column_tiles) * PAIRS * 2u + place.lane;
}

/// What a strip at `pixel` reads of a line, zeros outside of it. STRIDE: from a pixel to the next, known when the kernel
/// is compiled, so that they are read by constant offsets.
template <class X, int STRIDE, class Source, class Offset>
void read_window(thread typename Source::Pair* pixels, thread const Source& source, Offset line, int pixel,
                 int source_length) {
  Source strip = source;
  strip.start(long(line) + long(X::place(pixel)) * STRIDE);
  UNROLL for (int i = 0; i < X::count; ++i) {
    pixels[i] = X::is_inside(pixel, i, source_length) ? strip.pair(Offset(i * STRIDE)) : strip.no_pair();
  }
}

/// The strip's own pixels.
template <class X, int STRIDE, class Source, class Offset>
void read_strip(thread typename Source::Pair* pixels, thread const Source& source, Offset line, int pixel,
                int length) {
  Source strip = source;
  strip.start(long(line) + long(pixel) * STRIDE);
  UNROLL for (int j = 0; j < X::strip; ++j) {
    pixels[j] = X::is_pixel(pixel, j, length) ? strip.pair(Offset(j * STRIDE)) : strip.no_pair();
  }
}

/// Stores a line's strip of COUNT pixels, of which the first `live` are there: two channels of each, from `row` on.
/// PAIRED: the channels begin at an even place.
template <class T, class Offset, bool ROW_SPLITS, bool PAIRED, int COUNT>
struct StripVisitor {
  device T* result;
  constant ContractionValues* values;

  void visit_strip(uint channel, uint row, int live, thread const float2* sums) const {
    device T* const first = result + (values->result_start + long(channel) * values->result_batch[0]);
    Place<Offset> place;
    find_place<Offset, ROW_SPLITS, false>(place, values->row, row, values->rows);
    device T* at = first + place.offset;
    UNROLL for (int j = 0; j < COUNT; ++j) {
      if (j >= live) continue;
      if constexpr (ROW_SPLITS) {
        find_place<Offset, true, false>(place, values->row, row + uint(j), values->rows);
        at = first + place.offset;
      }
      if constexpr (PAIRED) {
        write_pair(at, 0, sums[j]);
      } else {
        write_element(at, 0, sums[j].x);
        write_element(at, values->result_batch[0], sums[j].y);
      }
      if constexpr (!ROW_SPLITS) at += values->row.strides[2];
    }
  }
};

/// Shows a strip to a visitor of single elements.
template <class Visitor, int COUNT>
struct StripOfElements {
  thread const Visitor* visitor;

  void visit_strip(uint channel, uint row, int live, thread const float2* sums) const {
    Visitor first = *visitor;
    Visitor second = *visitor;
    first.start(channel, 0u);
    second.start(channel + 1u, 0u);
    UNROLL for (int j = 0; j < COUNT; ++j) {
      if (j >= live) continue;
      first.visit(row + uint(j), 0u, sums[j].x);
      second.visit(row + uint(j), 0u, sums[j].y);
    }
  }
};

/// Adds a line of taps, of which the first is at `weights`, to the sums of a strip.
template <class X, uint STEP>
void add_taps(thread float2* sums, thread const float2* pixels, threadgroup const float2* weights) {
  UNROLL for (int kx = 0; kx < X::taps; ++kx) {
    const float2 factor = weights[uint(kx) * STEP];
    UNROLL for (int j = 0; j < X::strip; ++j) {
      if (!X::hits(j, kx)) continue;
      const float2 pixel = pixels[X::which(j, kx)];
      sums[j].x = fma(pixel.x, factor.x, sums[j].x);
      sums[j].y = fma(pixel.y, factor.y, sums[j].y);
    }
  }
}

/// The result, or the gradient for the input. A threadgroup of THREADS has the weights of its channels in `memory`:
/// [taps][PAIRS + 1], so that neighbouring taps lie in different banks. STRIDE: of the pixels that are read. A thread
/// has LINES neighbouring lines of an image, of which all that read a line of the input do so together: more than one
/// where neighbours read neighbours (Y has no stride and no dilation), and values.chunk pixels of each. The next line's
/// pixels are asked for before those of one are multiplied.
template <class Y, class X, class Offset, int STRIDE, uint PAIRS, uint THREADS, int LINES, class Source, class Weight,
          class Visitor>
void depthwise_lines(thread Source& source, thread Weight& weight, thread const Visitor& visitor,
                     constant ContractionValues& values, threadgroup float2* memory, uint group, uint thread_id) {
  enum : uint { taps = uint(Y::taps) * uint(X::taps), pitch = PAIRS + 1 };
  enum : int { steps = Y::taps + LINES - 1 };
  threadgroup float* const floats = (threadgroup float*)memory;
  const uint length = values.left_line.sizes[1].number;
  uint lines = group;
  uint first = 0u;
  if (values.chunk < length) {
    const uint parts = (length + values.chunk - 1u) / values.chunk;
    lines = group / parts;
    first = (group - lines * parts) * values.chunk;
  }
  const uint end = min(first + values.chunk, length);
  DepthwisePlace place;
  find_channels<PAIRS>(place, values, lines, thread_id);
  weight.start(values.right_start);
  const uint first_channel = place.channel - place.lane;
  for (uint i = thread_id; i < taps * 2u * PAIRS; i += THREADS) {
    const uint channel = i / taps;
    const uint tap = i - channel * taps;
    if (first_channel + channel >= values.batches) continue;
    floats[tap * 2u * pitch + channel] = weight.at(Offset(first_channel + channel) * Offset(values.right_batch[0]) +
                                                   Offset(tap / uint(X::taps)) * Offset(values.right_step.strides[0]) +
                                                   Offset(tap % uint(X::taps)) * Offset(values.right_step.strides[1]));
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const uint several = place.line_group * (THREADS / PAIRS) + thread_id / PAIRS;
  const uint height = values.left_line.sizes[0].number;
  const uint of_image = (height + uint(LINES - 1)) / uint(LINES);
  const uint image = several / of_image;
  const int y = int(several - image * of_image) * LINES;
  const uint line = image * height + uint(y);
  if (place.channel >= values.batches || line * length >= values.rows) return;
  source.start(values.left_start + long(place.channel) * values.left_batch[0]);
  const Offset plane = Offset(image) * Offset(values.left_line.strides[0]);
  for (int x = int(first); x < int(end); x += X::strip) {
    float2 sums[LINES * X::strip];
    UNROLL for (int j = 0; j < LINES * X::strip; ++j) sums[j] = make_float2(0.0f, 0.0f);
    typename Source::Pair ahead[X::count];
    int from = Y::find(y, Y::tap(0, 0, LINES), values.height);
    if (from >= 0) {
      read_window<X, STRIDE>(ahead, source, plane + Offset(from) * Offset(values.y_stride), x, values.width);
    }
    for (int step = 0; step < steps; ++step) {
      const bool is_line = from >= 0;
      float2 pixels[X::count];
      if (is_line) {
        UNROLL for (int i = 0; i < X::count; ++i) pixels[i] = source.floats(ahead[i]);
      }
      from = step + 1 < steps ? Y::find(y, Y::tap(step + 1, 0, LINES), values.height) : -1;
      if (from >= 0) {
        read_window<X, STRIDE>(ahead, source, plane + Offset(from) * Offset(values.y_stride), x, values.width);
      }
      if (!is_line) continue;
      UNROLL for (int i = 0; i < LINES; ++i) {
        const int ky = Y::tap(step, i, LINES);
        if (LINES > 1 && (ky < 0 || ky >= Y::taps)) continue;
        add_taps<X, pitch>(sums + i * X::strip, pixels, memory + uint(ky * X::taps) * pitch + place.lane / 2u);
      }
    }
    const int live = X::even != 0 ? int(X::strip) : min(int(X::strip), int(length) - x);
    UNROLL for (int i = 0; i < LINES; ++i) {
      if (y + i >= int(height)) continue;
      visitor.visit_strip(place.channel, (line + uint(i)) * length + uint(x), live, sums + i * X::strip);
    }
  }
}

/// Where a thread that adds up a weight's gradient is: a line of the gradient and the line of pixels that a row of taps
/// reads for it.
template <class Offset>
struct DepthwiseWalk {
  Offset gradients, pixels;
  uint line;

  /// Whether there is such a line, from `line` on in steps of `slices`.
  template <class Y>
  bool find(constant ContractionValues& values, int ky, uint slices, uint end) {
    for (; line < end; line += slices) {
      const uint height = values.right_step.sizes[0].number;
      const uint image = line / height;
      const int y = int(line - image * height);
      const int from = Y::find(y, ky, values.height);
      if (from < 0) continue;
      gradients =
          Offset(image) * Offset(values.left_step.strides[0]) + Offset(y) * Offset(values.left_step.strides[1]);
      pixels = Offset(image) * Offset(values.right_step.strides[0]) + Offset(from) * Offset(values.y_stride);
      return true;
    }
    return false;
  }
};

/// The gradient for the weight: a thread has one row of taps, and every SLICES-th line of a part of the lines
/// (values.chunk of them), whose sums the first of the slices adds up in their order. `memory`: SLICES - 1 times
/// [taps][PAIRS].
template <class Y, class X, class Offset, int GRADIENT_STRIDE, int STRIDE, uint PAIRS, uint SLICES, class Gradient,
          class Source, class Visitor>
void depthwise_weight(thread Gradient& gradient, thread Source& source, thread const Visitor& visitor,
                      constant ContractionValues& values, threadgroup float2* memory, uint group, uint thread_id) {
  enum : uint { row = uint(X::taps), all = uint(Y::taps) * uint(X::taps) * PAIRS };
  DepthwisePlace place;
  find_channels<PAIRS>(place, values, group, thread_id);
  const int ky = int(thread_id / PAIRS % uint(Y::taps));
  const uint slice = thread_id / (PAIRS * uint(Y::taps));
  const bool inside = place.channel < values.batches;
  const int length = int(values.right_step.sizes[1].number);
  const uint lines = values.depth / uint(length);
  const uint end = inside ? min((place.line_group + 1u) * values.chunk, lines) : 0u;
  gradient.start(values.left_start + long(place.channel) * values.left_batch[0]);
  source.start(values.right_start + long(place.channel) * values.right_batch[0]);
  float2 sums[row];
  UNROLL for (uint kx = 0; kx < row; ++kx) sums[kx] = make_float2(0.0f, 0.0f);
  typename Gradient::Pair slopes_ahead[X::strip];
  typename Source::Pair pixels_ahead[X::count];
  DepthwiseWalk<Offset> walk;
  walk.line = place.line_group * values.chunk + slice;
  int x = 0;
  bool any = walk.template find<Y>(values, ky, SLICES, end);
  if (any) {
    read_strip<X, GRADIENT_STRIDE>(slopes_ahead, gradient, walk.gradients, x, length);
    read_window<X, STRIDE>(pixels_ahead, source, walk.pixels, x, values.width);
  }
  while (any) {
    float2 slopes[X::strip];
    float2 pixels[X::count];
    UNROLL for (int j = 0; j < X::strip; ++j) slopes[j] = gradient.floats(slopes_ahead[j]);
    UNROLL for (int i = 0; i < X::count; ++i) pixels[i] = source.floats(pixels_ahead[i]);
    x += X::strip;
    if (x >= length) {
      x = 0;
      walk.line += SLICES;
      any = walk.template find<Y>(values, ky, SLICES, end);
    }
    if (any) {
      read_strip<X, GRADIENT_STRIDE>(slopes_ahead, gradient, walk.gradients, x, length);
      read_window<X, STRIDE>(pixels_ahead, source, walk.pixels, x, values.width);
    }
    UNROLL for (int kx = 0; kx < X::taps; ++kx) {
      UNROLL for (int j = 0; j < X::strip; ++j) {
        const float2 pixel = pixels[X::which(j, kx)];
        sums[kx].x = fma(slopes[j].x, pixel.x, sums[kx].x);
        sums[kx].y = fma(slopes[j].y, pixel.y, sums[kx].y);
      }
    }
  }
  const uint own = uint(ky) * row * PAIRS + place.lane / 2u;
  if constexpr (SLICES > 1) {
    if (slice > 0u) {
      UNROLL for (uint kx = 0; kx < row; ++kx) memory[(slice - 1u) * all + own + kx * PAIRS] = sums[kx];
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  if (!inside || slice > 0u) return;
  for (uint other = 0; other + 1u < SLICES; ++other) {
    UNROLL for (uint kx = 0; kx < row; ++kx) sums[kx] = sums[kx] + memory[other * all + own + kx * PAIRS];
  }
  Visitor first = visitor;
  Visitor second = visitor;
  first.start(place.channel, place.line_group);
  second.start(place.channel + 1u, place.line_group);
  UNROLL for (uint kx = 0; kx < row; ++kx) {
    first.visit(0u, uint(ky) * row + kx, sums[kx].x);
    second.visit(0u, uint(ky) * row + kx, sums[kx].y);
  }
}
