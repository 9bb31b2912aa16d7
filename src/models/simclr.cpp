// SimCLR's network.
#include <russet/models/vision.h>
#include <russet/nn/activation.h>

#include "cifar.h"
#include "widths.h"

namespace russet::models {
namespace {

ResNetOptions without_classifier(ResNetOptions options) {
  options.num_classes = 0;
  return options;
}

nn::Sequential projection_of(std::int64_t features, std::int64_t projection_dim) {
  return nn::Sequential(nn::Linear(features, features), nn::ReLU(), nn::Linear(features, projection_dim));
}

}  // namespace

SimClr::SimClr(const SimClrOptions& options)
    : encoder_(register_module("encoder", ResNet(without_classifier(options.encoder)))),
      projection_(register_module("projection", projection_of(encoder_.num_features(), options.projection_dim))) {}

Tensor SimClr::forward(const Tensor& x) { return projection_(features(x)); }

namespace {

nn::AnyModule make(const ModelOptions& options) {
  return SimClr({.encoder = {.in_channels = *options.in_channels,
                             .width = scaled(options, ResNetOptions{}.width),
                             .small_stem = true,
                             .dropout = options.dropout.value_or(0)},
                 .projection_dim = *options.num_classes});
}

Tensor features(const nn::AnyModule& model, const Tensor& images) { return model.as<SimClr>()->features(images); }

const bool registered = register_model(
    {.name = "simclr_resnet18",
     .summary = "SimCLR: ResNet-18 with a stem for small images, and a projection head",
     .make = make,
     .num_classes = SimClrOptions{}.projection_dim,
     .preprocessing = cifar10_images(),
     .any_image_size = true,
     .classifier = "projection.2.weight",
     .stem = "encoder.conv1.weight",
     .features = features,
     .recipe = {.optimizer = {.lr = 0.06, .weight_decay = 5e-4}, .batch = 128, .epochs = 100, .warmup = 200},
     .benchmark = {.batch = 64}});

}  // namespace
}  // namespace russet::models
