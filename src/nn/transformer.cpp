// Attention and the transformer's encoder.
#include <fmt/format.h>
#include <russet/functional.h>
#include <russet/nn/containers.h>
#include <russet/nn/transformer.h>
#include <russet/nn_functional.h>

#include <limits>

#include "cloned_layers.h"
#include "new_parameters.h"

namespace russet::nn {
namespace {

std::int64_t checked_heads(const char* name, std::int64_t width, std::int64_t heads) {
  if (heads >= 1 && width >= 1 && width % heads == 0) return heads;
  throw ValueError(fmt::format("{}: a width of {} does not split into {} heads", name, width, heads));
}

Tensor new_xavier_uniform(const Shape& sizes) {
  const Tensor made = empty(sizes, NewModules::options());
  init::xavier_uniform_(made);
  return made;
}

Tensor new_xavier_normal(const Shape& sizes) {
  const Tensor made = empty(sizes, NewModules::options());
  init::xavier_normal_(made);
  return made;
}

// A mask of what may not be seen as one of what may, or unchanged if it is added to the scores.
Tensor allowed(const Tensor& mask) { return mask.dtype() == DType::boolean ? logical_not(mask) : mask; }

Tensor additive(const Tensor& mask) {
  if (mask.dtype() != DType::boolean) return mask;
  return where(mask, 0.0, -std::numeric_limits<double>::infinity());
}

// PyTorch's masks in the form of scaled_dot_product_attention: broadcasts to [n, heads, l, l].
Tensor merged(const AttentionMasks& masks, std::int64_t samples, std::int64_t heads) {
  Tensor padding;
  if (masks.key_padding_mask.defined()) {
    const Tensor& mask = masks.key_padding_mask;
    padding = allowed(mask.reshape({samples, 1, 1, mask.size(-1)}));
  }
  Tensor attention;
  if (masks.attn_mask.defined()) {
    const Tensor& mask = masks.attn_mask;
    attention = allowed(mask.dim() == 3 ? mask.reshape({samples, heads, mask.size(1), mask.size(2)}) : mask);
  }
  if (!padding.defined()) return attention;
  if (!attention.defined()) return padding;
  if (padding.dtype() == DType::boolean && attention.dtype() == DType::boolean) return logical_and(padding, attention);
  return additive(padding) + additive(attention);
}

}  // namespace

MultiheadAttention::MultiheadAttention(std::int64_t embed_dim, std::int64_t num_heads,
                                       const MultiheadAttentionOptions& options)
    : out_proj(embed_dim, embed_dim, options.bias),
      options_(options),
      embed_dim_(embed_dim),
      num_heads_(checked_heads("MultiheadAttention", embed_dim, num_heads)) {
  const std::int64_t kdim = options.kdim.value_or(embed_dim);
  const std::int64_t vdim = options.vdim.value_or(embed_dim);
  if (kdim == embed_dim && vdim == embed_dim) {
    in_proj_weight = register_parameter("in_proj_weight", new_xavier_uniform({3 * embed_dim, embed_dim}));
  } else {
    q_proj_weight = register_parameter("q_proj_weight", new_xavier_uniform({embed_dim, embed_dim}));
    k_proj_weight = register_parameter("k_proj_weight", new_xavier_uniform({embed_dim, kdim}));
    v_proj_weight = register_parameter("v_proj_weight", new_xavier_uniform({embed_dim, vdim}));
  }
  if (options.bias) {
    in_proj_bias = register_parameter("in_proj_bias", new_zeros({3 * embed_dim}));
    init::zeros_(out_proj.bias);
  }
  if (options.add_bias_kv) {
    bias_k = register_parameter("bias_k", new_xavier_normal({1, 1, embed_dim}));
    bias_v = register_parameter("bias_v", new_xavier_normal({1, 1, embed_dim}));
  }
  register_module("out_proj", out_proj);
}

AttentionResult MultiheadAttention::operator()(const Tensor& query, const Tensor& key, const Tensor& value,
                                               const AttentionMasks& masks, bool need_weights) {
  AttentionResult result;
  const Tensor inputs[] = {query, key, value};
  result.output = call(inputs, [&](std::span<const Tensor> present) {
    result = forward(present[0], present[1], present[2], masks, need_weights);
    return result.output;
  });
  return result;
}

AttentionResult MultiheadAttention::forward(const Tensor& query, const Tensor& key, const Tensor& value,
                                            const AttentionMasks& masks, bool need_weights) {
  MultiHeadAttentionOptions options;
  options.num_heads = num_heads_;
  options.in_proj_weight = in_proj_weight;
  options.q_proj_weight = q_proj_weight;
  options.k_proj_weight = k_proj_weight;
  options.v_proj_weight = v_proj_weight;
  options.in_proj_bias = in_proj_bias;
  options.bias_k = bias_k;
  options.bias_v = bias_v;
  options.add_zero_attn = options_.add_zero_attn;
  options.out_proj_weight = out_proj.weight;
  options.out_proj_bias = out_proj.bias;
  options.dropout_p = options_.dropout;
  options.training = is_training();
  options.key_padding_mask = masks.key_padding_mask;
  options.attn_mask = masks.attn_mask;
  options.is_causal = masks.is_causal;
  options.need_weights = need_weights;
  options.batch_first = options_.batch_first;
  const MultiHeadAttentionResult result = multi_head_attention_forward(query, key, value, options);
  return {result.output, result.weights};
}

Tensor MultiheadAttention::attend_rows(const Tensor& rows, std::int64_t samples, const Tensor& mask, bool is_causal) {
  if (!in_proj_weight.defined() || bias_k.defined() || options_.add_zero_attn) {
    throw ValueError("MultiheadAttention::attend_rows: takes one width, and neither bias_kv nor zero_attn");
  }
  if (rows.dim() != 2 || rows.size(1) != embed_dim_ || samples < 0 || (samples > 0 && rows.size(0) % samples != 0)) {
    throw ShapeError(fmt::format("MultiheadAttention::attend_rows: takes [{} * l, {}], not {}", samples, embed_dim_,
                                 to_string(rows.sizes())));
  }
  const std::int64_t length = samples > 0 ? rows.size(0) / samples : 0;
  const Tensor projected =
      linear(rows, in_proj_weight, in_proj_bias).reshape({samples, length, 3, num_heads_, embed_dim_ / num_heads_});
  const auto part = [&](std::int64_t i) { return projected.select(2, i).transpose(1, 2); };
  AttentionOptions options;
  options.dropout_p = is_training() ? options_.dropout : 0;
  options.is_causal = is_causal && !mask.defined();
  const Tensor attended = scaled_dot_product_attention(part(0), part(1), part(2), mask, options);
  return out_proj(attended.transpose(1, 2).reshape({samples * length, embed_dim_}));
}

TransformerEncoderLayer::TransformerEncoderLayer(std::int64_t d_model, std::int64_t num_heads,
                                                 const TransformerEncoderLayerOptions& options)
    : self_attn(d_model, num_heads, {.dropout = options.dropout, .bias = options.bias, .batch_first = true}),
      linear1(d_model, options.dim_feedforward, options.bias),
      linear2(options.dim_feedforward, d_model, options.bias),
      norm1(d_model, {.eps = options.layer_norm_eps, .bias = options.bias}),
      norm2(d_model, {.eps = options.layer_norm_eps, .bias = options.bias}),
      options_(options),
      num_heads_(num_heads) {
  if (!(options.dropout >= 0 && options.dropout <= 1)) {
    throw ValueError(fmt::format("TransformerEncoderLayer: dropout {} is no probability", options.dropout));
  }
  register_module("self_attn", self_attn);
  register_module("linear1", linear1);
  register_module("linear2", linear2);
  register_module("norm1", norm1);
  register_module("norm2", norm2);
}

Tensor TransformerEncoderLayer::attention(const Tensor& rows, std::int64_t samples, const Tensor& mask,
                                          bool is_causal) {
  return dropout(self_attn.attend_rows(rows, samples, mask, is_causal), options_.dropout, is_training());
}

Tensor TransformerEncoderLayer::operator()(const Tensor& x, const AttentionMasks& masks) {
  return call({&x, 1}, [&](std::span<const Tensor> inputs) { return forward(inputs[0], masks); });
}

Tensor TransformerEncoderLayer::feed_forward(const Tensor& rows) {
  const Tensor hidden = linear1(rows);
  const Tensor active = options_.activation == TransformerActivation::gelu ? gelu(hidden) : relu(hidden);
  const Tensor y = linear2(dropout(active, options_.dropout, is_training()));
  return dropout(y, options_.dropout, is_training());
}

Tensor TransformerEncoderLayer::forward(const Tensor& x, const AttentionMasks& masks) {
  if (x.dim() != 2 && x.dim() != 3) {
    throw ShapeError(
        fmt::format("TransformerEncoderLayer: takes two or three dimensions, not {}", to_string(x.sizes())));
  }
  const bool swap = x.dim() == 3 && !options_.batch_first;
  const Tensor batch = swap ? x.transpose(0, 1) : x;
  const std::int64_t samples = x.dim() == 3 ? batch.size(0) : 1;
  const Tensor mask = merged(masks, samples, num_heads_);
  Tensor rows = batch.reshape({numel(batch.sizes()) / std::max<std::int64_t>(batch.size(-1), 1), batch.size(-1)});
  if (options_.norm_first) {
    rows = rows + attention(norm1(rows), samples, mask, masks.is_causal);
    rows = rows + feed_forward(norm2(rows));
  } else {
    rows = norm1(rows + attention(rows, samples, mask, masks.is_causal));
    rows = norm2(rows + feed_forward(rows));
  }
  const Tensor y = rows.reshape(batch.sizes());
  return swap ? y.transpose(0, 1) : y;
}

TransformerEncoder::TransformerEncoder(const TransformerEncoderLayer& layer, std::int64_t num_layers,
                                       const std::optional<LayerNorm>& norm)
    : norm_(norm) {
  ModuleList list;
  layers_ = cloned_layers("TransformerEncoder", layer, num_layers, list);
  register_module("layers", list);
  if (norm_) register_module("norm", *norm_);
}

Tensor TransformerEncoder::operator()(const Tensor& x, const AttentionMasks& masks) {
  return call({&x, 1}, [&](std::span<const Tensor> inputs) { return forward(inputs[0], masks); });
}

Tensor TransformerEncoder::forward(const Tensor& x, const AttentionMasks& masks) {
  Tensor y = x;
  for (TransformerEncoderLayer& layer : layers_) y = layer(y, masks);
  return norm_ ? (*norm_)(y) : y;
}

}  // namespace russet::nn
