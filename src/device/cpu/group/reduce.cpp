// Reductions of dense tiles along their rows or their columns. Sums run in several accumulators, so that a tile's
// rounding errors stay near those of a tree.
#include <algorithm>

#include "device/cpu/group/install.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/group/reduce.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.
#include "device/cpu/group/math-inl.h"
#include "device/cpu/group/scalar_math.h"

HWY_BEFORE_NAMESPACE();
namespace russet::cpu::tiles {
namespace HWY_NAMESPACE {
namespace {

template <class T>
HWY_INLINE bool is_not_a_number(T value) {
  return value != value;
}

struct Sum {
  template <class T>
  static T identity() {
    return 0;
  }
  template <class D, class V>
  static HWY_INLINE V combine(D, V a, V b) {
    return hn::Add(a, b);
  }
  template <class D, class V>
  static HWY_INLINE Element<D> across(D d, V v) {
    return hn::GetLane(hn::SumOfLanes(d, v));
  }
};

/// The lanes of a vector multiplied or compared one by one.
template <class D, class V, class F>
HWY_INLINE Element<D> across_lanes(D d, V v, F f) {
  HWY_ALIGN Element<D> lanes[HWY_MAX_BYTES / sizeof(Element<D>)];
  hn::Store(v, d, lanes);
  Element<D> result = lanes[0];
  for (std::size_t i = 1; i < hn::Lanes(d); ++i) result = f(result, lanes[i]);
  return result;
}

struct Product {
  template <class T>
  static T identity() {
    return 1;
  }
  template <class D, class V>
  static HWY_INLINE V combine(D d, V a, V b) {
    if constexpr (std::is_same_v<Element<D>, std::int64_t>) {
      HWY_ALIGN std::int64_t x[HWY_MAX_BYTES / 8];
      HWY_ALIGN std::int64_t y[HWY_MAX_BYTES / 8];
      hn::Store(a, d, x);
      hn::Store(b, d, y);
      for (std::size_t i = 0; i < hn::Lanes(d); ++i) x[i] = wrapping_multiply(x[i], y[i]);
      return hn::Load(d, x);
    } else {
      return hn::Mul(a, b);
    }
  }
  template <class D, class V>
  static HWY_INLINE Element<D> across(D d, V v) {
    return across_lanes(d, v, [](auto a, auto b) {
      if constexpr (std::is_integral_v<decltype(a)>) {
        return wrapping_multiply(a, b);
      } else {
        return a * b;
      }
    });
  }
};

/// Lanes whose sign is set, -0 among them. Which of two zeros Highway's Max- and MinOfLanes take differs by version.
template <class D, class V>
HWY_INLINE auto are_negative(D, V v) {
  const hn::RebindToSigned<D> bits;
  return hn::Lt(hn::BitCast(bits, v), hn::Zero(bits));
}

struct Maximum {
  template <class T>
  static T identity() {
    return std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::min();
  }
  template <class T>
  static HWY_INLINE bool beats(T a, T b) {
    return a > b;
  }
  template <class D, class V>
  static HWY_INLINE V combine(D d, V a, V b) {
    return larger(d, a, b);
  }
  template <class D, class V>
  static HWY_INLINE Element<D> across(D d, V v) {
    if constexpr (std::is_floating_point_v<Element<D>>) {
      if (HWY_UNLIKELY(!hn::AllFalse(d, hn::IsNaN(v)))) return std::numeric_limits<Element<D>>::quiet_NaN();
    }
    const Element<D> found = hn::GetLane(hn::MaxOfLanes(d, v));
    if constexpr (std::is_floating_point_v<Element<D>>) {
      if (found == 0) return hn::AllTrue(hn::RebindToSigned<D>(), are_negative(d, v)) ? -Element<D>{0} : Element<D>{0};
    }
    return found;
  }
};

struct Minimum {
  template <class T>
  static T identity() {
    return std::numeric_limits<T>::has_infinity ? std::numeric_limits<T>::infinity() : std::numeric_limits<T>::max();
  }
  template <class T>
  static HWY_INLINE bool beats(T a, T b) {
    return a < b;
  }
  template <class D, class V>
  static HWY_INLINE V combine(D d, V a, V b) {
    return smaller(d, a, b);
  }
  template <class D, class V>
  static HWY_INLINE Element<D> across(D d, V v) {
    if constexpr (std::is_floating_point_v<Element<D>>) {
      if (HWY_UNLIKELY(!hn::AllFalse(d, hn::IsNaN(v)))) return std::numeric_limits<Element<D>>::quiet_NaN();
    }
    const Element<D> found = hn::GetLane(hn::MinOfLanes(d, v));
    if constexpr (std::is_floating_point_v<Element<D>>) {
      if (found == 0) return hn::AllFalse(hn::RebindToSigned<D>(), are_negative(d, v)) ? Element<D>{0} : -Element<D>{0};
    }
    return found;
  }
};

template <class Reduction, class T>
HWY_INLINE T reduce_row(const T* row, std::size_t columns) {
  const hn::ScalableTag<T> d;
  const std::size_t lanes = hn::Lanes(d);
  const auto identity = hn::Set(d, Reduction::template identity<T>());
  auto a0 = identity;
  std::size_t c = 0;
  if (columns >= 4 * lanes) {
    auto a1 = identity;
    auto a2 = identity;
    auto a3 = identity;
    for (; c + 4 * lanes <= columns; c += 4 * lanes) {
      a0 = Reduction::combine(d, a0, hn::LoadU(d, row + c));
      a1 = Reduction::combine(d, a1, hn::LoadU(d, row + c + lanes));
      a2 = Reduction::combine(d, a2, hn::LoadU(d, row + c + 2 * lanes));
      a3 = Reduction::combine(d, a3, hn::LoadU(d, row + c + 3 * lanes));
    }
    a0 = Reduction::combine(d, Reduction::combine(d, a0, a1), Reduction::combine(d, a2, a3));
  }
  for (; c + lanes <= columns; c += lanes) a0 = Reduction::combine(d, a0, hn::LoadU(d, row + c));
  if (c < columns) a0 = Reduction::combine(d, a0, load_partial(d, row + c, columns - c, identity));
  return Reduction::across(d, a0);
}

template <class Reduction, class T>
HWY_ATTR void reduce_rows(const void* tile, std::size_t rows, std::size_t columns, void* values, void*) {
  const T* row = static_cast<const T*>(tile);
  T* out = static_cast<T*>(values);
  for (std::size_t r = 0; r < rows; ++r, row += columns) out[r] = reduce_row<Reduction>(row, columns);
}

template <class Reduction, class T>
HWY_ATTR void reduce_columns(const void* tile, std::size_t rows, std::size_t columns, void* values, void*) {
  const hn::ScalableTag<T> d;
  const T* in = static_cast<const T*>(tile);
  T* out = static_cast<T*>(values);
  const auto identity = hn::Set(d, Reduction::template identity<T>());
  const std::size_t lanes = hn::Lanes(d);
  std::size_t c = 0;
  for (; c + lanes <= columns; c += lanes) {
    auto a0 = identity;
    auto a1 = identity;
    auto a2 = identity;
    auto a3 = identity;
    std::size_t r = 0;
    const T* p = in + c;
    for (; r + 4 <= rows; r += 4, p += 4 * columns) {
      a0 = Reduction::combine(d, a0, hn::LoadU(d, p));
      a1 = Reduction::combine(d, a1, hn::LoadU(d, p + columns));
      a2 = Reduction::combine(d, a2, hn::LoadU(d, p + 2 * columns));
      a3 = Reduction::combine(d, a3, hn::LoadU(d, p + 3 * columns));
    }
    for (; r < rows; ++r, p += columns) a0 = Reduction::combine(d, a0, hn::LoadU(d, p));
    const auto total = Reduction::combine(d, Reduction::combine(d, a0, a1), Reduction::combine(d, a2, a3));
    hn::StoreU(total, d, out + c);
  }
  if (c == columns) return;
  auto a0 = identity;
  auto a1 = identity;
  for (std::size_t r = 0; r < rows; ++r) {
    a0 = Reduction::combine(d, a0, load_partial(d, in + r * columns + c, columns - c, identity));
    std::swap(a0, a1);
  }
  hn::StoreU(Reduction::combine(d, a0, a1), d, out + c);
}

/// The sum of squared deviations from the mean. Given are the sums of the distances from an estimate of the mean and of
/// their squares; the mean is estimate + shift.
template <class D, class V>
HWY_INLINE V deviations_about(D d, V shift, V sum, V squares) {
  const auto rest = hn::NegMulAdd(shift, sum, squares);
  return hn::IfThenElse(hn::Lt(rest, hn::Zero(d)), hn::Zero(d), rest);  // NaN stays
}

/// estimate + shift in float64: means of tiles are compared with each other.
template <class D, class V>
HWY_INLINE void store_means(D d, V estimate, V shift, double* means) {
  if constexpr (std::is_same_v<Element<D>, double>) {
    hn::StoreU(hn::Add(estimate, shift), d, means);
  } else {
    HWY_ALIGN float lines[2][HWY_MAX_BYTES / sizeof(float)];
    hn::Store(estimate, d, lines[0]);
    hn::Store(shift, d, lines[1]);
    for (std::size_t i = 0; i < hn::Lanes(d); ++i) means[i] = static_cast<double>(lines[0][i]) + lines[1][i];
  }
}

template <class T>
struct Distances {
  T sum, squares;
};

template <class T>
HWY_INLINE Distances<T> distances_in_row(const T* row, std::size_t columns, T estimate) {
  const hn::ScalableTag<T> d;
  const std::size_t lanes = hn::Lanes(d);
  const auto m = hn::Set(d, estimate);
  auto s0 = hn::Zero(d);
  auto s1 = hn::Zero(d);
  auto s2 = hn::Zero(d);
  auto s3 = hn::Zero(d);
  auto q0 = hn::Zero(d);
  auto q1 = hn::Zero(d);
  auto q2 = hn::Zero(d);
  auto q3 = hn::Zero(d);
  std::size_t c = 0;
  for (; c + 4 * lanes <= columns; c += 4 * lanes) {
    const auto d0 = hn::Sub(hn::LoadU(d, row + c), m);
    const auto d1 = hn::Sub(hn::LoadU(d, row + c + lanes), m);
    const auto d2 = hn::Sub(hn::LoadU(d, row + c + 2 * lanes), m);
    const auto d3 = hn::Sub(hn::LoadU(d, row + c + 3 * lanes), m);
    s0 = hn::Add(s0, d0);
    s1 = hn::Add(s1, d1);
    s2 = hn::Add(s2, d2);
    s3 = hn::Add(s3, d3);
    q0 = hn::MulAdd(d0, d0, q0);
    q1 = hn::MulAdd(d1, d1, q1);
    q2 = hn::MulAdd(d2, d2, q2);
    q3 = hn::MulAdd(d3, d3, q3);
  }
  for (; c < columns; c += lanes) {
    const bool partial = columns - c < lanes;
    const auto x = partial ? load_partial(d, row + c, columns - c, m) : hn::LoadU(d, row + c);
    const auto d0 = hn::Sub(x, m);
    s0 = hn::Add(s0, d0);
    q0 = hn::MulAdd(d0, d0, q0);
  }
  const auto sum = hn::Add(hn::Add(s0, s1), hn::Add(s2, s3));
  const auto squares = hn::Add(hn::Add(q0, q1), hn::Add(q2, q3));
  return {hn::GetLane(hn::SumOfLanes(d, sum)), hn::GetLane(hn::SumOfLanes(d, squares))};
}

template <class T>
HWY_ATTR void deviations_of_rows(const void* tile, std::size_t rows, std::size_t columns, void* values, void* more) {
  const T* row = static_cast<const T*>(tile);
  T* out = static_cast<T*>(values);
  auto* means = static_cast<double*>(more);
  for (std::size_t r = 0; r < rows; ++r, row += columns) {
    const T estimate = reduce_row<Sum>(row, columns) / static_cast<T>(std::max<std::size_t>(columns, 1));
    const Distances<T> found = distances_in_row(row, columns, estimate);
    const T shift = found.sum / static_cast<T>(std::max<std::size_t>(columns, 1));
    const T rest = found.squares - shift * found.sum;
    out[r] = rest < 0 ? 0 : rest;
    if (means != nullptr) means[r] = static_cast<double>(estimate) + static_cast<double>(shift);
  }
}

template <class T>
HWY_ATTR void deviations_of_columns(const void* tile, std::size_t rows, std::size_t columns, void* values, void* more) {
  const hn::ScalableTag<T> d;
  const T* in = static_cast<const T*>(tile);
  T* out = static_cast<T*>(values);
  auto* means = static_cast<double*>(more);
  reduce_columns<Sum, T>(tile, rows, columns, values, nullptr);
  const std::size_t lanes = hn::Lanes(d);
  const auto share = hn::Set(d, T{1} / static_cast<T>(std::max<std::size_t>(rows, 1)));
  for (std::size_t c = 0; c < columns; c += lanes) {
    const std::size_t count = std::min(lanes, columns - c);
    const auto load = [&](const T* from) HWY_ATTR {
      return count < lanes ? load_partial(d, from, count, hn::Zero(d)) : hn::LoadU(d, from);
    };
    const auto estimate = hn::Mul(load(out + c), share);
    auto s0 = hn::Zero(d);
    auto s1 = hn::Zero(d);
    auto q0 = hn::Zero(d);
    auto q1 = hn::Zero(d);
    for (std::size_t r = 0; r < rows; ++r) {
      const auto distance = hn::Sub(load(in + r * columns + c), estimate);
      const auto sum = hn::Add(s0, distance);
      const auto squares = hn::MulAdd(distance, distance, q0);
      s0 = s1;
      q0 = q1;
      s1 = sum;
      q1 = squares;
    }
    const auto sum = hn::Add(s0, s1);
    const auto shift = hn::Mul(sum, share);
    if (means != nullptr) store_means(d, estimate, shift, means + c);
    hn::StoreU(deviations_about(d, shift, sum, hn::Add(q0, q1)), d, out + c);
  }
}

/// The first position of the extreme; NaN counts as more extreme than any number.
template <class Reduction, class T>
HWY_ATTR void find_in_rows(const void* tile, std::size_t rows, std::size_t columns, void* values, void* more) {
  auto* positions = static_cast<std::int64_t*>(more);
  const hn::ScalableTag<T> d;
  const T* row = static_cast<const T*>(tile);
  T* out = static_cast<T*>(values);
  const std::size_t lanes = hn::Lanes(d);
  for (std::size_t r = 0; r < rows; ++r, row += columns) {
    const T extreme = reduce_row<Reduction>(row, columns);
    const bool nan = is_not_a_number(extreme);
    const auto wanted = hn::Set(d, extreme);
    std::size_t c = 0;
    for (; c + lanes <= columns; c += lanes) {
      const auto x = hn::LoadU(d, row + c);
      const auto found = nan ? hn::Not(hn::Eq(x, x)) : hn::Eq(x, wanted);
      if (!hn::AllFalse(d, found)) break;
    }
    while (c < columns && !(nan ? is_not_a_number(row[c]) : row[c] == extreme)) ++c;
    out[r] = extreme;
    positions[r] = static_cast<std::int64_t>(c == columns ? 0 : c);
  }
}

template <class Reduction, class T>
HWY_ATTR void find_in_columns(const void* tile, std::size_t rows, std::size_t columns, void* values, void* more) {
  auto* positions = static_cast<std::int64_t*>(more);
  const T* in = static_cast<const T*>(tile);
  T* out = static_cast<T*>(values);
  if (rows == 0) std::fill(out, out + columns, Reduction::template identity<T>());
  std::fill(positions, positions + columns, std::int64_t{0});
  if (rows != 0) std::copy(in, in + columns, out);
  for (std::size_t r = 1; r < rows; ++r) {
    const T* row = in + r * columns;
    for (std::size_t c = 0; c < columns; ++c) {
      const bool better = Reduction::beats(row[c], out[c]) || (is_not_a_number(row[c]) && !is_not_a_number(out[c]));
      out[c] = better ? row[c] : out[c];
      positions[c] = better ? static_cast<std::int64_t>(r) : positions[c];
    }
  }
}

template <class T>
void install_tile_type(Loops& loops, TileType tile_type) {
  const auto enter = [&](ops::Op op, Reduce rows, Reduce columns) {
    loops.reduce_rows[static_cast<std::size_t>(reduction_of(op))][at(tile_type)] = rows;
    loops.reduce_columns[static_cast<std::size_t>(reduction_of(op))][at(tile_type)] = columns;
  };
  enter(ops::Op::sum, reduce_rows<Sum, T>, reduce_columns<Sum, T>);
  enter(ops::Op::prod, reduce_rows<Product, T>, reduce_columns<Product, T>);
  enter(ops::Op::amax, reduce_rows<Maximum, T>, reduce_columns<Maximum, T>);
  enter(ops::Op::amin, reduce_rows<Minimum, T>, reduce_columns<Minimum, T>);
  enter(ops::Op::argmax, find_in_rows<Maximum, T>, find_in_columns<Maximum, T>);
  enter(ops::Op::argmin, find_in_rows<Minimum, T>, find_in_columns<Minimum, T>);
  if constexpr (std::is_floating_point_v<T>) {
    enter(ops::Op::squared_deviations, deviations_of_rows<T>, deviations_of_columns<T>);
  }
}

static void install(Loops& loops) {
  install_tile_type<float>(loops, TileType::f32);
  install_tile_type<double>(loops, TileType::f64);
  install_tile_type<std::int32_t>(loops, TileType::i32);
  install_tile_type<std::int64_t>(loops, TileType::i64);
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
void install_reductions(Loops& loops) { HWY_DYNAMIC_DISPATCH(install)(loops); }
}  // namespace russet::cpu::tiles
#endif
