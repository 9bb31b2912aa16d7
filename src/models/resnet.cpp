// ResNets in torchvision's form.
#include <fmt/format.h>
#include <russet/functional/elementwise.h>
#include <russet/functional/nn_activation.h>
#include <russet/functional/nn_dropout.h>
#include <russet/functional/nn_pooling.h>
#include <russet/models/vision.h>
#include <russet/nn/convolution.h>
#include <russet/nn/init.h>
#include <russet/nn/pooling.h>

#include "cifar.h"
#include "widths.h"

namespace russet::models {
namespace {

nn::Conv2d convolution(std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride) {
  return nn::Conv2d(in, out, kernel, {.stride = stride, .padding = kernel / 2, .bias = false});
}

/// The identity, or a 1x1 convolution and a norm where size or width change.
class Shortcut : public nn::Module {
 protected:
  void add_downsample(std::int64_t in, std::int64_t out, std::int64_t stride) {
    if (stride == 1 && in == out) return;
    downsample_ = register_module("downsample", nn::Sequential(convolution(in, out, 1, stride), nn::BatchNorm2d(out)));
    is_identity_ = false;
  }
  Tensor shortcut(const Tensor& x) { return is_identity_ ? x : downsample_(x); }

 private:
  nn::Sequential downsample_;
  bool is_identity_ = true;
};

class BasicBlock : public Shortcut {
 public:
  static constexpr std::int64_t expansion = 1;

  BasicBlock(std::int64_t in, std::int64_t width, std::int64_t stride)
      : conv1_(register_module("conv1", convolution(in, width, 3, stride))),
        bn1_(register_module("bn1", nn::BatchNorm2d(width))),
        conv2_(register_module("conv2", convolution(width, width, 3, 1))),
        bn2_(register_module("bn2", nn::BatchNorm2d(width))) {
    add_downsample(in, width, stride);
  }
  Tensor forward(const Tensor& x) override {
    const Tensor y = relu(bn1_(conv1_(x)));
    return relu(bn2_(conv2_(y)) + shortcut(x));
  }

 private:
  nn::Conv2d conv1_;
  nn::BatchNorm2d bn1_;
  nn::Conv2d conv2_;
  nn::BatchNorm2d bn2_;
};

class Bottleneck : public Shortcut {
 public:
  static constexpr std::int64_t expansion = 4;

  Bottleneck(std::int64_t in, std::int64_t width, std::int64_t stride)
      : conv1_(register_module("conv1", convolution(in, width, 1, 1))),
        bn1_(register_module("bn1", nn::BatchNorm2d(width))),
        conv2_(register_module("conv2", convolution(width, width, 3, stride))),
        bn2_(register_module("bn2", nn::BatchNorm2d(width))),
        conv3_(register_module("conv3", convolution(width, width * expansion, 1, 1))),
        bn3_(register_module("bn3", nn::BatchNorm2d(width * expansion))) {
    add_downsample(in, width * expansion, stride);
  }
  Tensor forward(const Tensor& x) override {
    const Tensor y = relu(bn1_(conv1_(x)));
    const Tensor z = relu(bn2_(conv2_(y)));
    return relu(bn3_(conv3_(z)) + shortcut(x));
  }

