// AlexNet in torchvision's form.
#include <fmt/format.h>
#include <russet/functional/nn_pooling.h>
#include <russet/models/vision.h>
#include <russet/nn/activation.h>
#include <russet/nn/convolution.h>
#include <russet/nn/dropout.h>
#include <russet/nn/pooling.h>

#include "widths.h"

namespace russet::models {
namespace {

constexpr std::int64_t pooled_size = 6;  // height and width of what the classifier sees

const std::vector<std::int64_t>& checked(const std::vector<std::int64_t>& channels) {
  if (channels.size() == 5) return channels;
  throw ValueError(fmt::format("alexnet: channels of five convolutions are needed, not of {}", channels.size()));
}

nn::Sequential features_of(std::int64_t in, const std::vector<std::int64_t>& c) {
  const nn::MaxPool2d pool(3, {.stride = 2});
  return nn::Sequential(nn::Conv2d(in, c[0], 11, {.stride = 4, .padding = 2}), nn::ReLU(), pool,
                        nn::Conv2d(c[0], c[1], 5, {.padding = 2}), nn::ReLU(), pool,
                        nn::Conv2d(c[1], c[2], 3, {.padding = 1}), nn::ReLU(),
                        nn::Conv2d(c[2], c[3], 3, {.padding = 1}), nn::ReLU(),
                        nn::Conv2d(c[3], c[4], 3, {.padding = 1}), nn::ReLU(), pool);
}

}  // namespace

AlexNet::AlexNet(const AlexNetOptions& options)
    : features_(register_module("features", features_of(options.in_channels, checked(options.channels)))),
      classifier_(register_module(
          "classifier",
          nn::Sequential(nn::Dropout(options.dropout),
                         nn::Linear(options.channels.back() * pooled_size * pooled_size, options.hidden), nn::ReLU(),
                         nn::Dropout(options.dropout), nn::Linear(options.hidden, options.hidden), nn::ReLU(),
                         nn::Linear(options.hidden, options.num_classes)))) {}

Tensor AlexNet::forward(const Tensor& x) {
  return classifier_(adaptive_avg_pool2d(features_(x), pooled_size).flatten(1));
}

namespace {

nn::AnyModule make(const ModelOptions& options) {
  const AlexNetOptions usual;
  return AlexNet({.in_channels = *options.in_channels,
                  .channels = scaled(options, usual.channels),
                  .hidden = scaled(options, usual.hidden),
                  .num_classes = *options.num_classes,
                  .dropout = options.dropout.value_or(usual.dropout)});
}

const bool registered =
    register_model({.name = "alexnet",
                    .summary = "AlexNet",
                    .make = make,
                    .any_image_size = true,
                    .classifier = "classifier.6.weight",
                    .stem = "features.0.weight",
                    .recipe = {.optimizer = {.lr = 0.01, .weight_decay = 1e-4}, .batch = 32, .epochs = 30},
                    .benchmark = {.batch = 32}});

}  // namespace
}  // namespace russet::models
