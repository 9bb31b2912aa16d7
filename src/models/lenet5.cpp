// LeNet-5.
#include <fmt/format.h>
#include <russet/functional/elementwise.h>
#include <russet/functional/nn_activation.h>
#include <russet/functional/nn_dropout.h>
#include <russet/models/vision.h>
#include <russet/nn/activation.h>
#include <russet/nn/convolution.h>
#include <russet/nn/dropout.h>
#include <russet/nn/pooling.h>

#include "widths.h"

namespace russet::models {
namespace {

const std::vector<std::int64_t>& checked(const std::vector<std::int64_t>& widths) {
  if (widths.size() == 2) return widths;
  throw ValueError(fmt::format("lenet5: widths of two layers are needed, not of {}", widths.size()));
}

/// The size of LeNet's images after its convolutions and pools.
std::int64_t lenet_size(std::int64_t image) {
  const std::int64_t size = (image / 2 - 4) / 2;
  if (image >= 12 && size >= 1) return size;
  throw ValueError(fmt::format("lenet5: images of {} x {} are too small; 12 x 12 at least", image, image));
}

}  // namespace

LeNet5::LeNet5(const LeNet5Options& options) : options_(options) {
  const std::int64_t size = lenet_size(options.image_size);
  const std::vector<std::int64_t>& channels = checked(options.channels);
  const std::vector<std::int64_t>& hidden = checked(options.hidden);
  f_ = nn::Sequential(nn::Conv2d(options.in_channels, channels[0], 5, {.padding = 2}), nn::Tanh(), nn::AvgPool2d(2),
                      nn::Conv2d(channels[0], channels[1], 5), nn::Tanh(), nn::AvgPool2d(2));
  c_ = nn::Sequential(nn::Linear(channels[1] * size * size, hidden[0]), nn::Tanh(), nn::Linear(hidden[0], hidden[1]),
                      nn::Tanh(), nn::Linear(hidden[1], options.num_classes));
  register_module("f", f_);
  register_module("c", c_);
}

Tensor LeNet5::forward(const Tensor& x) {
  const Tensor features = f_(x).flatten(1);
  if (options_.dropout == 0) return c_(features);
  Tensor y = features;
  for (std::size_t place = 0; place < c_.size(); ++place) {
    y = c_[place].get().forward(y);
    if (c_[place].as<nn::Tanh>()) y = dropout(y, options_.dropout, is_training());
  }
  return y;
}

namespace {

nn::AnyModule make(const ModelOptions& options) {
  return LeNet5({.in_channels = *options.in_channels,
                 .channels = scaled(options, LeNet5Options{}.channels),
                 .hidden = scaled(options, LeNet5Options{}.hidden),
                 .image_size = *options.image_size,
                 .num_classes = *options.num_classes,
                 .dropout = options.dropout.value_or(0)});
}

const bool registered =
    register_model({.name = "lenet5",
                    .summary = "LeNet-5 with tanh and average pooling",
                    .make = make,
                    .num_classes = 10,
                    .preprocessing = {.size = 28, .channels = 1, .mean = {0.1307F}, .std = {0.3081F}},  // MNIST's
                    .classifier = "c.4.weight",
                    .stem = "f.0.weight"});

}  // namespace
}  // namespace russet::models
