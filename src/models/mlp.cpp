// The perceptron.
#include <fmt/format.h>
#include <russet/functional/elementwise.h>
#include <russet/functional/nn_activation.h>
#include <russet/functional/nn_dropout.h>
#include <russet/models/vision.h>

#include "widths.h"

namespace russet::models {
namespace {

const std::vector<std::int64_t>& checked(const std::vector<std::int64_t>& hidden) {
  if (hidden.size() == 2) return hidden;
  throw ValueError(fmt::format("mlp: widths of two layers are needed, not of {}", hidden.size()));
}

}  // namespace

Mlp::Mlp(const MlpOptions& options)
    : options_(options),
      fc1_(register_module("fc1", nn::Linear(options.in_features, checked(options.hidden)[0]))),
      fc2_(register_module("fc2", nn::Linear(options.hidden[0], options.hidden[1]))),
      fc3_(register_module("fc3", nn::Linear(options.hidden[1], options.num_classes))) {}

Tensor Mlp::forward(const Tensor& x) {
  const Tensor flat = x.dim() > 2 ? x.flatten(1) : x;
  const Tensor h1 = dropout(relu(fc1_(flat)), options_.dropout, is_training());
  const Tensor h2 = dropout(relu(fc2_(h1)), options_.dropout, is_training());
  return fc3_(h2);
}

namespace {

std::int64_t in_features(const ModelOptions& options) {
  if (!options.image_size && !options.in_channels) return MlpOptions{}.in_features;
  if (!options.image_size) {
    throw ValueError("mlp: in_channels is given without image_size; its inputs are in_channels * image_size^2 numbers");
  }
  return options.in_channels.value_or(1) * *options.image_size * *options.image_size;
}

nn::AnyModule make(const ModelOptions& options) {
  return Mlp({.in_features = in_features(options),
              .hidden = scaled(options, MlpOptions{}.hidden),
              .num_classes = *options.num_classes,
              .dropout = options.dropout.value_or(0)});
}

std::vector<Input> inputs(const ModelOptions& options) {
  return {{.name = "x", .shape = {in_features(options)}, .dtype = options.dtype}};
}

const bool registered = register_model({.name = "mlp",
                                        .summary = "perceptron, 1024-512-256-10",
                                        .make = make,
                                        .takes = InputKind::numbers,
                                        .inputs = inputs,
                                        .num_classes = 10,
                                        .preprocessing = {.size = 32, .channels = 1},
                                        .classifier = "fc3.weight",
                                        .stem = "fc1.weight",
                                        .benchmark = {.batch = 1024, .optimizer = {}}});

}  // namespace
}  // namespace russet::models
