// Philox numbers for tiles of positions. Where positions follow each other, whole vectors of blocks are computed.
#include <algorithm>

#include "base/philox.h"
#include "device/cpu/group/install.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/group/random.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.
#include "device/cpu/group/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace russet::cpu::tiles {
namespace HWY_NAMESPACE {
namespace {

/// Words of a Philox stream, computed in stretches of this many.
inline constexpr std::size_t stretch = 512;
/// A stretch may start within a block and ends with a whole vector of blocks.
inline constexpr std::size_t word_room = stretch + 8 + 4 * HWY_MAX_BYTES / sizeof(std::uint32_t);

#if HWY_TARGET != HWY_SCALAR
using Words = hn::ScalableTag<std::uint32_t>;
using Word = hn::Vec<Words>;

/// Upper and lower halves of the products of a constant and each lane.
HWY_INLINE void multiply(std::uint32_t factor, Word x, Word& high, Word& low) {
  const Words d;
  const hn::RepartitionToWide<Words> wide;
  const auto f = hn::Set(d, factor);
  const auto even = hn::MulEven(x, f);
  const auto odd = hn::MulEven(hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(wide, x))), f);
  high = hn::OddEven(hn::BitCast(d, odd), hn::BitCast(d, hn::ShiftRight<32>(even)));
  low = hn::OddEven(hn::BitCast(d, hn::ShiftLeft<32>(odd)), hn::BitCast(d, even));
}
#endif

/// The words of `count` blocks from `block` on, rounded up to whole vectors.
HWY_ATTR void fill_words(std::uint64_t seed, std::uint64_t offset, std::uint64_t block, std::size_t count,
                         std::uint32_t* words) {
#if HWY_TARGET == HWY_SCALAR
  for (std::size_t i = 0; i < count; ++i, words += 4) {
    const auto four = base::philox(seed, offset, block + i);
    std::copy(four.begin(), four.end(), words);
  }
#else
  const Words d;
  const std::size_t lanes = hn::Lanes(d);
  for (std::size_t i = 0; i < count; i += lanes, words += 4 * lanes) {
    const std::uint64_t first = block + i;
    const auto low_word = hn::Set(d, static_cast<std::uint32_t>(first));
    Word c0 = hn::Add(low_word, hn::Iota(d, 0));
    const auto carry = hn::And(hn::VecFromMask(d, hn::Lt(c0, low_word)), hn::Set(d, 1));
    Word c1 = hn::Add(hn::Set(d, static_cast<std::uint32_t>(first >> 32)), carry);
    Word c2 = hn::Set(d, static_cast<std::uint32_t>(offset));
    Word c3 = hn::Set(d, static_cast<std::uint32_t>(offset >> 32));
    auto key0 = static_cast<std::uint32_t>(seed);
    auto key1 = static_cast<std::uint32_t>(seed >> 32);
    for (int round = 0; round < 10; ++round) {
      Word high0;
      Word low0;
      Word high1;
      Word low1;
      multiply(0xD2511F53U, c0, high0, low0);
      multiply(0xCD9E8D57U, c2, high1, low1);
      c0 = hn::Xor(hn::Xor(high1, c1), hn::Set(d, key0));
      c1 = low1;
      c2 = hn::Xor(hn::Xor(high0, c3), hn::Set(d, key1));
      c3 = low0;
      key0 += 0x9E3779B9U;
      key1 += 0xBB67AE85U;
    }
    hn::StoreInterleaved4(c0, c1, c2, c3, d, words);
  }
#endif
}

struct Uniform {
  using Result = float;
  static constexpr std::size_t words = 1;
  static HWY_INLINE void convert(const std::uint32_t* from, std::size_t count, float* to) {
    for (std::size_t i = 0; i < count; ++i) {
      to[i] = static_cast<float>(static_cast<std::int32_t>(from[i] >> 8)) * 0x1p-24F;
    }
  }
};

