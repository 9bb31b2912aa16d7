#pragma once
// Averages of a model's weights over training: the mean (SWA; Izmailov et al. 2018) or an exponential one (EMA). As
// torch.optim.swa_utils.
#include <russet/nn/module.h>
#include <russet/optim/lr_scheduler.h>
#include <concepts>
#include <functional>
#include <memory>
#include <optional>

namespace russet::optim {

/// The new average, of the old one, a tensor of the model, and how many were averaged so far (a tensor of no axes).
using AverageFunction =
    std::function<Tensor(const Tensor& averaged, const Tensor& current, const Tensor& num_averaged)>;
/// decay averaged + (1 - decay) current. Throws ValueError for a decay outside of [0, 1].
AverageFunction get_ema_avg_fn(double decay = 0.999);
/// The mean of all.
AverageFunction get_swa_avg_fn();

struct AveragedModelOptions {
  /// Where the average lies; where the model is if absent.
  std::optional<Device> device{};
  /// get_swa_avg_fn() if absent.
  AverageFunction avg_fn{};
  /// Whether buffers are averaged; else they are those of the last model.
  bool use_buffers = false;
};

/// A model of its own, whose parameters are averages of another's; called, it computes what that would. Nothing waits
/// for a value.
class AveragedModel : public nn::Module {
 public:
  template <std::derived_from<nn::Module> M>
  explicit AveragedModel(const M& model, const AveragedModelOptions& options = {})
      : AveragedModel(options, nn::AnyModule(nn::clone(model))) {}
  Tensor forward(const Tensor& x) override { return module(x); }
  Tensor forward_all(std::span<const Tensor> inputs) override { return module(inputs); }

  /// Takes the parameters of `model` into the average; the first time, they are the average. Throws ValueError for a
  /// model of other tensors.
  void update_parameters(const nn::Module& model);

  nn::AnyModule module;
  nn::Parameter n_averaged;  // [], int64

 private:
  AveragedModel(const AveragedModelOptions& options, nn::AnyModule copy);
  AverageFunction avg_fn_;
  bool use_buffers_;
};

/// What update_bn does at each batch.
class BatchNormUpdate {
 public:
  explicit BatchNormUpdate(nn::Module& model);
  bool has_work() const { return !norms_.empty(); }
  void add(const Tensor& input);

 private:
  struct Norm {
    Tensor mean, var;  // the running ones
    double momentum;
    Tensor mean_of_all, var_of_all;
  };
  nn::Module& model_;
  nn::ModeScope training_;
  std::vector<Norm> norms_;
  std::int64_t batches_ = 0;
};

/// Sets the running statistics of all batch norms inside to the mean of those of the batches of `loader`: tensors, or
/// what has the input as its member `input` or its first element.
template <class Loader>
void update_bn(Loader&& loader, nn::Module& model, std::optional<Device> device = {}) {
  BatchNormUpdate update(model);
  if (!update.has_work()) return;
  for (const auto& batch : loader) {
    const Tensor input = [&]() -> Tensor {
      if constexpr (std::convertible_to<decltype(batch), Tensor>) {
        return batch;
      } else if constexpr (requires { batch.input; }) {
        return batch.input;
      } else {
        return std::get<0>(batch);
      }
    }();
    update.add(device ? input.to(*device) : input);
  }
}

struct SWALROptions {
  PerGroup swa_lr = 0;
  std::int64_t anneal_epochs = 10;
  Anneal anneal_strategy = Anneal::cos;
};
/// From the rate that is set to swa_lr in anneal_epochs, and then constant.
class SWALR : public LRScheduler {
 public:
  SWALR(Optimizer& optimizer, const SWALROptions& options);

 protected:
  double get_lr(std::size_t group) const override;

 private:
  /// The part of the way after a number of steps.
  double part(std::int64_t steps) const;
  SWALROptions options_;
};

}  // namespace russet::optim
