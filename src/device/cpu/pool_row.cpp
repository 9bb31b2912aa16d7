// Vectors lie along the lanes. If lanes do not fill the last vector, it starts earlier and overlaps the one before.
#include "device/cpu/pool_row.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/pool_row.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.
#include "device/cpu/group/half-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace russet::cpu {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using F = hn::ScalableTag<float>;
using I = hn::RebindToSigned<F>;

HWY_INLINE hn::Vec<F> load(const float* from) { return hn::LoadU(F(), from); }
template <class Half>
HWY_INLINE hn::Vec<F> load(const Half* from) {
  return tiles::HWY_NAMESPACE::loaded(F(), from);
}
HWY_INLINE void store(hn::Vec<F> value, float* to) { hn::StoreU(value, F(), to); }
template <class Half>
HWY_INLINE void store(hn::Vec<F> value, Half* to) {
  tiles::HWY_NAMESPACE::stored(F(), value, to);
}

/// Calls visit(first tap, source of the first tap, position) for each result of a row.
template <class Visit>
HWY_INLINE void each_result(const PoolRow& r, Visit&& visit) {
  for (std::int64_t w = 0; w < r.width; ++w) {
    const TapRun& column = r.columns[w];
    visit(column, r.row.from * r.from_row + column.from * r.from_column, w);
  }
}

template <class Element>
void sum(const PoolRow& r, const Element* from, Element* to) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(F()));
  const std::int64_t down = r.row.from_step * r.from_row;
  each_result(r, [&](const TapRun& column, std::int64_t start, std::int64_t w) HWY_ATTR {
    const std::int64_t across = column.from_step * r.from_column;
    for (std::int64_t lane = 0; lane < r.lanes; lane += lanes) {
      const std::int64_t at = std::min(lane, r.lanes - lanes);
      auto total = hn::Zero(F());
      for (std::int64_t i = 0; i < r.row.count; ++i) {
        const Element* const line = from + start + i * down + at;
        for (std::int64_t j = 0; j < column.count; ++j) total = hn::Add(total, load(line + j * across));
      }
      store(total, to + w * r.to_column + at);
    }
  });
}

template <class Element>
void maximum(const PoolRow& r, const Element* from, Element* to, std::int32_t* chosen) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(F()));
  const std::int64_t down = r.row.from_step * r.from_row;
  each_result(r, [&](const TapRun& column, std::int64_t start, std::int64_t w) HWY_ATTR {
    const std::int64_t across = column.from_step * r.from_column;
    const bool any = r.row.count > 0 && column.count > 0;
    for (std::int64_t lane = 0; lane < r.lanes; lane += lanes) {
      const std::int64_t at = std::min(lane, r.lanes - lanes);
      auto best = any ? load(from + start + at) : hn::Zero(F());
      auto taps = hn::Set(I(), any ? static_cast<std::int32_t>(r.row.tap * r.taps_across + column.tap) : -1);
      for (std::int64_t i = 0; i < r.row.count; ++i) {
        const Element* const line = from + start + i * down + at;
        const std::int64_t tap = (r.row.tap + i * r.row.tap_step) * r.taps_across + column.tap;
        for (std::int64_t j = 0; j < column.count; ++j) {
          const auto value = load(line + j * across);
          const auto take = hn::Or(hn::Gt(value, best), hn::AndNot(hn::IsNaN(best), hn::IsNaN(value)));
          best = hn::IfThenElse(take, value, best);
          const auto number = hn::Set(I(), static_cast<std::int32_t>(tap + j * column.tap_step));
          taps = hn::IfThenElse(hn::RebindMask(I(), take), number, taps);
        }
      }
      store(best, to + w * r.to_column + at);
      if (chosen != nullptr) hn::StoreU(taps, I(), chosen + w * r.chosen_column + at);
    }
  });
}

template <class Element>
void spread(const PoolRow& r, const Element* from, const std::int32_t* chosen, Element* to) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(F()));
  const std::int64_t down = r.row.from_step * r.from_row;
  each_result(r, [&](const TapRun& column, std::int64_t start, std::int64_t w) HWY_ATTR {
    const std::int64_t across = column.from_step * r.from_column;
    for (std::int64_t lane = 0; lane < r.lanes; lane += lanes) {
      const std::int64_t at = std::min(lane, r.lanes - lanes);
      auto total = hn::Zero(F());
      for (std::int64_t i = 0; i < r.row.count; ++i) {
        const Element* const line = from + start + i * down + at;
        const std::int32_t* const marks =
            chosen + (r.row.from + i * r.row.from_step) * r.chosen_row + column.from * r.chosen_column + at;
        const std::int64_t tap = (r.row.tap + i * r.row.tap_step) * r.taps_across + column.tap;
        for (std::int64_t j = 0; j < column.count; ++j) {
          const auto mark = hn::LoadU(I(), marks + j * column.from_step * r.chosen_column);
          const auto number = hn::Set(I(), static_cast<std::int32_t>(tap + j * column.tap_step));
          const auto value = load(line + j * across);
          total = hn::Add(total, hn::IfThenElseZero(hn::RebindMask(F(), hn::Eq(mark, number)), value));
        }
      }
      store(total, to + w * r.to_column + at);
    }
  });
}

template <class Element>
PoolLoops<Element> loops() {
  return {static_cast<std::int64_t>(hn::Lanes(F())), sum<Element>, maximum<Element>, spread<Element>};
}

PoolLoops<float> float32_loops() { return loops<float>(); }
PoolLoops<float16> float16_loops() { return loops<float16>(); }
PoolLoops<bfloat16> bfloat16_loops() { return loops<bfloat16>(); }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace russet::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace russet::cpu {
namespace {
HWY_EXPORT(float32_loops);
HWY_EXPORT(float16_loops);
HWY_EXPORT(bfloat16_loops);
}  // namespace

PoolLoops<float> pool_vectors(float) { return HWY_DYNAMIC_DISPATCH(float32_loops)(); }
PoolLoops<float16> pool_vectors(float16) { return HWY_DYNAMIC_DISPATCH(float16_loops)(); }
PoolLoops<bfloat16> pool_vectors(bfloat16) { return HWY_DYNAMIC_DISPATCH(bfloat16_loops)(); }

}  // namespace russet::cpu
#endif
