// Vectors of float16 and bfloat16 as float32.

// Include guard, once for each target.
#if defined(RUSSET_TILES_HALF_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef RUSSET_TILES_HALF_INL_H
#undef RUSSET_TILES_HALF_INL_H
#else
#define RUSSET_TILES_HALF_INL_H
#endif

#include <russet/dtype.h>

#include <type_traits>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace russet::cpu::tiles {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// The bits of float32 lanes rounded to bfloat16, in the upper halves. Highway's own DemoteTo truncates.
template <class D>
HWY_INLINE hn::Vec<hn::RebindToUnsigned<D>> bfloat16_bits(D, hn::Vec<D> x) {
  const hn::RebindToUnsigned<D> du;
  const auto bits = hn::BitCast(du, x);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1));
  const auto rounded = hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7fff)));
  const auto quiet = hn::Or(bits, hn::Set(du, 0x400000));
  return hn::IfThenElse(hn::RebindMask(du, hn::IsNaN(x)), quiet, rounded);
}

template <class D>
HWY_INLINE hn::Vec<D> loaded(D d, const bfloat16* memory) {
  const hn::Rebind<std::uint16_t, D> d16;
  const hn::RebindToUnsigned<D> du;
  const auto bits = hn::PromoteTo(du, hn::LoadU(d16, reinterpret_cast<const std::uint16_t*>(memory)));
  return hn::BitCast(d, hn::ShiftLeft<16>(bits));
}
template <class D>
HWY_INLINE void stored(D d, hn::Vec<D> x, bfloat16* memory) {
  const hn::Rebind<std::uint16_t, D> d16;
  const hn::Rebind<std::int32_t, D> di;
  // 16 bits fit int32, so the signed demotion (which every target has) does not saturate.
  hn::StoreU(hn::DemoteTo(d16, hn::BitCast(di, hn::ShiftRight<16>(bfloat16_bits(d, x)))), d16,
             reinterpret_cast<std::uint16_t*>(memory));
}

template <class D>
HWY_INLINE hn::Vec<D> loaded(D d, const float16* memory) {
  const hn::Rebind<hwy::float16_t, D> dh;
  return hn::PromoteTo(d, hn::LoadU(dh, reinterpret_cast<const hwy::float16_t*>(memory)));
}
template <class D>
HWY_INLINE void stored(D, hn::Vec<D> x, float16* memory) {
  const hn::Rebind<hwy::float16_t, D> dh;
  hn::StoreU(hn::DemoteTo(dh, x), dh, reinterpret_cast<hwy::float16_t*>(memory));
}

#if HWY_TARGET == HWY_SCALAR
// Highway's plain conversions of float16 round otherwise.
template <>
HWY_INLINE hn::Vec<hn::ScalableTag<float>> loaded(hn::ScalableTag<float> d, const float16* memory) {
  return hn::Set(d, static_cast<float>(*memory));
}
template <>
HWY_INLINE void stored(hn::ScalableTag<float>, hn::Vec<hn::ScalableTag<float>> x, float16* memory) {
  *memory = float16(hn::GetLane(x));
}
#endif

template <class Half, class D>
HWY_INLINE hn::Vec<D> rounded_to(D d, hn::Vec<D> x) {
  if constexpr (std::is_same_v<Half, bfloat16>) {
    const hn::RebindToUnsigned<D> du;
    return hn::BitCast(d, hn::And(bfloat16_bits(d, x), hn::Set(du, 0xffff0000U)));
  } else {
    HWY_ALIGN float16 half[HWY_MAX_BYTES / sizeof(float)];
    stored(d, x, half);
    return loaded(d, half);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace russet::cpu::tiles
HWY_AFTER_NAMESPACE();

#endif
