// Colours change as in Pillow's Blend.c and Convert.c: in the order and the types of its arithmetic (float32 for
// factors, float64 where constants are double), so that results are the same bits. Compiled without contraction to
// fused multiply-adds, which would be others.
//
// 64 pixels at a time are taken apart into planes.
#include "data/pixels.h"

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "data/pixels.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.
#include "data/hue.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace russet::data::pixels {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using F = hn::ScalableTag<float>;
using I = hn::RebindToSigned<F>;
using Bytes = hn::CappedTag<std::uint8_t, 16>;  // plain C++ has vectors of one
// As many elements of each as a vector has of float64.
using D = hn::ScalableTag<double>;
using HalfF = hn::Rebind<float, D>;
using HalfI = hn::Rebind<std::int32_t, D>;

constexpr std::size_t block_pixels = 64;
constexpr std::size_t block_bytes = 3 * block_pixels;

struct alignas(64) Block {
  std::uint8_t red[block_pixels];
  std::uint8_t green[block_pixels];
  std::uint8_t blue[block_pixels];
};

HWY_INLINE Block planes_of(const std::uint8_t* rgb) {
  Block block;
  const Bytes d;
  for (std::size_t i = 0; i < block_pixels; i += hn::Lanes(d)) {
    hn::Vec<Bytes> red, green, blue;
    hn::LoadInterleaved3(d, rgb + 3 * i, red, green, blue);
    hn::Store(red, d, block.red + i);
    hn::Store(green, d, block.green + i);
    hn::Store(blue, d, block.blue + i);
  }
  return block;
}

HWY_INLINE void interleave(const Block& block, std::uint8_t* rgb) {
  const Bytes d;
  for (std::size_t i = 0; i < block_pixels; i += hn::Lanes(d)) {
    hn::StoreInterleaved3(hn::Load(d, block.red + i), hn::Load(d, block.green + i), hn::Load(d, block.blue + i), d,
                          rgb + 3 * i);
  }
}

/// Calls visit(block, first pixel, number of pixels); pixels that the last block lacks are black.
template <class Visit>
HWY_INLINE void each_block(ConstSamples rgb, const Visit& visit) {
  std::uint8_t rest[block_bytes] = {};
  for (std::size_t at = 0; at < rgb.size(); at += block_bytes) {
    const std::size_t bytes = std::min(block_bytes, rgb.size() - at);
    const std::uint8_t* const place = rgb.data() + at;
    if (bytes < block_bytes) std::memcpy(rest, place, bytes);
    Block block = planes_of(bytes < block_bytes ? rest : place);
    visit(block, at / 3, bytes / 3);
  }
}

/// Calls change(block) for each block and puts it back.
template <class Change>
HWY_INLINE void change_blocks(Samples rgb, const Change& change) {
  each_block(rgb, [&](Block& block, std::size_t first, std::size_t count) HWY_ATTR {
    change(block);
    std::uint8_t* const place = rgb.data() + 3 * first;
    if (count == block_pixels) return interleave(block, place);
    std::uint8_t rest[block_bytes];
    interleave(block, rest);
    std::memcpy(place, rest, 3 * count);
  });
}

/// Integers from bytes, and back, cut to 0 to 255.
template <class D32>
HWY_INLINE hn::Vec<D32> integers(D32 d, const std::uint8_t* from) {
  return hn::PromoteTo(d, hn::LoadU(hn::Rebind<std::uint8_t, D32>(), from));
}
template <class D32>
HWY_INLINE void store(D32, hn::Vec<D32> values, std::uint8_t* to) {
  const hn::Rebind<std::uint8_t, D32> bytes;
  hn::StoreU(hn::DemoteTo(bytes, values), bytes, to);
}

/// As luminance() of luminance.h.
HWY_INLINE hn::Vec<I> luminance(const Block& block, std::size_t i) {
  const I d;
  const auto red = hn::Mul(integers(d, block.red + i), hn::Set(d, 19595));
  const auto green = hn::Mul(integers(d, block.green + i), hn::Set(d, 38470));
  const auto blue = hn::Mul(integers(d, block.blue + i), hn::Set(d, 7471));
  return hn::ShiftRight<16>(hn::Add(hn::Add(red, green), hn::Add(blue, hn::Set(d, 32768))));
}

