#pragma once
// Convolutions. Initial values: uniform within 1 / sqrt(fan_in).
#include <russet/functional/nn_convolution.h>
#include <russet/nn/module.h>

namespace russet::nn {

struct Conv1dOptions {
  std::int64_t stride = 1;
  ConvPadding padding = 0;
  std::int64_t dilation = 1;
  std::int64_t groups = 1;
  bool bias = true;
};
/// [n, in, l] to [n, out, l']. weight: [out, in / groups, kernel].
class Conv1d : public Module {
 public:
  /// Throws ValueError unless both numbers of channels split into the groups.
  Conv1d(std::int64_t in_channels, std::int64_t out_channels, std::int64_t kernel, const Conv1dOptions& options = {});
  Tensor forward(const Tensor& x) override;

  Parameter weight;
  Parameter bias;

 private:
  russet::Conv1dOptions options_;
};

struct Conv2dOptions {
  Size2 stride = 1;
  ConvPadding padding = 0;
  Size2 dilation = 1;
  std::int64_t groups = 1;
  bool bias = true;
};
/// [n, in, h, w] to [n, out, h', w']. weight: [out, in / groups, kh, kw].
class Conv2d : public Module {
 public:
  /// Throws ValueError unless both numbers of channels split into the groups.
  Conv2d(std::int64_t in_channels, std::int64_t out_channels, Size2 kernel, const Conv2dOptions& options = {});
  Tensor forward(const Tensor& x) override;

  Parameter weight;
  Parameter bias;

 private:
  russet::Conv2dOptions options_;
};

struct Conv3dOptions {
  Size3 stride = 1;
  ConvPadding3 padding = 0;
  Size3 dilation = 1;
  std::int64_t groups = 1;
  bool bias = true;
};
/// [n, in, d, h, w] to [n, out, d', h', w']. weight: [out, in / groups, kd, kh, kw].
class Conv3d : public Module {
 public:
  /// Throws ValueError unless both numbers of channels split into the groups.
  Conv3d(std::int64_t in_channels, std::int64_t out_channels, Size3 kernel, const Conv3dOptions& options = {});
  Tensor forward(const Tensor& x) override;

  Parameter weight;
  Parameter bias;

 private:
  russet::Conv3dOptions options_;
};

struct ConvTranspose1dOptions {
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  std::int64_t output_padding = 0;
  std::int64_t groups = 1;
  bool bias = true;
  std::int64_t dilation = 1;
};
/// [n, in, l] to [n, out, l'], where conv1d would go from l' to l. weight: [in, out / groups, kernel].
class ConvTranspose1d : public Module {
 public:
  /// Throws ValueError unless both numbers of channels split into the groups.
  ConvTranspose1d(std::int64_t in_channels, std::int64_t out_channels, std::int64_t kernel,
                  const ConvTranspose1dOptions& options = {});
  Tensor forward(const Tensor& x) override;
  /// With the output padding that gives an output of this size. Throws ValueError if none below the stride does.
  Tensor forward(const Tensor& x, std::int64_t output_size);
  using Module::operator();
  Tensor operator()(const Tensor& x, std::int64_t output_size);

  Parameter weight;
  Parameter bias;

 private:
  russet::ConvTranspose1dOptions options_;
};

struct ConvTranspose2dOptions {
  Size2 stride = 1;
  Size2 padding = 0;
  Size2 output_padding = 0;
  std::int64_t groups = 1;
  bool bias = true;
  Size2 dilation = 1;
};
/// [n, in, h, w] to [n, out, h', w'], where conv2d would go from h' to h. weight: [in, out / groups, kh, kw].
class ConvTranspose2d : public Module {
 public:
  /// Throws ValueError unless both numbers of channels split into the groups.
  ConvTranspose2d(std::int64_t in_channels, std::int64_t out_channels, Size2 kernel,
                  const ConvTranspose2dOptions& options = {});
  Tensor forward(const Tensor& x) override;
  /// With the output padding that gives an output of this size. Throws ValueError if none below the stride does.
  Tensor forward(const Tensor& x, Size2 output_size);
  using Module::operator();
  Tensor operator()(const Tensor& x, Size2 output_size);

  Parameter weight;
  Parameter bias;

 private:
  russet::ConvTranspose2dOptions options_;
};

struct ConvTranspose3dOptions {
  Size3 stride = 1;
  Size3 padding = 0;
  Size3 output_padding = 0;
  std::int64_t groups = 1;
  bool bias = true;
  Size3 dilation = 1;
};
/// [n, in, d, h, w] to [n, out, d', h', w'], where conv3d would go from d' to d. weight: [in, out / groups, kd, kh,
/// kw].
class ConvTranspose3d : public Module {
 public:
  /// Throws ValueError unless both numbers of channels split into the groups.
  ConvTranspose3d(std::int64_t in_channels, std::int64_t out_channels, Size3 kernel,
                  const ConvTranspose3dOptions& options = {});
  Tensor forward(const Tensor& x) override;
  /// With the output padding that gives an output of this size. Throws ValueError if none below the stride does.
  Tensor forward(const Tensor& x, Size3 output_size);
  using Module::operator();
  Tensor operator()(const Tensor& x, Size3 output_size);

  Parameter weight;
  Parameter bias;

 private:
  russet::ConvTranspose3dOptions options_;
};

}  // namespace russet::nn
