// needs: contraction.metal
// Depthwise convolutions and their gradients, of tensors whose neighbouring channels lie side by side. A thread has two
// channels; it goes along lines of pixels, eight at a time, whose sums and whose window it keeps in registers.

/// The window of a convolution along one axis, known when the kernel is compiled. TRANSPOSED: a pixel of the input
/// finds those of the result that read it.
template <int TAPS, int STRIDE, int PADDING, int DILATION, bool TRANSPOSED>
struct DepthwiseAxis {
  enum : int {
    strip = 8,  // a multiple of every stride
    taps = TAPS,
    /// What is read for a strip begins at its first pixel's place, and `before` it.
    before = TRANSPOSED ? ((TAPS - 1) * DILATION - PADDING + STRIDE - 1) / STRIDE : PADDING,
    last = TRANSPOSED ? (strip - 1 + PADDING) / STRIDE : (strip - 1) * STRIDE + (TAPS - 1) * DILATION - PADDING,
    count = last + before + 1
  };
  static int place(int pixel) { return (TRANSPOSED ? pixel / STRIDE : pixel * STRIDE) - before; }
  /// Whether tap k reads anything for pixel j of a strip, and which of what is read.
  static bool hits(int j, int k) { return !TRANSPOSED || (j + PADDING - k * DILATION) % STRIDE == 0; }
  static int which(int j, int k) {
    return (TRANSPOSED ? (j + PADDING - k * DILATION) / STRIDE : j * STRIDE - PADDING + k * DILATION) + before;
  }
  /// Of `lines` neighbouring pixels, the tap by which number i reads what all of them read at a step.
  static int tap(int step, int i, int lines) { return TRANSPOSED ? step - (lines - 1) + i : step - i; }
  /// The place that tap k reads for a pixel, -1 if there is none.
  static int find(int pixel, int k) {
    if (!TRANSPOSED) return pixel * STRIDE - PADDING + k * DILATION;
    const int place = pixel + PADDING - k * DILATION;
    return place >= 0 && place % STRIDE == 0 ? place / STRIDE : -1;
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

/// COUNT neighbouring pixels of a line from `first` on, zeros outside of the line. STRIDE: from one to the next, known
/// when the kernel is compiled, so that they are read by constant offsets.
template <int COUNT, int STRIDE, class Source, class Offset>
void read_strip(thread float2* pixels, thread const Source& source, Offset line, int first, int width) {
  const Offset start = line + Offset(first) * Offset(STRIDE);
  if (first >= 0 && first + COUNT <= width) {
    UNROLL for (int i = 0; i < COUNT; ++i) pixels[i] = source.pair(start + Offset(i * STRIDE));
  } else {
    UNROLL for (int i = 0; i < COUNT; ++i) {
      const bool inside = first + i >= 0 && first + i < width;
      pixels[i] = inside ? source.pair(start + Offset(i * STRIDE)) : make_float2(0.0f, 0.0f);
    }
  }
}

/// The result, or the gradient for the input. A threadgroup of THREADS has the weights of its channels in `memory`:
/// [taps][PAIRS]. STRIDE: of the pixels that are read. A thread has LINES neighbouring lines of an image, of which all
/// that read a line of the input do so together: more than one where neighbours read neighbours (Y has no stride and no
/// dilation).
template <class Y, class X, class Offset, int STRIDE, uint PAIRS, uint THREADS, int LINES, class Source, class Weight,
          class Visitor>
void depthwise_lines(thread Source& source, thread Weight& weight, thread const Visitor& visitor,
                     constant ContractionValues& values, threadgroup float2* memory, uint group, uint thread_id) {
  enum : uint { taps = uint(Y::taps) * uint(X::taps), width = 2 * PAIRS };
  threadgroup float* const floats = (threadgroup float*)memory;
  DepthwisePlace place;
  find_channels<PAIRS>(place, values, group, thread_id);
  weight.start(values.right_start);
  const uint first_channel = place.channel - place.lane;
  for (uint i = thread_id; i < taps * width; i += THREADS) {
    const uint channel = i / taps;
    const uint tap = i - channel * taps;
    if (first_channel + channel >= values.batches) continue;
    floats[tap * width + channel] = weight.at(Offset(first_channel + channel) * Offset(values.right_batch[0]) +
                                              Offset(tap / uint(X::taps)) * Offset(values.right_step.strides[0]) +
                                              Offset(tap % uint(X::taps)) * Offset(values.right_step.strides[1]));
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const uint several = place.line_group * (THREADS / PAIRS) + thread_id / PAIRS;
  const uint height = values.left_line.sizes[0];
  const uint of_image = (height + uint(LINES - 1)) / uint(LINES);
  const uint image = several / of_image;
  const int y = int(several - image * of_image) * LINES;
  const int line_length = int(values.left_line.sizes[1]);
  const uint line = image * height + uint(y);
  if (place.channel >= values.batches || line * uint(line_length) >= values.rows) return;
  source.start(values.left_start + long(place.channel) * values.left_batch[0]);
  Visitor first = visitor;
  Visitor second = visitor;
  first.start(place.channel, 0u);
  second.start(place.channel + 1u, 0u);
  const Offset plane = Offset(image) * Offset(values.left_line.strides[0]);
  for (int x = 0; x < line_length; x += X::strip) {
    float2 sums[LINES * X::strip];
    UNROLL for (int j = 0; j < LINES * X::strip; ++j) sums[j] = make_float2(0.0f, 0.0f);
    for (int step = 0; step < Y::taps + LINES - 1; ++step) {
      const int from = Y::find(y, Y::tap(step, 0, LINES));
      if (from < 0 || from >= values.height) continue;
      float2 pixels[X::count];
      read_strip<X::count, STRIDE>(pixels, source, plane + Offset(from) * Offset(values.y_stride), X::place(x),
                                   values.width);
      UNROLL for (int i = 0; i < LINES; ++i) {
        const int ky = Y::tap(step, i, LINES);
        if (LINES > 1 && (ky < 0 || ky >= Y::taps)) continue;
        threadgroup const float2* const weights = memory + uint(ky * X::taps) * PAIRS + place.lane / 2u;
        UNROLL for (int kx = 0; kx < X::taps; ++kx) {
          const float2 factor = weights[uint(kx) * PAIRS];
          UNROLL for (int j = 0; j < X::strip; ++j) {
            if (!X::hits(j, kx)) continue;
            const float2 pixel = pixels[X::which(j, kx)];
            sums[i * X::strip + j].x = fma(pixel.x, factor.x, sums[i * X::strip + j].x);
            sums[i * X::strip + j].y = fma(pixel.y, factor.y, sums[i * X::strip + j].y);
          }
        }
      }
    }
    UNROLL for (int i = 0; i < LINES; ++i) {
      if (y + i >= int(height)) continue;
      UNROLL for (int j = 0; j < X::strip; ++j) {
        if (x + j >= line_length) continue;
        const uint pixel = (line + uint(i)) * uint(line_length) + uint(x + j);
        first.visit(pixel, 0u, sums[i * X::strip + j].x);
        second.visit(pixel, 0u, sums[i * X::strip + j].y);
      }
    }
  }
}

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
  const uint ky = thread_id / PAIRS % uint(Y::taps);
  const uint slice = thread_id / (PAIRS * uint(Y::taps));
  const bool inside = place.channel < values.batches;
  const uint height = values.right_step.sizes[0];
  const int line_length = int(values.right_step.sizes[1]);
  const uint lines = values.depth / uint(line_length);
  const uint end = inside ? min((place.line_group + 1u) * values.chunk, lines) : 0u;
  gradient.start(values.left_start + long(place.channel) * values.left_batch[0]);
  source.start(values.right_start + long(place.channel) * values.right_batch[0]);
  float2 sums[row];
  UNROLL for (uint kx = 0; kx < row; ++kx) sums[kx] = make_float2(0.0f, 0.0f);
  for (uint line = place.line_group * values.chunk + slice; line < end; line += SLICES) {
    const uint image = line / height;
    const int y = int(line - image * height);
    const int from = Y::find(y, int(ky));
    if (from < 0 || from >= values.height) continue;
    const Offset gradients =
        Offset(image) * Offset(values.left_step.strides[0]) + Offset(y) * Offset(values.left_step.strides[1]);
    const Offset pixels_line =
        Offset(image) * Offset(values.right_step.strides[0]) + Offset(from) * Offset(values.y_stride);
    for (int x = 0; x < line_length; x += X::strip) {
      float2 slopes[X::strip];
      float2 pixels[X::count];
      read_strip<X::strip, GRADIENT_STRIDE>(slopes, gradient, gradients, x, line_length);
      read_strip<X::count, STRIDE>(pixels, source, pixels_line, X::place(x), values.width);
      UNROLL for (int kx = 0; kx < X::taps; ++kx) {
        UNROLL for (int j = 0; j < X::strip; ++j) {
          const float2 pixel = pixels[X::which(j, kx)];
          sums[kx].x = fma(slopes[j].x, pixel.x, sums[kx].x);
          sums[kx].y = fma(slopes[j].y, pixel.y, sums[kx].y);
        }
      }
    }
  }
  const uint own = ky * row * PAIRS + place.lane / 2u;
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
    first.visit(0u, ky * row + kx, sums[kx].x);
    second.visit(0u, ky * row + kx, sums[kx].y);
  }
}
