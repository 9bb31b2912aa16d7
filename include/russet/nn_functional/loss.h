#pragma once
// Losses and distances. Results are scalars, unless the reduction is none.
#include <russet/nn_functional/options.h>
#include <russet/tensor.h>

namespace russet {

struct CrossEntropyOptions {
  /// One number a class, or undefined.
  Tensor weight{};
  /// Targets of this class count neither in the sum nor in the mean.
  std::int64_t ignore_index = -100;
  Reduction reduction = Reduction::mean;
  double label_smoothing = 0;
};
/// -log softmax(input)[target]. input: [n, c, ...] or [c], floating; target: classes, integers [n, ...] or [], or
/// probabilities of input's shape. A class outside [0, c) throws IndexError when the result is read.
Tensor cross_entropy(const Tensor& input, const Tensor& target, const CrossEntropyOptions& options = {});

struct NllLossOptions {
  Tensor weight{};
  std::int64_t ignore_index = -100;
  Reduction reduction = Reduction::mean;
};
/// -input[target], of logarithms of probabilities; shapes as cross_entropy's.
Tensor nll_loss(const Tensor& input, const Tensor& target, const NllLossOptions& options = {});

/// (input - target)^2.
Tensor mse_loss(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::mean);
/// |input - target|.
Tensor l1_loss(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::mean);
/// d^2 / (2 beta) below beta, else |d| - beta / 2.
Tensor smooth_l1_loss(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::mean,
                      double beta = 1);
/// d^2 / 2 up to delta, else delta (|d| - delta / 2).
Tensor huber_loss(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::mean, double delta = 1);

/// -weight (target log input + (1 - target) log(1 - input)), logarithms at least -100.
Tensor binary_cross_entropy(const Tensor& input, const Tensor& target, const Tensor& weight = {},
                            Reduction reduction = Reduction::mean);
/// binary_cross_entropy of sigmoid(input), without overflow; `pos_weight` multiplies the terms of positive targets.
Tensor binary_cross_entropy_with_logits(const Tensor& input, const Tensor& target, const Tensor& weight = {},
                                        Reduction reduction = Reduction::mean, const Tensor& pos_weight = {});

enum class KlReduction : std::uint8_t { none, mean, sum, batchmean };
/// target (log target - input), of input in logarithms; `log_target`: target too.
Tensor kl_div(const Tensor& input, const Tensor& target, KlReduction reduction = KlReduction::mean,
              bool log_target = false);
/// exp(input) - target * input, or, without log_input, input - target * log(input + eps); `full` adds Stirling's term.
Tensor poisson_nll_loss(const Tensor& input, const Tensor& target, bool log_input = true, bool full = false,
                        double eps = 1e-8, Reduction reduction = Reduction::mean);
/// (log var + (input - target)^2 / var) / 2, with var at least eps; `full` adds log(2 pi) / 2.
Tensor gaussian_nll_loss(const Tensor& input, const Tensor& target, const Tensor& var, bool full = false,
                         double eps = 1e-6, Reduction reduction = Reduction::mean);

/// x1 . x2 / (max(|x1|, eps) max(|x2|, eps)) along an axis.
Tensor cosine_similarity(const Tensor& x1, const Tensor& x2, std::int64_t axis = 1, double eps = 1e-8);
/// The p-norm of x1 - x2 + eps along the last axis.
Tensor pairwise_distance(const Tensor& x1, const Tensor& x2, double p = 2, double eps = 1e-6, bool keepdim = false);

/// 1 - cosine where target is 1, max(0, cosine - margin) where it is -1.
Tensor cosine_embedding_loss(const Tensor& input1, const Tensor& input2, const Tensor& target, double margin = 0,
                             Reduction reduction = Reduction::mean);
/// max(0, -target (input1 - input2) + margin).
Tensor margin_ranking_loss(const Tensor& input1, const Tensor& input2, const Tensor& target, double margin = 0,
                           Reduction reduction = Reduction::mean);
/// input where target is 1, max(0, margin - input) where it is -1.
Tensor hinge_embedding_loss(const Tensor& input, const Tensor& target, double margin = 1,
                            Reduction reduction = Reduction::mean);
/// log(1 + exp(-target * input)).
Tensor soft_margin_loss(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::mean);
/// The mean over other classes of max(0, margin - input[target] + input[c])^p. input: [n, c] or [c].
Tensor multi_margin_loss(const Tensor& input, const Tensor& target, int p = 1, double margin = 1,
                         const Tensor& weight = {}, Reduction reduction = Reduction::mean);
/// The mean over classes of binary_cross_entropy_with_logits.
Tensor multilabel_soft_margin_loss(const Tensor& input, const Tensor& target, const Tensor& weight = {},
                                   Reduction reduction = Reduction::mean);

struct TripletOptions {
  double margin = 1;
  double p = 2;
  double eps = 1e-6;
  /// The negative's distance to the positive counts if it is smaller.
  bool swap = false;
  Reduction reduction = Reduction::mean;
};
/// max(0, d(anchor, positive) - d(anchor, negative) + margin).
Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                           const TripletOptions& options = {});

}  // namespace russet
