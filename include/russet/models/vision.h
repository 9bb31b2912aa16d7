#pragma once
// Models of images, with the names that their PyTorch counterparts (torchvision's, and timm's for ConvMixer) give to
// parameters.
#include <russet/functional/options.h>
#include <russet/nn/containers.h>
#include <russet/nn/linear.h>
#include <russet/nn/module.h>
#include <russet/nn/normalization.h>
#include <optional>
#include <vector>

namespace russet::models {

struct MlpOptions {
  std::int64_t in_features = 1024;
  std::vector<std::int64_t> hidden{512, 256};  // two
  std::int64_t num_classes = 10;
  double dropout = 0;
};
/// fc1, fc2, fc3: in_features, hidden and num_classes, with relu between.
class Mlp : public nn::Module {
 public:
  /// Throws ValueError unless there are two hidden layers.
  explicit Mlp(const MlpOptions& options = {});
  /// x: [n, in_features], or [n, ...] with as many elements a sample.
  Tensor forward(const Tensor& x) override;

 private:
  MlpOptions options_;
  nn::Linear fc1_, fc2_, fc3_;
};

struct LeNet5Options {
  std::int64_t in_channels = 1;
  std::vector<std::int64_t> channels{6, 16};  // of the two convolutions
  std::vector<std::int64_t> hidden{120, 84};  // of the first two linear layers
  std::int64_t image_size = 28;
  std::int64_t num_classes = 10;
  double dropout = 0;
};
/// Two convolutions with average pooling (f), three linear layers (c), tanh between. LeCun et al. 1998.
class LeNet5 : public nn::Module {
 public:
  /// Throws ValueError for images smaller than 12, and other numbers of layers.
  explicit LeNet5(const LeNet5Options& options = {});
  /// x: [n, in_channels, image_size, image_size].
  Tensor forward(const Tensor& x) override;

 private:
  LeNet5Options options_;
  nn::Sequential f_, c_;
};

enum class ResNetBlock : std::uint8_t { basic, bottleneck };
struct ResNetOptions {
  ResNetBlock block = ResNetBlock::basic;
  std::vector<std::int64_t> layers{2, 2, 2, 2};
  std::int64_t in_channels = 3;
  std::int64_t width = 64;  // channels of the stem and of the first stage; each further stage has twice as many
  /// 0: no classifier; the model gives features.
  std::int64_t num_classes = 1000;
  /// A stem for small images: 3x3, stride 1, no pooling.
  bool small_stem = false;
  double dropout = 0;
};
/// He et al. 2015, in torchvision's form (the bottleneck's stride in its 3x3 convolution).
class ResNet : public nn::Module {
 public:
  explicit ResNet(const ResNetOptions& options = {});
  /// x: [n, in_channels, h, w].
  Tensor forward(const Tensor& x) override;
  /// What the classifier sees: [n, num_features()].
  Tensor features(const Tensor& x);
  std::int64_t num_features() const;

 private:
  ResNetOptions options_;
  nn::AnyModule conv1_, bn1_;
  std::vector<nn::Sequential> layers_;
  nn::AnyModule fc_;
};
ResNet resnet18(ResNetOptions options = {});
ResNet resnet50(ResNetOptions options = {});
/// resnet18 with the stem for small images and ten classes.
ResNet resnet18_cifar(ResNetOptions options = {.num_classes = 10});

struct AlexNetOptions {
  std::int64_t in_channels = 3;
  std::vector<std::int64_t> channels{64, 192, 384, 256, 256};  // of the five convolutions
  std::int64_t hidden = 4096;                                  // of the first two linear layers
  std::int64_t num_classes = 1000;
  double dropout = 0.5;
};
/// Krizhevsky 2014 ("one weird trick"), in torchvision's form.
class AlexNet : public nn::Module {
 public:
  /// Throws ValueError unless there are five convolutions.
  explicit AlexNet(const AlexNetOptions& options = {});
  /// x: [n, in_channels, h, w], of 63 x 63 at least.
  Tensor forward(const Tensor& x) override;

 private:
  nn::Sequential features_, classifier_;
};
inline AlexNet alexnet(const AlexNetOptions& options = {}) { return AlexNet(options); }

struct VggOptions {
  /// Channels of each stage's 3x3 convolutions; a pool follows each stage.
  std::vector<std::vector<std::int64_t>> stages{
      {64, 64}, {128, 128}, {256, 256, 256}, {512, 512, 512}, {512, 512, 512}};
  std::int64_t in_channels = 3;
  std::int64_t hidden = 4096;  // of the first two linear layers
  std::int64_t num_classes = 1000;
  double dropout = 0.5;
};
/// Simonyan, Zisserman 2014, in torchvision's form without batch norms.
class Vgg : public nn::Module {
 public:
  explicit Vgg(const VggOptions& options = {});
  /// x: [n, in_channels, h, w], of 2^stages at least.
  Tensor forward(const Tensor& x) override;

