#pragma once
// What models made of BERT's encoder share.
#include <russet/models/bert.h>
#include <russet/models/registry.h>

#include <array>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace russet::models {

/// The config itself. Throws ValueError for sizes that do not fit.
const BertConfig& checked_bert(const BertConfig& config);
/// A linear layer with BERT's initial values.
nn::Linear bert_linear(std::int64_t in, std::int64_t out, const BertConfig& config);

/// input_ids, attention_mask and token_type_ids, undefined where left out. Throws ValueError for none and for more.
std::array<Tensor, 3> bert_tensors(std::span<const Tensor> inputs);

/// Hugging Face's BertModel.
class BertModel : public nn::Module {
 public:
  BertModel(const BertConfig& config, bool has_pooler);
  /// The last layer's rows of tokens, [n * l, e]. Mask and types may be undefined. Throws ShapeError for shapes that do
  /// not fit.
  Tensor encode(const Tensor& ids, const Tensor& attention_mask, const Tensor& types);
  /// What the pooler makes of each first token: [n, e].
  Tensor pooled(const Tensor& ids, const Tensor& attention_mask, const Tensor& types);
  const Tensor& word_embeddings() const;

 private:
  BertConfig config_;
  nn::AnyModule embeddings_;
  std::vector<nn::AnyModule> layers_;
  std::optional<nn::AnyModule> pooler_;
};

// Parts of specs.

/// The sizes that ModelOptions::config may change, by Hugging Face's names.
std::vector<std::string> bert_sizes();
/// With the options' sizes and dropout.
BertConfig bert_config(const ModelOptions& options);
std::vector<Input> bert_inputs(const ModelOptions& options);
/// What a config.json may not say otherwise.
std::vector<std::pair<std::string, std::string>> bert_fixed();
/// Today's name of a tensor, for TensorFlow's.
std::string bert_name(std::string name);

}  // namespace russet::models
