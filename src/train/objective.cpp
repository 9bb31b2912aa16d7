#include <russet/functional.h>
#include <russet/nn_functional.h>
#include <russet/train/objective.h>

namespace russet::train {

Tensor loss_of(Objective objective, const Tensor& output, const Tensor& target, double label_smoothing,
               Reduction reduction) {
  switch (objective) {
    case Objective::mean_output: return mean(output.to(DType::float32));
    case Objective::squared_error: return mse_loss(output.to(DType::float32), target.to(DType::float32), reduction);
    case Objective::cross_entropy: break;
  }
  return cross_entropy(output, target, {.reduction = reduction, .label_smoothing = label_smoothing});
}

}  // namespace russet::train
