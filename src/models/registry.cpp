// Models by name.
#include <fmt/format.h>
#include <russet/models/registry.h>
#include <russet/models/vision.h>
#include <russet/runtime.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace russet::models {
namespace {

struct Entry {
  const char* name;
  const char* summary;
  std::int64_t num_classes;
  std::int64_t batch;
  std::int64_t in_channels;
  std::int64_t image_size;  // 0: the size is not part of the model, or there are no images
  nn::AnyModule (*make)(const Options& options, const Entry& entry);
  std::vector<Input> (*inputs)(const Options& options, const Entry& entry);
};

std::int64_t classes_of(const Options& options, const Entry& entry) {
  return options.num_classes.value_or(entry.num_classes);
}

std::int64_t channels_of(const Options& options, const Entry& entry) {
  return options.in_channels.value_or(entry.in_channels);
}

std::int64_t size_of(const Options& options, const Entry& entry) {
  return options.image_size.value_or(entry.image_size);
}

std::vector<Input> image_inputs(const Options& options, const Entry& entry) {
  const std::int64_t size = size_of(options, entry);
  return {{.name = "x", .shape = {channels_of(options, entry), size, size}, .dtype = options.dtype}};
}

std::int64_t mlp_features(const Options& options) {
  if (!options.image_size && !options.in_channels) return MlpOptions{}.in_features;
  if (!options.image_size) {
    throw ValueError("mlp: in_channels is given without image_size; its inputs are in_channels * image_size^2 numbers");
  }
  return options.in_channels.value_or(1) * *options.image_size * *options.image_size;
}

std::int64_t scaled(const Options& options, std::int64_t width) {
  return std::max<std::int64_t>(std::llround(options.width.value_or(1) * static_cast<double>(width)), 1);
}

std::vector<std::int64_t> scaled(const Options& options, std::vector<std::int64_t> widths) {
  for (std::int64_t& width : widths) width = scaled(options, width);
  return widths;
}

/// A width that splits into heads.
std::int64_t scaled(const Options& options, std::int64_t width, std::int64_t heads) {
  return options.width && heads > 0 ? scaled(options, width / heads) * heads : width;
}

nn::AnyModule make_mlp(const Options& options, const Entry& entry) {
  return Mlp({.in_features = mlp_features(options),
              .hidden = scaled(options, MlpOptions{}.hidden),
              .num_classes = classes_of(options, entry),
              .dropout = options.dropout.value_or(0)});
}

std::vector<Input> mlp_inputs(const Options& options, const Entry&) {
  return {{.name = "x", .shape = {mlp_features(options)}, .dtype = options.dtype}};
}

nn::AnyModule make_lenet5(const Options& options, const Entry& entry) {
  return LeNet5({.in_channels = channels_of(options, entry),
                 .channels = scaled(options, LeNet5Options{}.channels),
                 .hidden = scaled(options, LeNet5Options{}.hidden),
                 .image_size = size_of(options, entry),
                 .num_classes = classes_of(options, entry),
                 .dropout = options.dropout.value_or(0)});
}

template <ResNet (*Make)(ResNetOptions)>
nn::AnyModule make_resnet(const Options& options, const Entry& entry) {
  return Make({.in_channels = channels_of(options, entry),
               .width = scaled(options, ResNetOptions{}.width),
               .num_classes = classes_of(options, entry),
               .dropout = options.dropout.value_or(0)});
}

nn::AnyModule make_vit(const Options& options, const Entry& entry) {
  const double dropout = options.dropout.value_or(0);
  const VisionTransformerOptions usual;
  return VisionTransformer({.image_size = size_of(options, entry),
                            .hidden_dim = scaled(options, usual.hidden_dim, usual.num_heads),
                            .mlp_dim = scaled(options, usual.mlp_dim),
                            .dropout = dropout,
                            .attention_dropout = dropout,
                            .in_channels = channels_of(options, entry),
                            .num_classes = classes_of(options, entry)});
}

BertConfig bert_config(const Options& options) {
  BertConfig config = options.bert.value_or(BertConfig{});
  config.hidden_size = scaled(options, config.hidden_size, config.num_attention_heads);
  config.intermediate_size = scaled(options, config.intermediate_size);
  if (options.num_classes) config.num_labels = *options.num_classes;
  if (options.dropout) config.hidden_dropout_prob = config.attention_probs_dropout_prob = *options.dropout;
  return config;
}

nn::AnyModule make_bert(const Options& options, const Entry&) {
  if (options.in_channels || options.image_size) throw ValueError("bert_base: there are no images, so no image_size");
  return BertForSequenceClassification(bert_config(options));
}

std::vector<Input> bert_inputs(const Options& options, const Entry&) {
  const BertConfig config = bert_config(options);
  const std::int64_t length = std::min<std::int64_t>(128, config.max_position_embeddings);
  const auto input = [&](const char* name, std::int64_t limit, bool required) {
    return Input{name, {length}, DType::int64, limit, required};
  };
  return {input("input_ids", config.vocab_size, true), input("attention_mask", 2, false),
          input("token_type_ids", config.type_vocab_size, false)};
}

const std::array<Entry, 7>& entries() {
  static const std::array<Entry, 7> table = {{
      {"mlp", "perceptron, 1024-512-256-10", 10, 1024, 0, 0, make_mlp, mlp_inputs},
      {"lenet5", "LeNet-5 with tanh and average pooling", 10, 64, 1, 28, make_lenet5, image_inputs},
      {"resnet18", "ResNet-18", 1000, 16, 3, 224, make_resnet<resnet18>, image_inputs},
      {"resnet18_cifar", "ResNet-18 with a stem for small images", 10, 64, 3, 32, make_resnet<resnet18_cifar>,
       image_inputs},
      {"resnet50", "ResNet-50", 1000, 8, 3, 224, make_resnet<resnet50>, image_inputs},
      {"vit_b_16", "vision transformer, base, patches of 16 x 16", 1000, 4, 3, 224, make_vit, image_inputs},
      {"bert_base", "BERT-base with a classification head", 2, 4, 0, 0, make_bert, bert_inputs},
  }};
  return table;
}

const Entry& find(std::string_view name) {
  for (const Entry& entry : entries()) {
    if (name == entry.name) return entry;
  }
  std::string known;
  for (const std::string& other : names()) known += (known.empty() ? "" : ", ") + other;
  throw ValueError(fmt::format("there is no model \"{}\"; the models are {}", name, known));
}

void check(const Options& options, const Entry& entry) {
  const auto positive = [&](const char* option, const std::optional<std::int64_t>& value) {
    if (value && *value < 1) throw ValueError(fmt::format("{}: {} is {}, not 1 or more", entry.name, option, *value));
  };
  positive("num_classes", options.num_classes);
  positive("in_channels", options.in_channels);
  positive("image_size", options.image_size);
  if (options.dropout && !(*options.dropout >= 0 && *options.dropout <= 1)) {
    throw ValueError(fmt::format("{}: dropout {} is no probability", entry.name, *options.dropout));
  }
  if (options.width && !(*options.width > 0 && *options.width <= 8)) {
    throw ValueError(fmt::format("{}: width {} is not above 0 and at most 8", entry.name, *options.width));
  }
}

}  // namespace

Tensor Model::forward(const Tensor& input_ids, const Tensor& attention_mask, const Tensor& token_type_ids) {
  const Tensor inputs[] = {input_ids, attention_mask, token_type_ids};
  return forward_all(inputs);
}

std::vector<std::string> names() {
  std::vector<std::string> names;
  for (const Entry& entry : entries()) names.emplace_back(entry.name);
  return names;
}

Model create(std::string_view name, const Options& options) {
  const Entry& entry = find(name);
  check(options, entry);
  const nn::NewModules place(options.device, options.dtype);
  Model model(entry.make(options, entry), describe(name, options));
  flush();
  return model;
}

Description describe(std::string_view name, const Options& options) {
  const Entry& entry = find(name);
  check(options, entry);
  const bool is_bert = entry.make == &make_bert;
  return {.name = entry.name,
          .summary = entry.summary,
          .inputs = entry.inputs(options, entry),
          .num_classes = is_bert ? bert_config(options).num_labels : classes_of(options, entry),
          .batch = entry.batch};
}

}  // namespace russet::models
