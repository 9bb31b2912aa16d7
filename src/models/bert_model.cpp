// BERT's encoder. Between embeddings and heads everything is rows of tokens, [n * l, e], which keeps biases,
// activations and residuals beside their products.
#include "bert_model.h"

#include <fmt/format.h>
#include <russet/autograd.h>
#include <russet/functional.h>
#include <russet/nn/containers.h>
#include <russet/nn/init.h>
#include <russet/nn_functional.h>

#include <algorithm>

#include "widths.h"

namespace russet::models {

const BertConfig& checked_bert(const BertConfig& config) {
  if (config.num_attention_heads < 1 || config.hidden_size < 1 ||
      config.hidden_size % config.num_attention_heads != 0) {
    throw ValueError(fmt::format("bert: a width of {} does not split into {} heads", config.hidden_size,
                                 config.num_attention_heads));
  }
  if (config.num_hidden_layers < 1 || config.max_position_embeddings < 1 || config.type_vocab_size < 1) {
    throw ValueError(fmt::format("bert: {} layers, {} positions, {} token types", config.num_hidden_layers,
                                 config.max_position_embeddings, config.type_vocab_size));
  }
  return config;
}

nn::Linear bert_linear(std::int64_t in, std::int64_t out, const BertConfig& config) {
  nn::Linear linear(in, out);
  nn::init::normal_(linear.weight, 0, config.initializer_range);
  nn::init::zeros_(linear.bias);
  return linear;
}

namespace {

nn::Embedding embedding_of(std::int64_t entries, const BertConfig& config, std::optional<std::int64_t> padding = {}) {
  nn::Embedding table(entries, config.hidden_size, {.padding_idx = padding});
  nn::init::normal_(table.weight, 0, config.initializer_range);
  const NoGrad guard;
  if (padding) table.weight.select(0, *padding).zero_();
  return table;
}

/// Sum of the embeddings of token, position and type; norm; dropout.
class Embeddings : public nn::Module {
 public:
  explicit Embeddings(const BertConfig& config)
      : words_(register_module("word_embeddings", embedding_of(config.vocab_size, config, config.pad_token_id))),
        positions_(register_module("position_embeddings", embedding_of(config.max_position_embeddings, config))),
        types_(register_module("token_type_embeddings", embedding_of(config.type_vocab_size, config))),
        norm_(register_module("LayerNorm", nn::LayerNorm(config.hidden_size, {.eps = config.layer_norm_eps}))),
        dropout_(register_module("dropout", nn::Dropout(config.hidden_dropout_prob))) {}
  // Returns [n * l, e].
  Tensor embed(const Tensor& ids, const Tensor& types) {
    const std::int64_t length = ids.size(1);
    const Tensor kinds = types.defined() ? types_(types) : types_.weight.narrow(0, 0, 1);
    const Tensor sum = words_(ids) + kinds + positions_.weight.narrow(0, 0, length);
    return dropout_(norm_(sum.reshape({ids.size(0) * length, sum.size(2)})));
  }

  const Tensor& words() const { return words_.weight; }

 private:
  nn::Embedding words_;
  nn::Embedding positions_;
  nn::Embedding types_;
  nn::LayerNorm norm_;
  nn::Dropout dropout_;
};

/// A linear layer, dropout, residual and norm.
class Output : public nn::Module {
 public:
  Output(std::int64_t in, const BertConfig& config)
      : dense_(register_module("dense", bert_linear(in, config.hidden_size, config))),
        norm_(register_module("LayerNorm", nn::LayerNorm(config.hidden_size, {.eps = config.layer_norm_eps}))),
        dropout_(register_module("dropout", nn::Dropout(config.hidden_dropout_prob))) {}
  Tensor add(const Tensor& x, const Tensor& residual) { return norm_(dropout_(dense_(x)) + residual); }

