#include <fmt/format.h>
#include <russet/autograd.h>
#include <russet/functional.h>
#include <russet/random_part.h>
#include <russet/runtime.h>
#include <russet/train/step.h>

namespace russet::train {

std::vector<Tensor> freeze_encoder(const models::Model& model) {
  const std::string head = model.spec().head();
  std::vector<Tensor> trained;
  for (auto [name, parameter] : model.named_parameters()) {
    const bool in_head = !head.empty() && name.starts_with(head);
    parameter.requires_grad_(in_head);
    if (in_head) trained.push_back(parameter);
  }
  if (trained.empty()) throw ValueError(fmt::format("{}: there is no classifier to train alone", model.spec().name));
  return trained;
}

amp::GradScaler scaler_for(DType precision) {
  return amp::GradScaler(amp::GradScalerOptions{.enabled = precision == DType::float16});
}

void add_gradients(const Tensor& loss, double share, amp::GradScaler& scaler) {
  scaler.scale(share == 1 ? loss : loss * share).backward();
}

BatchParts::BatchParts(data::Batch batch, std::int64_t samples)
    : batch_(std::move(batch)), count_((batch_.input.size(0) + samples - 1) / samples) {
  before_ = default_generator(batch_.input.device().type).state();
}

void BatchParts::with(std::int64_t part, const Work& work) const {
  if (count_ == 1) return work(batch_, 1);
  const std::int64_t samples = batch_.input.size(0);
  const std::int64_t first = samples * part / count_;
  const std::int64_t taken = samples * (part + 1) / count_ - first;
  const auto of = [&](const Tensor& whole) { return whole.defined() ? whole.narrow(0, first, taken) : whole; };
  data::Batch own{of(batch_.input), of(batch_.target)};
  for (const auto& [name, field] : batch_.fields) own.fields.emplace(name, of(field));
  default_generator(batch_.input.device().type).set_state(before_);
  const RandomPart random(first, taken);
  work(own, static_cast<double>(taken) / static_cast<double>(samples));
}

void finish_step(optim::Optimizer* optimizer, amp::GradScaler& scaler, double clip_grad,
                 const std::vector<Tensor>& parameters, const std::function<void()>& add_last_part) {
  in_one_plan([&] {
    add_last_part();
    if (clip_grad > 0) {
      if (optimizer != nullptr) scaler.unscale_(*optimizer);
      optim::clip_grad_norm_(parameters, clip_grad);
    }
    if (optimizer == nullptr) return;
    scaler.step(*optimizer);
    scaler.update();
    optimizer->zero_grad();
  });
}

}  // namespace russet::train
