// Attention.
#include <russet/nn_functional/attention.h>
#include <russet/nn_functional/dropout.h>

#include <cmath>
#include <limits>

#include "functional/nn_detail.h"

namespace russet {
namespace {

using functional::autocast;
using functional::cast;
using functional::constant;
using functional::wide;

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Which scores count: a mask (boolean: those that do; else added to the scores), and whether row i sees columns 0..i.
struct Masking {
  Tensor mask;
  bool is_causal = false;
  bool any() const { return is_causal || mask.defined(); }
};

Tensor masked(Tensor scores, const Masking& masking) {
  if (masking.is_causal) {
    const int rank = scores.dim();
    const Tensor row = functional::iota_along(rank - 2, rank, scores.size(-2), scores.device());
    const Tensor column = functional::iota_along(rank - 1, rank, scores.size(-1), scores.device());
    scores = where(column <= row, scores, constant(-infinity, scores));
  }
  if (!masking.mask.defined()) return scores;
  if (masking.mask.dtype() == DType::boolean) return where(masking.mask, scores, constant(-infinity, scores));
  return scores + cast(masking.mask, scores.dtype());
}

// Softmax of the masked, scaled scores; zeros where a row's mask leaves nothing.
Tensor probabilities(const Tensor& scores, double scale, const Masking& masking) {
  const Tensor s = masked(wide(scores) * scale, masking);
  Tensor largest = amax(s, -1, true);
  if (masking.any()) largest = where(largest == constant(-infinity, s), constant(0, s), largest);
  const Tensor e = exp(s - largest);
  Tensor total = sum(e, -1, true);
  if (masking.any()) total = where(total == constant(0, s), constant(1, s), total);
  return cast(e / total, scores.dtype());
}

// The gradient of a softmax p: p (g - sum(g p)); of a mask that was added the same, of the scores times the scale.
Tensor attention_weights(const Tensor& scores, double scale, const Masking& masking) {
  const Tensor result = functional::outside_tape([&] { return probabilities(scores, scale, masking); });
  std::vector<Tensor> inputs{scores};
  const bool additive = masking.mask.defined() && masking.mask.dtype() != DType::boolean;
  if (additive) inputs.push_back(masking.mask);
  return autograd::with_gradient("attention_weights", inputs, result, {}, true,
                                 [scale, additive](const Tensor& gradient, std::span<const Tensor> saved) {
                                   const Tensor g = wide(gradient);
                                   const Tensor p = wide(saved[0]);
                                   const Tensor inner = p * (g - sum(g * p, -1, true));
                                   std::vector<Tensor> gradients{inner * scale};
                                   if (additive) gradients.push_back(inner);
                                   return gradients;
                                 });
}

Tensor attention_weights(const Tensor& query, const Tensor& key, const Masking& masking, std::optional<double> scale) {
  const double factor = scale.value_or(1 / std::sqrt(static_cast<double>(query.size(-1))));
  return attention_weights(matmul(query, key.transpose(-2, -1)), factor, masking);
}

void check(const Tensor& query, const Tensor& key, const Tensor& value) {
  const auto fail = [&](const char* what) {
    throw ShapeError(fmt::format("scaled_dot_product_attention: {}: query {}, key {}, value {}", what,
                                 to_string(query.sizes()), to_string(key.sizes()), to_string(value.sizes())));
  };
  if (query.dim() < 2 || key.dim() < 2 || value.dim() < 2) fail("takes [..., length, width]");
  if (query.size(-1) != key.size(-1)) fail("the widths of query and key differ");
  if (key.size(-2) != value.size(-2)) fail("the lengths of key and value differ");
}

Tensor shared_by_groups(const Tensor& x, const Tensor& query) {
  const std::int64_t heads = query.size(-3);
  if (heads % x.size(-3) != 0) {
    throw ShapeError(fmt::format("scaled_dot_product_attention: {} heads of the query do not share {} of key and value",
                                 heads, x.size(-3)));
  }
  return repeat_interleave(x, heads / x.size(-3), -3);
}

// Multi-head attention.

bool same(const Tensor& a, const Tensor& b) { return a.state() == b.state(); }

struct Projected {
  Tensor query;
  Tensor key;
  Tensor value;
};

Tensor part(const Tensor& stacked, std::int64_t begin, std::int64_t end, std::int64_t width) {
  return stacked.defined() ? stacked.narrow(0, begin * width, (end - begin) * width) : stacked;
}

Projected projected(const Projected& x, const MultiHeadAttentionOptions& options) {
  const std::int64_t e = x.query.size(-1);
  const Tensor& bias = options.in_proj_bias;
  const auto split_last = [&](const Tensor& y, std::int64_t i) { return y.narrow(-1, i * e, e); };
  if (!options.in_proj_weight.defined()) {
    return {linear(x.query, options.q_proj_weight, part(bias, 0, 1, e)),
            linear(x.key, options.k_proj_weight, part(bias, 1, 2, e)),
            linear(x.value, options.v_proj_weight, part(bias, 2, 3, e))};
  }
  const Tensor& weight = options.in_proj_weight;
  if (same(x.query, x.key) && same(x.key, x.value)) {
    const Tensor y = linear(x.query, weight, bias);
    return {split_last(y, 0), split_last(y, 1), split_last(y, 2)};
  }
  const Tensor query = linear(x.query, part(weight, 0, 1, e), part(bias, 0, 1, e));
  if (same(x.key, x.value)) {
    const Tensor y = linear(x.key, part(weight, 1, 3, e), part(bias, 1, 3, e));
    return {query, split_last(y, 0), split_last(y, 1)};
  }
  return {query, linear(x.key, part(weight, 1, 2, e), part(bias, 1, 2, e)),
          linear(x.value, part(weight, 2, 3, e), part(bias, 2, 3, e))};
}

// [n, s, e] with a row more at the end.
Tensor extended(const Tensor& x, const Tensor& row) {
  return row.defined() ? cat({x, cast(row, x.dtype()).expand({x.size(0), 1, x.size(2)})}, 1) : x;
}

// [n, l, e] as [n, heads, l, e / heads].
Tensor split_heads(const Tensor& x, std::int64_t heads) {
  return x.reshape({x.size(0), x.size(1), heads, x.size(2) / heads}).transpose(1, 2);
}

// A mask of what may not be seen, with `columns` more that may.
Tensor widened(const Tensor& mask, std::int64_t columns) { return columns == 0 ? mask : pad(mask, {0, columns}); }

Tensor additive(const Tensor& mask) {
  if (mask.dtype() != DType::boolean) return mask;
  const Tensor zero = constant(0, DType::float32, mask.device());
  return where(mask, constant(-infinity, zero), zero);
}

// Both masks in scaled_dot_product_attention's form, [n, heads, l, s] or what broadcasts to it.
Tensor merged_mask(const MultiHeadAttentionOptions& options, std::int64_t batch, std::int64_t columns) {
  Tensor attention = options.attn_mask;
  Tensor padding = options.key_padding_mask;
  if (attention.defined()) {
    attention = widened(attention, columns);
    if (attention.dim() == 3) {
      attention = attention.reshape({batch, options.num_heads, attention.size(1), attention.size(2)});
    }
  }
  if (padding.defined()) {
    if (padding.dim() == 1) padding = padding.unsqueeze(0);
    padding = widened(padding, columns).unsqueeze(1).unsqueeze(1);
  }
  const auto is_boolean = [](const Tensor& mask) { return !mask.defined() || mask.dtype() == DType::boolean; };
  if (!attention.defined() && !padding.defined()) return {};
  if (is_boolean(attention) && is_boolean(padding)) {
    if (!attention.defined()) return logical_not(padding);
    if (!padding.defined()) return logical_not(attention);
    return logical_not(logical_or(attention, padding));
  }
  if (!attention.defined()) return padding;
  if (!padding.defined()) return attention;
  return additive(attention) + additive(padding);
}

void check(const Projected& x, const MultiHeadAttentionOptions& options) {
  const auto fail = [&](const char* what) {
    throw ShapeError(fmt::format("multi_head_attention_forward: {}: query {}, key {}, value {}, {} heads", what,
                                 to_string(x.query.sizes()), to_string(x.key.sizes()), to_string(x.value.sizes()),
                                 options.num_heads));
  };
  if (x.query.dim() != 2 && x.query.dim() != 3) fail("takes two or three axes");
  if (x.key.dim() != x.query.dim() || x.value.dim() != x.query.dim()) fail("the numbers of axes differ");
  if (options.num_heads < 1 || x.query.size(-1) % options.num_heads != 0) fail("the width does not split into heads");
  if (!options.in_proj_weight.defined() &&
      !(options.q_proj_weight.defined() && options.k_proj_weight.defined() && options.v_proj_weight.defined())) {
    throw ValueError("multi_head_attention_forward: takes in_proj_weight, or the weights of query, key and value");
  }
}

// Applies `f` to all three, once to those that are the same tensor.
template <class F>
Projected each(const Projected& x, F&& f) {
  const Tensor query = f(x.query);
  const Tensor key = same(x.key, x.query) ? query : f(x.key);
  return {query, key, same(x.value, x.key) ? key : f(x.value)};
}

}  // namespace

Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                    const Tensor& attn_mask, const AttentionOptions& options) {
  check(query, key, value);
  if (options.is_causal && attn_mask.defined()) {
    throw ValueError("scaled_dot_product_attention: takes a mask or is_causal, not both");
  }
  const Tensor q = autocast(ops::Autocast::lower, query);
  Tensor k = autocast(ops::Autocast::lower, key);
  Tensor v = autocast(ops::Autocast::lower, value);
  if (options.enable_gqa) {
    k = shared_by_groups(k, q);
    v = shared_by_groups(v, q);
  }
  const Tensor weights = attention_weights(q, k, {attn_mask, options.is_causal}, options.scale);
  return matmul(dropout(weights, options.dropout_p, true, options.generator), v);
}

