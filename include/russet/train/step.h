#pragma once
// A step of training, as runs take it and forecasts of their memory foresee it.
#include <russet/models/registry.h>
#include <russet/optim.h>
#include <russet/tensor.h>
#include <functional>
#include <vector>

namespace russet::train {

/// Takes all parameters but the classifier's out of training: they get no gradients, so that nothing is kept for these.
/// Returns the classifier's parameters. Throws ValueError for a model that has no classifier.
std::vector<Tensor> freeze_encoder(const models::Model& model);

/// The scaler of training with matrix work in `precision`: enabled for float16.
amp::GradScaler scaler_for(DType precision);
/// Adds the gradients, scaled, of one of a step's `parts`, whose losses count alike. `loss`: of the part, the mean of
/// its samples' losses.
void add_gradients(const Tensor& loss, std::int64_t parts, amp::GradScaler& scaler);
/// The last part of a step, which `add_last_part` records with its gradients, and the update, as one plan. Gradients
/// are clipped to a norm of `clip_grad` if that is above 0, and dropped at the end. Without an optimizer they stay.
void finish_step(optim::Optimizer* optimizer, amp::GradScaler& scaler, double clip_grad,
                 const std::vector<Tensor>& parameters, const std::function<void()>& add_last_part);

}  // namespace russet::train
