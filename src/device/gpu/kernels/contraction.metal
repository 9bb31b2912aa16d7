// needs: element.metal
// needs: math.metal
// needs: source.metal
// needs: tile.metal
// Matrix products and the three convolutions: one sum of products
//   result[batch, row, column] = sum over k of left[batch, row, k] * right[batch, k, column]
// whose indices stand for one axis of a tensor, or for three: pixels (image, y, x) or taps (y, x, channel).
//   convolution           rows: pixels of the result   columns: output channels   k: taps
//   convolution_input     rows: pixels of the input    columns: input channels    k: taps over output channels
//   convolution_weight    rows: output channels        columns: taps              k: pixels of the result
// Groups of channels are batches. Work may be split along k: then partial sums go to scratch memory and are added up,
// in their order, by a second launch.

/// What an index means: index = (i0 * sizes[0] + i1) * sizes[1] + i2. A flat axis is strides[2] alone.
struct Axis {
  long strides[3];    // of i0, i1, i2, in elements
  AxisSize sizes[2];  // of i1 and i2
  // Of a side that reads through a window: what i0, i1 add to the window's row, and i1, i2 to its column.
  int y_strides[2];
  int x_strides[2];
  int y_start, x_start;
};

struct ContractionValues {
  long left_start, right_start, result_start;           // where the first elements lie
  long left_batch[6], right_batch[6], result_batch[6];  // strides of the batch axes
  long y_stride, x_stride;                              // of the tensor that is read through a window, in elements
  Axis left_line, left_step, right_line, right_step, row, column;
  uint batch_sizes[6];
  uint batch_rank, batches;
  uint rows, columns, depth;
  uint splits, chunk;  // parts of the depth, and the length of each but the last
  uint row_tiles, column_tiles;
  uint batch_inner;  // threads count batches first (direct)
  int height, width;        // of what is read through a window
  int y_divisor, x_divisor;  // window position / divisor is the place; others hold nothing
};

/// How a side reads: as it lies; through a window, zeros outside; through a window that hits every n-th position only.
enum WindowKind : uint { no_window = 0, plain_window = 1, divided_window = 2 };

template <class Offset>
struct Place {
  Offset offset;
  int y, x;
  bool inside;
};

/// Offset is int where all elements are within 2^31, else long.
template <class Offset, bool SPLITS, bool WINDOWED>
void find_place(thread Place<Offset>& place, constant Axis& axis, uint index, uint limit) {
  place.inside = index < limit;
  place.y = 0;
  place.x = 0;
  if constexpr (SPLITS) {
    const uint i01 = divide(index, axis.sizes[1].multiplier, axis.sizes[1].shift);
    const uint i2 = index - i01 * axis.sizes[1].number;
    const uint i0 = divide(i01, axis.sizes[0].multiplier, axis.sizes[0].shift);
    const uint i1 = i01 - i0 * axis.sizes[0].number;
    place.offset =
        Offset(i0) * Offset(axis.strides[0]) + Offset(i1) * Offset(axis.strides[1]) + Offset(i2) * Offset(axis.strides[2]);
    if constexpr (WINDOWED) {
      place.y = axis.y_start + int(i0) * axis.y_strides[0] + int(i1) * axis.y_strides[1];
      place.x = axis.x_start + int(i1) * axis.x_strides[0] + int(i2) * axis.x_strides[1];
    }
  } else {
    place.offset = Offset(index) * Offset(axis.strides[2]);
  }
}

/// A factor.
template <class Source, class Offset, bool LINE_SPLITS, bool STEP_SPLITS, uint WINDOW>
struct Side {
  typedef Offset Distance;  // from the batch's first element
  typedef Place<Offset> Line;
  typedef Place<Offset> Step;
  typedef typename Source::Sum Sum;
  enum : uint { splits_steps = STEP_SPLITS ? 1 : 0 };
  thread const Source* source;  // of the batch
  constant Axis* line_axis;
  constant Axis* step_axis;
  constant ContractionValues* values;
  uint lines;

