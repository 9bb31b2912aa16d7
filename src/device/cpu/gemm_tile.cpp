// A block of c stays in registers while rows of b are loaded and elements of a broadcast.
#include "device/cpu/gemm_tile.h"

#include <utility>

#include "device/cpu/operand.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/gemm_tile.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace russet::cpu {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// As many accumulators as leave room for two vectors of b and one of a: 28 of 32 registers, 12 of 16.
constexpr int vectors = 2;
constexpr int max_rows = HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86 ? 14 : HWY_ARCH_ARM ? 8 : 6;

// Loops over rows are written as packs: accumulators stay in registers only if every index is a constant.
template <class T, int... row>
HWY_INLINE void run_rows(const TileArguments<T>& t, std::integer_sequence<int, row...>) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  constexpr int lanes = static_cast<int>(hn::MaxLanes(d));
  V sums[sizeof...(row)][vectors] = {{(static_cast<void>(row), hn::Zero(d)), hn::Zero(d)}...};
  if (t.start != nullptr) ((sums[row][0] = sums[row][1] = hn::Set(d, t.start[row])), ...);
  const std::int64_t a_row = t.a_row;
  const std::int64_t a_inner = t.a_inner;
  const std::int64_t b_inner = t.b_inner;
  const auto step = [&](V& left, V& right, V first, V second, const T* from) HWY_ATTR {
    const V factor = hn::Set(d, *from);
    left = hn::MulAdd(factor, first, left);
    right = hn::MulAdd(factor, second, right);
  };
  for (std::int64_t i = 0; i < t.outer[0].count; ++i) {
    for (std::int64_t j = 0; j < t.outer[1].count; ++j) {
      const T* HWY_RESTRICT a = t.a + i * t.outer[0].a + j * t.outer[1].a;
      const T* HWY_RESTRICT b = t.b + i * t.outer[0].b + j * t.outer[1].b;
      for (std::int64_t k = t.inner; k > 0; --k) {
        const V first = hn::LoadU(d, b);
        const V second = hn::LoadU(d, b + lanes);
        (step(sums[row][0], sums[row][1], first, second, a + row * a_row), ...);
        a += a_inner;
        b += b_inner;
      }
    }
  }
  const auto store = [&](V value, T* at)
                         HWY_ATTR { hn::StoreU(t.accumulate ? hn::Add(hn::LoadU(d, at), value) : value, d, at); };
  if (t.columns == vectors * lanes) {
    ((store(sums[row][0], t.c + row * t.c_row), store(sums[row][1], t.c + row * t.c_row + lanes)), ...);
    return;
  }
  HWY_ALIGN T tail[vectors * lanes];
  const auto store_tail = [&](V left, V right, T* at) HWY_ATTR {
    hn::Store(left, d, tail);
    hn::Store(right, d, tail + lanes);
    for (int j = 0; j < t.columns; ++j) at[j] = t.accumulate ? at[j] + tail[j] : tail[j];
  };
  (store_tail(sums[row][0], sums[row][1], t.c + row * t.c_row), ...);
}

template <int rows, class T>
void run_rows(const TileArguments<T>& t) {
  run_rows(t, std::make_integer_sequence<int, rows>{});
}

template <class T, int... row>
void dispatch(const TileArguments<T>& t, std::integer_sequence<int, row...>) {
  using Run = void (*)(const TileArguments<T>&);
  static constexpr Run table[] = {run_rows<row + 1, T>...};
  table[t.rows - 1](t);
}

template <class T>
void run(const TileArguments<T>& t) {
  dispatch(t, std::make_integer_sequence<int, max_rows>{});
}

template <class T>
RegisterTile<T> tile() {
  return {max_rows, vectors * static_cast<int>(hn::MaxLanes(hn::ScalableTag<T>())), run<T>};
}

RegisterTile<float> float_tile() { return tile<float>(); }
RegisterTile<double> double_tile() { return tile<double>(); }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace russet::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace russet::cpu {
namespace {

HWY_EXPORT(float_tile);
HWY_EXPORT(double_tile);

void integer_tile(const TileArguments<std::int64_t>& t) {
  constexpr int columns = 8;
  for (int i = 0; i < t.rows; ++i) {
    std::int64_t sums[columns] = {};
    for (std::int64_t k = 0; k < t.inner; ++k) {
      const std::int64_t factor = t.a[i * t.a_row + k * t.a_inner];
      const std::int64_t* const b = t.b + k * t.b_inner;
      for (int j = 0; j < columns; ++j) sums[j] = wrapping_add(sums[j], wrapping_multiply(factor, b[j]));
    }
    std::int64_t* const at = t.c + i * t.c_row;
    for (int j = 0; j < t.columns; ++j) at[j] = t.accumulate ? wrapping_add(at[j], sums[j]) : sums[j];
  }
}

}  // namespace

template <>
RegisterTile<float> best_tile<float>() {
  return HWY_DYNAMIC_DISPATCH(float_tile)();
}
template <>
RegisterTile<double> best_tile<double>() {
  return HWY_DYNAMIC_DISPATCH(double_tile)();
}
template <>
RegisterTile<std::int64_t> best_tile<std::int64_t>() {
  return {4, 8, integer_tile};
}

}  // namespace russet::cpu
#endif
