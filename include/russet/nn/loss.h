#pragma once
// Losses as modules: loss(input, target), or as CTCLoss says. functional/nn_loss.h says what each computes.
#include <russet/functional/nn_loss.h>
#include <russet/nn/module.h>

namespace russet::nn {

/// A function of an input and a target.
class Loss : public Module {
 public:
  virtual Tensor compare(const Tensor& input, const Tensor& target) = 0;
  Tensor forward_all(std::span<const Tensor> inputs) override;
  Tensor operator()(const Tensor& input, const Tensor& target);
};

class CrossEntropyLoss : public Loss {
 public:
  explicit CrossEntropyLoss(const CrossEntropyOptions& options = {});
  Tensor compare(const Tensor& input, const Tensor& target) override;

 private:
  CrossEntropyOptions options_;
  Parameter weight_;
};

class NLLLoss : public Loss {
 public:
  explicit NLLLoss(const NllLossOptions& options = {});
  Tensor compare(const Tensor& input, const Tensor& target) override;

 private:
  NllLossOptions options_;
  Parameter weight_;
};

class BCELoss : public Loss {
 public:
  explicit BCELoss(const Tensor& weight = {}, Reduction reduction = Reduction::mean);
  Tensor compare(const Tensor& input, const Tensor& target) override;

 private:
  Parameter weight_;
  Reduction reduction_;
};

struct BCEWithLogitsOptions {
  Tensor weight{};
  Reduction reduction = Reduction::mean;
  Tensor pos_weight{};
};
class BCEWithLogitsLoss : public Loss {
 public:
  explicit BCEWithLogitsLoss(const BCEWithLogitsOptions& options = {});
  Tensor compare(const Tensor& input, const Tensor& target) override;

 private:
  Parameter weight_;
  Parameter pos_weight_;
  Reduction reduction_;
};

struct CTCLossOptions {
  /// The class that stands for no class.
  std::int64_t blank = 0;
  Reduction reduction = Reduction::mean;
  /// Losses are 0, with gradients of 0, where the target does not fit in the input.
  bool zero_infinity = false;
};
class CTCLoss : public Module {
 public:
  explicit CTCLoss(const CTCLossOptions& options = {}) : options_(options) {}
  Tensor forward_all(std::span<const Tensor> inputs) override;
  Tensor operator()(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                    const Tensor& target_lengths);

 private:
  CTCLossOptions options_;
};

class MSELoss : public Loss {
 public:
  explicit MSELoss(Reduction reduction = Reduction::mean) : reduction_(reduction) {}
  Tensor compare(const Tensor& input, const Tensor& target) override { return mse_loss(input, target, reduction_); }

 private:
  Reduction reduction_;
};

class L1Loss : public Loss {
 public:
  explicit L1Loss(Reduction reduction = Reduction::mean) : reduction_(reduction) {}
  Tensor compare(const Tensor& input, const Tensor& target) override { return l1_loss(input, target, reduction_); }

 private:
  Reduction reduction_;
};

class SmoothL1Loss : public Loss {
 public:
  explicit SmoothL1Loss(Reduction reduction = Reduction::mean, double beta = 1) : reduction_(reduction), beta_(beta) {}
  Tensor compare(const Tensor& input, const Tensor& target) override {
    return smooth_l1_loss(input, target, reduction_, beta_);
  }

 private:
  Reduction reduction_;
  double beta_;
};

class HuberLoss : public Loss {
 public:
  explicit HuberLoss(Reduction reduction = Reduction::mean, double delta = 1) : reduction_(reduction), delta_(delta) {}
  Tensor compare(const Tensor& input, const Tensor& target) override {
    return huber_loss(input, target, reduction_, delta_);
  }

 private:
  Reduction reduction_;
  double delta_;
};

class KLDivLoss : public Loss {
 public:
  explicit KLDivLoss(KlReduction reduction = KlReduction::mean, bool log_target = false)
      : reduction_(reduction), log_target_(log_target) {}
  Tensor compare(const Tensor& input, const Tensor& target) override {
    return kl_div(input, target, reduction_, log_target_);
  }

 private:
  KlReduction reduction_;
  bool log_target_;
};

class SoftMarginLoss : public Loss {
 public:
  explicit SoftMarginLoss(Reduction reduction = Reduction::mean) : reduction_(reduction) {}
  Tensor compare(const Tensor& input, const Tensor& target) override {
    return soft_margin_loss(input, target, reduction_);
  }

 private:
  Reduction reduction_;
};

class HingeEmbeddingLoss : public Loss {
 public:
  explicit HingeEmbeddingLoss(double margin = 1, Reduction reduction = Reduction::mean)
      : margin_(margin), reduction_(reduction) {}
  Tensor compare(const Tensor& input, const Tensor& target) override {
    return hinge_embedding_loss(input, target, margin_, reduction_);
  }

 private:
  double margin_;
  Reduction reduction_;
};

}  // namespace russet::nn
