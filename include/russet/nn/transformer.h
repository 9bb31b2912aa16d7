#pragma once
// Attention and the encoder of the transformer (Vaswani et al. 2017), with PyTorch's names.
#include <russet/nn/dropout.h>
#include <russet/nn/linear.h>
#include <russet/nn/module.h>
#include <russet/nn/normalization.h>
#include <optional>

namespace russet::nn {

struct MultiheadAttentionOptions {
  /// Of the attention weights.
  double dropout = 0;
  bool bias = true;
  bool add_bias_kv = false;
  bool add_zero_attn = false;
  /// The widths of key and value, embed_dim if not given.
  std::optional<std::int64_t> kdim{};
  std::optional<std::int64_t> vdim{};
  /// [n, l, e] instead of [l, n, e].
  bool batch_first = false;
};

struct AttentionMasks {
  /// [n, s]: true where a key may not be looked at (or numbers added to the scores).
  Tensor key_padding_mask{};
  /// [l, s] or [n * heads, l, s]: true where a query may not look (or numbers added to the scores).
  Tensor attn_mask{};
  /// Query i sees keys 0..i.
  bool is_causal = false;
};

struct AttentionResult {
  Tensor output;
  /// [n, l, s], the mean of all heads; undefined unless asked for.
  Tensor weights;
};

/// softmax(q k^T / sqrt(width)) v in several heads, between projections.
class MultiheadAttention : public Module {
 public:
  /// Throws ValueError unless embed_dim splits into the heads.
  MultiheadAttention(std::int64_t embed_dim, std::int64_t num_heads, const MultiheadAttentionOptions& options = {});

  using Module::forward;
  /// query: [l, n, e], key and value: [s, n, ...]; without n for one sample; n first with batch_first.
  AttentionResult forward(const Tensor& query, const Tensor& key, const Tensor& value, const AttentionMasks& masks = {},
                          bool need_weights = true);
  AttentionResult operator()(const Tensor& query, const Tensor& key, const Tensor& value,
                             const AttentionMasks& masks = {}, bool need_weights = true);
  /// Attention of sequences to themselves. rows: the tokens of all samples one below the other, [n * l, e], which keeps
  /// biases beside their products. mask: broadcasts to [n, heads, l, l]; true where a query may look, or numbers added.
  Tensor attend_rows(const Tensor& rows, std::int64_t samples, const Tensor& mask = {}, bool is_causal = false);

  Parameter in_proj_weight;  // [3 e, e]; undefined if kdim or vdim differ from e
  Parameter q_proj_weight;   // [e, e], [e, kdim], [e, vdim]: then
  Parameter k_proj_weight;
  Parameter v_proj_weight;
  Parameter in_proj_bias;  // [3 e]
  Parameter bias_k;        // [1, 1, e]
  Parameter bias_v;
  Linear out_proj;

 private:
  MultiheadAttentionOptions options_;
  std::int64_t embed_dim_;
  std::int64_t num_heads_;
};

enum class TransformerActivation : std::uint8_t { relu, gelu };

struct TransformerEncoderLayerOptions {
  std::int64_t dim_feedforward = 2048;
  double dropout = 0.1;
  TransformerActivation activation = TransformerActivation::relu;
  double layer_norm_eps = 1e-5;
  bool batch_first = false;
  /// Normalise before attention and feed-forward part instead of after.
  bool norm_first = false;
  bool bias = true;
};

/// Self-attention and two linear layers, each with dropout, residual and layer norm.
class TransformerEncoderLayer : public Module {
 public:
  TransformerEncoderLayer(std::int64_t d_model, std::int64_t num_heads,
                          const TransformerEncoderLayerOptions& options = {});
  /// x: [l, n, d_model], [n, l, d_model] with batch_first, or [l, d_model].
  Tensor forward(const Tensor& x) override { return forward(x, AttentionMasks{}); }
  Tensor forward(const Tensor& x, const AttentionMasks& masks);
  Tensor operator()(const Tensor& x, const AttentionMasks& masks = {});

  MultiheadAttention self_attn;
  Linear linear1;
  Linear linear2;
  LayerNorm norm1;
  LayerNorm norm2;

 private:
  Tensor attention(const Tensor& rows, std::int64_t samples, const Tensor& mask, bool is_causal);
  Tensor feed_forward(const Tensor& rows);

  TransformerEncoderLayerOptions options_;
  std::int64_t num_heads_;
};

/// Copies of a layer one after another, "layers.0", ..., with a norm at the end if one is given.
class TransformerEncoder : public Module {
 public:
  TransformerEncoder(const TransformerEncoderLayer& layer, std::int64_t num_layers,
                     const std::optional<LayerNorm>& norm = {});
  Tensor forward(const Tensor& x) override { return forward(x, AttentionMasks{}); }
  Tensor forward(const Tensor& x, const AttentionMasks& masks);
  Tensor operator()(const Tensor& x, const AttentionMasks& masks = {});

 private:
  std::vector<TransformerEncoderLayer> layers_;
  std::optional<LayerNorm> norm_;
};

}  // namespace russet::nn
