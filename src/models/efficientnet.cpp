// EfficientNets in torchvision's form.
#include <russet/functional/elementwise.h>
#include <russet/functional/nn_activation.h>
#include <russet/functional/nn_pooling.h>
#include <russet/models/vision.h>
#include <russet/nn/activation.h>
#include <russet/nn/convolution.h>
#include <russet/nn/dropout.h>
#include <russet/nn/init.h>

#include <cmath>

#include "widths.h"

namespace russet::models {
namespace {

/// A row of blocks; the first changes width and size.
struct Stage {
  std::int64_t expansion;
  std::int64_t kernel;
  std::int64_t stride;
  std::int64_t out_channels;
  std::int64_t blocks;
};

constexpr std::int64_t stem_channels = 32;
constexpr Stage stages[] = {
    {1, 3, 1, 16, 1},  {6, 3, 2, 24, 2},  {6, 5, 2, 40, 2},  {6, 3, 2, 80, 3},
    {6, 5, 1, 112, 3}, {6, 5, 2, 192, 4}, {6, 3, 1, 320, 1},
};
constexpr std::int64_t head_expansion = 4;

/// A multiple of 8, not more than a tenth below the product.
std::int64_t multiplied(std::int64_t channels, double factor) {
  const double wanted = static_cast<double>(channels) * factor;
  const std::int64_t nearest = std::max<std::int64_t>(static_cast<std::int64_t>(wanted + 4) / 8 * 8, 8);
  return static_cast<double>(nearest) < 0.9 * wanted ? nearest + 8 : nearest;
}

struct ConvNormOptions {
  std::int64_t kernel = 1;
  std::int64_t stride = 1;
  std::int64_t groups = 1;
  bool activates = true;
};

/// A convolution, its batch norm and SiLU.
nn::Sequential conv_norm(std::int64_t in, std::int64_t out, const ConvNormOptions& options) {
  nn::Sequential layers(
      nn::Conv2d(in, out, options.kernel,
                 {.stride = options.stride, .padding = options.kernel / 2, .groups = options.groups, .bias = false}),
      nn::BatchNorm2d(out));
  if (options.activates) layers.push_back(nn::SiLU());
  return layers;
}

/// Scales each channel by what two 1x1 convolutions make of the means of all channels.
class SqueezeExcitation : public nn::Module {
 public:
  SqueezeExcitation(std::int64_t channels, std::int64_t squeezed)
      : fc1_(register_module("fc1", nn::Conv2d(channels, squeezed, 1))),
        fc2_(register_module("fc2", nn::Conv2d(squeezed, channels, 1))) {}
  Tensor forward(const Tensor& x) override { return x * sigmoid(fc2_(silu(fc1_(adaptive_avg_pool2d(x, 1))))); }

 private:
  nn::Conv2d fc1_;
  nn::Conv2d fc2_;
};

/// Mobile inverted bottleneck: wider by a 1x1 convolution, depthwise, narrow again; a shortcut where the shape stays.
class MbConv : public nn::Module {
 public:
  MbConv(std::int64_t in, std::int64_t out, const Stage& stage, std::int64_t stride, double stochastic_depth_prob)
      : stochastic_depth_(stochastic_depth_prob, StochasticDepthMode::row), has_shortcut_(stride == 1 && in == out) {
    const std::int64_t wide = multiplied(in, static_cast<double>(stage.expansion));
    if (wide != in) block_.push_back(conv_norm(in, wide, {}));
    block_.push_back(conv_norm(wide, wide, {.kernel = stage.kernel, .stride = stride, .groups = wide}));
    block_.push_back(SqueezeExcitation(wide, std::max<std::int64_t>(in / 4, 1)));
    block_.push_back(conv_norm(wide, out, {.activates = false}));
    register_module("block", block_);
    register_module("stochastic_depth", stochastic_depth_);
  }
  Tensor forward(const Tensor& x) override {
    const Tensor y = block_(x);
    return has_shortcut_ ? stochastic_depth_(y) + x : y;
  }

