// Loads and stores of rectangles, with conversion between the type in memory and the lane.
#include <cstring>

#include "device/cpu/group/install.h"
#include "device/cpu/group/targets.h"

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
    for (std::int64_t c = 0; c < b.columns; ++c) {
      const S* column = from + c * b.column_stride;
      for (std::int64_t r = 0; r < b.rows; ++r) to[r * b.pitch + c] = widened(column[r * b.row_stride]);
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
    for (std::int64_t c = 0; c < b.columns; ++c) {
      tile[r * b.pitch + c] = start + r * b.row_stride + c * b.column_stride;
    }
  }
}

template <class T>
HWY_ATTR void expand_rows(std::size_t rows, std::size_t columns, const void* values, void* tile) {
  const auto* from = static_cast<const T*>(values);
  auto* to = static_cast<T*>(tile);
  const hn::ScalableTag<T> d;
  for (std::size_t r = 0; r < rows; ++r, to += columns) {
    const auto value = hn::Set(d, from[r]);
    // Whole vectors: a row spills into the next one, which is written after it.
    for (std::size_t c = 0; c < columns; c += hn::Lanes(d)) hn::StoreU(value, d, to + c);
  }
}

template <class S>
void install_type(Kernels& kernels) {
  kernels.load[at(dtype_of<S>())] = load_block<S>;
  kernels.store[at(dtype_of<S>())] = store_block<S>;
}

static void install(Kernels& kernels) {
  install_type<bool>(kernels);
  install_type<std::uint8_t>(kernels);
  install_type<std::int8_t>(kernels);
  install_type<std::int16_t>(kernels);
  install_type<std::int32_t>(kernels);
  install_type<std::int64_t>(kernels);
  install_type<float16>(kernels);
  install_type<bfloat16>(kernels);
  install_type<float>(kernels);
  install_type<double>(kernels);
  kernels.index = index_block;
  kernels.expand = {expand_rows<float>, expand_rows<double>, expand_rows<std::int32_t>, expand_rows<std::int64_t>};
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
void install_memory(Kernels& kernels) { HWY_DYNAMIC_DISPATCH(install)(kernels); }
}  // namespace russet::cpu::tiles
#endif
