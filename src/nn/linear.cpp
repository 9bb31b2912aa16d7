// Linear layers and lookups.
#include <fmt/format.h>
#include <russet/functional.h>
#include <russet/nn/linear.h>
#include <russet/nn_functional.h>

#include "new_parameters.h"

namespace russet::nn {

Linear::Linear(std::int64_t in_features, std::int64_t out_features, bool with_bias) {
  if (in_features < 0 || out_features < 0) {
    throw ValueError(fmt::format("Linear: {} inputs and {} outputs", in_features, out_features));
  }
  const double bound = default_bound(in_features);
  weight = register_parameter("weight", new_uniform({out_features, in_features}, bound));
  bias = register_parameter("bias", with_bias ? new_uniform({out_features}, bound) : Tensor());
}

Tensor Linear::forward(const Tensor& x) {
  if (x.dim() <= 2) return linear(x, weight, bias);
  // One matrix product for all rows: bias and activation stay next to it.
  Shape sizes = x.sizes();
  const std::int64_t width = sizes.back();
  if (width != weight.size(1)) return linear(x, weight, bias);  // says what does not fit
  sizes.pop_back();
  const std::int64_t rows = numel(sizes);
  sizes.push_back(weight.size(0));
  return linear(x.reshape({rows, width}), weight, bias).reshape(sizes);
}

Bilinear::Bilinear(std::int64_t in1_features, std::int64_t in2_features, std::int64_t out_features, bool with_bias) {
  if (in1_features < 1 || in2_features < 0 || out_features < 0) {
    throw ValueError(fmt::format("Bilinear: {} and {} inputs, {} outputs", in1_features, in2_features, out_features));
  }
  const double bound = default_bound(in1_features);
  weight = register_parameter("weight", new_uniform({out_features, in1_features, in2_features}, bound));
  bias = register_parameter("bias", with_bias ? new_uniform({out_features}, bound) : Tensor());
}

Tensor Bilinear::forward(const Tensor& x1, const Tensor& x2) {
  const Tensor y = einsum("...i,oij,...j->...o", {x1, weight, x2});
  return bias.defined() ? y + bias : y;
}

Tensor Bilinear::operator()(const Tensor& x1, const Tensor& x2) {
  const Tensor inputs[] = {x1, x2};
  return Module::operator()(inputs);
}

Tensor Bilinear::forward_all(std::span<const Tensor> inputs) {
  if (inputs.size() == 2) return forward(inputs[0], inputs[1]);
  throw ValueError(fmt::format("Bilinear: takes two inputs, not {}", inputs.size()));
}

namespace {

/// The table of an embedding, with zeros in the row that is padding.
Tensor new_rows(const char* module, std::int64_t entries, std::int64_t width, std::optional<std::int64_t> padding) {
  if (entries < 0 || width < 0) throw ValueError(fmt::format("{}: {} entries of {} numbers", module, entries, width));
  if (padding && (*padding < -entries || *padding >= entries)) {
    throw ValueError(fmt::format("{}: padding_idx {} is outside {} entries", module, *padding, entries));
  }
  const Tensor made = empty({entries, width}, NewModules::options());
  init::normal_(made);
  if (padding) made.select(0, *padding).zero_();
  return made;
}

}  // namespace

Embedding::Embedding(std::int64_t num_embeddings, std::int64_t embedding_dim, const EmbeddingOptions& options)
    : options_(options) {
  weight = register_parameter("weight", new_rows("Embedding", num_embeddings, embedding_dim, options_.padding_idx));
}

Tensor Embedding::forward(const Tensor& indices) {
  return embedding(indices, weight, options_.padding_idx, options_.max_norm, options_.norm_type);
}

EmbeddingBag::EmbeddingBag(std::int64_t num_embeddings, std::int64_t embedding_dim, const EmbeddingBagOptions& options)
    : options_(options) {
  weight = register_parameter("weight", new_rows("EmbeddingBag", num_embeddings, embedding_dim, options_.padding_idx));
}

Tensor EmbeddingBag::forward(const Tensor& indices, const Tensor& offsets, const Tensor& per_sample_weights) {
  return embedding_bag(indices, weight, offsets, options_.max_norm, options_.norm_type,
                       {.mode = options_.mode,
                        .per_sample_weights = per_sample_weights,
                        .include_last_offset = options_.include_last_offset,
                        .padding_idx = options_.padding_idx});
}

Tensor EmbeddingBag::operator()(const Tensor& indices, const Tensor& offsets, const Tensor& per_sample_weights) {
  return call(std::span(&indices, 1),
              [&](std::span<const Tensor> inputs) { return forward(inputs.front(), offsets, per_sample_weights); });
}

Tensor Unflatten::forward(const Tensor& x) { return unflatten(x, axis_, sizes_); }

}  // namespace russet::nn
