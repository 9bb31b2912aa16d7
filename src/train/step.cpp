#include <russet/train/step.h>

#include <russet/autograd.h>
#include <russet/functional.h>
#include <russet/runtime.h>

namespace russet::train {

void add_gradients(const Tensor& loss, std::int64_t parts) {
  (parts == 1 ? loss : loss * (1.0 / static_cast<double>(parts))).backward();
}

void finish_step(optim::Optimizer* optimizer, double clip_grad, const std::vector<Tensor>& parameters,
                 const std::function<void()>& add_last_part) {
  in_one_plan([&] {
    add_last_part();
    if (clip_grad > 0) optim::clip_grad_norm_(parameters, clip_grad);
    if (optimizer == nullptr) return;
    optimizer->step();
    optimizer->zero_grad();
  });
}

}  // namespace russet::train
