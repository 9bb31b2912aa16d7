// Loads and stores of rectangles, with conversion between the type in memory and the tile.
#include <cstring>
#include <utility>

#include "device/cpu/group/install.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/group/memory.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.
#include "device/cpu/group/half-inl.h"
#include "device/cpu/group/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace russet::cpu::tiles {
namespace HWY_NAMESPACE {
namespace {

template <class T>
inline constexpr bool is_half = std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>;

template <class S>
using LaneOf = std::conditional_t<
    is_half<S> || std::is_same_v<S, float>, float,
    std::conditional_t<std::is_same_v<S, double> || std::is_same_v<S, std::int64_t>, S, std::int32_t>>;

template <class S>
HWY_INLINE LaneOf<S> widened(S value) {
  return static_cast<LaneOf<S>>(value);
}
template <class S>
HWY_INLINE S narrowed(LaneOf<S> value) {
  if constexpr (std::is_same_v<S, bool>) {
    return value != 0;
  } else {
    return static_cast<S>(value);
  }
}

template <class S>
HWY_ATTR HWY_INLINE void load_run(const S* from, std::int64_t count, LaneOf<S>* to) {
  if constexpr (std::is_same_v<S, LaneOf<S>>) {
    std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(S));
  } else if constexpr (is_half<S>) {
    const hn::ScalableTag<float> d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    std::int64_t i = 0;
    for (; i + lanes <= count; i += lanes) hn::StoreU(loaded(d, from + i), d, to + i);
    if (i == count) return;
    S buffer[HWY_MAX_BYTES / sizeof(float)] = {};
    std::memcpy(buffer, from + i, static_cast<std::size_t>(count - i) * sizeof(S));
    HWY_ALIGN float rest[HWY_MAX_BYTES / sizeof(float)];
    hn::Store(loaded(d, buffer), d, rest);
    std::memcpy(to + i, rest, static_cast<std::size_t>(count - i) * sizeof(float));
  } else {
    for (std::int64_t i = 0; i < count; ++i) to[i] = widened(from[i]);
  }
}

template <class S>
HWY_ATTR HWY_INLINE void store_run(const LaneOf<S>* from, std::int64_t count, S* to) {
  if constexpr (std::is_same_v<S, LaneOf<S>>) {
    std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(S));
  } else if constexpr (is_half<S>) {
    const hn::ScalableTag<float> d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    std::int64_t i = 0;
    for (; i + lanes <= count; i += lanes) stored(d, hn::LoadU(d, from + i), to + i);
    if (i == count) return;
    S buffer[HWY_MAX_BYTES / sizeof(float)];
    stored(d, hn::LoadU(d, from + i), buffer);
    std::memcpy(to + i, buffer, static_cast<std::size_t>(count - i) * sizeof(S));
  } else {
    for (std::int64_t i = 0; i < count; ++i) to[i] = narrowed<S>(from[i]);
  }
}

template <class T>
HWY_ATTR HWY_INLINE void fill_run(T value, std::int64_t count, T* to) {
  const hn::ScalableTag<T> d;
  const auto vector = hn::Set(d, value);
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  if (count < lanes) {
    for (std::int64_t i = 0; i < count; ++i) to[i] = value;
    return;
  }
  for (std::int64_t i = 0; i + lanes <= count; i += lanes) hn::StoreU(vector, d, to + i);
  hn::StoreU(vector, d, to + count - lanes);
}

/// Copies the first row to the others, by doubling where rows lie close.
template <class T>
HWY_ATTR HWY_INLINE void repeat_first_row(const Block& block, T* tile) {
  const auto bytes = static_cast<std::size_t>(block.columns) * sizeof(T);
  if (block.pitch != block.columns) {
    for (std::int64_t r = 1; r < block.rows; ++r) std::memcpy(tile + r * block.pitch, tile, bytes);
    return;
  }
  for (std::int64_t r = 1; r < block.rows; r *= 2) {
    std::memcpy(tile + r * block.pitch, tile, bytes * static_cast<std::size_t>(std::min(r, block.rows - r)));
  }
}

inline std::int64_t magnitude(std::int64_t stride) { return stride < 0 ? -stride : stride; }

#if HWY_TARGET != HWY_SCALAR
template <class D, class S>
HWY_INLINE hn::Vec<D> loaded_float(D d, const S* memory) {
  if constexpr (is_half<S>) {
    return loaded(d, memory);
  } else {
    return hn::LoadU(d, memory);
  }
}

/// Rows lie closer than columns: transposes squares of 4 in registers.
template <class S>
HWY_ATTR void load_transposed(const Block& b, const S* from, float* to) {
  const hn::CappedTag<float, 4> d;
  for (std::int64_t c = 0; c < b.columns; c += 4) {
    for (std::int64_t r = 0; r < b.rows; r += 4) {
      const S* corner = from + c * b.column_stride + r;
      float* out = to + r * b.pitch + c;
      const auto c0 = loaded_float(d, corner);
      const auto c1 = loaded_float(d, corner + b.column_stride);
      const auto c2 = loaded_float(d, corner + 2 * b.column_stride);
      const auto c3 = loaded_float(d, corner + 3 * b.column_stride);
      const auto even_low = hn::InterleaveLower(d, c0, c2);
      const auto even_high = hn::InterleaveUpper(d, c0, c2);
      const auto odd_low = hn::InterleaveLower(d, c1, c3);
      const auto odd_high = hn::InterleaveUpper(d, c1, c3);
      hn::StoreU(hn::InterleaveLower(d, even_low, odd_low), d, out);
      hn::StoreU(hn::InterleaveUpper(d, even_low, odd_low), d, out + b.pitch);
      hn::StoreU(hn::InterleaveLower(d, even_high, odd_high), d, out + 2 * b.pitch);
      hn::StoreU(hn::InterleaveUpper(d, even_high, odd_high), d, out + 3 * b.pitch);
    }
  }
}
#endif

