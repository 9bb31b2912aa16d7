#include "functional/autocast.h"

#include <fmt/format.h>
#include <russet/error.h>

#include "functional/promotion.h"

namespace russet {
namespace {

struct Policy {
  bool enabled = false;
  DType type = DType::bfloat16;
};

thread_local Policy policy;

}  // namespace

Autocast::Autocast(DType type, bool enabled) : enabled_before_(policy.enabled), type_before_(policy.type) {
  if (enabled && type != DType::bfloat16 && type != DType::float16) {
    throw ValueError(fmt::format("Autocast: the lower type is bfloat16 or float16, not {}", name_of(type)));
  }
  policy = {enabled, enabled ? type : policy.type};
}

Autocast::~Autocast() { policy = {enabled_before_, type_before_}; }

bool is_autocast_enabled() { return policy.enabled; }
DType autocast_type() { return policy.type; }

namespace functional {

Tensor autocast(ops::Autocast rule, const Tensor& x) {
  if (!policy.enabled || !x.defined() || !is_floating(x.dtype()) || x.dtype() == DType::float64) return x;
  if (rule == ops::Autocast::lower) return cast(x, policy.type);
  if (rule == ops::Autocast::float32) return cast(x, DType::float32);
  return x;
}

Tensor autocast(ops::Op op, const Tensor& x) { return policy.enabled ? autocast(ops::row(op).autocast, x) : x; }

}  // namespace functional
}  // namespace russet
