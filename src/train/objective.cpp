#include <fmt/format.h>
#include <russet/autocast.h>
#include <russet/data/masked_tokens.h>
#include <russet/error.h>
#include <russet/functional.h>
#include <russet/nn_functional.h>
#include <russet/operators.h>
#include <russet/train/objective.h>

#include <limits>

namespace russet::train {

Tensor loss_of(Objective objective, const Tensor& output, const Tensor& target, const LossOptions& options) {
  switch (objective) {
    case Objective::mean_output: return mean(output.to(DType::float32));
    case Objective::squared_error:
      return mse_loss(output.to(DType::float32), target.to(DType::float32), options.reduction);
    case Objective::contrastive: return nt_xent_loss(output, options.temperature, options.reduction);
    case Objective::masked_tokens:
    case Objective::cross_entropy: break;
  }
  const CrossEntropyOptions entropy{
      .ignore_index = data::unmasked, .reduction = options.reduction, .label_smoothing = options.label_smoothing};
  if (objective == Objective::cross_entropy) return cross_entropy(output, target, entropy);
  return cross_entropy(output.flatten(0, 1), target.flatten(), entropy);
}

Tensor nt_xent_loss(const Tensor& projections, double temperature, Reduction reduction) {
  if (projections.dim() != 2 || projections.size(0) < 2 || projections.size(0) % 2 != 0) {
    throw ShapeError(fmt::format("nt_xent_loss: projections are [2n, width], two rows for each image, not {}",
                                 to_string(projections.sizes())));
  }
  if (!(temperature > 0))
    throw ValueError(fmt::format("nt_xent_loss: the temperature is not above 0: {}", temperature));
  const Autocast off(DType::bfloat16, false);
  const bool wide = projections.dtype() == DType::float64;
  const Tensor rows = normalize(wide ? projections : projections.to(DType::float32));
  const std::int64_t count = rows.size(0);
  InferredOptions place;
  place.device = rows.device();
  const Tensor numbers = arange(count, place);
  const Tensor itself = eq(numbers.unsqueeze(1), numbers);
  const Tensor similarity = matmul(rows, rows.t()) * (1 / temperature);
  const Tensor others = masked_fill(similarity, itself, -std::numeric_limits<double>::infinity());
  return cross_entropy(others, bitwise_xor(numbers, 1), {.reduction = reduction});
}

}  // namespace russet::train
