// Averaged models.
#include <fmt/format.h>
#include <russet/autocast.h>
#include <russet/autograd.h>
#include <russet/functional.h>
#include <russet/nn/normalization.h>
#include <russet/optim/swa.h>
#include <russet/runtime.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace russet::optim {

AverageFunction get_ema_avg_fn(double decay) {
  if (!(decay >= 0 && decay <= 1)) {
    throw ValueError(fmt::format("get_ema_avg_fn: decay is {}, which is not in [0, 1]", decay));
  }
  return [decay](const Tensor& averaged, const Tensor& current, const Tensor&) {
    return averaged * decay + current * (1 - decay);
  };
}

AverageFunction get_swa_avg_fn() {
  return [](const Tensor& averaged, const Tensor& current, const Tensor& num_averaged) {
    return averaged + (current - averaged) / (num_averaged + 1);
  };
}

AveragedModel::AveragedModel(const AveragedModelOptions& options, nn::AnyModule copy)
    : module(std::move(copy)),
      avg_fn_(options.avg_fn ? options.avg_fn : get_swa_avg_fn()),
      use_buffers_(options.use_buffers) {
  if (options.device) module.to(*options.device);
  const std::vector<Tensor> all = module.parameters();
  const Device device = all.empty() ? options.device.value_or(Device{}) : all[0].device();
  n_averaged = register_buffer("n_averaged", zeros({}, {DType::int64, device}));
  module = register_module("module", module);
}

void AveragedModel::update_parameters(const nn::Module& model) {
  const NoGrad guard;
  const Autocast full_precision(DType::bfloat16, false);
  const std::vector<Tensor> averages[] = {module.parameters(), module.buffers()};
  const std::vector<Tensor> currents[] = {model.parameters(), model.buffers()};
  for (const std::size_t kind : {0, 1}) {
    if (averages[kind].size() != currents[kind].size()) {
      throw ValueError(fmt::format("AveragedModel: the model has {} {}, the average {}", currents[kind].size(),
                                   kind == 0 ? "parameters" : "buffers", averages[kind].size()));
    }
    for (std::size_t i = 0; i < averages[kind].size(); ++i) {
      Tensor averaged = averages[kind][i];
      const Tensor current = currents[kind][i].detach().to(averaged.device());
      if (kind == 1 && !use_buffers_) {
        averaged.copy_(current);
        continue;
      }
      const Tensor count = n_averaged.to(averaged.device());
      const Tensor next = avg_fn_(averaged.detach(), current, count).to(averaged.dtype());
      averaged.copy_(where(count == 0, current.to(averaged.dtype()), next));
    }
  }
  n_averaged.add_(1);
  mark();
}

BatchNormUpdate::BatchNormUpdate(nn::Module& model) : model_(model), training_(model, true) {
  model.apply([&](nn::Module& inside) {
    const auto* norm = dynamic_cast<const nn::BatchNorm*>(&inside);
    if (norm == nullptr || !norm->running_mean.defined()) return;
    if (norm->momentum() == 0) throw ValueError("update_bn: a batch norm of momentum 0 never learns its statistics");
    norms_.push_back({norm->running_mean, norm->running_var, norm->momentum(), {}, {}});
    const NoGrad guard;
    Tensor(norm->running_mean).zero_();
    Tensor(norm->running_var).fill_(1);
    Tensor(norm->num_batches_tracked).zero_();
  });
}

void BatchNormUpdate::add(const Tensor& input) {
  const NoGrad guard;
  // Running statistics that start at zero are the batch's, times the momentum.
  for (Norm& norm : norms_) {
    norm.mean.zero_();
    norm.var.zero_();
  }
  model_(input);
  ++batches_;
  const double share = 1 / static_cast<double>(batches_);
  for (Norm& norm : norms_) {
    const Tensor mean = norm.mean / norm.momentum;
    const Tensor var = norm.var / norm.momentum;
    norm.mean_of_all = batches_ == 1 ? mean : norm.mean_of_all + (mean - norm.mean_of_all) * share;
    norm.var_of_all = batches_ == 1 ? var : norm.var_of_all + (var - norm.var_of_all) * share;
    norm.mean.copy_(norm.mean_of_all);
    norm.var.copy_(norm.var_of_all);
  }
  mark();
}

SWALR::SWALR(Optimizer& optimizer, const SWALROptions& options) : LRScheduler(optimizer), options_(options) {
  options.swa_lr.check("SWALR", "swa_lr", optimizer);
  if (options.anneal_epochs < 0) throw ValueError(fmt::format("SWALR: anneal_epochs is {}", options.anneal_epochs));
  start();
}

double SWALR::part(std::int64_t steps) const {
  const auto all = static_cast<double>(std::max<std::int64_t>(1, options_.anneal_epochs));
  const double t = std::clamp(static_cast<double>(steps) / all, 0.0, 1.0);
  return options_.anneal_strategy == Anneal::linear ? t : (1 - std::cos(std::numbers::pi * t)) / 2;
}

double SWALR::get_lr(std::size_t group) const {
  const std::int64_t steps = std::max<std::int64_t>(step_count() - 1, options_.anneal_epochs == 0 ? 1 : 0);
  const double swa_lr = options_.swa_lr[group];
  const double before = part(steps - 1);
  const double now = part(steps);
  // The rate that annealing started from, told from the one that is set.
  const double first = before == 1 ? swa_lr : (optimizer().lr(group) - before * swa_lr) / (1 - before);
  return swa_lr * now + first * (1 - now);
}

}  // namespace russet::optim