MultiHeadAttentionResult multi_head_attention_forward(const Tensor& query, const Tensor& key, const Tensor& value,
                                                      const MultiHeadAttentionOptions& options) {
  const Projected given{query, key, value};
  check(given, options);
  const bool is_batched = query.dim() == 3;
  const auto to_batch_first = [&](const Tensor& x) {
    if (!is_batched) return x.unsqueeze(0);
    return options.batch_first ? x : x.transpose(0, 1);
  };
  const Projected x = projected(each(given, to_batch_first), options);
  const std::int64_t batch = x.query.size(0);
  const std::int64_t width = x.query.size(2);
  const Tensor q = split_heads(x.query, options.num_heads);
  Tensor k = split_heads(extended(x.key, options.bias_k), options.num_heads);
  Tensor v = split_heads(extended(x.value, options.bias_v), options.num_heads);
  if (options.add_zero_attn) {
    k = pad(k, {0, 0, 0, 1});
    v = pad(v, {0, 0, 0, 1});
  }
  const Tensor mask = merged_mask(options, batch, k.size(2) - x.key.size(1));
  const Masking masking{mask, options.is_causal && !options.attn_mask.defined()};
  const Tensor weights =
      dropout(attention_weights(q, k, masking, {}), options.dropout_p, options.training, options.generator);
  const Tensor joined = matmul(weights, v).transpose(1, 2).reshape({batch, -1, width});
  Tensor output = linear(joined, options.out_proj_weight, options.out_proj_bias);
  if (!is_batched) {
    output = output.squeeze(0);
  } else if (!options.batch_first) {
    output = output.transpose(0, 1);
  }
  if (!options.need_weights) return {output, {}};
  const Tensor shown = options.average_attn_weights ? mean(weights, 1) : weights;
  return {output, is_batched ? shown : shown.squeeze(0)};
}

}  // namespace russet
