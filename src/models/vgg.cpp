// VGG in torchvision's form.
#include <russet/functional/nn_pooling.h>
#include <russet/models/vision.h>
#include <russet/nn/activation.h>
#include <russet/nn/convolution.h>
#include <russet/nn/dropout.h>
#include <russet/nn/init.h>
#include <russet/nn/pooling.h>

#include "widths.h"

namespace russet::models {
namespace {

constexpr std::int64_t pooled_size = 7;  // height and width of what the classifier sees

nn::Sequential features_of(const VggOptions& options) {
  nn::Sequential features;
  std::int64_t channels = options.in_channels;
  for (const std::vector<std::int64_t>& stage : options.stages) {
    for (const std::int64_t width : stage) {
      features.push_back(nn::Conv2d(channels, width, 3, {.padding = 1}));
      features.push_back(nn::ReLU());
      channels = width;
    }
    features.push_back(nn::MaxPool2d(2));
  }
  return features;
}

std::int64_t last_channels(const VggOptions& options) {
  if (options.stages.empty() || options.stages.back().empty()) throw ValueError("vgg: the last stage is empty");
  return options.stages.back().back();
}

void initialise(nn::Module& module) {
  if (const auto* convolution = dynamic_cast<nn::Conv2d*>(&module)) {
    nn::init::kaiming_normal_(convolution->weight,
                              {.mode = nn::init::Fan::out, .nonlinearity = nn::init::Nonlinearity::relu});
    nn::init::zeros_(convolution->bias);
  } else if (const auto* linear = dynamic_cast<nn::Linear*>(&module)) {
    nn::init::normal_(linear->weight, 0, 0.01);
    nn::init::zeros_(linear->bias);
  }
}

}  // namespace

Vgg::Vgg(const VggOptions& options)
    : features_(register_module("features", features_of(options))),
      classifier_(register_module(
          "classifier",
          nn::Sequential(nn::Linear(last_channels(options) * pooled_size * pooled_size, options.hidden), nn::ReLU(),
                         nn::Dropout(options.dropout), nn::Linear(options.hidden, options.hidden), nn::ReLU(),
                         nn::Dropout(options.dropout), nn::Linear(options.hidden, options.num_classes)))) {
  apply(initialise);
}

Tensor Vgg::forward(const Tensor& x) { return classifier_(adaptive_avg_pool2d(features_(x), pooled_size).flatten(1)); }

namespace {

nn::AnyModule make(const ModelOptions& options) {
  VggOptions made{.in_channels = *options.in_channels, .num_classes = *options.num_classes};
  for (std::vector<std::int64_t>& stage : made.stages) stage = scaled(options, stage);
  made.hidden = scaled(options, made.hidden);
  made.dropout = options.dropout.value_or(made.dropout);
  return Vgg(made);
}

const bool registered = register_model(
    {.name = "vgg16",
     .summary = "VGG-16",
     .make = make,
     .any_image_size = true,
     .classifier = "classifier.6.weight",
     .stem = "features.0.weight",
     .recipe = {.optimizer = {.lr = 0.01, .weight_decay = 1e-4}, .batch = 32, .epochs = 30, .warmup = 200},
     .benchmark = {.batch = 4}});

}  // namespace
}  // namespace russet::models
