#include <fmt/format.h>
#include <russet/autocast.h>
#include <russet/autograd.h>
#include <russet/functional/comparison.h>
#include <russet/functional/elementwise.h>
#include <russet/functional/movement.h>
#include <russet/functional/reduction.h>
#include <russet/optim/grad_scaler.h>

namespace russet::amp {
namespace {

std::vector<Tensor> gradients_of(const optim::Optimizer& optimizer) {
  std::vector<Tensor> gradients;
  for (const Tensor& parameter : optimizer.all_parameters()) {
    const Tensor gradient = parameter.grad();
    if (!gradient.defined() || gradient.numel() == 0) continue;
    if (gradient.dtype() == DType::float16) {
      throw ValueError("GradScaler: gradients in float16 cannot be unscaled; parameters should be in float32");
    }
    gradients.push_back(gradient.detach());
  }
  return gradients;
}

}  // namespace

GradScaler::GradScaler(const GradScalerOptions& options) : options_(options), start_(options.init_scale) {
  if (!options.enabled) return;
  if (!(options.growth_factor > 1)) {
    throw ValueError(fmt::format("GradScaler: growth_factor is {}, which is not above 1", options.growth_factor));
  }
  if (!(options.backoff_factor < 1)) {
    throw ValueError(fmt::format("GradScaler: backoff_factor is {}, which is not below 1", options.backoff_factor));
  }
}

void GradScaler::make_cells(Device device) {
  if (scale_.defined()) return;
  scale_ = Tensor::from<float>({static_cast<float>(start_)}, {}, device);
  growth_tracker_ = Tensor::from<std::int32_t>({static_cast<std::int32_t>(tracker_start_)}, {}, device);
}

Tensor GradScaler::scale(const Tensor& outputs) {
  if (!options_.enabled) return outputs;
  make_cells(outputs.device());
  return outputs * scale_.to(outputs.device());
}

std::vector<Tensor> GradScaler::scale(const std::vector<Tensor>& outputs) {
  std::vector<Tensor> scaled;
  scaled.reserve(outputs.size());
  for (const Tensor& output : outputs) scaled.push_back(scale(output));
  return scaled;
}

void GradScaler::unscale_(optim::Optimizer& optimizer) {
  if (!options_.enabled) return;
  if (!scale_.defined()) throw ValueError("GradScaler: unscale_() before anything was scaled");
  if (const auto done = progress_.find(&optimizer); done != progress_.end()) {
    throw ValueError(done->second.stage == Stage::unscaled
                         ? "GradScaler: unscale_() was called before for this optimizer since the last update()"
                         : "GradScaler: unscale_() after step()");
  }
  const NoGrad guard;
  const Autocast full_precision(DType::bfloat16, false);
  const Tensor inverse = reciprocal(scale_);
  Tensor largest;
  for (const Tensor& gradient : gradients_of(optimizer)) {
    // NaN is the largest of all.
    const Tensor next = amax(abs(gradient)).to(scale_.device());
    largest = largest.defined() ? maximum(largest, next) : next;
    gradient.mul_(inverse.to(gradient.device()));
  }
  Progress& progress = progress_[&optimizer];
  if (largest.defined()) progress.found_inf = logical_not(isfinite(largest)).to(DType::float32);
}

void GradScaler::step(optim::Optimizer& optimizer) {
  if (!options_.enabled) return optimizer.step();
  if (!progress_.contains(&optimizer)) unscale_(optimizer);
  Progress& progress = progress_[&optimizer];
  if (progress.stage == Stage::stepped) {
    throw ValueError("GradScaler: step() was called before for this optimizer since the last update()");
  }
  if (!progress.found_inf.defined()) throw ValueError("GradScaler: no parameter of the optimizer has a gradient");
  optimizer.step_unless(progress.found_inf);
  progress.stage = Stage::stepped;
}

void GradScaler::update(std::optional<double> new_scale) {
  if (!options_.enabled) return;
  if (!scale_.defined()) throw ValueError("GradScaler: update() before anything was scaled");
  const NoGrad guard;
  const Autocast full_precision(DType::bfloat16, false);
  if (new_scale) {
    scale_.fill_(*new_scale);
    progress_.clear();
    return;
  }
  Tensor found;
  for (const auto& [optimizer, progress] : progress_) {
    if (!progress.found_inf.defined()) continue;
    found = found.defined() ? maximum(found, progress.found_inf) : progress.found_inf;
  }
  if (!found.defined()) throw ValueError("GradScaler: update() without a step before it");
  const Tensor overflowed = found > 0;
  const Tensor successes = growth_tracker_ + 1;
  const Tensor is_due = successes >= options_.growth_interval;
  const Tensor grown = scale_ * options_.growth_factor;
  const Tensor kept = where(logical_and(is_due, isfinite(grown)), grown, scale_);
  scale_.copy_(where(overflowed, scale_ * options_.backoff_factor, kept));
  growth_tracker_.copy_(where(logical_or(overflowed, is_due), 0, successes));
  progress_.clear();
}

double GradScaler::get_scale() const {
  if (!options_.enabled) return 1;
  return scale_.defined() ? scale_.item() : start_;
}

std::map<std::string, double> GradScaler::state_dict() const {
  if (!options_.enabled) return {};
  const std::int64_t tracker = growth_tracker_.defined() ? growth_tracker_.item<std::int64_t>() : tracker_start_;
  return {{"scale", get_scale()},
          {"growth_factor", options_.growth_factor},
          {"backoff_factor", options_.backoff_factor},
          {"growth_interval", static_cast<double>(options_.growth_interval)},
          {"_growth_tracker", static_cast<double>(tracker)}};
}

void GradScaler::load_state_dict(const std::map<std::string, double>& state) {
  if (!options_.enabled) return;
  for (const char* name : {"scale", "growth_factor", "backoff_factor", "growth_interval", "_growth_tracker"}) {
    if (!state.contains(name)) throw ValueError(fmt::format("GradScaler: the state has no {}", name));
  }
  start_ = state.at("scale");
  tracker_start_ = static_cast<std::int64_t>(state.at("_growth_tracker"));
  options_.growth_factor = state.at("growth_factor");
  options_.backoff_factor = state.at("backoff_factor");
  options_.growth_interval = static_cast<std::int64_t>(state.at("growth_interval"));
  scale_ = growth_tracker_ = {};  // made again with these numbers
  progress_.clear();
}

}  // namespace russet::amp