/// Loads what it can of a transposed block by squares; returns how many rows and columns that are.
template <class S>
HWY_ATTR std::pair<std::int64_t, std::int64_t> load_squares([[maybe_unused]] const Block& b,
                                                            [[maybe_unused]] const S* from,
                                                            [[maybe_unused]] LaneOf<S>* to) {
#if HWY_TARGET != HWY_SCALAR
  if constexpr (std::is_same_v<LaneOf<S>, float>) {
    if (b.row_stride != 1) return {0, 0};
    Block squares = b;
    squares.rows -= b.rows % 4;
    squares.columns -= b.columns % 4;
    load_transposed(squares, from, to);
    return {squares.rows, squares.columns};
  }
#endif
  return {0, 0};
}

template <class S>
HWY_ATTR void load_block(const Block& b, const void* memory, void* tile) {
  const auto* from = static_cast<const S*>(memory);
  auto* to = static_cast<LaneOf<S>*>(tile);
  if (b.columns == 1 && b.pitch == 1) {  // a column is a row of the transpose
    if (b.row_stride == 1) return load_run(from, b.rows, to);
    for (std::int64_t r = 0; r < b.rows; ++r) to[r] = widened(from[r * b.row_stride]);
  } else if (b.column_stride == 1) {
    if (b.row_stride == 0 && b.rows > 1) {
      load_run(from, b.columns, to);
      repeat_first_row(b, to);
    } else {
      for (std::int64_t r = 0; r < b.rows; ++r) load_run(from + r * b.row_stride, b.columns, to + r * b.pitch);
    }
  } else if (b.column_stride == 0) {
    for (std::int64_t r = 0; r < b.rows; ++r) fill_run(widened(from[r * b.row_stride]), b.columns, to + r * b.pitch);
  } else if (b.rows > 1 && magnitude(b.row_stride) < magnitude(b.column_stride)) {
    const auto [rows, columns] = load_squares(b, from, to);
    for (std::int64_t c = 0; c < b.columns; ++c) {
      const S* column = from + c * b.column_stride;
      for (std::int64_t r = c < columns ? rows : 0; r < b.rows; ++r) {
        to[r * b.pitch + c] = widened(column[r * b.row_stride]);
      }
    }
  } else {
    for (std::int64_t r = 0; r < b.rows; ++r) {
      const S* row = from + r * b.row_stride;
      for (std::int64_t c = 0; c < b.columns; ++c) to[r * b.pitch + c] = widened(row[c * b.column_stride]);
    }
  }
}

template <class S>
HWY_ATTR void store_block(const Block& b, const void* tile, void* memory) {
  const auto* from = static_cast<const LaneOf<S>*>(tile);
  auto* to = static_cast<S*>(memory);
  if (b.column_stride == 1) {
    for (std::int64_t r = 0; r < b.rows; ++r) store_run(from + r * b.pitch, b.columns, to + r * b.row_stride);
  } else if (b.rows > 1 && magnitude(b.row_stride) < magnitude(b.column_stride)) {
    for (std::int64_t c = 0; c < b.columns; ++c) {
      S* column = to + c * b.column_stride;
      for (std::int64_t r = 0; r < b.rows; ++r) column[r * b.row_stride] = narrowed<S>(from[r * b.pitch + c]);
    }
  } else {
    for (std::int64_t r = 0; r < b.rows; ++r) {
      S* row = to + r * b.row_stride;
      for (std::int64_t c = 0; c < b.columns; ++c) row[c * b.column_stride] = narrowed<S>(from[r * b.pitch + c]);
    }
  }
}

HWY_ATTR void index_block(const Block& b, std::int64_t start, std::int64_t* tile) {
  for (std::int64_t r = 0; r < b.rows; ++r) {
    std::int64_t value = start + r * b.row_stride;
    std::int64_t* row = tile + r * b.pitch;
    for (std::int64_t c = 0; c < b.columns; ++c, value += b.column_stride) row[c] = value;
  }
}

template <class T>
HWY_ATTR void expand_rows(std::size_t rows, std::size_t columns, const void* values, void* tile) {
  const auto* from = static_cast<const T*>(values);
  auto* to = static_cast<T*>(tile);
  const hn::ScalableTag<T> d;
  for (std::size_t r = 0; r < rows; ++r, to += columns) {
    const auto value = hn::Set(d, from[r]);
    // Whole vectors are written: what goes beyond the end of a row is overwritten with the next row.
    for (std::size_t c = 0; c < columns; c += hn::Lanes(d)) hn::StoreU(value, d, to + c);
  }
}

template <class S>
void install_type(Loops& loops) {
  loops.load[at(dtype_of<S>())] = load_block<S>;
  loops.store[at(dtype_of<S>())] = store_block<S>;
}

static void install(Loops& loops) {
  install_type<bool>(loops);
  install_type<std::uint8_t>(loops);
  install_type<std::int8_t>(loops);
  install_type<std::int16_t>(loops);
  install_type<std::int32_t>(loops);
  install_type<std::int64_t>(loops);
  install_type<float16>(loops);
  install_type<bfloat16>(loops);
  install_type<float>(loops);
  install_type<double>(loops);
  loops.index = index_block;
  loops.expand = {expand_rows<float>, expand_rows<double>, expand_rows<std::int32_t>, expand_rows<std::int64_t>};
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace russet::cpu::tiles
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace russet::cpu::tiles {
namespace {
HWY_EXPORT(install);
}
void install_memory(Loops& loops) { HWY_DYNAMIC_DISPATCH(install)(loops); }
}  // namespace russet::cpu::tiles
#endif
