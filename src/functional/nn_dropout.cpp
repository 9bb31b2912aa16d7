// Dropout and lookups.
#include <russet/functional/nn_dropout.h>

#include "functional/nn_detail.h"

namespace russet {
namespace {

using functional::constant;

// The mask is a random operator, which backward computes again instead of keeping it.
Tensor dropped(const char* function, const Tensor& x, const Shape& mask_shape, double p, bool training,
               Generator* generator) {
  if (!(p >= 0 && p <= 1)) throw ValueError(fmt::format("{}: the probability is in [0, 1], not {}", function, p));
  functional::require_floating(function, x);
  if (!training || p == 0) return x;
  if (p == 1) return x * constant(0, x);
  const Tensor kept = rand(mask_shape, {DType::float32, x.device()}, generator) >= p;
  return where(kept, x * (1 / (1 - p)), constant(0, x));
}

// The sizes of [n, c, ...] with the axes behind the channels at 1.
Shape channels_of(const char* function, const Tensor& x, int spatial) {
  if (x.dim() != spatial + 1 && x.dim() != spatial + 2) {
    throw ShapeError(
        fmt::format("{}: takes {} or {} dimensions, not {}", function, spatial + 1, spatial + 2, to_string(x.sizes())));
  }
  Shape sizes = x.sizes();
  for (int axis = x.dim() - spatial; axis < x.dim(); ++axis) sizes[axis] = 1;
  return sizes;
}

}  // namespace

Tensor dropout(const Tensor& x, double p, bool training, Generator* generator) {
  return dropped("dropout", x, x.sizes(), p, training, generator);
}

Tensor dropout1d(const Tensor& x, double p, bool training, Generator* generator) {
  return dropped("dropout1d", x, channels_of("dropout1d", x, 1), p, training, generator);
}

Tensor dropout2d(const Tensor& x, double p, bool training, Generator* generator) {
  return dropped("dropout2d", x, channels_of("dropout2d", x, 2), p, training, generator);
}

Tensor stochastic_depth(const Tensor& x, double p, StochasticDepthMode mode, bool training, Generator* generator) {
  Shape sizes = x.sizes();
  const int first_shared = mode == StochasticDepthMode::row ? 1 : 0;
  for (int axis = first_shared; axis < x.dim(); ++axis) sizes[axis] = 1;
  return dropped("stochastic_depth", x, sizes, p, training, generator);
}

namespace {

void limit_norms(const Tensor& weight, const Tensor& rows, double max_norm, double norm_type) {
  const NoGrad guard;
  const Tensor table = weight.detach();
  const Shape entries{table.size(0)};
  const Tensor ones = constant(1, rows, rows.sizes());
  const Tensor used = functional::placed(constant(0, rows, entries), ones, {.lead = rows.sizes()}, rows);
  const Tensor norms = norm(functional::wide(table), norm_type, 1);
  const Tensor limit = functional::number(max_norm, norms.dtype(), norms.device());
  const Tensor scale = limit / (norms + constant(1e-7, norms));
  const Tensor too_long = logical_and(used > constant(0, used), norms > limit);
  table.copy_(where(too_long.unsqueeze(-1), table * functional::cast(scale, table.dtype()).unsqueeze(-1), table));
}

}  // namespace

Tensor embedding(const Tensor& indices, const Tensor& weight, std::optional<std::int64_t> padding_idx,
                 std::optional<double> max_norm, double norm_type) {
  functional::require_index_type("embedding", indices);
  if (weight.dim() != 2) {
    throw ShapeError(fmt::format("embedding: the weight is [entries, width], not {}", to_string(weight.sizes())));
  }
  const std::int64_t entries = weight.size(0);
  const Tensor rows = functional::cast(indices, DType::int64);
  if (max_norm) limit_norms(weight, rows, *max_norm, norm_type);
  const ops::Indexing by_row{.lead = rows.sizes()};
  if (!padding_idx) return functional::taken(weight, by_row, rows);
  if (*padding_idx < -entries || *padding_idx >= entries) {
    throw ValueError(fmt::format("embedding: padding_idx {} is outside of {} entries", *padding_idx, entries));
  }
  const std::int64_t padding = *padding_idx < 0 ? *padding_idx + entries : *padding_idx;
  const Tensor result = functional::outside_tape([&] { return functional::taken(weight, by_row, rows); });
  const Shape table = weight.sizes();
  return autograd::with_gradient(
      "embedding", {weight}, result, {rows}, false,
      [table, padding](const Tensor& g, std::span<const Tensor> saved) -> std::vector<Tensor> {
        const Tensor& at = saved[0];
        const Tensor padded = (at == constant(padding, at)).unsqueeze(-1);
        return {functional::placed(constant(0, g, table), where(padded, constant(0, g), g),
                                   {.lead = at.sizes(), .accumulates = true}, at)};
      });
}

}  // namespace russet
