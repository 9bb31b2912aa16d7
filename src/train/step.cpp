#include <fmt/format.h>
#include <russet/autograd.h>
#include <russet/functional.h>
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

void add_gradients(const Tensor& loss, std::int64_t parts, amp::GradScaler& scaler) {
  scaler.scale(parts == 1 ? loss : loss * (1.0 / static_cast<double>(parts))).backward();
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
