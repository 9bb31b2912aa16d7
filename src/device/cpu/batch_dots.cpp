// A vector of sums for each output and tap stays in registers while vectors of x and g are loaded.
#include "device/cpu/batch_dots.h"

#include <utility>

#include "device/cpu/group/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/batch_dots.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace russet::cpu {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using F = hn::ScalableTag<float>;
using V = hn::Vec<F>;

constexpr bool has_32_registers = (HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86) || HWY_ARCH_ARM;
/// Outputs that go together: 4 x 6 sums of 32 registers, 2 x 6 of 16.
constexpr int most_outputs = has_32_registers ? dots_outputs : 2;

template <int... o>
HWY_INLINE void add_tap(const V* g, V x, V* sums, std::integer_sequence<int, o...>) {
  ((sums[o] = hn::MulAdd(g[o], x, sums[o])), ...);
}

// Loops over outputs and taps are written as packs: sums stay in registers only if every index is a constant.
template <int... o, int... t>
HWY_INLINE void add_block(const Dots& d, int first, std::integer_sequence<int, o...> outputs,
                          std::integer_sequence<int, t...>) {
  const F f;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(f));
  V sums[sizeof...(t)][sizeof...(o)];
  const auto load = [&](V* tap, const float* from)
                        HWY_ATTR { ((tap[o] = hn::LoadU(f, from + (first + o) * d.sums_row)), ...); };
  const auto store = [&](const V* tap, float* to)
                         HWY_ATTR { (hn::StoreU(tap[o], f, to + (first + o) * d.sums_row), ...); };
  (load(sums[t], d.tap[t].sums), ...);
  // Pixels without gaps are one run of images.
  const bool run = d.g_step == d.images && d.x_step == d.images;
  const std::int64_t pixels = run ? 1 : d.pixels;
  const std::int64_t images = run ? d.pixels * d.images : d.images;
  const float* const g = d.g + first * d.g_row;
  const std::int64_t g_row = d.g_row;
  for (std::int64_t p = 0; p < pixels; ++p) {
    const std::int64_t at_g = p * d.g_step;
    const std::int64_t at_x = p * d.x_step;
    std::int64_t n = 0;
    for (; n + lanes <= images; n += lanes) {
      const V gradients[] = {hn::LoadU(f, g + o * g_row + at_g + n)...};
      (add_tap(gradients, hn::LoadU(f, d.tap[t].x + at_x + n), sums[t], outputs), ...);
    }
    if (n == images) continue;
    // The last vector overlaps the one before; what was counted there is zero here.
    const auto fresh = hn::Not(hn::FirstN(f, static_cast<std::size_t>(lanes - (images - n))));
    const std::int64_t at = images - lanes;
    const V gradients[] = {hn::IfThenElseZero(fresh, hn::LoadU(f, g + o * g_row + at_g + at))...};
    (add_tap(gradients, hn::IfThenElseZero(fresh, hn::LoadU(f, d.tap[t].x + at_x + at)), sums[t], outputs), ...);
  }
  (store(sums[t], d.tap[t].sums), ...);
}

template <int outputs, int... t>
HWY_INLINE void dispatch_taps(const Dots& d, int first, std::integer_sequence<int, t...>) {
  using Add = void (*)(const Dots&, int);
  static constexpr Add table[] = {[](const Dots& dots, int from) HWY_ATTR {
    add_block(dots, from, std::make_integer_sequence<int, outputs>{}, std::make_integer_sequence<int, t + 1>{});
  }...};
  table[d.taps - 1](d, first);
}

template <int... o>
HWY_INLINE void dispatch_outputs(const Dots& d, int first, int outputs, std::integer_sequence<int, o...>) {
  using Add = void (*)(const Dots&, int);
  static constexpr Add table[] = {[](const Dots& dots, int from) HWY_ATTR {
    dispatch_taps<o + 1>(dots, from, std::make_integer_sequence<int, dots_taps>{});
  }...};
  table[outputs - 1](d, first);
}

void add(const Dots& d) {
  for (int first = 0; first < d.outputs; first += most_outputs) {
    const int outputs = d.outputs - first < most_outputs ? d.outputs - first : most_outputs;
    dispatch_outputs(d, first, outputs, std::make_integer_sequence<int, most_outputs>{});
  }
}

void sum(const float* sums, std::int64_t count, float* totals) {
  const F f;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(f));
  for (std::int64_t i = 0; i < count; ++i) {
    totals[i] += hn::GetLane(hn::SumOfLanes(f, hn::LoadU(f, sums + i * lanes)));
  }
}

std::int64_t lane_count() { return static_cast<std::int64_t>(hn::Lanes(F())); }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace russet::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace russet::cpu {
namespace {
HWY_EXPORT(add);
HWY_EXPORT(sum);
HWY_EXPORT(lane_count);
}  // namespace

std::int64_t dots_lanes() { return HWY_DYNAMIC_DISPATCH(lane_count)(); }
void add_dots(const Dots& dots) { HWY_DYNAMIC_DISPATCH(add)(dots); }
void sum_dots(const float* sums, std::int64_t count, float* totals) { HWY_DYNAMIC_DISPATCH(sum)(sums, count, totals); }

}  // namespace russet::cpu
#endif
