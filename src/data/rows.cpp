// Sums of float32 are added up one by one, without fused multiply-adds: the same bits on every machine. Compiled
// without contraction, which would fuse them.
#include "data/rows.h"

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "data/rows.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace russet::data::rows {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using F = hn::ScalableTag<float>;
using I = hn::RebindToSigned<F>;
using Bytes = hn::Rebind<std::uint8_t, F>;

HWY_INLINE hn::Vec<F> term(float weight, const float* input) {
  return hn::Mul(hn::Set(F(), weight), hn::LoadU(F(), input));
}

/// Calls store(i, sums) for vectors of places, four at a time.
template <class Store>
HWY_INLINE void each_sum(std::span<const float> weights, const float* const* inputs, std::int64_t count,
                         const Store& store) {
  const F d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t i = 0; i < count; i += 4 * lanes) {
    auto a = hn::Zero(d);
    auto b = a, c = a, e = a;
    for (std::size_t k = 0; k < weights.size(); ++k) {
      const float* const input = inputs[k] + i;
      a = hn::Add(a, term(weights[k], input));
      b = hn::Add(b, term(weights[k], input + lanes));
      c = hn::Add(c, term(weights[k], input + 2 * lanes));
      e = hn::Add(e, term(weights[k], input + 3 * lanes));
    }
    store(i, a);
    store(i + lanes, b);
    store(i + 2 * lanes, c);
    store(i + 3 * lanes, e);
  }
}

void mix_to_floats(std::span<const float> weights, const float* const* inputs, std::int64_t count, float* out) {
  each_sum(weights, inputs, count, [&](std::int64_t i, hn::Vec<F> sums) HWY_ATTR { hn::StoreU(sums, F(), out + i); });
}

void mix_to_bytes(std::span<const float> weights, const float* const* inputs, std::int64_t count, std::uint8_t* out) {
  const Bytes d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  each_sum(weights, inputs, count, [&](std::int64_t i, hn::Vec<F> sums) HWY_ATTR {
    const auto bytes = hn::DemoteTo(d, hn::NearestInt(sums));
    if (i + lanes <= count) return hn::StoreU(bytes, d, out + i);
    std::uint8_t rest[HWY_MAX_BYTES];
    hn::StoreU(bytes, d, rest);
    if (i < count) std::memcpy(out + i, rest, static_cast<std::size_t>(count - i));
  });
}

/// Fixed point, with a half to begin with, to bytes.
HWY_INLINE void store_rounded(hn::Vec<I> sums, std::uint8_t* to) {
  const Bytes d;
  hn::StoreU(hn::DemoteTo(d, hn::ShiftRight<Filter::precision_bits>(sums)), d, to);
}

HWY_INLINE hn::Vec<I> half() { return hn::Set(I(), 1 << (Filter::precision_bits - 1)); }

HWY_INLINE hn::Vec<I> add_product(hn::Vec<I> sums, const std::uint8_t* samples, std::int32_t weight) {
  const auto wide = hn::PromoteTo(I(), hn::LoadU(Bytes(), samples));
  return hn::Add(sums, hn::Mul(wide, hn::Set(I(), weight)));
}

/// How the pixels of several rows lie in whole vectors: those of one column, one row after the other. A pixel of three
/// channels takes four places, so that it is copied as a whole.
struct Bundle {
  explicit Bundle(int channels)
      : lanes(static_cast<std::int64_t>(hn::Lanes(I()))),
        places(std::max<std::int64_t>(lanes, 4)),
        pixel(channels == 1 ? 1 : 4),
        rows(places / pixel) {}
  std::int64_t lanes;
  std::int64_t places;
  std::int64_t pixel;
  std::int64_t rows;
};

/// Copies `width` pixels, from `step` bytes to `to_step` bytes apart. Beyond those of three channels a fourth byte is
/// copied, but for the last.
HWY_INLINE void spread(const std::uint8_t* from, std::int64_t step, std::uint8_t* to, std::int64_t to_step,
                       std::int64_t width, int channels) {
  std::int64_t x = 0;
  if (channels == 3) {
    for (; x + 1 < width; ++x) std::memcpy(to + x * to_step, from + x * step, 4);
  }
  for (; x < width; ++x) std::memcpy(to + x * to_step, from + x * step, static_cast<std::size_t>(channels));
}

