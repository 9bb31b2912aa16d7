#pragma once
// Normalisations. Weights start as ones, biases as zeros.
#include <russet/nn/module.h>

namespace russet::nn {

struct BatchNormOptions {
  double eps = 1e-5;
  /// The share of the batch's statistics in the new running ones.
  double momentum = 0.1;
  bool affine = true;
  /// Without: the batch's statistics in evaluation too.
  bool track_running_stats = true;
};

/// Normalises each channel: by the batch's statistics in training, by the running ones in evaluation.
class BatchNorm : public Module {
 public:
  Tensor forward(const Tensor& x) override;
  double momentum() const { return options_.momentum; }

  Parameter weight;  // [channels], as are the next three
  Parameter bias;
  Parameter running_mean;
  Parameter running_var;
  Parameter num_batches_tracked;  // [], int64

 protected:
  BatchNorm(std::int64_t channels, const BatchNormOptions& options, const char* name, int least_rank, int most_rank);

 private:
  BatchNormOptions options_;
  const char* name_;
  int least_rank_;
  int most_rank_;
};

/// Of [n, c] or [n, c, l].
class BatchNorm1d : public BatchNorm {
 public:
  explicit BatchNorm1d(std::int64_t channels, const BatchNormOptions& options = {})
      : BatchNorm(channels, options, "BatchNorm1d", 2, 3) {}
};

/// Of [n, c, h, w].
class BatchNorm2d : public BatchNorm {
 public:
  explicit BatchNorm2d(std::int64_t channels, const BatchNormOptions& options = {})
      : BatchNorm(channels, options, "BatchNorm2d", 4, 4) {}
};

struct LayerNormOptions {
  double eps = 1e-5;
  bool elementwise_affine = true;
  bool bias = true;
};
/// Normalises over the last axes, of sizes `normalized_shape`.
class LayerNorm : public Module {
 public:
  explicit LayerNorm(const Shape& normalized_shape, const LayerNormOptions& options = {});
  explicit LayerNorm(std::int64_t width, const LayerNormOptions& options = {}) : LayerNorm(Shape{width}, options) {}
  Tensor forward(const Tensor& x) override;

  Parameter weight;
  Parameter bias;

 private:
  Shape shape_;
  double eps_;
};

struct GroupNormOptions {
  double eps = 1e-5;
  bool affine = true;
};
/// Normalises groups of channels of each sample. x: [n, channels, ...].
class GroupNorm : public Module {
 public:
  GroupNorm(std::int64_t groups, std::int64_t channels, const GroupNormOptions& options = {});
  Tensor forward(const Tensor& x) override;

  Parameter weight;
  Parameter bias;

 private:
  std::int64_t groups_;
  double eps_;
};

struct LocalResponseNormOptions {
  double alpha = 1e-4;
  double beta = 0.75;
  double k = 1;
};
/// Divides by a power of the mean square of `size` neighbouring channels.
class LocalResponseNorm : public Module {
 public:
  explicit LocalResponseNorm(std::int64_t size, const LocalResponseNormOptions& options = {})
      : size_(size), options_(options) {}
  Tensor forward(const Tensor& x) override;

 private:
  std::int64_t size_;
  LocalResponseNormOptions options_;
};

}  // namespace russet::nn
