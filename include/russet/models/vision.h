#pragma once
// Models of images: a perceptron, LeNet-5, ResNets and a vision transformer, with the names that their PyTorch
// counterparts (torchvision's for the latter two) give to parameters.
#include <russet/functional/options.h>
#include <russet/nn/containers.h>
#include <russet/nn/linear.h>
#include <russet/nn/module.h>
#include <russet/nn/normalization.h>
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

 private:
  ResNetOptions options_;
  nn::AnyModule conv1_, bn1_;
  std::vector<nn::Sequential> layers_;
  nn::Linear fc_;
};
ResNet resnet18(ResNetOptions options = {});
ResNet resnet50(ResNetOptions options = {});
/// resnet18 with the stem for small images and ten classes.
ResNet resnet18_cifar(ResNetOptions options = {.num_classes = 10});

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
