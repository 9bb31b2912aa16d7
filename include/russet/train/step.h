#pragma once
// A step of training, as runs take it and forecasts of their memory foresee it.
#include <russet/data/loader.h>
#include <russet/models/registry.h>
#include <russet/optim.h>
#include <russet/random.h>
#include <russet/tensor.h>
#include <functional>
#include <vector>

namespace russet::train {

/// Takes all parameters but the classifier's out of training: they get no gradients, so that nothing is kept for these.
/// Returns the classifier's parameters. Throws ValueError for a model that has no classifier.
std::vector<Tensor> freeze_encoder(const models::Model& model);

/// The scaler of training with matrix work in `precision`: enabled for float16.
amp::GradScaler scaler_for(DType precision);
/// Adds the gradients, scaled, of a part of a step. `loss`: the mean of the part's samples' losses; `share`: how many
/// of the step's samples they are, from 0 to 1.
void add_gradients(const Tensor& loss, double share, amp::GradScaler& scaler);

/// A batch that is computed in parts, one after the other, because there is no memory for the whole. Of a loss that is
/// a mean over samples, the parts' gradients add up to the batch's, by their shares.
class BatchParts {
 public:
  using Work = std::function<void(const data::Batch& part, double share)>;

  /// `samples`: of a part, at most; the parts are as equal as can be.
  BatchParts(data::Batch batch, std::int64_t samples);
  std::int64_t count() const { return count_; }
  /// Calls `work` with a part and its share of the batch. Random functions on the batch's device draw the numbers that
  /// they draw for these samples in the whole batch (RandomPart); each part must draw as often as the others.
  void with(std::int64_t part, const Work& work) const;

 private:
  data::Batch batch_;
  std::int64_t count_;
  Generator::State before_;  // of the device's generator
};
/// The last part of a step, which `add_last_part` records with its gradients, and the update, as one plan. Gradients
/// are clipped to a norm of `clip_grad` if that is above 0, and dropped at the end. Without an optimizer they stay.
void finish_step(optim::Optimizer* optimizer, amp::GradScaler& scaler, double clip_grad,
                 const std::vector<Tensor>& parameters, const std::function<void()>& add_last_part);

}  // namespace russet::train
