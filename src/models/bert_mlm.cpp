// BERT with a head for masked words, in Hugging Face's form.
#include <russet/functional.h>
#include <russet/nn_functional.h>

#include "bert_model.h"

namespace russet::models {
namespace {

/// A linear layer, GELU and a norm.
class Transform : public nn::Module {
 public:
  explicit Transform(const BertConfig& config)
      : dense_(register_module("dense", bert_linear(config.hidden_size, config.hidden_size, config))),
        norm_(register_module("LayerNorm", nn::LayerNorm(config.hidden_size, {.eps = config.layer_norm_eps}))) {}
  Tensor forward(const Tensor& x) override { return norm_(gelu(dense_(x))); }

 private:
  nn::Linear dense_;
  nn::LayerNorm norm_;
};

/// Logits of words. The weight is that of the word embeddings, and the bias is known by two names, as at Hugging Face.
class Predictions : public nn::Module {
 public:
  Predictions(const BertConfig& config, const Tensor& words)
      : bias_(register_parameter("bias", zeros({config.vocab_size}, nn::NewModules::options()))),
        transform_(register_module("transform", Transform(config))),
        weight_(words) {
    nn::Module decoder;
    decoder.register_parameter("weight", weight_);
    decoder.register_parameter("bias", bias_);
    register_module("decoder", decoder);
  }
  Tensor forward(const Tensor& x) override { return linear(transform_(x), weight_, bias_); }

 private:
  nn::Parameter bias_;
  Transform transform_;
  nn::Parameter weight_;
};

}  // namespace

BertForMaskedLM::BertForMaskedLM(const BertConfig& config)
    : bert_(register_module("bert", nn::AnyModule(BertModel(checked_bert(config), false)))),
      predictions_(Predictions(config, bert_.as<BertModel>()->word_embeddings())) {
  nn::Module heads;
  heads.register_module("predictions", predictions_);
  register_module("cls", heads);
}

Tensor BertForMaskedLM::forward(const Tensor& input_ids, const Tensor& attention_mask, const Tensor& token_type_ids) {
  const Tensor rows = bert_.as<BertModel>()->encode(input_ids, attention_mask, token_type_ids);
  const Tensor logits = predictions_.forward(rows);
  return logits.reshape({input_ids.size(0), input_ids.size(1), logits.size(1)});
}

Tensor BertForMaskedLM::forward_all(std::span<const Tensor> inputs) {
  const auto [ids, mask, types] = bert_tensors(inputs);
  return forward(ids, mask, types);
}

namespace {

nn::AnyModule make(const ModelOptions& options) { return BertForMaskedLM(bert_config(options)); }

/// Tensors that are one, by the names of both.
constexpr std::pair<const char*, const char*> tied[] = {
    {"bert.embeddings.word_embeddings.weight", "cls.predictions.decoder.weight"},
    {"cls.predictions.bias", "cls.predictions.decoder.bias"}};

/// Hugging Face's files may have TensorFlow's names, positions 0, 1, 2, ..., the pooler and the head of BERT's other
/// task, and tensors that are one under one name only.
StateDict published(const StateDict& weights) {
  StateDict state;
  for (const auto& [theirs, tensor] : weights) {
    const bool other = theirs.starts_with("bert.pooler.") || theirs.starts_with("cls.seq_relationship.");
    if (!other && theirs != "bert.embeddings.position_ids") state.insert(bert_name(theirs), tensor);
  }
  for (const auto& [first, second] : tied) {
    const Tensor* one = state.find(first);
    const Tensor* two = state.find(second);
    if (one != nullptr && two == nullptr) state.insert(second, Tensor(*one));
    if (one == nullptr && two != nullptr) state.insert(first, Tensor(*two));
  }
  return state;
}

const bool registered = register_model(
    {.name = "bert_base_mlm",
     .summary = "BERT-base with a head for masked words",
     .make = make,
     .takes = InputKind::tokens,
     .inputs = bert_inputs,
     .num_classes = BertConfig{}.vocab_size,
     .answers_tokens = true,
     .classifier = "cls.predictions.bias",
     .published = published,
     .config = bert_sizes(),
     .config_fixed = bert_fixed(),
     .recipe =
         {.optimizer = {.name = "adamw", .lr = 1e-4, .weight_decay = 0.01}, .batch = 32, .epochs = 3, .warmup = 100},
     .benchmark = {
         .batch = 4,
         .optimizer = optim::OptimizerChoice{.name = "adamw", .lr = 1e-5, .momentum = 0, .weight_decay = 0.01}}});

}  // namespace
}  // namespace russet::models
