#pragma once
// Attention.
#include <russet/random.h>
#include <russet/tensor.h>
#include <optional>

namespace russet {

struct AttentionOptions {
  double dropout_p = 0;
  /// Row i sees columns 0..i. Not together with a mask (ValueError).
  bool is_causal = false;
  /// 1 / sqrt(width) unless given.
  std::optional<double> scale{};
  /// key and value have fewer heads, each shared by a group of the query's.
  bool enable_gqa = false;
  Generator* generator = nullptr;
};

/// softmax(scale * q k^T + mask) v. query: [..., l, e], key: [..., s, e], value: [..., s, v]. mask: broadcasts to
/// [..., l, s]; boolean (true: may look) or added to the scores. Rows that may look nowhere give zeros. Returns
/// [..., l, v].
Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                    const Tensor& attn_mask = {}, const AttentionOptions& options = {});

struct MultiHeadAttentionOptions {
  std::int64_t num_heads = 1;
  /// [3 e, e]: the projections of query, key and value on top of each other; or undefined and the three below given.
  Tensor in_proj_weight{};
  Tensor q_proj_weight{};
  Tensor k_proj_weight{};
  Tensor v_proj_weight{};
  Tensor in_proj_bias{};  // [3 e]
  Tensor bias_k{};        // [1, 1, e]: one more key and value
  Tensor bias_v{};
  bool add_zero_attn = false;
  Tensor out_proj_weight{};  // [e, e]
  Tensor out_proj_bias{};    // [e]
  double dropout_p = 0;
  bool training = true;
  /// [n, s]: boolean (true: may NOT be looked at) or added to the scores.
  Tensor key_padding_mask{};
  /// [l, s] or [n * heads, l, s]: boolean (true: may NOT look) or added to the scores.
  Tensor attn_mask{};
  bool is_causal = false;
  bool need_weights = true;
  bool average_attn_weights = true;
  /// [n, l, e] instead of [l, n, e].
  bool batch_first = false;
  Generator* generator = nullptr;
};

struct MultiHeadAttentionResult {
  Tensor output;   // the query's shape
  Tensor weights;  // [n, l, s], or [n, heads, l, s] if not averaged; undefined unless needed
};

/// PyTorch's multi_head_attention_forward. query: [l, n, e], key and value: [s, n, ...]; without n for one sample.
MultiHeadAttentionResult multi_head_attention_forward(const Tensor& query, const Tensor& key, const Tensor& value,
                                                      const MultiHeadAttentionOptions& options);

}  // namespace russet
