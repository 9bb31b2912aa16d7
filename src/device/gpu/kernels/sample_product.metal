// needs: contraction.metal
// A sample's share of a contraction, by a threadgroup: its left factor lies in threadgroup memory, an image with what
// windows see around it, so that an element is found by adding two numbers, and so does the right factor, if several
// rows read it. Products are fused multiply-adds of float32. The rows of sample i are `rows` from i * rows on.

enum : uint { sample_threads = 1024 };

/// CHANNELS planes of HEIGHT x WIDTH positions, the first of which stands for (TOP, LEFT) of what windows move over, in
/// lines PITCH apart. Without a window a plane is a number of the row.
template <uint CHANNELS, uint HEIGHT, uint WIDTH, uint PITCH, int TOP, int LEFT>
struct SampleImage {
  enum : uint {
    channels = CHANNELS,
    positions = HEIGHT * WIDTH,
    pitch = PITCH,
    plane = HEIGHT * PITCH,
    count = (CHANNELS * HEIGHT * PITCH + 3) / 4 * 4,
  };
  enum : int { width = WIDTH, top = TOP, left = LEFT };
};

/// Windows over an image, of which (0, 0) sees its first rows and columns. Of gradients of images taps come in reverse.
template <uint TAPS_Y, uint TAPS_X, uint STRIDE_Y, uint STRIDE_X, uint DILATION_Y, uint DILATION_X, bool REVERSED>
struct SampleWindow {
  enum : uint {
    taps_y = TAPS_Y,
    taps_x = TAPS_X,
    stride_y = STRIDE_Y,
    stride_x = STRIDE_X,
    dilation_y = DILATION_Y,
    dilation_x = DILATION_X,
    reversed = REVERSED ? 1 : 0,
  };
};

/// How a threadgroup divides the work, rows of HEIGHT x WIDTH pixels: a thread has DOWN neighbours of a line, of LANES
/// neighbouring columns, and one of SHARES parts of the depth. Depth counts taps of a line, then lines of a window, then
/// channels. Sums that are SPREAD go to threadgroup memory, so that all threads store results.
template <uint HEIGHT, uint WIDTH, uint COLUMNS, uint CHANNELS, class Window, uint DOWN, uint LANES, uint SHARES,
          bool SPREAD>
struct SampleWork {
  enum : uint {
    width = WIDTH,
    rows = HEIGHT * WIDTH,
    columns = COLUMNS,
    lines = CHANNELS * uint(Window::taps_y),
    depth = CHANNELS * uint(Window::taps_y) * uint(Window::taps_x),
    down = DOWN,
    fours = LANES / 4,
    shares = SHARES,
    spread = SPREAD ? 1 : 0,
    across = (COLUMNS + LANES - 1) / LANES,
    blocks_x = (WIDTH + DOWN - 1) / DOWN,
    blocks = HEIGHT * ((WIDTH + DOWN - 1) / DOWN),
    items = HEIGHT * ((WIDTH + DOWN - 1) / DOWN) * ((COLUMNS + LANES - 1) / LANES) * SHARES,
    part = (CHANNELS * uint(Window::taps_y) + SHARES - 1) / SHARES,
    padded = (COLUMNS + LANES - 1) / LANES * LANES,
    rounds = (HEIGHT * WIDTH * COLUMNS + sample_threads - 1) / sample_threads,
  };
};

/// Elements of a factor that threadgroup memory is to hold.
template <class Image, bool WINDOWED, class Left>
struct ImageElements {
  enum : uint { count = Image::channels * Image::positions };
  thread const Left* left;
  constant ContractionValues* values;
  uint sample;

  float at(uint i) const {
    typename Left::Line line;
    typename Left::Step step;
    if constexpr (WINDOWED) {
      const uint channel = i / Image::positions;
      const int position = int(i - channel * Image::positions);
      line.offset = typename Left::Distance(sample) * typename Left::Distance(left->line_axis->strides[0]);
      line.y = line.x = 0;
      line.inside = true;
      step.offset = typename Left::Distance(channel) * typename Left::Distance(left->step_axis->strides[2]);
      step.y = position / Image::width + Image::top;
      step.x = position % Image::width + Image::left;
      step.inside = true;
    } else {
      left->line(line, sample);
      left->step(step, i, values->depth);
    }
    return left->at(line, step);
  }
  uint place(uint i) const { return i + i / uint(Image::width) * (Image::pitch - uint(Image::width)); }
};

/// Columns side by side at each step, as many as Work::padded. Taps lie evenly in memory.
template <class Work, class Window, class Right>
struct ColumnElements {
  enum : uint { count = Work::depth * Work::padded, taps = uint(Window::taps_y) * uint(Window::taps_x) };
  typedef typename Right::Distance Distance;
  thread const Right* right;