HWY_INLINE hn::Vec<I> blended(hn::Vec<I> from, hn::Vec<I> to, hn::Vec<F> factor) {
  const F d;
  const auto step = hn::Mul(factor, hn::ConvertTo(d, hn::Sub(to, from)));
  const auto mixed = hn::Add(hn::ConvertTo(d, from), step);
  return hn::ConvertTo(I(), hn::Clamp(mixed, hn::Zero(d), hn::Set(d, 255.0F)));
}

void blend(Samples samples, int level, float factor) {
  const I d;
  const auto from = hn::Set(d, level);
  const auto share = hn::Set(F(), factor);
  const std::size_t lanes = hn::Lanes(d);
  std::uint8_t* const place = samples.data();
  std::size_t i = 0;
  for (; i + lanes <= samples.size(); i += lanes) store(d, blended(from, integers(d, place + i), share), place + i);
  std::uint8_t rest[HWY_MAX_BYTES] = {};
  if (i < samples.size()) std::memcpy(rest, place + i, samples.size() - i);
  store(d, blended(from, integers(d, rest), share), rest);
  if (i < samples.size()) std::memcpy(place + i, rest, samples.size() - i);
}

void blend_with_luminance(Samples rgb, float factor) {
  const I d;
  const auto share = hn::Set(F(), factor);
  change_blocks(rgb, [&](Block& block) HWY_ATTR {
    for (std::size_t i = 0; i < block_pixels; i += hn::Lanes(d)) {
      const auto grey = luminance(block, i);
      for (std::uint8_t* const plane : {block.red, block.green, block.blue}) {
        store(d, blended(grey, integers(d, plane + i), share), plane + i);
      }
    }
  });
}

std::int64_t sum_of_luminance(ConstSamples rgb) {
  const I d;
  std::int64_t total = 0;
  each_block(rgb, [&](const Block& block, std::size_t, std::size_t) HWY_ATTR {
    auto sums = hn::Zero(d);
    for (std::size_t i = 0; i < block_pixels; i += hn::Lanes(d)) sums = hn::Add(sums, luminance(block, i));
    total += hn::GetLane(hn::SumOfLanes(d, sums));
  });
  return total;
}

void set_to_luminance(Samples rgb) {
  const I d;
  change_blocks(rgb, [&](Block& block) HWY_ATTR {
    for (std::size_t i = 0; i < block_pixels; i += hn::Lanes(d)) store(d, luminance(block, i), block.red + i);
    std::memcpy(block.green, block.red, block_pixels);
    std::memcpy(block.blue, block.red, block_pixels);
  });
}

/// Of (maximum - middle) / range, which is what remains of the three distances of Convert.c's rgb2hsv_row: the others
/// are 0 and 1. Sixths of a turn, from -1 to 5.
HWY_INLINE hn::Vec<HalfF> sixths_of(hn::Vec<HalfF> part, hn::Mask<HalfF> red_is_largest,
                                    hn::Mask<HalfF> green_is_larger, hn::Mask<HalfF> red_is_smallest,
                                    hn::Mask<HalfF> blue_is_smallest) {
  const HalfF f;
  const auto plus = [&](float base) HWY_ATTR { return hn::Add(hn::Set(f, base), part); };
  const auto minus = [&](float base) HWY_ATTR { return hn::Sub(hn::Set(f, base), part); };
  const auto red = hn::IfThenElse(blue_is_smallest, minus(1), hn::Sub(part, hn::Set(f, 1)));
  const auto green = hn::IfThenElse(blue_is_smallest, plus(1), minus(3));
  const auto blue = hn::IfThenElse(red_is_smallest, plus(3), minus(5));
  return hn::IfThenElse(red_is_largest, red, hn::IfThenElse(green_is_larger, green, blue));
}

/// 255 times a share of 1, cut to an integer. Anything for NaN, but within a byte.
HWY_INLINE hn::Vec<HalfI> byte_of(hn::Vec<HalfF> share) {
  const auto scaled = hn::Mul(hn::PromoteTo(D(), share), hn::Set(D(), 255.0));
  return hn::And(hn::DemoteTo(HalfI(), scaled), hn::Set(HalfI(), 255));
}