struct Bits {
  using Result = std::int64_t;
  static constexpr std::size_t words = 2;
  static HWY_INLINE void convert(const std::uint32_t* from, std::size_t count, std::int64_t* to) {
    for (std::size_t i = 0; i < count; ++i) {
      to[i] = static_cast<std::int64_t>(((std::uint64_t{from[2 * i]} << 32) | from[2 * i + 1]) >> 1);
    }
  }
};

struct Normal {
  using Result = float;
  static constexpr std::size_t words = 2;
  static HWY_ATTR void convert(const std::uint32_t* from, std::size_t count, float* to) {
    const hn::ScalableTag<double> d;
    const hn::Rebind<float, decltype(d)> df;
    HWY_ALIGN double u1[stretch + HWY_MAX_BYTES];
    HWY_ALIGN double u2[stretch + HWY_MAX_BYTES];
    for (std::size_t i = 0; i < count; ++i) {
      u1[i] = (static_cast<double>(static_cast<std::int32_t>(from[2 * i] >> 8)) + 1) * 0x1p-24;
      u2[i] = static_cast<double>(static_cast<std::int32_t>(from[2 * i + 1] >> 8)) * 0x1p-24;
    }
    const std::size_t lanes = hn::Lanes(d);
    for (std::size_t i = 0; i < count; i += lanes) {
      for (std::size_t k = count; k < i + lanes; ++k) u1[k] = u2[k] = 1;
      const auto radius = hn::Sqrt(hn::Mul(hn::Set(d, -2.0), hn::Log(d, hn::Load(d, u1 + i))));
      const auto angle = hn::Mul(hn::Set(d, 6.283185307179586476925), hn::Load(d, u2 + i));
      const auto value = hn::DemoteTo(df, hn::Mul(radius, hn::Cos(d, angle)));
      if (i + lanes <= count) {
        hn::StoreU(value, df, to + i);
      } else {
        HWY_ALIGN float rest[HWY_MAX_BYTES / sizeof(float)];
        hn::StoreU(value, df, rest);
        std::copy(rest, rest + (count - i), to + i);
      }
    }
  }
};

template <class Kind>
HWY_ATTR void random_run(std::uint64_t seed, std::uint64_t offset, std::int64_t start, std::size_t count, void* out) {
  auto* to = static_cast<typename Kind::Result*>(out);
  HWY_ALIGN std::uint32_t words[word_room];
  constexpr std::size_t most = stretch / Kind::words;
  for (std::size_t i = 0; i < count; i += most) {
    const std::size_t run = std::min(most, count - i);
    const std::uint64_t first = (static_cast<std::uint64_t>(start) + i) * Kind::words;
    const std::size_t skip = first % 4;
    if (run * Kind::words + skip <= 4) {
      const auto four = base::philox(seed, offset, first / 4);
      std::copy(four.begin(), four.end(), words);
    } else {
      fill_words(seed, offset, first / 4, (skip + run * Kind::words + 3) / 4, words);
    }
    Kind::convert(words + skip, run, to + i);
  }
}

/// Positions of any kind: finds the runs among them.
template <class Kind>
HWY_ATTR void random_tile(std::uint64_t seed, std::uint64_t offset, const std::int64_t* positions, std::size_t count,
                          void* out) {
  auto* to = static_cast<typename Kind::Result*>(out);
  for (std::size_t i = 0; i < count;) {
    std::size_t run = 1;
    while (i + run < count && positions[i + run] == positions[i] + static_cast<std::int64_t>(run)) ++run;
    random_run<Kind>(seed, offset, positions[i], run, to + i);
    i += run;
  }
}

template <class Kind>
void enter(Loops& loops, ops::Op op) {
  loops.random[static_cast<std::size_t>(random_of(op))] = random_tile<Kind>;
  loops.random_run[static_cast<std::size_t>(random_of(op))] = random_run<Kind>;
}

static void install(Loops& loops) {
  enter<Uniform>(loops, ops::Op::uniform);
  enter<Normal>(loops, ops::Op::normal);
  enter<Bits>(loops, ops::Op::random_bits);
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
void install_random(Loops& loops) { HWY_DYNAMIC_DISPATCH(install)(loops); }
}  // namespace russet::cpu::tiles
#endif
