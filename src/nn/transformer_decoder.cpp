// The transformer's decoder, and encoder and decoder together.
#include <fmt/format.h>
#include <russet/functional.h>
#include <russet/nn/containers.h>
#include <russet/nn/init.h>
#include <russet/nn/transformer.h>
#include <russet/nn_functional.h>

#include <limits>

#include "cloned_layers.h"

namespace russet::nn {

TransformerDecoderLayer::TransformerDecoderLayer(std::int64_t d_model, std::int64_t num_heads,
                                                 const TransformerDecoderLayerOptions& options)
    : self_attn(d_model, num_heads,
                {.dropout = options.dropout, .bias = options.bias, .batch_first = options.batch_first}),
      multihead_attn(d_model, num_heads,
                     {.dropout = options.dropout, .bias = options.bias, .batch_first = options.batch_first}),
      linear1(d_model, options.dim_feedforward, options.bias),
      linear2(options.dim_feedforward, d_model, options.bias),
      norm1(d_model, {.eps = options.layer_norm_eps, .bias = options.bias}),
      norm2(d_model, {.eps = options.layer_norm_eps, .bias = options.bias}),
      norm3(d_model, {.eps = options.layer_norm_eps, .bias = options.bias}),
      options_(options) {
  if (!(options.dropout >= 0 && options.dropout <= 1)) {
    throw ValueError(fmt::format("TransformerDecoderLayer: dropout {} is no probability", options.dropout));
  }
  register_module("self_attn", self_attn);
  register_module("multihead_attn", multihead_attn);
  register_module("linear1", linear1);
  register_module("linear2", linear2);
  register_module("norm1", norm1);
  register_module("norm2", norm2);
  register_module("norm3", norm3);
}

Tensor TransformerDecoderLayer::attention(MultiheadAttention& attention, const Tensor& x, const Tensor& memory,
                                          const AttentionMasks& masks) {
  return dropout(attention(x, memory, memory, masks, false).output, options_.dropout, is_training());
}

Tensor TransformerDecoderLayer::feed_forward(const Tensor& x) {
  const Tensor hidden = linear1(x);
  const Tensor active = options_.activation == TransformerActivation::gelu ? gelu(hidden) : relu(hidden);
  const Tensor y = linear2(dropout(active, options_.dropout, is_training()));
  return dropout(y, options_.dropout, is_training());
}

Tensor TransformerDecoderLayer::operator()(const Tensor& target, const Tensor& memory,
                                           const AttentionMasks& target_masks, const AttentionMasks& memory_masks) {
  const Tensor given[] = {target, memory};
  return call(
      given, [&](std::span<const Tensor> inputs) { return forward(inputs[0], inputs[1], target_masks, memory_masks); });
}

Tensor TransformerDecoderLayer::forward(const Tensor& target, const Tensor& memory, const AttentionMasks& target_masks,
                                        const AttentionMasks& memory_masks) {
  Tensor x = target;
  if (options_.norm_first) {
    const Tensor normed = norm1(x);
    x = x + attention(self_attn, normed, normed, target_masks);
    x = x + attention(multihead_attn, norm2(x), memory, memory_masks);
    return x + feed_forward(norm3(x));
  }
  x = norm1(x + attention(self_attn, x, x, target_masks));
  x = norm2(x + attention(multihead_attn, x, memory, memory_masks));
  return norm3(x + feed_forward(x));
}

TransformerDecoder::TransformerDecoder(const TransformerDecoderLayer& layer, std::int64_t num_layers,
                                       const std::optional<LayerNorm>& norm)
    : norm_(norm) {
  ModuleList list;
  layers_ = cloned_layers("TransformerDecoder", layer, num_layers, list);
  register_module("layers", list);
  if (norm_) register_module("norm", *norm_);
}

Tensor TransformerDecoder::operator()(const Tensor& target, const Tensor& memory, const AttentionMasks& target_masks,
                                      const AttentionMasks& memory_masks) {
  const Tensor given[] = {target, memory};
  return call(
      given, [&](std::span<const Tensor> inputs) { return forward(inputs[0], inputs[1], target_masks, memory_masks); });
}

Tensor TransformerDecoder::forward(const Tensor& target, const Tensor& memory, const AttentionMasks& target_masks,
                                   const AttentionMasks& memory_masks) {
  Tensor x = target;
  for (TransformerDecoderLayer& layer : layers_) x = layer(x, memory, target_masks, memory_masks);
  return norm_ ? (*norm_)(x) : x;
}

namespace {

LayerNorm norm_of(const TransformerOptions& options) {
  return LayerNorm(options.d_model, {.eps = options.layer.layer_norm_eps, .bias = options.layer.bias});
}

}  // namespace

Transformer::Transformer(const TransformerOptions& options)
    : encoder(TransformerEncoderLayer(options.d_model, options.num_heads, options.layer), options.num_encoder_layers,
              norm_of(options)),
      decoder(TransformerDecoderLayer(options.d_model, options.num_heads, options.layer), options.num_decoder_layers,
              norm_of(options)),
      options_(options) {
  register_module("encoder", encoder);
  register_module("decoder", decoder);
  for (const Tensor& parameter : parameters()) {
    if (parameter.dim() > 1) init::xavier_uniform_(parameter);
  }
}

Tensor Transformer::operator()(const Tensor& source, const Tensor& target, const TransformerMasks& masks) {
  const Tensor given[] = {source, target};
  return call(given, [&](std::span<const Tensor> inputs) { return forward(inputs[0], inputs[1], masks); });
}

Tensor Transformer::forward(const Tensor& source, const Tensor& target, const TransformerMasks& masks) {
  const auto fail = [&](const std::string& what) {
    throw ShapeError(
        fmt::format("Transformer: {}: {} and {}", what, to_string(source.sizes()), to_string(target.sizes())));
  };
  if (source.dim() != target.dim() || (source.dim() != 2 && source.dim() != 3)) {
    fail("source and target both have two or three dimensions");
  }
  const int batch_axis = options_.layer.batch_first ? 0 : 1;
  if (source.dim() == 3 && source.size(batch_axis) != target.size(batch_axis)) fail("the batches differ");
  if (source.size(-1) != options_.d_model || target.size(-1) != options_.d_model) {
    fail(fmt::format("the last dimension is d_model, {}", options_.d_model));
  }
  return decoder(target, encoder(source, masks.source), masks.target, masks.memory);
}

Tensor Transformer::generate_square_subsequent_mask(std::int64_t size, const TensorOptions& options) {
  const double never = -std::numeric_limits<double>::infinity();
  return triu(full({size, size}, never, {.dtype = options.dtype, .device = options.device}), 1);
}

}  // namespace russet::nn
