#pragma once
// Models by name: what is known of each, and how one is made. A model is one file in src/models (or in a program that
// uses the library) that ends with a call of register_model; nothing else names it.
#include <russet/nn/module.h>
#include <russet/optim/make_optimizer.h>
#include <concepts>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace russet::models {

/// What may differ from the model's defaults. Throws ValueError, on creation, where the model cannot do it.
struct ModelOptions {
  std::optional<std::int64_t> num_classes{};
  /// The probability of dropout, where the model has it: perceptrons, LeNet-5, AlexNet and VGG around hidden linear
  /// layers, ResNets, EfficientNets and ConvMixers before the classifier, transformers throughout. 0 turns off
  /// EfficientNets' stochastic depth, too.
  std::optional<double> dropout{};
  std::optional<std::int64_t> in_channels{};
  /// Height and width of the images. A model of plain numbers takes in_channels * image_size^2 of them.
  std::optional<std::int64_t> image_size{};
  /// Multiplies the widths of hidden layers, which are rounded and at least 1 (transformers keep the number of heads,
  /// EfficientNets' widths are multiples of 8).
  /// Above 0 and at most 8.
  std::optional<double> width{};
  /// Sizes of the model's own, by the names in ModelSpec::config.
  std::map<std::string, std::int64_t> config{};
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

enum class InputKind : std::uint8_t { images, numbers, tokens };

/// How images become inputs, unless a file of weights says otherwise.
struct Preprocessing {
  std::int64_t size = 224;  // height and width to which images are scaled
  std::int64_t channels = 3;
  /// Whether images of other numbers of channels keep theirs.
  bool any_channels = false;
  /// Of each channel, from 0 to 1. ImageNet's.
  std::vector<float> mean{0.485F, 0.456F, 0.406F};
  std::vector<float> std{0.229F, 0.224F, 0.225F};
};

/// What a model is trained with unless told otherwise: what its paper, or common practice, uses.
struct Recipe {
  optim::OptimizerChoice optimizer{.lr = 0.05};
  std::int64_t batch = 64;
  std::int64_t epochs = 10;
  std::int64_t warmup = 0;  // steps
};

/// What benchmarks run.
struct Benchmark {
  std::int64_t batch = 64;
  /// None: gradients of the output's mean, and no update; else those of the cross entropy.
  std::optional<optim::OptimizerChoice> optimizer{optim::OptimizerChoice{}};
  std::optional<std::int64_t> num_classes{};  // other than the model's
};

/// All that is known of a model.
struct ModelSpec {
  std::string name{};
  std::string summary{};
  /// Given options are complete: those that the spec has a default for are there.
  nn::AnyModule (*make)(const ModelOptions& options) = nullptr;
  InputKind takes = InputKind::images;
  /// Null: one image.
  std::vector<Input> (*inputs)(const ModelOptions& options) = nullptr;
  std::int64_t num_classes = 1000;
  /// Whether each token gets an answer, [n, length, classes]: the classes are words, as many as there are embeddings,
  /// and the model learns those that are masked.
  bool answers_tokens = false;
  Preprocessing preprocessing{};
  /// Whether the same weights take images of any size.
  bool any_image_size = false;
  /// The weights that tell what a file from elsewhere is for: [classes, ...] of the last layer, [..., channels, ...] of
  /// the first one (none for tokens).
  std::string classifier{};
  std::string stem{};
  /// What the names of the head's tensors begin with, those beside the classifier: "fc." of "fc.weight".
  std::string head() const { return classifier.substr(0, classifier.rfind('.') + 1); }
  /// Weights as others publish them, under the model's names and without what it has no use for. Null: they are the
  /// same.
  StateDict (*published)(const StateDict& weights) = nullptr;
  /// Set for models that learn from views of images, without classes: what their encoder makes of images, [n, width].
  /// What forward() gives, projections of `num_classes` numbers, serves the loss alone.
  Tensor (*features)(const nn::AnyModule& model, const Tensor& images) = nullptr;
  /// The names that ModelOptions::config may hold.
  std::vector<std::string> config{};
  /// What a Hugging Face config.json says otherwise of another model: names and values, as JSON.
  std::vector<std::pair<std::string, std::string>> config_fixed{};
  Recipe recipe{};
  Benchmark benchmark{};
};

/// A model by name: a module whose forward takes the first input, or all of inputs(), and gives logits [n, classes], or
/// those of each token (ModelSpec::answers_tokens).
class Model : public nn::AnyModule {
 public:
  Model(const nn::AnyModule& module, const ModelSpec& spec, std::vector<Input> inputs, std::int64_t num_classes)
      : nn::AnyModule(module), spec_(&spec), inputs_(std::move(inputs)), num_classes_(num_classes) {}

  using nn::AnyModule::operator();
  /// The inputs in their order. Those that are not required may be undefined, or left out at the end.
  template <std::same_as<Tensor>... Rest>
  requires(sizeof...(Rest) > 0) Tensor operator()(const Tensor& first, const Rest&... rest) {
    const Tensor inputs[] = {first, rest...};
    return forward_all(inputs);
  }
  const ModelSpec& spec() const { return *spec_; }
  const std::vector<Input>& inputs() const { return inputs_; }
  std::int64_t num_classes() const { return num_classes_; }

 private:
  const ModelSpec* spec_;
  std::vector<Input> inputs_;
  std::int64_t num_classes_;
};

/// Adds a model to those that are known by name. Returns true. Throws ValueError for a name that is taken, and for a
/// spec without one or without `make`.
bool register_model(const ModelSpec& spec);

/// The names of all models, in alphabetical order.
std::vector<std::string> list_models();
/// Throws ValueError for an unknown name, listing the known ones.
const ModelSpec& find_model(std::string_view name);
/// The model with new initial values, in training mode. Throws ValueError for an unknown name, listing the known ones.
Model get_model(std::string_view name, const ModelOptions& options = {});

}  // namespace russet::models