/// value * (1 - lost), halves rounded up.
HWY_INLINE hn::Vec<HalfI> level(hn::Vec<D> value, hn::Vec<D> lost) {
  const D d;
  const auto exact = hn::Mul(value, hn::Sub(hn::Set(d, 1.0), lost));
  const auto whole = hn::Trunc(exact);
  const auto up = hn::Ge(hn::Sub(exact, whole), hn::Set(d, 0.5));
  return hn::DemoteTo(HalfI(), hn::Add(whole, hn::IfThenElseZero(up, hn::Set(d, 1.0))));
}

struct Hsv {
  hn::Vec<HalfI> hue, saturation, value;  // each from 0 to 255
};

/// Grey has no hue: anything.
HWY_INLINE Hsv to_hsv(hn::Vec<HalfI> red, hn::Vec<HalfI> green, hn::Vec<HalfI> blue) {
  const HalfF f;
  const D d;
  const auto largest = hn::Max(red, hn::Max(green, blue));
  const auto smallest = hn::Min(red, hn::Min(green, blue));
  const auto middle = hn::Sub(hn::Add(red, hn::Add(green, blue)), hn::Add(largest, smallest));
  const auto range = hn::ConvertTo(f, hn::Sub(largest, smallest));
  const auto equal = [&](hn::Vec<HalfI> a, hn::Vec<HalfI> b) HWY_ATTR { return hn::RebindMask(f, hn::Eq(a, b)); };
  const auto sixths = sixths_of(hn::Div(hn::ConvertTo(f, hn::Sub(largest, middle)), range), equal(red, largest),
                                equal(green, largest), equal(red, smallest), equal(blue, smallest));
  const auto turns = hn::Add(hn::Div(hn::PromoteTo(d, sixths), hn::Set(d, 6.0)), hn::Set(d, 1.0));
  const auto hue = hn::DemoteTo(f, hn::Sub(turns, hn::Trunc(turns)));
  const auto saturation = byte_of(hn::Div(range, hn::ConvertTo(f, largest)));
  const auto is_grey = hn::Eq(largest, smallest);
  return {byte_of(hue), hn::IfThenZeroElse(is_grey, saturation), largest};
}

/// Writes RGB.
HWY_INLINE void from_hsv(const Hsv& hsv, std::uint8_t* red, std::uint8_t* green, std::uint8_t* blue) {
  const HalfI n;
  const HalfF f;
  const D d;
  const auto value = hsv.value;
  const auto sector = hn::GatherIndex(n, hue_table.sector.data(), hsv.hue);
  const auto part = hn::GatherIndex(f, hue_table.part.data(), hsv.hue);
  const auto share = hn::GatherIndex(f, hue_table.share.data(), hsv.saturation);
  const auto wide_value = hn::PromoteTo(d, value);
  const auto wide_share = hn::PromoteTo(d, share);
  const auto rest = hn::Sub(hn::Set(d, 1.0), hn::PromoteTo(d, part));
  const auto low = level(wide_value, wide_share);
  const auto falling = level(wide_value, hn::PromoteTo(d, hn::Mul(share, part)));
  const auto rising = level(wide_value, hn::Mul(wide_share, rest));
  const auto in = [&](std::int32_t number) HWY_ATTR { return hn::Eq(sector, hn::Set(n, number)); };
  const auto is_grey = hn::Eq(hsv.saturation, hn::Zero(n));
  const auto write = [&](hn::Mask<HalfI> full, hn::Mask<HalfI> falls, hn::Mask<HalfI> rises, std::uint8_t* to)
                         HWY_ATTR {
                           auto result = hn::IfThenElse(falls, falling, hn::IfThenElse(rises, rising, low));
                           result = hn::IfThenElse(hn::Or(full, is_grey), value, result);
                           store(n, result, to);
                         };
  write(hn::Or(in(0), in(5)), in(1), in(4), red);
  write(hn::Or(in(1), in(2)), in(3), in(0), green);
  write(hn::Or(in(3), in(4)), in(5), in(2), blue);
}

