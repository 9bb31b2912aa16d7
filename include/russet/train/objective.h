#pragma once
// What training makes small.
#include <russet/functional/options.h>
#include <russet/tensor.h>
#include <cstdint>

namespace russet::train {

enum class Objective : std::uint8_t { cross_entropy, squared_error, mean_output };

/// Cross entropy of classes; the squared difference where targets are numbers; or the output itself, whatever the
/// target (for benchmarks).
Tensor loss_of(Objective objective, const Tensor& output, const Tensor& target, double label_smoothing = 0,
               Reduction reduction = Reduction::mean);

}  // namespace russet::train
