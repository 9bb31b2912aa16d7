#include "device/cpu/convolution/weight_sums.h"

#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/convolution/weight_sums.cpp"
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
/// Outputs that go together with images as lanes: 4 x 6 sums of 32 registers, 2 x 6 of 16.
constexpr int most_outputs = has_32_registers ? sums_outputs : 2;

std::int64_t lane_count() { return static_cast<std::int64_t>(hn::Lanes(F())); }

HWY_INLINE V load(const float* from) { return hn::LoadU(F(), from); }
HWY_INLINE V load(const std::uint16_t* from) {
  const hn::Rebind<std::uint32_t, F> words;
  const hn::Rebind<std::uint16_t, F> halves;
  return hn::BitCast(F(), hn::ShiftLeft<16>(hn::PromoteTo(words, hn::LoadU(halves, from))));
}

/// The lanes of the last vector that the one before does not have: it ends with the numbers, so both overlap.
HWY_INLINE auto last_lanes(std::int64_t left) {
  return hn::Not(hn::FirstN(F(), static_cast<std::size_t>(lane_count() - left)));
}

template <int... o>
HWY_INLINE void add_tap(const V* g, V x, V* sums, std::integer_sequence<int, o...>) {
  ((sums[o] = hn::MulAdd(g[o], x, sums[o])), ...);
}

// Loops over outputs and taps are written as packs: sums stay in registers only if every index is a constant.
template <int... o, int... t>
HWY_INLINE void add_images(const WeightSums<float>& d, int first, std::integer_sequence<int, o...> outputs,
                           std::integer_sequence<int, t...>) {
  const F f;
  const std::int64_t lanes = lane_count();
  V sums[sizeof...(t)][sizeof...(o)];
  const auto load_sums = [&](V* tap, const float* from)
                             HWY_ATTR { ((tap[o] = hn::LoadU(f, from + (first + o) * d.sums_row)), ...); };
  const auto store_sums = [&](const V* tap, float* to)
                              HWY_ATTR { (hn::StoreU(tap[o], f, to + (first + o) * d.sums_row), ...); };
  (load_sums(sums[t], d.tap[t].sums), ...);
  // Pixels without gaps are one run of images.
  const bool run = d.g_step == d.lanes && d.x_step == d.lanes;
  const std::int64_t pixels = run ? 1 : d.pixels;
  const std::int64_t images = run ? d.pixels * d.lanes : d.lanes;
  const float* const g = d.g + first * d.g_row;
  const std::int64_t g_row = d.g_row;
  for (std::int64_t p = 0; p < pixels; ++p) {
    const std::int64_t at_g = p * d.g_step;
    const std::int64_t at_x = p * d.x_step;
    std::int64_t n = 0;
    for (; n + lanes <= images; n += lanes) {
      const V gradients[] = {load(g + o * g_row + at_g + n)...};
      (add_tap(gradients, load(d.tap[t].x + at_x + n), sums[t], outputs), ...);
    }
    if (n == images) continue;
    const auto fresh = last_lanes(images - n);
    const std::int64_t at = images - lanes;
    const V gradients[] = {hn::IfThenElseZero(fresh, load(g + o * g_row + at_g + at))...};
    (add_tap(gradients, hn::IfThenElseZero(fresh, load(d.tap[t].x + at_x + at)), sums[t], outputs), ...);
  }
  (store_sums(sums[t], d.tap[t].sums), ...);
}