void turn_hues(Samples rgb, std::uint8_t turn) {
  const HalfI n;
  change_blocks(rgb, [&](Block& block) HWY_ATTR {
    for (std::size_t i = 0; i < block_pixels; i += hn::Lanes(n)) {
      Hsv hsv = to_hsv(integers(n, block.red + i), integers(n, block.green + i), integers(n, block.blue + i));
      hsv.hue = hn::And(hn::Add(hsv.hue, hn::Set(n, turn)), hn::Set(n, 255));
      from_hsv(hsv, block.red + i, block.green + i, block.blue + i);
    }
  });
}

void reverse(Samples rgb) {
  const Bytes d;
  const std::size_t step = 3 * hn::Lanes(d);
  const auto order = hn::Sub(hn::Set(d, static_cast<std::uint8_t>(hn::Lanes(d) - 1)), hn::Iota(d, 0));
  const auto reversed = [&](hn::Vec<Bytes> bytes) HWY_ATTR { return hn::TableLookupBytes(bytes, order); };
  std::uint8_t* first = rgb.data();
  std::uint8_t* last = rgb.data() + rgb.size();
  for (; last - first >= static_cast<std::ptrdiff_t>(2 * step); first += step, last -= step) {
    hn::Vec<Bytes> a, b, c, x, y, z;
    hn::LoadInterleaved3(d, first, a, b, c);
    hn::LoadInterleaved3(d, last - step, x, y, z);
    hn::StoreInterleaved3(reversed(x), reversed(y), reversed(z), d, first);
    hn::StoreInterleaved3(reversed(a), reversed(b), reversed(c), d, last - step);
  }
  for (; last - first >= 6; first += 3, last -= 3) std::swap_ranges(first, first + 3, last - 3);
}

void to_planes(ConstSamples rgb, const std::array<const Table*, 3>& tables, float* out) {
  const I d;
  const std::size_t pixels = rgb.size() / 3;
  each_block(rgb, [&](const Block& block, std::size_t first, std::size_t count) HWY_ATTR {
    const std::uint8_t* const planes[] = {block.red, block.green, block.blue};
    for (std::size_t c = 0; c < 3; ++c) {
      const float* const table = tables[c]->data();
      float* const place = out + c * pixels + first;
      std::size_t i = 0;
      for (; i + hn::Lanes(d) <= count; i += hn::Lanes(d)) {
        hn::StoreU(hn::GatherIndex(F(), table, integers(d, planes[c] + i)), F(), place + i);
      }
      for (; i < count; ++i) place[i] = table[planes[c][i]];
    }
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace russet::data::pixels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace russet::data::pixels {
namespace {
HWY_EXPORT(blend);
HWY_EXPORT(blend_with_luminance);
HWY_EXPORT(sum_of_luminance);
HWY_EXPORT(set_to_luminance);
HWY_EXPORT(turn_hues);
HWY_EXPORT(reverse);
HWY_EXPORT(to_planes);
}  // namespace

void blend(Samples samples, int level, float factor) { HWY_DYNAMIC_DISPATCH(blend)(samples, level, factor); }
void blend_with_luminance(Samples rgb, float factor) { HWY_DYNAMIC_DISPATCH(blend_with_luminance)(rgb, factor); }
std::int64_t sum_of_luminance(ConstSamples rgb) { return HWY_DYNAMIC_DISPATCH(sum_of_luminance)(rgb); }
void set_to_luminance(Samples rgb) { HWY_DYNAMIC_DISPATCH(set_to_luminance)(rgb); }
void turn_hues(Samples rgb, std::uint8_t turn) { HWY_DYNAMIC_DISPATCH(turn_hues)(rgb, turn); }
void reverse(Samples rgb) { HWY_DYNAMIC_DISPATCH(reverse)(rgb); }
void to_planes(ConstSamples rgb, const std::array<const Table*, 3>& tables, float* out) {
  HWY_DYNAMIC_DISPATCH(to_planes)(rgb, tables, out);
}

}  // namespace russet::data::pixels
#endif
