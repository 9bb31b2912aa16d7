// BERT with a classification head, in Hugging Face's form.
#include "bert_model.h"

namespace russet::models {

BertForSequenceClassification::BertForSequenceClassification(const BertConfig& config)
    : config_(checked_bert(config)),
      bert_(register_module("bert", nn::AnyModule(BertModel(config, true)))),
      dropout_(register_module("dropout", nn::Dropout(config.hidden_dropout_prob))),
      classifier_(register_module("classifier", bert_linear(config.hidden_size, config.num_labels, config))) {}

Tensor BertForSequenceClassification::forward(const Tensor& input_ids, const Tensor& attention_mask,
                                              const Tensor& token_type_ids) {
  return classifier_(dropout_(bert_.as<BertModel>()->pooled(input_ids, attention_mask, token_type_ids)));
}

Tensor BertForSequenceClassification::forward_all(std::span<const Tensor> inputs) {
  const auto [ids, mask, types] = bert_tensors(inputs);
  return forward(ids, mask, types);
}

namespace {

nn::AnyModule make(const ModelOptions& options) {
  BertConfig config = bert_config(options);
  config.num_labels = *options.num_classes;
  return BertForSequenceClassification(config);
}

/// Hugging Face's files may have TensorFlow's names, an encoder that was saved alone, its positions 0, 1, 2, ..., and
/// the heads of the tasks that it was trained with first.
StateDict published(const StateDict& weights) {
  const bool is_encoder_alone = weights.contains("embeddings.word_embeddings.weight");
  StateDict state;
  for (const auto& [theirs, tensor] : weights) {
    std::string name = theirs;
    if (is_encoder_alone && !name.starts_with("classifier.")) name.insert(0, "bert.");
    if (name.starts_with("cls.") || name == "bert.embeddings.position_ids") continue;
    state.insert(bert_name(std::move(name)), tensor);
  }
  return state;
}

const bool registered = register_model(
    {.name = "bert_base",
     .summary = "BERT-base with a classification head",
     .make = make,
     .takes = InputKind::tokens,
     .inputs = bert_inputs,
     .num_classes = 2,
     .classifier = "classifier.weight",
     .published = published,
     .config = bert_sizes(),
     .config_fixed = bert_fixed(),
     .recipe =
         {.optimizer = {.name = "adamw", .lr = 2e-5, .weight_decay = 0.01}, .batch = 16, .epochs = 3, .warmup = 50},
     .benchmark = {
         .batch = 4,
         .optimizer = optim::OptimizerChoice{.name = "adamw", .lr = 1e-5, .momentum = 0, .weight_decay = 0.01},
         .num_classes = 6}});

}  // namespace
}  // namespace russet::models