 private:
  nn::Linear dense_;
  nn::LayerNorm norm_;
  nn::Dropout dropout_;
};

class SelfAttention : public nn::Module {
 public:
  explicit SelfAttention(const BertConfig& config)
      : query_(register_module("query", bert_linear(config.hidden_size, config.hidden_size, config))),
        key_(register_module("key", bert_linear(config.hidden_size, config.hidden_size, config))),
        value_(register_module("value", bert_linear(config.hidden_size, config.hidden_size, config))),
        heads_(config.num_attention_heads),
        dropout_(config.attention_probs_dropout_prob) {}
  Tensor attend(const Tensor& rows, std::int64_t samples, const Tensor& mask) {
    const std::int64_t width = rows.size(1);
    const std::int64_t length = samples > 0 ? rows.size(0) / samples : 0;
    const auto heads = [&](const Tensor& x) {
      return x.reshape({samples, length, heads_, width / heads_}).transpose(1, 2);
    };
    AttentionOptions options;
    options.dropout_p = is_training() ? dropout_ : 0;
    const Tensor y =
        scaled_dot_product_attention(heads(query_(rows)), heads(key_(rows)), heads(value_(rows)), mask, options);
    return y.transpose(1, 2).reshape({samples * length, width});
  }

 private:
  nn::Linear query_;
  nn::Linear key_;
  nn::Linear value_;
  std::int64_t heads_;
  double dropout_;
};

class Attention : public nn::Module {
 public:
  explicit Attention(const BertConfig& config)
      : self_(register_module("self", SelfAttention(config))),
        output_(register_module("output", Output(config.hidden_size, config))) {}
  Tensor attend(const Tensor& rows, std::int64_t samples, const Tensor& mask) {
    return output_.add(self_.attend(rows, samples, mask), rows);
  }

 private:
  SelfAttention self_;
  Output output_;
};

class Dense : public nn::Module {
 public:
  Dense(std::int64_t in, std::int64_t out, const BertConfig& config)
      : dense_(register_module("dense", bert_linear(in, out, config))) {}
  Tensor forward(const Tensor& x) override { return dense_(x); }

 private:
  nn::Linear dense_;
};

class Layer : public nn::Module {
 public:
  explicit Layer(const BertConfig& config)
      : attention_(register_module("attention", Attention(config))),
        intermediate_(register_module("intermediate", Dense(config.hidden_size, config.intermediate_size, config))),
        output_(register_module("output", Output(config.intermediate_size, config))) {}
  Tensor run(const Tensor& rows, std::int64_t samples, const Tensor& mask) {
    const Tensor x = attention_.attend(rows, samples, mask);
    return output_.add(gelu(intermediate_(x)), x);
  }