 private:
  nn::Conv2d conv1_;
  nn::BatchNorm2d bn1_;
  nn::Conv2d conv2_;
  nn::BatchNorm2d bn2_;
  nn::Conv2d conv3_;
  nn::BatchNorm2d bn3_;
};

template <class Block>
nn::Sequential layer_of(std::int64_t& channels, std::int64_t width, std::int64_t blocks, std::int64_t stride) {
  nn::Sequential layer;
  for (std::int64_t i = 0; i < blocks; ++i) {
    layer.push_back(Block(channels, width, i == 0 ? stride : 1));
    channels = width * Block::expansion;
  }
  return layer;
}

std::int64_t expansion_of(ResNetBlock block) {
  return block == ResNetBlock::basic ? BasicBlock::expansion : Bottleneck::expansion;
}

std::int64_t last_channels(const ResNetOptions& options) {
  if (options.layers.empty()) throw ValueError("ResNet: there are no layers");
  return (options.width << (options.layers.size() - 1)) * expansion_of(options.block);
}

void initialise(nn::Module& module) {
  if (const auto* convolution = dynamic_cast<nn::Conv2d*>(&module)) {
    nn::init::kaiming_normal_(convolution->weight,
                              {.mode = nn::init::Fan::out, .nonlinearity = nn::init::Nonlinearity::relu});
  }
}

}  // namespace

// torchvision's small-image variant is a resnet18 whose stem was replaced after its initialisation: the stem keeps the
// default of convolutions.
ResNet::ResNet(const ResNetOptions& options)
    : options_(options),
      conv1_(options.small_stem ? convolution(options.in_channels, options.width, 3, 1)
                                : convolution(options.in_channels, options.width, 7, 2)),
      bn1_(nn::BatchNorm2d(options.width)),
      fc_(options.num_classes == 0 ? nn::AnyModule(nn::Identity())
                                   : nn::AnyModule(nn::Linear(last_channels(options), options.num_classes))) {
  register_module("conv1", conv1_);
  register_module("bn1", bn1_);
  std::int64_t channels = options.width;
  for (std::size_t i = 0; i < options.layers.size(); ++i) {
    const std::int64_t width = options.width << i;
    const std::int64_t stride = i == 0 ? 1 : 2;
    layers_.push_back(options.block == ResNetBlock::basic
                          ? layer_of<BasicBlock>(channels, width, options.layers[i], stride)
                          : layer_of<Bottleneck>(channels, width, options.layers[i], stride));
    layers_.back().apply(initialise);
    register_module(fmt::format("layer{}", i + 1), layers_.back());
  }
  if (options.num_classes != 0) register_module("fc", fc_);
  if (!options.small_stem) initialise(conv1_.get());
}

std::int64_t ResNet::num_features() const { return last_channels(options_); }

Tensor ResNet::features(const Tensor& x) {
  Tensor y = relu(bn1_(conv1_(x)));
  if (!options_.small_stem) y = max_pool2d(y, 3, {.stride = 2, .padding = 1});
  for (nn::Sequential& layer : layers_) y = layer(y);
  return adaptive_avg_pool2d(y, 1).flatten(1);
}

Tensor ResNet::forward(const Tensor& x) { return fc_(dropout(features(x), options_.dropout, is_training())); }

ResNet resnet18(ResNetOptions options) {
  options.block = ResNetBlock::basic;
  options.layers = {2, 2, 2, 2};
  return ResNet(options);
}

ResNet resnet50(ResNetOptions options) {
  options.block = ResNetBlock::bottleneck;
  options.layers = {3, 4, 6, 3};
  return ResNet(options);
}

ResNet resnet18_cifar(ResNetOptions options) {
  options.small_stem = true;
  return resnet18(std::move(options));
}

namespace {

template <ResNet (*Make)(ResNetOptions)>
nn::AnyModule make(const ModelOptions& options) {
  return Make({.in_channels = *options.in_channels,
               .width = scaled(options, ResNetOptions{}.width),
               .num_classes = *options.num_classes,
               .dropout = options.dropout.value_or(0)});
}

ModelSpec spec_of(const char* name, const char* summary, nn::AnyModule (*make)(const ModelOptions&),
                  std::int64_t batch) {
  return {.name = name,
          .summary = summary,
          .make = make,
          .any_image_size = true,
          .classifier = "fc.weight",
          .stem = "conv1.weight",
          .recipe = {.optimizer = {.lr = 0.05, .weight_decay = 1e-4}, .batch = 32, .epochs = 30, .warmup = 200},
          .benchmark = {.batch = batch}};
}

ModelSpec spec_of_cifar() {
  ModelSpec spec = spec_of("resnet18_cifar", "ResNet-18 with a stem for small images", make<resnet18_cifar>, 64);
  spec.num_classes = 10;
  spec.preprocessing = cifar10_images();
  spec.recipe.optimizer = {.lr = 0.1, .weight_decay = 5e-4};
  spec.recipe.batch = 128;
  return spec;
}

const bool registered[] = {
    register_model(spec_of("resnet18", "ResNet-18", make<resnet18>, 16)),
    register_model(spec_of("resnet50", "ResNet-50", make<resnet50>, 8)),
    register_model(spec_of_cifar()),
};

}  // namespace
}  // namespace russet::models
