#pragma once
// GradScaler: gradients of losses that float16 would round to 0. Names, defaults and numbers are torch.amp's.
#include <russet/optim/optimizer.h>
#include <russet/tensor.h>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace russet::amp {

struct GradScalerOptions {
  double init_scale = 65536;
  double growth_factor = 2;
  double backoff_factor = 0.5;
  std::int64_t growth_interval = 2000;
  bool enabled = true;
};

/// Multiplies losses by a scale, so that small gradients are numbers in float16, and divides the gradients by it. A
/// step whose gradients hold an infinity or NaN is skipped, and the scale made smaller; after growth_interval steps
/// that were not it is made larger.
///
///     amp::GradScaler scaler;
///     {
///       const Autocast autocast(DType::float16);
///       loss = cross_entropy(net(x), y);
///     }
///     scaler.scale(loss).backward();
///     scaler.unscale_(optimizer);  // only if the gradients are looked at, as clip_grad_norm_ does
///     scaler.step(optimizer);
///     scaler.update();
///
/// The scale, its course and the skipped steps are on the device of the losses: nothing is read, and a skipped step is
/// not told. get_scale() and state_dict() read.
class GradScaler {
 public:
  /// Throws ValueError for a growth_factor not above 1, or a backoff_factor not below 1.
  explicit GradScaler(const GradScalerOptions& options = {});

  /// outputs * scale.
  Tensor scale(const Tensor& outputs);
  std::vector<Tensor> scale(const std::vector<Tensor>& outputs);
  /// Divides the gradients of the optimizer's parameters by the scale. Throws ValueError if that was done since the
  /// last update(), if nothing was scaled yet, and for gradients in float16, whose parameters should be in float32.
  void unscale_(optim::Optimizer& optimizer);
  /// Optimizer::step(), skipped if a gradient is not finite, after unscale_() unless that was called. Throws ValueError
  /// for a second call since the last update(), and if no parameter has a gradient.
  void step(optim::Optimizer& optimizer);
  /// The scale of the next step: of `new_scale`, if given, or by what the steps since the last update() found. Throws
  /// ValueError if there were none.
  void update(std::optional<double> new_scale = {});

  /// Waits for the device; 1 if not enabled.
  double get_scale() const;
  double get_growth_factor() const { return options_.growth_factor; }
  void set_growth_factor(double factor) { options_.growth_factor = factor; }
  double get_backoff_factor() const { return options_.backoff_factor; }
  void set_backoff_factor(double factor) { options_.backoff_factor = factor; }
  std::int64_t get_growth_interval() const { return options_.growth_interval; }
  void set_growth_interval(std::int64_t interval) { options_.growth_interval = interval; }
  bool is_enabled() const { return options_.enabled; }

  /// "scale", "growth_factor", "backoff_factor", "growth_interval" and "_growth_tracker"; empty if not enabled. Waits
  /// for the device.
  std::map<std::string, double> state_dict() const;
  /// Throws ValueError for numbers that are missing; nothing is changed then. Of one that is not enabled: nothing.
  void load_state_dict(const std::map<std::string, double>& state);

 private:
  enum class Stage : std::uint8_t { unscaled, stepped };
  struct Progress {
    Stage stage = Stage::unscaled;
    Tensor found_inf;  // float32, of no axes: 1 or 0
  };
  void make_cells(Device device);

  GradScalerOptions options_;
  // Until the device is known, what the cells start with.
  double start_;
  std::int64_t tracker_start_ = 0;
  Tensor scale_;                                          // float32
  Tensor growth_tracker_;                                 // int32: steps since the scale last changed
  std::map<const optim::Optimizer*, Progress> progress_;  // since the last update()
};

}  // namespace russet::amp
