// Gradient clipping.
#include <fmt/format.h>
#include <russet/autocast.h>
#include <russet/autograd.h>
#include <russet/functional.h>
#include <russet/optim/clip.h>

#include <cmath>

namespace russet::optim {
namespace {

std::vector<Tensor> gradients_of(const std::vector<Tensor>& parameters) {
  std::vector<Tensor> gradients;
  for (const Tensor& parameter : parameters) {
    if (const Tensor gradient = parameter.grad(); gradient.defined()) gradients.push_back(gradient.detach());
  }
  return gradients;
}

/// The power of the norm that a tensor adds to the sum.
Tensor term(const Tensor& gradient, double power) {
  if (power == 2) return sum(gradient * gradient);
  if (power == 1) return sum(abs(gradient));
  return sum(pow(abs(gradient), power));
}

Tensor total_norm(const std::vector<Tensor>& gradients, double power) {
  const bool largest = std::isinf(power);
  Tensor total;
  for (const Tensor& gradient : gradients) {
    const Tensor next = largest ? amax(abs(gradient)) : term(gradient, power);
    if (!total.defined()) {
      total = next;
    } else {
      total = largest ? maximum(total, next.to(total.device())) : total + next.to(total.device());
    }
  }
  if (largest || power == 1) return total;
  return power == 2 ? sqrt(total) : pow(total, 1 / power);
}

}  // namespace

Tensor clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm, double norm_type) {
  if (!(norm_type > 0)) throw ValueError(fmt::format("clip_grad_norm_: a norm of type {}", norm_type));
  if (!(max_norm >= 0)) throw ValueError(fmt::format("clip_grad_norm_: a largest norm of {}", max_norm));
  const NoGrad guard;
  const Autocast full_precision(DType::bfloat16, false);
  const std::vector<Tensor> gradients = gradients_of(parameters);
  if (gradients.empty()) return scalar_tensor(0.0);
  const Tensor total = total_norm(gradients, norm_type);
  const Tensor factor = clamp_max(max_norm / (total + 1e-6), 1.0);
  for (const Tensor& gradient : gradients) gradient.mul_(factor.to(gradient.device()));
  return total;
}

void clip_grad_value_(const std::vector<Tensor>& parameters, double limit) {
  if (!(limit >= 0)) throw ValueError(fmt::format("clip_grad_value_: a limit of {}", limit));
  const NoGrad guard;
  for (const Tensor& gradient : gradients_of(parameters)) gradient.clamp_(-limit, limit);
}

}  // namespace russet::optim
