// The vision transformer in torchvision's form.
#include <fmt/format.h>
#include <russet/functional/creation.h>
#include <russet/functional/elementwise.h>
#include <russet/functional/movement.h>
#include <russet/models/vision.h>
#include <russet/nn/activation.h>
#include <russet/nn/convolution.h>
#include <russet/nn/dropout.h>
#include <russet/nn/init.h>
#include <russet/nn/transformer.h>

#include <cmath>

#include "widths.h"

namespace russet::models {
namespace {

/// Attention and feed-forward part on the rows of all samples, [n * l, e]: norms first, residuals around both.
class EncoderBlock : public nn::Module {
 public:
  explicit EncoderBlock(const VisionTransformerOptions& o)
      : ln_1_(register_module("ln_1", nn::LayerNorm(o.hidden_dim, {.eps = 1e-6}))),
        self_attention_(register_module(
            "self_attention",
            nn::MultiheadAttention(o.hidden_dim, o.num_heads, {.dropout = o.attention_dropout, .batch_first = true}))),
        dropout_(o.dropout),
        ln_2_(register_module("ln_2", nn::LayerNorm(o.hidden_dim, {.eps = 1e-6}))),
        mlp_(register_module("mlp",
                             nn::Sequential(nn::Linear(o.hidden_dim, o.mlp_dim), nn::GELU(), nn::Dropout(o.dropout),
                                            nn::Linear(o.mlp_dim, o.hidden_dim), nn::Dropout(o.dropout)))) {
    register_module("dropout", dropout_);
    for (const std::size_t place : {0, 3}) {
      const nn::Linear& linear = *mlp_[place].as<nn::Linear>();
      nn::init::xavier_uniform_(linear.weight);
      nn::init::normal_(linear.bias, 0, 1e-6);
    }
  }
  Tensor forward(const Tensor& rows, std::int64_t samples) {
    const Tensor x = rows + dropout_(self_attention_.attend_rows(ln_1_(rows), samples));
    return x + mlp_(ln_2_(x));
  }
  using nn::Module::forward;

 private:
  nn::LayerNorm ln_1_;
  nn::MultiheadAttention self_attention_;
  nn::Dropout dropout_;
  nn::LayerNorm ln_2_;
  nn::Sequential mlp_;
};

}  // namespace

class VisionTransformer::Encoder : public nn::Module {
 public:
  Encoder(const VisionTransformerOptions& options, std::int64_t length)
      : dropout_(options.dropout), ln_(options.hidden_dim, {.eps = 1e-6}) {
    const Tensor positions = empty({1, length, options.hidden_dim}, nn::NewModules::options());
    nn::init::normal_(positions, 0, 0.02);
    pos_embedding_ = register_parameter("pos_embedding", positions);
    register_module("dropout", dropout_);
    nn::Sequential layers;
    for (std::int64_t i = 0; i < options.num_layers; ++i) {
      blocks_.emplace_back(options);
      layers.push_back(fmt::format("encoder_layer_{}", i), blocks_.back());
    }
    register_module("layers", layers);
    register_module("ln", ln_);
  }
  // x: [n, l, e].
  Tensor forward(const Tensor& x) override {
    Tensor rows = dropout_(x + pos_embedding_).reshape({x.size(0) * x.size(1), x.size(2)});
    for (EncoderBlock& block : blocks_) rows = block.forward(rows, x.size(0));
    // The classifier looks at the first token alone.
    return ln_(rows.reshape(x.sizes()).select(1, 0));
  }

 private:
  nn::Parameter pos_embedding_;
  nn::Dropout dropout_;
  std::vector<EncoderBlock> blocks_;
  nn::LayerNorm ln_;
};

namespace {

std::int64_t sequence_length(const VisionTransformerOptions& options) {
  if (options.patch_size < 1 || options.image_size < 1 || options.image_size % options.patch_size != 0) {
    throw ValueError(fmt::format("VisionTransformer: an image of {} x {} does not split into patches of {} x {}",
                                 options.image_size, options.image_size, options.patch_size, options.patch_size));
  }
  const std::int64_t side = options.image_size / options.patch_size;
  return side * side + 1;
}

}  // namespace

VisionTransformer::VisionTransformer(const VisionTransformerOptions& options)
    : options_(options),
      conv_proj_(
          nn::Conv2d(options.in_channels, options.hidden_dim, options.patch_size, {.stride = options.patch_size})),
      encoder_(Encoder(options, sequence_length(options))),
      head_(options.hidden_dim, options.num_classes) {
  class_token_ = register_parameter("class_token", zeros({1, 1, options.hidden_dim}, nn::NewModules::options()));
  register_module("conv_proj", conv_proj_);
  register_module("encoder", encoder_);
  register_module("heads", nn::Sequential({{"head", head_}}));
  const nn::Conv2d& projection = *conv_proj_.as<nn::Conv2d>();
  const double fan_in = static_cast<double>(options.in_channels * options.patch_size * options.patch_size);
  nn::init::trunc_normal_(projection.weight, 0, std::sqrt(1 / fan_in));
  nn::init::zeros_(projection.bias);
  nn::init::zeros_(head_.weight);
  nn::init::zeros_(head_.bias);
}

Tensor VisionTransformer::forward(const Tensor& x) {
  if (x.dim() != 4 || x.size(1) != options_.in_channels || x.size(2) != options_.image_size ||
      x.size(3) != options_.image_size) {
    throw ShapeError(fmt::format("VisionTransformer: takes [n, {}, {}, {}], not {}", options_.in_channels,
                                 options_.image_size, options_.image_size, to_string(x.sizes())));
  }
  const Tensor patches = conv_proj_(x).flatten(2).transpose(1, 2);
  const Tensor token = class_token_.to(patches.dtype()).expand({x.size(0), 1, options_.hidden_dim});
  return head_(encoder_(cat({token, patches}, 1)));
}

namespace {

nn::AnyModule make(const ModelOptions& options) {
  const double dropout = options.dropout.value_or(0);
  const VisionTransformerOptions usual;
  return VisionTransformer({.image_size = *options.image_size,
                            .hidden_dim = scaled(options, usual.hidden_dim, usual.num_heads),
                            .mlp_dim = scaled(options, usual.mlp_dim),
                            .dropout = dropout,
                            .attention_dropout = dropout,
                            .in_channels = *options.in_channels,
                            .num_classes = *options.num_classes});
}

const bool registered = register_model({.name = "vit_b_16",
                                        .summary = "vision transformer, base, patches of 16 x 16",
                                        .make = make,
                                        .classifier = "heads.head.weight",
                                        .stem = "conv_proj.weight",
                                        .recipe = {.optimizer = {.name = "adamw", .lr = 1e-4, .weight_decay = 0.05},
                                                   .batch = 16,
                                                   .epochs = 10,
                                                   .warmup = 200},
                                        .benchmark = {.batch = 4}});

}  // namespace
}  // namespace russet::models