  void line(thread Line& place, uint index) const {
    find_place<Offset, LINE_SPLITS, WINDOW != no_window>(place, *line_axis, index, lines);
  }
  void step(thread Step& place, uint index, uint end) const {
    find_place<Offset, STEP_SPLITS, WINDOW != no_window>(place, *step_axis, index, end);
  }
  /// Whether there is an element, and where it lies or would lie. Without branches, so that what is found together is
  /// found at once.
  bool locate(thread Offset& offset, thread const Line& line, thread const Step& step) const {
    bool is_there = line.inside & step.inside;
    Offset found = line.offset + step.offset;
    if constexpr (WINDOW != no_window) {
      int y = line.y + step.y;
      int x = line.x + step.x;
      if constexpr (WINDOW == divided_window) {
        const int y_place = y / values->y_divisor;
        const int x_place = x / values->x_divisor;
        is_there &= (y_place * values->y_divisor == y) & (x_place * values->x_divisor == x);
        is_there &= (y >= 0) & (x >= 0);
        y = y_place;
        x = x_place;
      }
      is_there &= (uint(y) < uint(values->height)) & (uint(x) < uint(values->width));
      found += Offset(y) * Offset(values->y_stride) + Offset(x) * Offset(values->x_stride);
    }
    offset = found;
    return is_there;
  }
  /// The same, but the first element's place where there is none.
  bool find(thread Offset& offset, thread const Line& line, thread const Step& step) const {
    const bool is_there = locate(offset, line, step);
    offset = is_there ? offset : 0;
    return is_there;
  }
  Sum at(thread const Line& line, thread const Step& step) const {
    Offset offset;
    return find(offset, line, step) ? source->at(offset) : Sum(0);
  }
};

inline long batch_offset(long start, constant long* strides, constant ContractionValues& values, uint batch) {
  long offset = start;
  for (uint axis = values.batch_rank; axis-- > 0;) {
    const uint rest = batch / values.batch_sizes[axis];
    offset += long(batch - rest * values.batch_sizes[axis]) * strides[axis];
    batch = rest;
  }
  return offset;
}

// Visitors take the elements of a result: `start` tells the batch and the part of the depth, `visit` gives an element.
// One with sums_columns adds up what a lane of a tile shows it: `fold` adds what the lanes of a column know to its sums,
// in the order of the lanes, each of which has `width` columns before it comes to the next; `finish` tells where the
// sums go. What they write
// to and where their values are is set before. Epilogues are visitors that a kernel's own text declares.

/// Stores results in their tensor.
template <class T, class Offset, bool ROW_SPLITS, bool COLUMN_SPLITS>
struct StoreVisitor {
  typedef typename SumOf<T>::type Sum;
  enum : uint { sums_columns = 0 };
  device T* result;
  constant ContractionValues* values;

  void start(uint batch, uint) { result += batch_offset(values->result_start, values->result_batch, *values, batch); }
  void visit(uint row, uint column, Sum sum) const {
    Place<Offset> row_place;
    Place<Offset> column_place;
    find_place<Offset, ROW_SPLITS, false>(row_place, values->row, row, values->rows);
    find_place<Offset, COLUMN_SPLITS, false>(column_place, values->column, column, values->columns);
    write_element(result, long(row_place.offset) + long(column_place.offset), sum);
  }
};

/// Stores partial sums: [split, batch, row, column].
template <class S>
struct PartialVisitor {
  enum : uint { sums_columns = 0 };
  device S* result;
  constant ContractionValues* values;

  void start(uint batch, uint split) {
    result += (long(split) * long(values->batches) + long(batch)) * long(values->rows) * long(values->columns);
  }
  void visit(uint row, uint column, S sum) const { result[long(row) * long(values->columns) + long(column)] = sum; }
};

/// Stores four rows at a time, four behind each other, of four columns each, in a matrix whose columns lie side by side.
template <class T, class Offset>
struct StoreRowsVisitor {
  struct Columns {};
  device T* result;
  constant ContractionValues* values;

  void start(uint batch, uint) { result += batch_offset(values->result_start, values->result_batch, *values, batch); }
  void read_columns(thread Columns&, uint) const {}
  void visit_rows(uint row, uint column, uint live, thread const float* sums, thread const Columns&) const {
    UNROLL for (uint j = 0; j < 4u; ++j) {
      if (j >= live) continue;
      const Offset at = Offset(row + j * 4u) * Offset(values->row.strides[2]) + Offset(column);
      write_four(result, long(at), make_float4(sums[j * 4u], sums[j * 4u + 1u], sums[j * 4u + 2u], sums[j * 4u + 3u]));
    }
  }
};

/// Elements of a simdgroup's strip in threadgroup memory, rows `line` apart (a multiple of four, the first one at a multiple
/// of 16 bytes).
struct FloatStrip {
  threadgroup const float* data;
  uint line;
  float at(uint i, uint j) const { return data[i * line + j]; }
  float4 four(uint i, uint j) const { return *(threadgroup const float4*)(data + i * line + j); }
};

/// What a visitor of WIDTH columns at once reads of a lane's, once for all rows (show_strip).
template <uint WIDTH, class Visitor>
struct LaneColumns {
  typename Visitor::Columns columns;