template <class Element, int... t>
HWY_INLINE void add_channels(const WeightSums<Element>& d, std::integer_sequence<int, t...>) {
  const F f;
  const std::int64_t lanes = lane_count();
  for (std::int64_t next = 0; next < d.lanes; next += lanes) {
    const std::int64_t at = next + lanes <= d.lanes ? next : d.lanes - lanes;
    V sums[] = {hn::LoadU(f, d.tap[t].sums + at)...};
    const Element* g = d.g + at;
    const Element* const x[] = {d.tap[t].x + at...};
    std::int64_t at_x = 0;
    for (std::int64_t p = d.pixels; p > 0; --p) {
      const V gradient = load(g);
      ((sums[t] = hn::MulAdd(gradient, load(x[t] + at_x), sums[t])), ...);
      g += d.g_step;
      at_x += d.x_step;
    }
    if (at < next) {
      const auto fresh = last_lanes(d.lanes - next);
      ((sums[t] = hn::IfThenElse(fresh, sums[t], hn::LoadU(f, d.tap[t].sums + at))), ...);
    }
    (hn::StoreU(sums[t], f, d.tap[t].sums + at), ...);
  }
}

template <int outputs, int... t>
HWY_INLINE void dispatch_taps(const WeightSums<float>& d, int first, std::integer_sequence<int, t...>) {
  using Add = void (*)(const WeightSums<float>&, int);
  static constexpr Add table[] = {[](const WeightSums<float>& sums, int from) HWY_ATTR {
    add_images(sums, from, std::make_integer_sequence<int, outputs>{}, std::make_integer_sequence<int, t + 1>{});
  }...};
  table[d.taps - 1](d, first);
}

template <int... o>
HWY_INLINE void dispatch_outputs(const WeightSums<float>& d, int first, int outputs, std::integer_sequence<int, o...>) {
  using Add = void (*)(const WeightSums<float>&, int);
  static constexpr Add table[] = {[](const WeightSums<float>& sums, int from) HWY_ATTR {
    dispatch_taps<o + 1>(sums, from, std::make_integer_sequence<int, image_taps>{});
  }...};
  table[outputs - 1](d, first);
}

void images(const WeightSums<float>& d) {
  for (int first = 0; first < d.outputs; first += most_outputs) {
    const int outputs = d.outputs - first < most_outputs ? d.outputs - first : most_outputs;
    dispatch_outputs(d, first, outputs, std::make_integer_sequence<int, most_outputs>{});
  }
}

template <class Element, int... t>
HWY_INLINE void channels(const WeightSums<Element>& d, std::integer_sequence<int, t...>) {
  using Add = void (*)(const WeightSums<Element>&);
  static constexpr Add table[] = {[](const WeightSums<Element>& sums)
                                      HWY_ATTR { add_channels(sums, std::make_integer_sequence<int, t + 1>{}); }...};
  table[d.taps - 1](d);
}

void float_channels(const WeightSums<float>& d) { channels(d, std::make_integer_sequence<int, sums_taps>{}); }
void bfloat_channels(const WeightSums<std::uint16_t>& d) { channels(d, std::make_integer_sequence<int, sums_taps>{}); }

void sum_lanes(const float* sums, std::int64_t count, float* totals) {
  const F f;
  for (std::int64_t i = 0; i < count; ++i) {
    totals[i] += hn::GetLane(hn::SumOfLanes(f, hn::LoadU(f, sums + i * lane_count())));
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace russet::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace russet::cpu {
namespace {
HWY_EXPORT(images);
HWY_EXPORT(float_channels);
HWY_EXPORT(bfloat_channels);
HWY_EXPORT(sum_lanes);
HWY_EXPORT(lane_count);
}  // namespace

std::int64_t vector_lanes() { return HWY_DYNAMIC_DISPATCH(lane_count)(); }
void add_image_products(const WeightSums<float>& sums) { HWY_DYNAMIC_DISPATCH(images)(sums); }
void add_channel_products(const WeightSums<float>& sums) { HWY_DYNAMIC_DISPATCH(float_channels)(sums); }
void add_channel_products(const WeightSums<std::uint16_t>& sums) { HWY_DYNAMIC_DISPATCH(bfloat_channels)(sums); }
void add_lanes(const float* sums, std::int64_t count, float* totals) {
  HWY_DYNAMIC_DISPATCH(sum_lanes)(sums, count, totals);
}

}  // namespace russet::cpu
#endif
