// Channels lie along a vector; a vector of sums for each of up to eight taps stays in registers.
#include "device/cpu/depthwise_row.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "device/cpu/group/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/depthwise_row.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace russet::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using F = hn::ScalableTag<float>;

HWY_INLINE hn::Vec<F> load(F d, const float* from) { return hn::LoadU(d, from); }

HWY_INLINE hn::Vec<F> load(F d, const std::uint16_t* from) {
  const hn::Rebind<std::uint32_t, F> words;
  const hn::Rebind<std::uint16_t, F> halves;
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(words, hn::LoadU(halves, from))));
}

template <class Element, int... tap>
HWY_INLINE void add_taps(const DepthwiseRow<Element>& row, std::int64_t channel, std::int64_t first,
                         std::integer_sequence<int, tap...>) {
  const F d;
  using V = hn::Vec<F>;
  V sums[sizeof...(tap)] = {hn::LoadU(d, row.sums + (first + tap) * row.channels + channel)...};
  const Element* HWY_RESTRICT x = row.x + first * row.tap_step + channel;
  const Element* HWY_RESTRICT g = row.g + channel;
  const std::int64_t step = row.tap_step;
  for (std::int64_t p = row.pixels; p > 0; --p) {
    const V gradient = load(d, g);
    ((sums[tap] = hn::MulAdd(gradient, load(d, x + tap * step), sums[tap])), ...);
    x += row.x_step;
    g += row.g_step;
  }
  (hn::StoreU(sums[tap], d, row.sums + (first + tap) * row.channels + channel), ...);
}

template <class Element, int... count>
HWY_INLINE void add_some(const DepthwiseRow<Element>& row, std::int64_t channel, std::int64_t first, std::int64_t taps,
                         std::integer_sequence<int, count...>) {
  using Add = void (*)(const DepthwiseRow<Element>&, std::int64_t, std::int64_t);
  static constexpr Add table[] = {[](const DepthwiseRow<Element>& r, std::int64_t c, std::int64_t f)
                                      HWY_ATTR { add_taps(r, c, f, std::make_integer_sequence<int, count + 1>{}); }...};
  table[taps - 1](row, channel, first);
}

template <class Element>
void add(const DepthwiseRow<Element>& row) {
  constexpr int most = 8;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(F()));
  std::int64_t channel = 0;
  for (; channel + lanes <= row.channels; channel += lanes) {
    for (std::int64_t first = 0; first < row.taps; first += most) {
      add_some(row, channel, first, std::min<std::int64_t>(most, row.taps - first),
               std::make_integer_sequence<int, most>{});
    }
  }
  const auto value = [](Element element) {
    if constexpr (sizeof(Element) == 2) {
      return std::bit_cast<float>(static_cast<std::uint32_t>(element) << 16);
    } else {
      return element;
    }
  };
  for (; channel < row.channels; ++channel) {
    for (std::int64_t tap = 0; tap < row.taps; ++tap) {
      float& sum = row.sums[tap * row.channels + channel];
      for (std::int64_t p = 0; p < row.pixels; ++p) {
        sum += value(row.x[p * row.x_step + tap * row.tap_step + channel]) * value(row.g[p * row.g_step + channel]);
      }
    }
  }
}

void add_floats(const DepthwiseRow<float>& row) { add(row); }
void add_bfloats(const DepthwiseRow<std::uint16_t>& row) { add(row); }

}  // namespace HWY_NAMESPACE
}  // namespace russet::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace russet::cpu {
namespace {
HWY_EXPORT(add_floats);
HWY_EXPORT(add_bfloats);
}  // namespace

void add_depthwise_row(const DepthwiseRow<float>& row) { HWY_DYNAMIC_DISPATCH(add_floats)(row); }
void add_depthwise_row(const DepthwiseRow<std::uint16_t>& row) { HWY_DYNAMIC_DISPATCH(add_bfloats)(row); }

}  // namespace russet::cpu
#endif
