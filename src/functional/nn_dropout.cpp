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

namespace {

/// The indices of all bags as a vector, the bag of each, and how many bags there are.
struct Bags {
  Tensor rows;
  Tensor bag;
  std::int64_t count;
};

Bags bags_of(const Tensor& indices, const Tensor& offsets, bool include_last_offset) {
  functional::require_index_type("embedding_bag", indices);
  const Tensor rows = functional::cast(indices.flatten(), DType::int64);
  const Tensor place = functional::iota(rows.sizes(), indices.device());
  if (indices.dim() == 2) {
    if (offsets.defined()) throw ValueError("embedding_bag: offsets are for a vector of indices, not for a matrix");
    const std::int64_t width = std::max<std::int64_t>(indices.size(1), 1);
    return {rows, floor_divide(place, constant(width, place)), indices.size(0)};
  }
  if (indices.dim() != 1) {
    throw ShapeError(
        fmt::format("embedding_bag: the indices are a vector or a matrix, not {}", to_string(indices.sizes())));
  }
  if (!offsets.defined()) throw ValueError("embedding_bag: a vector of indices takes offsets");
  functional::require_index_type("embedding_bag", offsets);
  if (offsets.dim() != 1) {
    throw ShapeError(fmt::format("embedding_bag: the offsets are a vector, not {}", to_string(offsets.sizes())));
  }
  if (include_last_offset && offsets.numel() == 0) throw ValueError("embedding_bag: there is no last offset");
  const Tensor begins = functional::cast(offsets, DType::int64);
  // -1, which no bag has, for what lies before the first offset.
  return {rows, searchsorted(begins, place, true) - constant(1, place),
          offsets.numel() - (include_last_offset ? 1 : 0)};
}

void check_bag(const Tensor& indices, const Tensor& weight, const EmbeddingBagOptions& options) {
  if (weight.dim() != 2) {
    throw ShapeError(fmt::format("embedding_bag: the weight is [entries, width], not {}", to_string(weight.sizes())));
  }
  const Tensor& factors = options.per_sample_weights;
  if (!factors.defined()) return;
  if (options.mode != EmbeddingBagMode::sum) throw ValueError("embedding_bag: per_sample_weights are for mode sum");
  if (factors.sizes() != indices.sizes()) {
    throw ShapeError(fmt::format("embedding_bag: the weights are {}, the indices {}", to_string(factors.sizes()),
                                 to_string(indices.sizes())));
  }
}

/// `values`, a row for each index, combined into one row for each bag.
Tensor combined(const Tensor& values, const Bags& bags, EmbeddingBagMode mode) {
  const Shape sizes{bags.count + 1, values.size(1)};  // the last row is for what does not count
  const Tensor none = constant(0, values, sizes);
  if (mode == EmbeddingBagMode::max) {
    const Tensor index = bags.bag.unsqueeze(1).expand(values.sizes());
    return scatter_reduce(none, 0, index, values, ScatterReduction::amax, {.include_self = false});
  }
  const Tensor total = index_add(none, 0, bags.bag, values);
  if (mode == EmbeddingBagMode::sum) return total;
  const Tensor ones = constant(1, values, {values.size(0), 1});
  const Tensor counts = index_add(constant(0, values, {bags.count + 1, 1}), 0, bags.bag, ones);
  return total / maximum(counts, constant(1, counts));
}

}  // namespace

Tensor embedding_bag(const Tensor& indices, const Tensor& weight, const Tensor& offsets, std::optional<double> max_norm,
                     double norm_type, const EmbeddingBagOptions& options) {
  check_bag(indices, weight, options);
  Bags bags = bags_of(indices, offsets, options.include_last_offset);
  if (bags.rows.numel() == 0) return constant(0, weight, {bags.count, weight.size(1)});
  const Tensor chosen = embedding(bags.rows, weight, options.padding_idx, max_norm, norm_type);
  Tensor values = functional::wide(chosen);
  if (options.per_sample_weights.defined()) {
    values = values * functional::wide(options.per_sample_weights).reshape({values.size(0), 1});
  }
  if (options.padding_idx) {
    const std::int64_t padding = *options.padding_idx + (*options.padding_idx < 0 ? weight.size(0) : 0);
    const Tensor ignored = eq(bags.rows, constant(padding, bags.rows));
    bags.bag = where(ignored, constant(bags.count, bags.bag), bags.bag);
  }
  // Looking them up is the check of the offsets, once for all that reads them.
  const Tensor known = functional::iota({bags.count + 1}, bags.bag.device());
  bags.bag = functional::taken(known, {.lead = bags.bag.sizes()}, bags.bag);
  return functional::cast(combined(values, bags, options.mode).narrow(0, 0, bags.count), weight.dtype());
}

}  // namespace russet
