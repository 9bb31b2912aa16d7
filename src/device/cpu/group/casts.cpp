// Casts between types of tiles, and rounding within a tile to a narrower type.
#include "device/cpu/group/install.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/group/casts.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.
#include "device/cpu/group/half-inl.h"
#include "device/cpu/group/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace russet::cpu::tiles {
namespace HWY_NAMESPACE {
namespace {

template <class To, class From>
HWY_ATTR void cast_tile(std::size_t count, const Operands& operands) {
  const auto* in = static_cast<const From*>(operands.in[0]);
  auto* out = static_cast<To*>(operands.out);
  for (std::size_t i = 0; i < count; ++i) out[i] = convert_element<To>(in[i]);
}

/// Rounds float32 in place, as if it had been stored in a 16-bit type.
template <class Half>
HWY_ATTR void round_half(std::size_t count, const Operands& operands) {
  const hn::ScalableTag<float> d;
  const auto* in = static_cast<const float*>(operands.in[0]);
  auto* out = static_cast<float*>(operands.out);
  for (std::size_t i = 0; i < count; i += hn::Lanes(d)) {
    hn::StoreU(rounded_to<Half>(d, hn::LoadU(d, in + i)), d, out + i);
  }
}

template <class Small>
HWY_ATTR void wrap_integer(std::size_t count, const Operands& operands) {
  const auto* in = static_cast<const std::int32_t*>(operands.in[0]);
  auto* out = static_cast<std::int32_t*>(operands.out);
  for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<Small>(in[i]);
}

HWY_ATTR void to_bool(std::size_t count, const Operands& operands) {
  const auto* in = static_cast<const std::int32_t*>(operands.in[0]);
  auto* out = static_cast<std::int32_t*>(operands.out);
  for (std::size_t i = 0; i < count; ++i) out[i] = in[i] != 0;
}

template <class From>
void install_casts_from(Loops& loops, TileType tile_type) {
  loops.cast[at(tile_type)] = {cast_tile<float, From>, cast_tile<double, From>, cast_tile<std::int32_t, From>,
                               cast_tile<std::int64_t, From>};
}

static void install(Loops& loops) {
  install_casts_from<float>(loops, TileType::f32);
  install_casts_from<double>(loops, TileType::f64);
  install_casts_from<std::int32_t>(loops, TileType::i32);
  install_casts_from<std::int64_t>(loops, TileType::i64);
  loops.round[at(DType::float16)] = round_half<float16>;
  loops.round[at(DType::bfloat16)] = round_half<bfloat16>;
  loops.round[at(DType::uint8)] = wrap_integer<std::uint8_t>;
  loops.round[at(DType::int8)] = wrap_integer<std::int8_t>;
  loops.round[at(DType::int16)] = wrap_integer<std::int16_t>;
  loops.round[at(DType::boolean)] = to_bool;
  loops.target = hwy::TargetName(HWY_TARGET);
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
void install_casts(Loops& loops) { HWY_DYNAMIC_DISPATCH(install)(loops); }

namespace {
Loops make_loops() {
  Loops loops;
  install_elementwise_f32(loops);
  install_elementwise_f64(loops);
  install_elementwise_i32(loops);
  install_elementwise_i64(loops);
  install_casts(loops);
  install_memory(loops);
  install_reductions(loops);
  install_random(loops);
  return loops;
}

Loops& table() {
  static Loops loops = make_loops();
  return loops;
}
}  // namespace

const Loops& loops() { return table(); }

void limit_instruction_sets(InstructionSet most) {
  std::int64_t disabled = 0;
  if (most != InstructionSet::best) disabled |= HWY_AVX3;
  if (most == InstructionSet::plain) disabled |= HWY_AVX2;
  hwy::DisableTargets(disabled);
  table() = make_loops();
}
}  // namespace russet::cpu::tiles
#endif