 private:
  Attention attention_;
  Dense intermediate_;
  Output output_;
};

void check_inputs(const Tensor& ids, const Tensor& mask, const Tensor& types, const BertConfig& config) {
  if (ids.dim() != 2 || ids.size(1) < 1) {
    throw ShapeError(fmt::format("bert: input_ids are [n, l], not {}", to_string(ids.sizes())));
  }
  if (ids.size(1) > config.max_position_embeddings) {
    throw ShapeError(
        fmt::format("bert: sequences of {} tokens; {} at most", ids.size(1), config.max_position_embeddings));
  }
  for (const auto& [name, tensor] : {std::pair("attention_mask", mask), std::pair("token_type_ids", types)}) {
    if (tensor.defined() && tensor.sizes() != ids.sizes()) {
      throw ShapeError(
          fmt::format("bert: input_ids are {} but {} are {}", to_string(ids.sizes()), name, to_string(tensor.sizes())));
    }
  }
}

}  // namespace

std::array<Tensor, 3> bert_tensors(std::span<const Tensor> inputs) {
  if (inputs.empty() || inputs.size() > 3) {
    throw ValueError(fmt::format(
        "bert: takes input_ids and, if wanted, attention_mask and token_type_ids, not {} tensors", inputs.size()));
  }
  std::array<Tensor, 3> tensors;
  std::copy(inputs.begin(), inputs.end(), tensors.begin());
  return tensors;
}

BertModel::BertModel(const BertConfig& config, bool has_pooler)
    : config_(config), embeddings_(register_module("embeddings", nn::AnyModule(Embeddings(config)))) {
  if (has_pooler) pooler_ = nn::AnyModule(Dense(config.hidden_size, config.hidden_size, config));
  nn::ModuleList list;
  for (std::int64_t i = 0; i < config.num_hidden_layers; ++i) {
    layers_.emplace_back(Layer(config));
    list.push_back(layers_.back());
  }
  nn::Module encoder;
  encoder.register_module("layer", list);
  register_module("encoder", encoder);
  if (pooler_) register_module("pooler", *pooler_);
}

const Tensor& BertModel::word_embeddings() const { return embeddings_.as<Embeddings>()->words(); }

Tensor BertModel::encode(const Tensor& ids, const Tensor& attention_mask, const Tensor& types) {
  check_inputs(ids, attention_mask, types, config_);
  const std::int64_t samples = ids.size(0);
  Tensor mask;
  if (attention_mask.defined()) mask = ne(attention_mask, 0).reshape({samples, 1, 1, ids.size(1)});
  Tensor rows = embeddings_.as<Embeddings>()->embed(ids, types);
  for (nn::AnyModule& layer : layers_) rows = layer.as<Layer>()->run(rows, samples, mask);
  return rows;
}

Tensor BertModel::pooled(const Tensor& ids, const Tensor& attention_mask, const Tensor& types) {
  const Tensor rows = encode(ids, attention_mask, types);
  const Tensor first = rows.reshape({ids.size(0), ids.size(1), rows.size(1)}).select(1, 0);
  return tanh(pooler_->forward(first));
}

namespace {

/// What ModelOptions::config may change.
constexpr std::pair<const char*, std::int64_t BertConfig::*> sizes[] = {
    {"vocab_size", &BertConfig::vocab_size},
    {"hidden_size", &BertConfig::hidden_size},
    {"num_hidden_layers", &BertConfig::num_hidden_layers},
    {"num_attention_heads", &BertConfig::num_attention_heads},
    {"intermediate_size", &BertConfig::intermediate_size},
    {"max_position_embeddings", &BertConfig::max_position_embeddings},
    {"type_vocab_size", &BertConfig::type_vocab_size},
    {"pad_token_id", &BertConfig::pad_token_id},
};

}  // namespace

std::vector<std::string> bert_sizes() {
  std::vector<std::string> names;
  for (const auto& [name, member] : sizes) names.emplace_back(name);
  return names;
}

BertConfig bert_config(const ModelOptions& options) {
  BertConfig config;
  for (const auto& [name, member] : sizes) {
    const auto given = options.config.find(name);
    if (given != options.config.end()) config.*member = given->second;
  }
  config.hidden_size = scaled(options, config.hidden_size, config.num_attention_heads);
  config.intermediate_size = scaled(options, config.intermediate_size);
  if (options.dropout) config.hidden_dropout_prob = config.attention_probs_dropout_prob = *options.dropout;
  return config;
}

std::vector<Input> bert_inputs(const ModelOptions& options) {
  const BertConfig config = bert_config(options);
  const std::int64_t length = std::min<std::int64_t>(128, config.max_position_embeddings);
  const auto input = [&](const char* name, std::int64_t limit, bool required) {
    return Input{name, {length}, DType::int64, limit, required};
  };
  return {input("input_ids", config.vocab_size, true), input("attention_mask", 2, false),
          input("token_type_ids", config.type_vocab_size, false)};
}

namespace {

/// TensorFlow's names, and today's.
constexpr std::pair<std::string_view, std::string_view> renamed[] = {{"LayerNorm.gamma", "LayerNorm.weight"},
                                                                     {"LayerNorm.beta", "LayerNorm.bias"}};

}  // namespace

std::string bert_name(std::string name) {
  for (const auto& [old, now] : renamed) {
    if (name.ends_with(old)) name.replace(name.size() - old.size(), old.size(), now);
  }
  return name;
}

std::vector<std::pair<std::string, std::string>> bert_fixed() {
  return {{"model_type", "\"bert\""},
          {"hidden_act", "\"gelu\""},
          {"position_embedding_type", "\"absolute\""},
          {"layer_norm_eps", "1e-12"},
          {"is_decoder", "false"}};
}

}  // namespace russet::models