  float at(uint i) const {
    const uint column = i % Work::padded;
    const uint k = i / Work::padded;
    const Distance first = Distance(column) * Distance(right->line_axis->strides[2]);
    return column < Work::columns ? right->source->at(first + distance(k)) : 0.0f;
  }
  uint place(uint i) const { return i; }

 private:
  Distance distance(uint k) const {
    const Distance of_tap = Distance(right->step_axis->strides[1]);
    const Distance of_channel = Distance(right->step_axis->strides[2]);
    if (Window::reversed == 0 && of_channel == of_tap * Distance(taps)) return Distance(k) * of_tap;
    const uint tap = Window::reversed != 0 ? taps - 1u - k % taps : k % taps;
    return Distance(k / taps) * of_channel + Distance(tap) * of_tap;
  }
};

/// A thread's elements, of which it asks for several before it waits for the first.
template <class Elements>
struct HeldElements {
  enum : uint { ahead = 4, most = uint(ahead) * uint(sample_threads) };
  float held[ahead];

  void load(thread const Elements& elements, uint from) {
    UNROLL for (uint i = 0; i < ahead; ++i) {
      held[i] = from + i * sample_threads < Elements::count ? elements.at(from + i * sample_threads) : 0.0f;
    }
  }
  void store(thread const Elements& elements, threadgroup float* memory, uint from) const {
    UNROLL for (uint i = 0; i < ahead; ++i) {
      if (from + i * sample_threads < Elements::count) memory[elements.place(from + i * sample_threads)] = held[i];
    }
  }
};

/// Brings elements from `from` on to threadgroup memory.
template <class Elements>
void stage(thread const Elements& elements, threadgroup float* memory, uint from) {
  for (; from < Elements::count; from += HeldElements<Elements>::most) {
    HeldElements<Elements> held = {};
    held.load(elements, from);
    held.store(elements, memory, from);
  }
}

/// Both: the first of each are asked for together.
template <class First, class Second>
void stage_both(thread const First& first, threadgroup float* first_memory, thread const Second& second,
                threadgroup float* second_memory, uint thread_id) {
  HeldElements<First> some = {};
  HeldElements<Second> others = {};
  some.load(first, thread_id);
  others.load(second, thread_id);
  some.store(first, first_memory, thread_id);
  others.store(second, second_memory, thread_id);
  stage(first, first_memory, thread_id + HeldElements<First>::most);
  stage(second, second_memory, thread_id + HeldElements<Second>::most);
}

/// Columns of the right factor at a step, four at a time, from threadgroup memory.
template <uint PADDED>
struct StagedColumns {
  threadgroup const float* data;  // of the first column
  float4 at(uint k, uint four) const { return *(threadgroup const float4*)(data + k * PADDED + four * 4u); }
};

/// Likewise from memory, where columns lie side by side in vectors.
template <class T, class Offset>
struct MemoryColumns {
  device const T* data;
  Offset stride;  // from step to step
  float4 at(uint k, uint four) const { return read_four(data, long(Offset(k) * stride + Offset(four * 4u))); }
};

inline float4 multiply_add(float4 a, float4 b, float4 sum) {
  return make_float4(fma(a.x, b.x, sum.x), fma(a.y, b.y, sum.y), fma(a.z, b.z, sum.z), fma(a.w, b.w, sum.w));
}
inline float4 multiply_add(float a, float4 b, float4 sum) {
  return make_float4(fma(a, b.x, sum.x), fma(a, b.y, sum.y), fma(a, b.z, sum.z), fma(a, b.w, sum.w));
}

/// Adds up products of the lines [begin, end) of windows; `image` is where the first pixel's window begins.
template <class Work, class Image, class Window, class Columns>
void add_lines(thread float4* sums, threadgroup const float* image, thread const Columns& columns, uint begin,
               uint end) {
  // Neighbouring windows share what they see, if they move by single pixels.
  enum : uint {
    shared = Window::stride_x == 1 && Window::dilation_x == 1 ? 1 : 0,
    seen = Window::stride_x == 1 && Window::dilation_x == 1 ? Work::down + Window::taps_x - 1u
                                                            : Work::down * Window::taps_x,
  };
  for (uint line = begin; line < end; ++line) {
    threadgroup const float* const row = image + line / Window::taps_y * Image::plane +
                                         line % Window::taps_y * (Window::dilation_y * Image::pitch);
    float pixels[seen];
    UNROLL for (uint i = 0; i < seen; ++i) {
      pixels[i] = row[shared != 0 ? i
                                  : i / Window::taps_x * Window::stride_x + i % Window::taps_x * Window::dilation_x];
    }
    UNROLL for (uint x = 0; x < Window::taps_x; ++x) {
      UNROLL for (uint four = 0; four < Work::fours; ++four) {
        const float4 right = columns.at(line * Window::taps_x + x, four);
        UNROLL for (uint j = 0; j < Work::down; ++j) {
          const float pixel = pixels[shared != 0 ? j + x : j * Window::taps_x + x];
          sums[j * Work::fours + four] = multiply_add(pixel, right, sums[j * Work::fours + four]);
        }
      }
    }
  }
}