void scale_bundle(const Filter& filter, const Bundle& bundle, const std::uint8_t* from, std::uint8_t* to) {
  for (std::int64_t x = 0; x < filter.outputs(); ++x) {
    const auto output = static_cast<std::size_t>(x);
    const std::int32_t* const weights = filter.values.data() + x * filter.taps;
    for (std::int64_t lane = 0; lane < bundle.places; lane += bundle.lanes) {
      const std::uint8_t* const samples = from + filter.first[output] * bundle.places + lane;
      auto sums = half();
      for (std::int64_t k = 0; k < filter.count[output]; ++k) {
        sums = add_product(sums, samples + k * bundle.places, weights[k]);
      }
      store_rounded(sums, to + x * bundle.places + lane);
    }
  }
}

void scale_rows(const Filter& filter, const Window<const std::uint8_t>& from, const Window<std::uint8_t>& to) {
  thread_local std::vector<std::uint8_t> taken;
  thread_local std::vector<std::uint8_t> made;
  const Bundle bundle(from.channels);
  taken.resize(static_cast<std::size_t>(from.width * bundle.places));
  made.resize(static_cast<std::size_t>(to.width * bundle.places));
  for (std::int64_t y = 0; y < from.height; y += bundle.rows) {
    const std::int64_t rows = std::min(bundle.rows, from.height - y);
    for (std::int64_t r = 0; r < rows; ++r) {
      spread(from.pixels + (y + r) * from.stride, from.channels, taken.data() + r * bundle.pixel, bundle.places,
             from.width, from.channels);
    }
    scale_bundle(filter, bundle, taken.data(), made.data());
    for (std::int64_t r = 0; r < rows; ++r) {
      spread(made.data() + r * bundle.pixel, bundle.places, to.pixels + (y + r) * to.stride, to.channels, to.width,
             to.channels);
    }
  }
}

void scale_columns(const Filter& filter, const Window<const std::uint8_t>& from, const Window<std::uint8_t>& to) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(I()));
  const std::int64_t samples = from.width * from.channels;
  for (std::int64_t y = 0; y < to.height; ++y) {
    const auto place = static_cast<std::size_t>(y);
    const std::uint8_t* const first = from.pixels + filter.first[place] * from.stride;
    const std::int32_t* const weights = filter.values.data() + y * filter.taps;
    std::uint8_t* const out = to.pixels + y * to.stride;
    // The last vector overlaps the one before, where there is one.
    for (std::int64_t i = 0; samples >= lanes && i < samples; i += lanes) {
      const std::int64_t at = std::min(i, samples - lanes);
      auto sums = half();
      for (std::int64_t k = 0; k < filter.count[place]; ++k) {
        sums = add_product(sums, first + k * from.stride + at, weights[k]);
      }
      store_rounded(sums, out + at);
    }
    for (std::int64_t i = 0; samples < lanes && i < samples; ++i) {
      std::int32_t sum = 1 << (Filter::precision_bits - 1);
      for (std::int64_t k = 0; k < filter.count[place]; ++k) sum += first[k * from.stride + i] * weights[k];
      out[i] = static_cast<std::uint8_t>(std::clamp(sum >> Filter::precision_bits, 0, 255));
    }
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace russet::data::rows
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace russet::data::rows {
namespace {
HWY_EXPORT(mix_to_floats);
HWY_EXPORT(mix_to_bytes);
HWY_EXPORT(scale_rows);
HWY_EXPORT(scale_columns);
}  // namespace

void mix(std::span<const float> weights, const float* const* inputs, std::int64_t count, float* out) {
  HWY_DYNAMIC_DISPATCH(mix_to_floats)(weights, inputs, count, out);
}
void mix(std::span<const float> weights, const float* const* inputs, std::int64_t count, std::uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(mix_to_bytes)(weights, inputs, count, out);
}
void scale_along_x(const Filter& filter, const Window<const std::uint8_t>& from, const Window<std::uint8_t>& to) {
  HWY_DYNAMIC_DISPATCH(scale_rows)(filter, from, to);
}
void scale_along_y(const Filter& filter, const Window<const std::uint8_t>& from, const Window<std::uint8_t>& to) {
  HWY_DYNAMIC_DISPATCH(scale_columns)(filter, from, to);
}

}  // namespace russet::data::rows
#endif
