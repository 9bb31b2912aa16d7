#pragma once
// BERT (Devlin et al. 2018) with a classification head, or with one for masked words, as Hugging Face's
// BertForSequenceClassification and BertForMaskedLM.
#include <russet/nn/dropout.h>
#include <russet/nn/linear.h>
#include <russet/nn/module.h>
#include <russet/nn/normalization.h>
#include <vector>

namespace russet::models {

/// The names are those of Hugging Face's BertConfig.
struct BertConfig {
  std::int64_t vocab_size = 30522;
  std::int64_t hidden_size = 768;
  std::int64_t num_hidden_layers = 12;
  std::int64_t num_attention_heads = 12;
  std::int64_t intermediate_size = 3072;
  std::int64_t max_position_embeddings = 512;
  std::int64_t type_vocab_size = 2;
  std::int64_t num_labels = 2;
  double hidden_dropout_prob = 0.1;
  double attention_probs_dropout_prob = 0.1;
  double initializer_range = 0.02;
  double layer_norm_eps = 1e-12;
  std::int64_t pad_token_id = 0;
};

/// Inputs: input_ids [n, l] (integers), attention_mask [n, l] (1 or true: a token, 0: padding), token_type_ids [n, l].
/// Returns logits [n, num_labels].
class BertForSequenceClassification : public nn::Module {
 public:
  /// Throws ValueError for sizes that do not fit.
  explicit BertForSequenceClassification(const BertConfig& config = {});
  Tensor forward(const Tensor& input_ids) override { return forward(input_ids, {}, {}); }
  /// Undefined: no padding; all of type 0. Throws ShapeError for shapes that differ or sequences that are too long.
  Tensor forward(const Tensor& input_ids, const Tensor& attention_mask, const Tensor& token_type_ids = {});
  Tensor forward_all(std::span<const Tensor> inputs) override;
  Tensor operator()(const Tensor& input_ids, const Tensor& attention_mask = {}, const Tensor& token_type_ids = {}) {
    return forward(input_ids, attention_mask, token_type_ids);
  }

 private:
  BertConfig config_;
  nn::AnyModule bert_;
  nn::Dropout dropout_;
  nn::Linear classifier_;
};

/// The same inputs. Returns logits of words for each token, [n, l, vocab_size]; the weight of the last layer is that of
/// the word embeddings.
class BertForMaskedLM : public nn::Module {
 public:
  /// Throws ValueError for sizes that do not fit.
  explicit BertForMaskedLM(const BertConfig& config = {});
  Tensor forward(const Tensor& input_ids) override { return forward(input_ids, {}, {}); }
  /// As above.
  Tensor forward(const Tensor& input_ids, const Tensor& attention_mask, const Tensor& token_type_ids = {});
  Tensor forward_all(std::span<const Tensor> inputs) override;
  Tensor operator()(const Tensor& input_ids, const Tensor& attention_mask = {}, const Tensor& token_type_ids = {}) {
    return forward(input_ids, attention_mask, token_type_ids);
  }

 private:
  nn::AnyModule bert_;
  nn::AnyModule predictions_;
};

}  // namespace russet::models
