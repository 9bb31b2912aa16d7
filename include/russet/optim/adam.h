#pragma once
// Adam and AdamW.
#include <russet/optim/optimizer.h>

namespace russet::optim {

struct AdamOptions {
  double lr = 1e-3;
  std::pair<double, double> betas{0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0;
  /// Divide by the largest second moment so far.
  bool amsgrad = false;
  bool maximize = false;
};

/// m = b1 m + (1 - b1) g; v = b2 v + (1 - b2) g^2; p -= lr m' / (sqrt(v') + eps), of m' = m / (1 - b1^t) and
/// v' = v / (1 - b2^t). Adam adds weight_decay p to g. As torch.optim.Adam; Kingma, Ba 2015.
class Adam : public Optimizer {
 public:
  /// Throws ValueError for options out of range.
  explicit Adam(std::vector<Tensor> parameters, const AdamOptions& options = {});
  explicit Adam(const std::vector<ParamGroup<AdamOptions>>& groups);

  using Optimizer::set_lr;
  double lr(std::size_t group = 0) const override { return options_.at(group).lr; }
  void set_lr(double lr, std::size_t group) override { options_.at(group).lr = lr; }
  double momentum(std::size_t group = 0) const override { return options_.at(group).betas.first; }
  void set_momentum(double momentum, std::size_t group) override { options_.at(group).betas.first = momentum; }
  const AdamOptions& group_options(std::size_t group = 0) const { return options_.at(group); }

 protected:
  Adam(const char* name, const std::vector<ParamGroup<AdamOptions>>& groups, bool decoupled);
  bool keeps(std::size_t group, std::size_t place) const override;
  void update(std::size_t group, ParameterState& state, const Tensor& gradient) override;
  std::map<std::string, double> options(std::size_t group) const override;
  void set_options(std::size_t group, const std::map<std::string, double>& numbers) override;

 private:
  std::vector<AdamOptions> options_;
  bool decoupled_;
};

struct AdamWOptions {
  double lr = 1e-3;
  std::pair<double, double> betas{0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 1e-2;
  bool amsgrad = false;
  bool maximize = false;
};

/// Adam with p *= 1 - lr weight_decay instead of a gradient of the decay. As torch.optim.AdamW; Loshchilov, Hutter
/// 2019.
class AdamW : public Adam {
 public:
  /// Throws ValueError for options out of range.
  explicit AdamW(std::vector<Tensor> parameters, const AdamWOptions& options = {});
  explicit AdamW(const std::vector<ParamGroup<AdamWOptions>>& groups);
};

}  // namespace russet::optim
