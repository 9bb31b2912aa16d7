#pragma once
// Models by name, as the command line knows them.
#include <russet/models/bert.h>
#include <russet/nn/module.h>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace russet::models {

/// What may differ from the model's defaults. Throws ValueError, on creation, where the model cannot do it.
struct Options {
  std::optional<std::int64_t> num_classes{};
  /// The probability of dropout, where the model has it: mlp and lenet5 after each hidden linear layer, resnets before
  /// the classifier, vit_b_16 and bert_base throughout.
  std::optional<double> dropout{};
  std::optional<std::int64_t> in_channels{};
  /// Height and width of the images. mlp: its inputs are in_channels * image_size^2 numbers.
  std::optional<std::int64_t> image_size{};
  /// Multiplies the widths of hidden layers, which are rounded and at least 1 (vit_b_16 and bert_base keep the number
  /// of heads). Above 0 and at most 8.
  std::optional<double> width{};
  /// bert_base: sizes other than BERT-base's. num_classes and dropout above go first.
  std::optional<BertConfig> bert{};
  Device device{};
  DType dtype = DType::float32;
};

struct Input {
  std::string name;  // as in a file of inputs
  Shape shape;       // without the batch's axis
  DType dtype = DType::float32;
  std::int64_t limit = 0;  // integers are below it
  bool required = true;
};

/// What a model takes and gives.
struct Description {
  std::string name;
  std::string summary;
  std::vector<Input> inputs;
  std::int64_t num_classes = 0;
  std::int64_t batch = 0;  // what benchmarks use
};

/// A model by name: a module whose forward takes the first input, or all of Description::inputs, and gives logits
/// [n, classes].
class Model : public nn::AnyModule {
 public:
  Model(const nn::AnyModule& module, Description description)
      : nn::AnyModule(module), description_(std::move(description)) {}
  using nn::AnyModule::forward;
  /// BERT's inputs; the last two may be undefined. Throws ValueError for a model of one input.
  Tensor forward(const Tensor& input_ids, const Tensor& attention_mask, const Tensor& token_type_ids);
  Tensor operator()(const Tensor& x) { return forward(x); }
  Tensor operator()(const Tensor& input_ids, const Tensor& attention_mask, const Tensor& token_type_ids) {
    return forward(input_ids, attention_mask, token_type_ids);
  }
  const Description& description() const { return description_; }

 private:
  Description description_;
};

/// "mlp", "lenet5", "resnet18", "resnet18_cifar", "resnet50", "vit_b_16", "bert_base".
std::vector<std::string> names();
/// The model with new initial values, in training mode. Throws ValueError for an unknown name, listing the known ones.
Model create(std::string_view name, const Options& options = {});
/// What the model takes, without making it. Throws ValueError for an unknown name, listing the known ones.
Description describe(std::string_view name, const Options& options = {});

}  // namespace russet::models
