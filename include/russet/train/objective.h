#pragma once
// What training makes small.
#include <russet/functional/options.h>
#include <russet/tensor.h>
#include <cstdint>

namespace russet::train {

enum class Objective : std::uint8_t { cross_entropy, squared_error, mean_output, contrastive, masked_tokens };

struct LossOptions {
  double label_smoothing = 0;  // of cross_entropy and masked_tokens
  double temperature = 0.5;    // of contrastive
  Reduction reduction = Reduction::mean;
};

/// Cross entropy of classes; the squared difference where targets are numbers; the output itself, whatever the target
/// (for benchmarks); nt_xent_loss of the output, whatever the target; or the cross entropy of the tokens whose target
/// is not data::unmasked: output [n, length, words], target [n, length].
Tensor loss_of(Objective objective, const Tensor& output, const Tensor& target, const LossOptions& options = {});

/// SimCLR's loss (Chen et al. 2020): rows 2i and 2i + 1 of `projections`, [2n, width], are two views of one image. The
/// cross entropy, over all other rows, of a row's cosine similarities divided by the temperature, with its other view
/// as the class. Computed in float32 at least. Throws ShapeError for an odd number of rows, ValueError unless the
/// temperature is above 0.
Tensor nt_xent_loss(const Tensor& projections, double temperature = 0.5, Reduction reduction = Reduction::mean);

}  // namespace russet::train
