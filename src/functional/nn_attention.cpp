// Attention.
#include <russet/functional/nn_attention.h>
#include <russet/functional/nn_dropout.h>

#include <cmath>
#include <limits>

#include "autograd/attention.h"
#include "functional/nn_detail.h"
#include "graph/executor.h"
#include "graph/tensor_state.h"

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

double scale_of(const Tensor& query, std::optional<double> scale) {
  return scale.value_or(1 / std::sqrt(static_cast<double>(query.size(-1))));
}

/// Axes of size 1 in front, up to `rank`.
Tensor with_rank(Tensor x, int rank) {
  while (x.dim() < rank) x = x.unsqueeze(0);
  return x;
}

/// The axes before the last two.
Shape batch_of(Shape sizes) {
  sizes.pop_back();
  sizes.pop_back();
  return sizes;
}

Tensor in_batch(const Tensor& x, const Shape& batch) {
  Shape sizes = batch;
  sizes.push_back(x.size(-2));
  sizes.push_back(x.size(-1));
  return x.sizes() == sizes ? x : x.expand(sizes);
}

struct Dropping {
  double p = 0;
  Generator* generator = nullptr;
};

// `kept`: query, key, value, logsumexp, the mask and the random numbers if there are any, the result.
std::vector<Tensor> gradients_in_blocks(const ops::Attention& attributes, bool masked, const Tensor& g,
                                        std::span<const Tensor> kept) {
  autograd::AttentionOperands a{kept[0], kept[1], kept[2], {}, {}, attributes};
  if (masked) a.mask = kept[4];
  if (attributes.dropout > 0) a.uniform = kept[masked ? 5 : 4];
  // Gradients of gradients go through the logsumexp as well.
  const Tensor logsumexp = is_grad_enabled() ? autograd::attention_logsumexp(a) : kept[3];
  const autograd::AttentionGradients found = autograd::attention_gradients(a, kept.back(), logsumexp, g);
  return {found.query, found.key, found.value};
}

// The primitive, which keeps no probabilities: the tape keeps the logsumexp of each row of scores instead.
Tensor in_blocks(const Tensor& query, const Tensor& key, const Tensor& value, const Masking& masking, double scale,
                 const Dropping& dropping) {
  Tensor mask = masking.mask;
  Shape batch = broadcast(broadcast(batch_of(query.sizes()), batch_of(key.sizes())), batch_of(value.sizes()));
  if (mask.defined()) {
    mask = with_rank(mask, 2);
    if (mask.dtype() != DType::boolean) mask = cast(mask, wide(constant(0, query)).dtype());
    batch = broadcast(batch, batch_of(mask.sizes()));
    mask = with_rank(mask, batch.rank() + 2);
  }
  autograd::AttentionOperands operands{in_batch(query, batch),
                                       in_batch(key, batch),
                                       in_batch(value, batch),
                                       mask,
                                       {},
                                       {.scale = scale, .dropout = dropping.p, .causal = masking.is_causal}};
  if (dropping.p > 0) {
    Shape scores = batch;
    scores.push_back(query.size(-2));
    scores.push_back(key.size(-2));
    operands.uniform = rand(scores, {DType::float32, query.device()}, dropping.generator);
  }
  const auto [result, logsumexp] = functional::outside_tape(
      [&] { return std::pair(autograd::attention(operands), autograd::attention_logsumexp(operands)); });
  std::vector<Tensor> saved{operands.query, operands.key, operands.value, logsumexp};
  if (mask.defined()) saved.push_back(mask);
  if (operands.uniform.defined()) saved.push_back(operands.uniform);
  return autograd::with_gradient(
      "scaled_dot_product_attention", {operands.query, operands.key, operands.value}, result, saved, true,
      [attributes = operands.attributes, masked = mask.defined()](const Tensor& g, std::span<const Tensor> kept) {
        return gradients_in_blocks(attributes, masked, g, kept);
      });
}

// softmax(scale * q k^T, masked) v, after dropout of the probabilities.
Tensor attended(const Tensor& query, const Tensor& key, const Tensor& value, const Masking& masking, double scale,
                const Dropping& dropping) {
  const bool learns_mask = masking.mask.defined() && masking.mask.requires_grad() && is_grad_enabled();
  const bool drops_some = dropping.p >= 0 && dropping.p < 1;
  const bool known = is_floating(query.dtype()) && query.dtype() == key.dtype() && key.dtype() == value.dtype();
  const bool has_kernels = known && graph::executor_of(query.device()).has_attention(query.dtype());
  if (!has_kernels || learns_mask || !drops_some || key.size(-2) == 0) {
    const Tensor weights = attention_weights(matmul(query, key.transpose(-2, -1)), scale, masking);
    return matmul(dropout(weights, dropping.p, true, dropping.generator), value);
  }
  return in_blocks(query, key, value, masking, scale, dropping);
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

/// A leaf whose own elements overlap (it was expanded) has a gradient, but views of it have none; those of a copy do.
Tensor apart(const Tensor& x) {
  const bool overlaps = x.requires_grad() && x.is_leaf() && !graph::is_non_overlapping(x.state()->geometry);
  return overlaps ? x.contiguous() : x;
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
  if (x.query.dim() != 2 && x.query.dim() != 3) fail("takes two or three dimensions");
  if (x.key.dim() != x.query.dim() || x.value.dim() != x.query.dim()) fail("the numbers of dimensions differ");
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
  const Tensor q = autocast(ops::Autocast::lower, apart(query));
  Tensor k = autocast(ops::Autocast::lower, apart(key));
  Tensor v = autocast(ops::Autocast::lower, apart(value));
  if (options.enable_gqa) {
    k = shared_by_groups(k, q);
    v = shared_by_groups(v, q);
  }
  return attended(q, k, v, {attn_mask, options.is_causal}, scale_of(q, options.scale),
                  {options.dropout_p, options.generator});
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
  Tensor weights;
  Tensor result;
  if (options.need_weights) {
    const Tensor all = attention_weights(matmul(q, k.transpose(-2, -1)), scale_of(q, {}), masking);
    weights = dropout(all, options.dropout_p, options.training, options.generator);
    result = matmul(weights, v);
  } else {
    result = attended(q, k, v, masking, scale_of(q, {}), {options.training ? options.dropout_p : 0, options.generator});
  }
  const Tensor joined = result.transpose(1, 2).reshape({batch, -1, width});
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