/// Likewise of a row, by columns that come from memory: several are asked for before the first is multiplied.
template <class Work, class Columns>
void add_row(thread float4* sums, threadgroup const float* row, thread const Columns& columns, uint begin, uint end) {
  enum : uint { ahead = 8 };
  for (uint from = begin; from < end; from += ahead) {
    float4 right[ahead * Work::fours];
    UNROLL for (uint i = 0; i < ahead; ++i) {
      UNROLL for (uint four = 0; four < Work::fours; ++four) {
        right[i * Work::fours + four] = columns.at(min(from + i, end - 1u), four);
      }
    }
    UNROLL for (uint i = 0; i < ahead; ++i) {
      if (from + i >= end) continue;
      UNROLL for (uint four = 0; four < Work::fours; ++four) {
        sums[four] = multiply_add(row[from + i], right[i * Work::fours + four], sums[four]);
      }
    }
  }
}

/// The product of a sample. `memory`: the image and, if they are STAGED, the columns; afterwards sums that are spread,
/// if there are no more items than threads.
template <class T, class Work, class Image, class Window, class Left, class Right, bool WINDOWED, bool STAGED,
          class LeftSource, class RightSource, class Visitor>
void sample_tiles(thread LeftSource& left_source, thread RightSource& right_source, thread Visitor& visitor,
                  constant ContractionValues& values, threadgroup float* memory, uint sample, uint thread_id) {
  Left left;
  Right right;
  start_sides(left, right, left_source, right_source, values, 0);
  visitor.start(0, 0);
  threadgroup float* const weights = memory + Image::count;
  ImageElements<Image, WINDOWED, Left> image;
  image.left = &left;
  image.values = &values;
  image.sample = sample;
  if constexpr (STAGED) {
    ColumnElements<Work, Window, Right> columns;
    columns.right = &right;
    stage_both(image, memory, columns, weights, thread_id);
  } else {
    stage(image, memory, thread_id);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const uint first_row = sample * Work::rows;
  float4 sums[Work::down * Work::fours];
  for (uint item = thread_id; item < Work::items; item += sample_threads) {
    const uint block = item % Work::blocks;
    const uint rest = item / Work::blocks;
    const uint column = rest % Work::across * (Work::fours * 4u);
    const uint begin = rest / Work::across * Work::part;
    const uint end = min(begin + Work::part, uint(Work::lines));
    const uint y = block / Work::blocks_x;
    const uint first_x = block % Work::blocks_x * Work::down;
    const uint x = min(first_x, Work::width - Work::down);
    threadgroup const float* const first =
        memory + y * Window::stride_y * Image::pitch + x * Window::stride_x;
    UNROLL for (uint i = 0; i < Work::down * Work::fours; ++i) sums[i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if constexpr (STAGED) {
      StagedColumns<Work::padded> columns;
      columns.data = weights + column;
      add_lines<Work, Image, Window>(sums, first, columns, begin, end);
    } else {
      MemoryColumns<T, typename Right::Distance> columns;
      columns.data = right_source.data + column;
      columns.stride = typename Right::Distance(values.right_step.strides[2]);
      add_row<Work>(sums, memory, columns, begin, end);
    }
    if constexpr (Work::spread == 0) {
      UNROLL for (uint j = 0; j < Work::down; ++j) {
        if (x + j < first_x) continue;  // a neighbour's
        UNROLL for (uint four = 0; four < Work::fours; ++four) {
          const float4 sum = sums[j * Work::fours + four];
          const float each[4] = {sum.x, sum.y, sum.z, sum.w};
          UNROLL for (uint i = 0; i < 4u; ++i) {
            const uint at = column + four * 4u + i;
            if (at < Work::columns) visitor.visit(first_row + y * Work::width + x + j, at, each[i]);
          }
        }
      }
    }
  }
  if constexpr (Work::spread != 0) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (thread_id < Work::items) {
      const uint block = thread_id % Work::blocks;
      const uint first_x = block % Work::blocks_x * Work::down;
      const uint x = min(first_x, Work::width - Work::down);
      threadgroup float* const part = memory + thread_id / Work::blocks * (Work::fours * 4u * Work::rows) +
                                      block / Work::blocks_x * Work::width + x;
      UNROLL for (uint j = 0; j < Work::down; ++j) {
        if (x + j < first_x) continue;
        UNROLL for (uint four = 0; four < Work::fours; ++four) {
          const float4 sum = sums[j * Work::fours + four];
          part[four * 4u * Work::rows + j] = sum.x;
          part[(four * 4u + 1u) * Work::rows + j] = sum.y;
          part[(four * 4u + 2u) * Work::rows + j] = sum.z;
          part[(four * 4u + 3u) * Work::rows + j] = sum.w;
        }
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    // Neighbouring threads store neighbours; what a thread's results need is asked for together.
    const bool are_columns_neighbours = values.column.strides[2] == 1;
    UNROLL for (uint round = 0; round < Work::rounds; ++round) {
      const uint i = round * sample_threads + thread_id;
      if (i >= Work::rows * Work::columns) continue;
      const uint column = are_columns_neighbours ? i % Work::columns : i / Work::rows;
      const uint row = are_columns_neighbours ? i / Work::columns : i % Work::rows;
      threadgroup const float* const sums_of_it = memory + column * Work::rows + row;
      float sum = *sums_of_it;
      UNROLL for (uint share = 1; share < Work::shares; ++share) {
        sum += sums_of_it[share * (Work::padded * Work::rows)];
      }
      visitor.visit(first_row + row, column, sum);
    }
  }
}

/// The row of a sample, where the right factor's columns lie along the depth, in vectors of four: sixteen lanes for two
/// columns. A short row is read from memory together with the columns, a longer one lies in threadgroup memory.
template <class T, class Work, class Image, class Left, class Right, class LeftSource, class RightSource, class Visitor>
void sample_row(thread LeftSource& left_source, thread RightSource& right_source, thread Visitor& visitor,
                constant ContractionValues& values, threadgroup float* memory, uint sample, uint thread_id) {
  enum : uint {
    lanes = 16,
    at_once = sample_threads / 16 * 2,
    fours = (Work::depth / 4 + 15) / 16,
    most_ahead = sizeof(T) == 2 ? 8 : 4,  // in registers
    ahead = uint(fours) < uint(most_ahead) ? uint(fours) : uint(most_ahead),
    is_short = fours <= 2 ? 1 : 0,
  };
  Left left;
  Right right;
  start_sides(left, right, left_source, right_source, values, 0);
  visitor.start(0, 0);
  ImageElements<Image, false, Left> row;
  row.left = &left;
  row.values = &values;
  row.sample = sample;
  if constexpr (is_short == 0) {
    stage(row, memory, thread_id);
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  const uint lane = thread_id % lanes;
  for (uint first = 0; first < Work::columns; first += at_once) {
    const uint column = first + thread_id / lanes * 2u;
    typename Right::Line line;
    typename Right::Line next;
    right.line(line, min(column, Work::columns - 1u));
    right.line(next, min(column + 1u, Work::columns - 1u));
    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    float4 next_sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    for (uint from = 0; from < fours; from += ahead) {
      float4 weights[2 * ahead];
      UNROLL for (uint i = 0; i < ahead; ++i) {
        const uint k = ((from + i) * lanes + lane) * 4u;
        const long at = k < Work::depth ? long(k) : 0l;
        weights[2u * i] = read_four(right_source.data, long(line.offset) + at);
        weights[2u * i + 1u] = read_four(right_source.data, long(next.offset) + at);
      }
      UNROLL for (uint i = 0; i < ahead; ++i) {
        const uint k = ((from + i) * lanes + lane) * 4u;
        if (k >= Work::depth) continue;
        float4 four;
        if constexpr (is_short != 0) {
          four = make_float4(row.at(k), row.at(k + 1u), row.at(k + 2u), row.at(k + 3u));
        } else {
          four = *(threadgroup const float4*)(memory + k);
        }
        sum = multiply_add(four, weights[2u * i], sum);
        next_sum = multiply_add(four, weights[2u * i + 1u], next_sum);
      }
    }
    // Of sixteen lanes the first eight keep the one column, the others the next.
    const bool is_next = lane >= lanes / 2u;
    const float all = (sum.x + sum.y) + (sum.z + sum.w);
    const float next_all = (next_sum.x + next_sum.y) + (next_sum.z + next_sum.w);
    float own = (is_next ? next_all : all) + simd_shuffle_xor(is_next ? all : next_all, ushort(lanes / 2));
    UNROLL for (ushort distance = lanes / 4; distance > 0; distance /= 2) own += simd_shuffle_xor(own, distance);
    const uint own_column = column + (is_next ? 1u : 0u);
    if (lane % (lanes / 2u) == 0u && own_column < Work::columns) visitor.visit(sample, own_column, own);
  }
}
