#pragma once
// Random tensors. The numbers depend on the generator's seed and offset and on the logical position alone.
#include <russet/functional/creation.h>
#include <russet/random.h>
#include <russet/tensor.h>

namespace russet {

// `generator`: nullptr means the device's default one.
/// Uniform numbers in [0, 1). Floating types.
Tensor rand(const Shape& sizes, const TensorOptions& options = {}, Generator* generator = nullptr);
Tensor rand_like(const Tensor& x, const InferredOptions& options = {}, Generator* generator = nullptr);
/// Normal numbers of mean 0 and variance 1. Floating types.
Tensor randn(const Shape& sizes, const TensorOptions& options = {}, Generator* generator = nullptr);
Tensor randn_like(const Tensor& x, const InferredOptions& options = {}, Generator* generator = nullptr);
/// Normal numbers of the given mean and standard deviation.
Tensor normal(double mean, double deviation, const Shape& sizes, const TensorOptions& options = {},
              Generator* generator = nullptr);
/// Integers in [low, high). int64 unless options say otherwise. Throws ValueError unless low < high.
Tensor randint(std::int64_t low, std::int64_t high, const Shape& sizes, const InferredOptions& options = {},
               Generator* generator = nullptr);
Tensor randint(std::int64_t high, const Shape& sizes, const InferredOptions& options = {},
               Generator* generator = nullptr);
/// 0, ..., n - 1 in random order, int64 unless options say otherwise.
Tensor randperm(std::int64_t n, const InferredOptions& options = {}, Generator* generator = nullptr);
/// 1 with the probability that `p` holds at each place, else 0; p's type. Waits for p: throws ValueError if a number is
/// outside of [0, 1].
Tensor bernoulli(const Tensor& p, Generator* generator = nullptr);
/// `count` indices a row, drawn with the probabilities (up to a factor) in the last axis of a vector or matrix. Waits
/// for the weights: throws ValueError if one is negative, infinite or NaN, or a row has none above 0, or
/// fewer of those than are drawn without replacement.
Tensor multinomial(const Tensor& weights, std::int64_t count, bool replacement = false, Generator* generator = nullptr);

// In place.
/// Uniform in [from, to).
const Tensor& uniform_(const Tensor& x, double from = 0, double to = 1, Generator* generator = nullptr);
const Tensor& normal_(const Tensor& x, double mean = 0, double deviation = 1, Generator* generator = nullptr);
const Tensor& bernoulli_(const Tensor& x, double p = 0.5, Generator* generator = nullptr);
const Tensor& exponential_(const Tensor& x, double rate = 1, Generator* generator = nullptr);

}  // namespace russet
