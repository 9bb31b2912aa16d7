// ConvMixer in timm's form.
#include <fmt/format.h>
#include <russet/functional/elementwise.h>
#include <russet/functional/nn_dropout.h>
#include <russet/functional/nn_pooling.h>
#include <russet/models/vision.h>
#include <russet/nn/activation.h>
#include <russet/nn/convolution.h>

#include "widths.h"

namespace russet::models {
namespace {

class Residual : public nn::Module {
 public:
  explicit Residual(const nn::Sequential& fn) : fn_(register_module("fn", fn)) {}
  Tensor forward(const Tensor& x) override { return fn_(x) + x; }

 private:
  nn::Sequential fn_;
};

/// Mixes places by a depthwise convolution, then channels by one of 1x1.
nn::Sequential block_of(const ConvMixerOptions& options) {
  const std::int64_t dim = options.dim;
  const std::int64_t kernel = options.kernel_size;
  return nn::Sequential(Residual(nn::Sequential(nn::Conv2d(dim, dim, kernel, {.padding = kernel / 2, .groups = dim}),
                                                nn::ReLU(), nn::BatchNorm2d(dim))),
                        nn::Conv2d(dim, dim, 1), nn::ReLU(), nn::BatchNorm2d(dim));
}

nn::Sequential blocks_of(const ConvMixerOptions& options) {
  if (options.kernel_size % 2 == 0) {
    throw ValueError(fmt::format("ConvMixer: the kernel's size is odd, not {}", options.kernel_size));
  }
  nn::Sequential blocks;
  for (std::int64_t i = 0; i < options.depth; ++i) blocks.push_back(block_of(options));
  return blocks;
}

}  // namespace

ConvMixer::ConvMixer(const ConvMixerOptions& options)
    : options_(options),
      stem_(register_module("stem", nn::Sequential(nn::Conv2d(options.in_channels, options.dim, options.patch_size,
                                                              {.stride = options.patch_size}),
                                                   nn::ReLU(), nn::BatchNorm2d(options.dim)))),
      blocks_(register_module("blocks", blocks_of(options))),
      head_(register_module("head", nn::Linear(options.dim, options.num_classes))) {}

Tensor ConvMixer::forward(const Tensor& x) {
  const Tensor features = adaptive_avg_pool2d(blocks_(stem_(x)), 1).flatten(1);
  return head_(dropout(features, options_.dropout, is_training()));
}

namespace {

nn::AnyModule make(const ModelOptions& options) {
  return ConvMixer({.dim = scaled(options, ConvMixerOptions{}.dim),
                    .in_channels = *options.in_channels,
                    .num_classes = *options.num_classes,
                    .dropout = options.dropout.value_or(0)});
}

const bool registered = register_model({.name = "convmixer_768_32",
                                        .summary = "ConvMixer-768/32, patches of 7 x 7",
                                        .make = make,
                                        .any_image_size = true,
                                        .classifier = "head.weight",
                                        .stem = "stem.0.weight",
                                        .recipe = {.optimizer = {.name = "adamw", .lr = 1e-3, .weight_decay = 2e-5},
                                                   .batch = 32,
                                                   .epochs = 30,
                                                   .warmup = 200},
                                        .benchmark = {.batch = 2}});

}  // namespace
}  // namespace russet::models