 private:
  nn::Sequential features_, classifier_;
};
inline Vgg vgg16(const VggOptions& options = {}) { return Vgg(options); }

struct EfficientNetOptions {
  double width_mult = 1;  // of channels, which are rounded to multiples of 8
  double depth_mult = 1;  // of a stage's blocks, rounded up
  /// Before the classifier. 0.2 for b0, 0.4 for b4 unless given.
  std::optional<double> dropout{};
  /// Of the last block; it grows with the depth from 0 on.
  double stochastic_depth_prob = 0.2;
  std::int64_t in_channels = 3;
  std::int64_t num_classes = 1000;
};
/// Tan, Le 2019, in torchvision's form.
class EfficientNet : public nn::Module {
 public:
  explicit EfficientNet(const EfficientNetOptions& options = {});
  /// x: [n, in_channels, h, w].
  Tensor forward(const Tensor& x) override;

 private:
  nn::Sequential features_, classifier_;
};
inline EfficientNet efficientnet_b0(const EfficientNetOptions& options = {}) { return EfficientNet(options); }
/// 1.4 times the width and 1.8 times the depth of b0; the options' factors come on top.
EfficientNet efficientnet_b4(EfficientNetOptions options = {});

struct ConvMixerOptions {
  std::int64_t dim = 768;
  std::int64_t depth = 32;
  std::int64_t kernel_size = 7;  // odd
  std::int64_t patch_size = 7;
  std::int64_t in_channels = 3;
  std::int64_t num_classes = 1000;
  double dropout = 0;  // before the classifier
};
/// Trockman, Kolter 2022, in timm's form of convmixer_768_32: with ReLU.
class ConvMixer : public nn::Module {
 public:
  /// Throws ValueError for an even kernel.
  explicit ConvMixer(const ConvMixerOptions& options = {});
  /// x: [n, in_channels, h, w], of patch_size x patch_size at least.
  Tensor forward(const Tensor& x) override;

 private:
  ConvMixerOptions options_;
  nn::Sequential stem_, blocks_;
  nn::Linear head_;
};
inline ConvMixer convmixer_768_32(const ConvMixerOptions& options = {}) { return ConvMixer(options); }

struct SimClrOptions {
  /// Its num_classes is not used.
  ResNetOptions encoder{.small_stem = true};
  std::int64_t projection_dim = 128;
};
/// Chen et al. 2020: a ResNet (encoder), and a projection of its features by two linear layers with ReLU between
/// (projection), whose hidden layer is as wide as the features.
class SimClr : public nn::Module {
 public:
  explicit SimClr(const SimClrOptions& options = {});
  /// x: [n, in_channels, h, w]. Returns projections, [n, projection_dim].
  Tensor forward(const Tensor& x) override;
  /// What is used after training: [n, features].
  Tensor features(const Tensor& x) { return encoder_(x); }

 private:
  ResNet encoder_;
  nn::Sequential projection_;
};
inline SimClr simclr_resnet18(const SimClrOptions& options = {}) { return SimClr(options); }

struct VisionTransformerOptions {
  std::int64_t image_size = 224;
  std::int64_t patch_size = 16;
  std::int64_t num_layers = 12;
  std::int64_t num_heads = 12;
  std::int64_t hidden_dim = 768;
  std::int64_t mlp_dim = 3072;
  double dropout = 0;
  double attention_dropout = 0;
  std::int64_t in_channels = 3;
  std::int64_t num_classes = 1000;
};
/// Dosovitskiy et al. 2020, in torchvision's form.
class VisionTransformer : public nn::Module {
 public:
  /// Throws ValueError unless the image splits into patches and the width into heads.
  explicit VisionTransformer(const VisionTransformerOptions& options = {});
  /// x: [n, in_channels, image_size, image_size].
  Tensor forward(const Tensor& x) override;

 private:
  class Encoder;
  VisionTransformerOptions options_;
  nn::Parameter class_token_;
  nn::AnyModule conv_proj_, encoder_;
  nn::Linear head_;
};
inline VisionTransformer vit_b_16(const VisionTransformerOptions& options = {}) { return VisionTransformer(options); }

}  // namespace russet::models