  void read(thread const Visitor& visitor, uint first_column, uint end_column, uint lane_id) {
    const uint column = first_column + lane_id % (32u / WIDTH) * WIDTH;
    if (column < end_column) visitor.read_columns(columns, column);
  }
};
template <class Visitor>
struct LaneColumns<0, Visitor> {
  void read(thread const Visitor&, uint, uint, uint) {}
};

/// Shows a visitor sixteen rows of up to 32 columns that a simdgroup has in threadgroup memory, so that neighbouring lanes
/// have neighbouring columns. WIDTH: columns that the visitor takes at once, four rows at a time, or as many as there are
/// (visit_rows); 0: it takes elements. WHOLE: all of them are there. `columns`: what was read of the same columns.
template <uint WIDTH, bool WHOLE, class Visitor, class Strip>
void show_strip(thread Visitor& visitor, thread const LaneColumns<WIDTH, Visitor>& columns, thread const Strip& strip,
                uint first_row, uint end_row, uint first_column, uint end_column, uint lane_id) {
  if constexpr (WIDTH == 0) {
    const uint column = first_column + lane_id;
    for (uint i = 0; i < 16u; ++i) {
      if (WHOLE || (first_row + i < end_row && column < end_column)) {
        visitor.visit(first_row + i, column, strip.at(i, lane_id));
      }
    }
  } else {
    enum : uint { across = 32 / WIDTH };
    const uint own_column = lane_id % across * WIDTH;
    if (!WHOLE && first_column + own_column >= end_column) return;
    for (uint i = lane_id / across; i < 16u; i += 4u * WIDTH) {
      if (!WHOLE && first_row + i >= end_row) continue;
      const uint live = WHOLE ? 4u : min((end_row - first_row - i + WIDTH - 1u) / WIDTH, 4u);
      float shown[4 * WIDTH];
      UNROLL for (uint j = 0; j < 4u; ++j) {
        if constexpr (WIDTH == 4) {
          const float4 four = strip.four(i + j * WIDTH, own_column);
          shown[j * 4u] = four.x;
          shown[j * 4u + 1u] = four.y;
          shown[j * 4u + 2u] = four.z;
          shown[j * 4u + 3u] = four.w;
        } else {
          UNROLL for (uint k = 0; k < WIDTH; ++k) shown[j * WIDTH + k] = strip.at(i + j * WIDTH, own_column + k);
        }
      }
      visitor.visit_rows(first_row + i, first_column + own_column, live, shown, columns.columns);
    }
  }
}

/// Sides of sources that are yet to start.
template <class Left, class Right, class LeftSource, class RightSource>
void set_sides(thread Left& left, thread Right& right, thread const LeftSource& left_source,
               thread const RightSource& right_source, constant ContractionValues& values) {
  left.source = &left_source;
  left.line_axis = &values.left_line;
  left.step_axis = &values.left_step;
  left.values = &values;
  left.lines = values.rows;
  right.source = &right_source;
  right.line_axis = &values.right_line;
  right.step_axis = &values.right_step;
  right.values = &values;
  right.lines = values.columns;
}

template <class LeftSource, class RightSource>
void start_sources(thread LeftSource& left_source, thread RightSource& right_source,
                   constant ContractionValues& values, uint batch) {
  left_source.start(batch_offset(values.left_start, values.left_batch, values, batch));
  right_source.start(batch_offset(values.right_start, values.right_batch, values, batch));
}

template <class Left, class Right, class LeftSource, class RightSource>
void start_sides(thread Left& left, thread Right& right, thread LeftSource& left_source,
                 thread RightSource& right_source, constant ContractionValues& values, uint batch) {
  start_sources(left_source, right_source, values, batch);
  set_sides(left, right, left_source, right_source, values);
}

/// A tile of ROWS x COLUMNS a threadgroup of 128, in slices of DEPTH, for floating types. The grid: column tiles, row tiles, splits,
/// batches, all along x.
template <class Left, class Right, class Visitor, uint ROWS, uint COLUMNS, uint DEPTH, bool LEFT_ALONG,
          bool RIGHT_ALONG, class LeftSource, class RightSource>
