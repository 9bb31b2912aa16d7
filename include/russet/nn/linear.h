#pragma once
// Linear layers, lookups, and layers that only rearrange.
#include <russet/nn/module.h>
#include <optional>

namespace russet::nn {

/// x W^T + bias. x: [..., in]; weight: [out, in]; bias: [out]. Initial values: uniform within 1 / sqrt(in).
class Linear : public Module {
 public:
  Linear(std::int64_t in_features, std::int64_t out_features, bool bias = true);
  /// Throws ShapeError unless x's last axis is in_features. Returns [..., out].
  Tensor forward(const Tensor& x) override;

  Parameter weight;
  Parameter bias;
};

/// x1 A x2 + bias, for each output. weight: [out, in1, in2].
class Bilinear : public Module {
 public:
  Bilinear(std::int64_t in1_features, std::int64_t in2_features, std::int64_t out_features, bool bias = true);
  using Module::forward;
  Tensor forward(const Tensor& x1, const Tensor& x2);
  Tensor forward_all(std::span<const Tensor> inputs) override;
  Tensor operator()(const Tensor& x1, const Tensor& x2);

  Parameter weight;
  Parameter bias;
};

struct EmbeddingOptions {
  /// The row of this index starts as zeros and gets no gradient. Negative: from the end.
  std::optional<std::int64_t> padding_idx{};
  /// Rows whose norm of this type exceeds max_norm are scaled down to it when they are read.
  std::optional<double> max_norm{};
  double norm_type = 2;
};
/// Rows of weight: [entries, width] at integer indices. Initial values: normal.
class Embedding : public Module {
 public:
  Embedding(std::int64_t num_embeddings, std::int64_t embedding_dim, const EmbeddingOptions& options = {});
  /// indices: any shape. Returns [..., width].
  Tensor forward(const Tensor& indices) override;

  Parameter weight;

 private:
  EmbeddingOptions options_;
};

struct EmbeddingBagOptions {
  EmbeddingBagMode mode = EmbeddingBagMode::mean;
  std::optional<double> max_norm{};
  double norm_type = 2;
  bool include_last_offset = false;
  /// The row of this index starts as zeros and does not count. Negative: from the end.
  std::optional<std::int64_t> padding_idx{};
};
/// Rows of weight: [entries, width] at the indices of each bag, combined. Initial values: normal.
class EmbeddingBag : public Module {
 public:
  EmbeddingBag(std::int64_t num_embeddings, std::int64_t embedding_dim, const EmbeddingBagOptions& options = {});
  /// indices: [bags, size]. Returns [bags, width].
  Tensor forward(const Tensor& indices) override { return forward(indices, {}); }
  /// indices: a vector, with the offsets of the bags in it; or as above, without.
  Tensor forward(const Tensor& indices, const Tensor& offsets, const Tensor& per_sample_weights = {});
  Tensor operator()(const Tensor& indices, const Tensor& offsets = {}, const Tensor& per_sample_weights = {});

  Parameter weight;

 private:
  EmbeddingBagOptions options_;
};

/// Axes start to end as one.
class Flatten : public Module {
 public:
  explicit Flatten(std::int64_t start = 1, std::int64_t end = -1) : start_(start), end_(end) {}
  Tensor forward(const Tensor& x) override { return x.flatten(start_, end_); }

 private:
  std::int64_t start_;
  std::int64_t end_;
};

/// One axis as several.
class Unflatten : public Module {
 public:
  Unflatten(std::int64_t axis, const Shape& sizes) : axis_(axis), sizes_(sizes) {}
  Tensor forward(const Tensor& x) override;

 private:
  std::int64_t axis_;
  Shape sizes_;
};

/// Its input.
class Identity : public Module {
 public:
  Tensor forward(const Tensor& x) override { return x; }
};

}  // namespace russet::nn
