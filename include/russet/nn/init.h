#pragma once
// Initial values. All functions write in place, outside the tape, and return their tensor.
#include <russet/random.h>
#include <russet/tensor.h>
#include <cstdint>
#include <utility>

namespace russet::nn::init {

enum class Nonlinearity : std::uint8_t { linear, conv, sigmoid, tanh, relu, leaky_relu, selu };
enum class Fan : std::uint8_t { in, out };

/// The factor by which the standard deviation grows to make up for an activation. `slope` is leaky_relu's.
double gain_of(Nonlinearity nonlinearity, double slope = 0.01);
/// {in, out}: how many inputs an output depends on, and the reverse. weight: [out, in, kernel...]. Throws ShapeError
/// for fewer than two axes.
std::pair<std::int64_t, std::int64_t> fans_of(const Tensor& weight);

const Tensor& constant_(const Tensor& x, double value);
const Tensor& zeros_(const Tensor& x);
const Tensor& ones_(const Tensor& x);
/// Ones on the diagonal of a matrix, zeros elsewhere.
const Tensor& eye_(const Tensor& x);
const Tensor& uniform_(const Tensor& x, double low = 0, double high = 1, Generator* generator = nullptr);
const Tensor& normal_(const Tensor& x, double mean = 0, double std = 1, Generator* generator = nullptr);
/// Normal numbers, drawn again outside [low, high].
const Tensor& trunc_normal_(const Tensor& x, double mean = 0, double std = 1, double low = -2, double high = 2,
                            Generator* generator = nullptr);

/// Uniform within gain * sqrt(6 / (in + out)); normal of standard deviation gain * sqrt(2 / (in + out)). Glorot, Bengio
/// 2010.
const Tensor& xavier_uniform_(const Tensor& x, double gain = 1, Generator* generator = nullptr);
const Tensor& xavier_normal_(const Tensor& x, double gain = 1, Generator* generator = nullptr);

struct KaimingOptions {
  /// The slope of leaky_relu.
  double a = 0;
  Fan mode = Fan::in;
  Nonlinearity nonlinearity = Nonlinearity::leaky_relu;
  Generator* generator = nullptr;
};
/// Uniform within gain * sqrt(3 / fan); normal of standard deviation gain / sqrt(fan). He et al. 2015.
const Tensor& kaiming_uniform_(const Tensor& x, const KaimingOptions& options = {});
const Tensor& kaiming_normal_(const Tensor& x, const KaimingOptions& options = {});

}  // namespace russet::nn::init
