#pragma once
// A hash of attributes: equal ones have equal hashes.
#include <bit>

#include "base/hash.h"
#include "ops/attributes.h"

namespace russet::ops {

struct AttributeHash {
  std::uint64_t operator()(const std::monostate&) const { return 0; }
  std::uint64_t operator()(const Axes& a) const {
    return base::mix(a.mask * 2ULL + a.descending, static_cast<std::uint64_t>(a.first));
  }
  std::uint64_t operator()(const View& a) const {
    return base::mix(base::mix(a.dynamic, static_cast<std::uint64_t>(a.offset)), a.strides);
  }
  std::uint64_t operator()(const Window& a) const {
    std::uint64_t hash = static_cast<std::uint64_t>(a.groups);
    for (const auto* pair : {&a.kernel, &a.stride, &a.padding, &a.padding_after, &a.dilation}) {
      for (const std::int32_t value : *pair) hash = base::mix(hash, static_cast<std::uint64_t>(value));
    }
    return hash;
  }
  std::uint64_t operator()(const Number& a) const {
    return base::mix(std::bit_cast<std::uint64_t>(a.real), static_cast<std::uint64_t>(a.integer));
  }
  std::uint64_t operator()(const Indexing& a) const {
    std::uint64_t hash = base::mix(static_cast<std::uint64_t>(a.axes), a.lead);
    for (const std::int16_t source : a.sources) hash = base::mix(hash, static_cast<std::uint64_t>(source));
    return base::mix(hash, (a.accumulates ? 4ULL : 0ULL) + (a.from_end ? 2ULL : 0ULL) + (a.checked ? 1ULL : 0ULL));
  }
  std::uint64_t operator()(const Seed& a) const { return base::mix(a.value, static_cast<std::uint64_t>(a.first)); }
  std::uint64_t operator()(const Linalg& a) const {
    return (a.vectors ? 8ULL : 0ULL) + (a.invertible ? 4ULL : 0ULL) + (a.upper ? 2ULL : 0ULL) + (a.unit ? 1ULL : 0ULL);
  }
  std::uint64_t operator()(const Attention& a) const {
    const auto bits = base::mix(std::bit_cast<std::uint64_t>(a.scale), std::bit_cast<std::uint64_t>(a.dropout));
    return base::mix(bits, (a.causal ? 2ULL : 0ULL) + (a.masked ? 1ULL : 0ULL));
  }
};

inline std::uint64_t hash_of(const Attributes& attributes) { return std::visit(AttributeHash{}, attributes); }

}  // namespace russet::ops