 private:
  nn::Sequential block_;
  nn::StochasticDepth stochastic_depth_;
  bool has_shortcut_;
};

std::int64_t blocks_of(const Stage& stage, const EfficientNetOptions& options) {
  return static_cast<std::int64_t>(std::ceil(static_cast<double>(stage.blocks) * options.depth_mult));
}

/// `block_index` counts the blocks of all stages.
nn::Sequential layer_of(const Stage& stage, std::int64_t& channels, double& block_index, double all_blocks,
                        const EfficientNetOptions& options) {
  nn::Sequential layer;
  const std::int64_t out = multiplied(stage.out_channels, options.width_mult);
  for (std::int64_t i = 0; i < blocks_of(stage, options); ++i) {
    const double drop = options.stochastic_depth_prob * block_index++ / all_blocks;
    layer.push_back(MbConv(channels, out, stage, i == 0 ? stage.stride : 1, drop));
    channels = out;
  }
  return layer;
}

nn::Sequential features_of(const EfficientNetOptions& options) {
  nn::Sequential features;
  std::int64_t channels = multiplied(stem_channels, options.width_mult);
  features.push_back(conv_norm(options.in_channels, channels, {.kernel = 3, .stride = 2}));
  double all_blocks = 0;
  for (const Stage& stage : stages) all_blocks += static_cast<double>(blocks_of(stage, options));
  double block_index = 0;
  for (const Stage& stage : stages) features.push_back(layer_of(stage, channels, block_index, all_blocks, options));
  features.push_back(conv_norm(channels, head_expansion * channels, {}));
  return features;
}

std::int64_t num_features(const EfficientNetOptions& options) {
  return head_expansion * multiplied(std::end(stages)[-1].out_channels, options.width_mult);
}

void initialise(nn::Module& module) {
  if (const auto* convolution = dynamic_cast<nn::Conv2d*>(&module)) {
    nn::init::kaiming_normal_(convolution->weight, {.mode = nn::init::Fan::out});
    if (convolution->bias.defined()) nn::init::zeros_(convolution->bias);
  } else if (const auto* linear = dynamic_cast<nn::Linear*>(&module)) {
    const double bound = 1 / std::sqrt(static_cast<double>(linear->weight.size(0)));
    nn::init::uniform_(linear->weight, -bound, bound);
    nn::init::zeros_(linear->bias);
  }
}

}  // namespace

EfficientNet::EfficientNet(const EfficientNetOptions& options)
    : features_(register_module("features", features_of(options))),
      classifier_(
          register_module("classifier", nn::Sequential(nn::Dropout(options.dropout.value_or(0.2)),
                                                       nn::Linear(num_features(options), options.num_classes)))) {
  apply(initialise);
}

Tensor EfficientNet::forward(const Tensor& x) { return classifier_(adaptive_avg_pool2d(features_(x), 1).flatten(1)); }

EfficientNet efficientnet_b4(EfficientNetOptions options) {
  options.width_mult *= 1.4;
  options.depth_mult *= 1.8;
  options.dropout = options.dropout.value_or(0.4);
  return EfficientNet(options);
}

namespace {

EfficientNetOptions options_of(const ModelOptions& options) {
  EfficientNetOptions made{.width_mult = options.width.value_or(1),
                           .dropout = options.dropout,
                           .in_channels = *options.in_channels,
                           .num_classes = *options.num_classes};
  if (options.dropout == 0.0) made.stochastic_depth_prob = 0;
  return made;
}

nn::AnyModule make_b0(const ModelOptions& options) { return efficientnet_b0(options_of(options)); }
nn::AnyModule make_b4(const ModelOptions& options) { return efficientnet_b4(options_of(options)); }

ModelSpec spec_of(const char* name, const char* summary, nn::AnyModule (*make)(const ModelOptions&),
                  std::int64_t image_size, std::int64_t batch) {
  return {.name = name,
          .summary = summary,
          .make = make,
          .preprocessing = {.size = image_size},
          .any_image_size = true,
          .classifier = "classifier.1.weight",
          .stem = "features.0.0.weight",
          .recipe = {.optimizer = {.lr = 0.05, .weight_decay = 2e-5}, .batch = 32, .epochs = 30, .warmup = 200},
          .benchmark = {.batch = batch}};
}

const bool registered[] = {
    register_model(spec_of("efficientnet_b0", "EfficientNet-B0", make_b0, 224, 8)),
    register_model(spec_of("efficientnet_b4", "EfficientNet-B4", make_b4, 380, 2)),
};

}  // namespace
}  // namespace russet::models
