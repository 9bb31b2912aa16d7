#pragma once
// Attention and the transformer (Vaswani et al. 2017), with PyTorch's names.
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

struct TransformerLayerOptions {
  std::int64_t dim_feedforward = 2048;
  double dropout = 0.1;
  TransformerActivation activation = TransformerActivation::relu;
  double layer_norm_eps = 1e-5;
  bool batch_first = false;
  /// Normalise before attention and feed-forward part instead of after.
  bool norm_first = false;
  bool bias = true;
};

using TransformerEncoderLayerOptions = TransformerLayerOptions;
using TransformerDecoderLayerOptions = TransformerLayerOptions;

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

/// As the encoder's layer, with attention to a memory, the encoder's result, between self-attention and linear layers.
class TransformerDecoderLayer : public Module {
 public:
  TransformerDecoderLayer(std::int64_t d_model, std::int64_t num_heads,
                          const TransformerDecoderLayerOptions& options = {});
  using Module::forward;
  /// target: [l, n, d_model], memory: [s, n, d_model]; n first with batch_first; without n for one sample.
  Tensor forward(const Tensor& target, const Tensor& memory, const AttentionMasks& target_masks = {},
                 const AttentionMasks& memory_masks = {});
  Tensor operator()(const Tensor& target, const Tensor& memory, const AttentionMasks& target_masks = {},
                    const AttentionMasks& memory_masks = {});

  MultiheadAttention self_attn;
  MultiheadAttention multihead_attn;
  Linear linear1;
  Linear linear2;
  LayerNorm norm1;
  LayerNorm norm2;
  LayerNorm norm3;

 private:
  Tensor attention(MultiheadAttention& attention, const Tensor& x, const Tensor& memory, const AttentionMasks& masks);
  Tensor feed_forward(const Tensor& x);

  TransformerLayerOptions options_;
};

/// Copies of a layer one after another, "layers.0", ..., with a norm at the end if one is given.
class TransformerDecoder : public Module {
 public:
  TransformerDecoder(const TransformerDecoderLayer& layer, std::int64_t num_layers,
                     const std::optional<LayerNorm>& norm = {});
  using Module::forward;
  Tensor forward(const Tensor& target, const Tensor& memory, const AttentionMasks& target_masks = {},
                 const AttentionMasks& memory_masks = {});
  Tensor operator()(const Tensor& target, const Tensor& memory, const AttentionMasks& target_masks = {},
                    const AttentionMasks& memory_masks = {});

 private:
  std::vector<TransformerDecoderLayer> layers_;
  std::optional<LayerNorm> norm_;
};

struct TransformerOptions {
  std::int64_t d_model = 512;
  std::int64_t num_heads = 8;
  std::int64_t num_encoder_layers = 6;
  std::int64_t num_decoder_layers = 6;
  TransformerLayerOptions layer{};
};

struct TransformerMasks {
  AttentionMasks source{};
  AttentionMasks target{};
  /// Of the source, as the target's positions see it.
  AttentionMasks memory{};
};

/// An encoder and a decoder, each with a norm at its end. Initial values of matrices: Xavier's uniform ones.
class Transformer : public Module {
 public:
  explicit Transformer(const TransformerOptions& options = {});
  using Module::forward;
  /// source: [s, n, d_model], target: [l, n, d_model]; n first with layer.batch_first; without n for one sample.
  Tensor forward(const Tensor& source, const Tensor& target, const TransformerMasks& masks = {});
  Tensor operator()(const Tensor& source, const Tensor& target, const TransformerMasks& masks = {});
  /// [size, size]: -infinity above the diagonal, 0 elsewhere.
  static Tensor generate_square_subsequent_mask(std::int64_t size, const TensorOptions& options = {});

  TransformerEncoder encoder;
  TransformerDecoder decoder;

 private:
  TransformerOptions options_;
};

}  // namespace russet::nn