void tiled_product(thread LeftSource& left_source, thread RightSource& right_source,
                   thread Visitor& visitor, constant ContractionValues& values, threadgroup float* memory, uint group,
                   thread const TileThread& self) {
  TileRange range;
  const uint column_tile = group % values.column_tiles;
  group /= values.column_tiles;
  const uint row_tile = group % values.row_tiles;
  group /= values.row_tiles;
  const uint split = group % values.splits;
  const uint batch = group / values.splits;
  range.first_row = row_tile * ROWS;
  range.first_column = column_tile * COLUMNS;
  range.rows = values.rows;
  range.columns = values.columns;
  range.begin = split * values.chunk;
  range.end = min(range.begin + values.chunk, values.depth);
  Left left;
  Right right;
  start_sides(left, right, left_source, right_source, values, batch);
  left_source.store_elements(column_tile == 0);
  right_source.store_elements(row_tile == 0);
  visitor.start(batch, split);
  multiply_tile<Left, Right, Visitor, ROWS, COLUMNS, DEPTH, LEFT_ALONG, RIGHT_ALONG>(left, right, visitor, range,
                                                                                     memory, self);
}

/// Which element of the result, in which part of the depth, a thread computes.
struct DirectPlace {
  uint row, column, batch;
  ulong split;
};

inline void find_direct(thread DirectPlace& place, constant ContractionValues& values, ulong position) {
  const ulong count = ulong(values.batches) * ulong(values.rows) * ulong(values.columns);
  place.split = position / count;
  position -= place.split * count;
  const ulong inner = values.batch_inner != 0 ? ulong(values.batches) : ulong(values.columns);
  const ulong middle = values.batch_inner != 0 ? ulong(values.columns) : ulong(values.rows);
  const ulong rest = position / inner;
  const uint first = uint(position - rest * inner);
  const uint third = uint(rest / middle);
  const uint second = uint(rest - ulong(third) * middle);
  place.column = values.batch_inner != 0 ? second : first;
  place.row = values.batch_inner != 0 ? third : second;
  place.batch = values.batch_inner != 0 ? first : third;
}

/// An element, or a part of its sum, a thread: integers, and shapes that leave a tile empty. `position` is the thread's
/// in the grid.
template <class Left, class Right, class LeftSource, class RightSource, class Visitor>
void direct_product(thread LeftSource& left_source, thread RightSource& right_source,
                    thread Visitor& visitor, constant ContractionValues& values, ulong position) {
  DirectPlace place;
  find_direct(place, values, position);
  if (place.split >= ulong(values.splits)) return;
  Left left;
  Right right;
  start_sides(left, right, left_source, right_source, values, place.batch);
  typename Left::Line left_line;
  typename Right::Line right_line;
  left.line(left_line, place.row);
  right.line(right_line, place.column);
  const uint begin = uint(place.split) * values.chunk;
  const uint end = min(begin + values.chunk, values.depth);
  typename Left::Sum sum = 0;
  for (uint k = begin; k < end; ++k) {
    typename Left::Step left_step;
    typename Right::Step right_step;
    left.step(left_step, k, end);
    right.step(right_step, k, end);
    sum = multiply_add(left.at(left_line, left_step), right.at(right_line, right_step), sum);
  }
  visitor.start(place.batch, uint(place.split));
  visitor.visit(place.row, place.column, sum);
}

template <class Visitor, class S>
void visit_position(thread Visitor& visitor, constant ContractionValues& values, ulong position, S sum) {
  const ulong matrix = position / values.columns;
  visitor.start(uint(matrix / values.rows), 0);
  visitor.visit(uint(matrix % values.rows), uint(position % values.columns), sum);
}

/// Adds up partial sums, an element a thread.
template <class S, class Visitor>
void add_partials(device const S* partials, thread Visitor& visitor, constant ContractionValues& values, ulong position) {
  const ulong count = ulong(values.batches) * ulong(values.rows) * ulong(values.columns);
  if (position >= count) return;
  S sum = 0;
  for (uint split = 0; split < values.splits; ++split) sum += partials[ulong(split) * count + position];
  visit_position(visitor, values, position, sum);
}

/// The same where there are many: each of the threadgroup's eight simdgroups takes every eighth of 32 elements, and
/// their sums, in `memory`, are added in their order. `group`: which elements.
template <class S, class Visitor>
void add_many_partials(device const S* partials, thread Visitor& visitor, constant ContractionValues& values,
                       threadgroup S* memory, uint group, uint thread_id) {
  const ulong count = ulong(values.batches) * ulong(values.rows) * ulong(values.columns);
  const ulong position = ulong(group) * 32ul + ulong(thread_id % 32u);
  S sum = 0;
  for (uint split = thread_id / 32u; position < count && split < values.splits; split += 8u) {
    sum += partials[ulong(split) * count + position];
  }
  memory[thread_id] = sum;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (thread_id >= 32u || position >= count) return;
  for (uint other = 1; other < 8u; ++other) sum += memory[other * 32u + thread_id];
  visit_position(visitor, values, position, sum);
}
