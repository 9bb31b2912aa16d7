// Losses of pairs of tensors, and distances.
#include <russet/functional/nn_activation.h>
#include <russet/functional/nn_loss.h>

#include <numbers>

#include "functional/nn_detail.h"

namespace russet {
namespace {

using functional::autocast;
using functional::cast;
using functional::constant;
using functional::wide;

Tensor single(const Tensor& x) { return autocast(ops::Autocast::float32, x); }

/// Both inputs of a loss in the type to compute in, and the type of the result.
struct Pair {
  Tensor x;
  Tensor y;
  DType result;
};

Pair pair(const char* function, const Tensor& input, const Tensor& target) {
  const Tensor x = single(input);
  const Tensor y = single(target);
  const DType result = functional::result_type(x, y);
  if (!is_floating(result)) {
    throw TypeError(fmt::format("{}: takes floating types, not {} and {}", function, name_of(input.dtype()),
                                name_of(target.dtype())));
  }
  const DType type = result == DType::float64 ? result : DType::float32;
  return {cast(x, type), cast(y, type), result};
}

Tensor finished(const Tensor& terms, Reduction reduction, DType type) {
  return cast(functional::reduced(terms, reduction), type);
}

Tensor weighted(const Tensor& terms, const Tensor& weight) {
  return weight.defined() ? terms * cast(weight, terms.dtype()) : terms;
}

Tensor log_of(const Tensor& x) { return maximum(log(x), constant(-100, x)); }
Tensor log_of_rest(const Tensor& x) { return maximum(log1p(-x), constant(-100, x)); }

// Logarithms at least -100, and their gradients finite at 0 and 1, as in PyTorch.
Tensor binary_terms(const Tensor& input, const Tensor& target) {
  const Tensor result = functional::outside_tape(
      [&] { return (target - constant(1, target)) * log_of_rest(input) - target * log_of(input); });
  return autograd::with_gradient("binary_cross_entropy", {input, target}, result, {input, target}, false,
                                 [](const Tensor& g, std::span<const Tensor> saved) -> std::vector<Tensor> {
                                   const Tensor& x = saved[0];
                                   const Tensor& t = saved[1];
                                   const Tensor spread = maximum((constant(1, x) - x) * x, constant(1e-12, x));
                                   return {g * (x - t) / spread, g * (log_of_rest(x) - log_of(x))};
                                 });
}

}  // namespace

Tensor mse_loss(const Tensor& input, const Tensor& target, Reduction reduction) {
  const auto [x, y, type] = pair("mse_loss", input, target);
  const Tensor d = x - y;
  return finished(d * d, reduction, type);
}

Tensor l1_loss(const Tensor& input, const Tensor& target, Reduction reduction) {
  const auto [x, y, type] = pair("l1_loss", input, target);
  return finished(abs(x - y), reduction, type);
}

Tensor smooth_l1_loss(const Tensor& input, const Tensor& target, Reduction reduction, double beta) {
  if (beta < 0) throw ValueError(fmt::format("smooth_l1_loss: beta is negative: {}", beta));
  if (beta == 0) return l1_loss(input, target, reduction);
  const auto [x, y, type] = pair("smooth_l1_loss", input, target);
  const Tensor d = x - y;
  const Tensor size = abs(d);
  return finished(where(size < beta, d * d * (0.5 / beta), size - 0.5 * beta), reduction, type);
}

Tensor huber_loss(const Tensor& input, const Tensor& target, Reduction reduction, double delta) {
  if (delta <= 0) throw ValueError(fmt::format("huber_loss: delta is not above 0: {}", delta));
  const auto [x, y, type] = pair("huber_loss", input, target);
  const Tensor d = x - y;
  const Tensor size = abs(d);
  return finished(where(size <= delta, d * d * constant(0.5, d), (size - 0.5 * delta) * delta), reduction, type);
}

Tensor binary_cross_entropy(const Tensor& input, const Tensor& target, const Tensor& weight, Reduction reduction) {
  if (input.sizes() != target.sizes()) {
    throw ShapeError(fmt::format("binary_cross_entropy: the shapes differ: {} and {}", to_string(input.sizes()),
                                 to_string(target.sizes())));
  }
  const auto [x, y, type] = pair("binary_cross_entropy", input, target);
  return finished(weighted(binary_terms(x, y), weight), reduction, type);
}

Tensor binary_cross_entropy_with_logits(const Tensor& input, const Tensor& target, const Tensor& weight,
                                        Reduction reduction, const Tensor& pos_weight) {
  if (input.sizes() != target.sizes()) {
    throw ShapeError(fmt::format("binary_cross_entropy_with_logits: the shapes differ: {} and {}",
                                 to_string(input.sizes()), to_string(target.sizes())));
  }
  const auto [x, y, type] = pair("binary_cross_entropy_with_logits", input, target);
  const Tensor one = constant(1, x);
  Tensor log_likelihood = logsigmoid(x);
  if (pos_weight.defined()) log_likelihood = log_likelihood * ((cast(pos_weight, x.dtype()) - one) * y + one);
  return finished(weighted((one - y) * x - log_likelihood, weight), reduction, type);
}

Tensor kl_div(const Tensor& input, const Tensor& target, KlReduction reduction, bool log_target) {
  const auto [x, y, type] = pair("kl_div", input, target);
  const Tensor terms = log_target ? exp(y) * (y - x) : xlogy(y, y) - y * x;
  switch (reduction) {
    case KlReduction::none: return cast(terms, type);
    case KlReduction::sum: return finished(terms, Reduction::sum, type);
    case KlReduction::mean: return finished(terms, Reduction::mean, type);
    case KlReduction::batchmean: break;
  }
  const std::int64_t batch = x.dim() == 0 ? 1 : x.size(0);
  return cast(sum(terms) * constant(1.0 / static_cast<double>(batch), terms), type);
}

Tensor poisson_nll_loss(const Tensor& input, const Tensor& target, bool log_input, bool full, double eps,
                        Reduction reduction) {
  const auto [x, y, type] = pair("poisson_nll_loss", input, target);
  Tensor terms = log_input ? exp(x) - y * x : x - y * log(x + eps);
  if (full) {
    const Tensor one = constant(1, y);
    const Tensor safe = where(y > one, y, one);
    const Tensor stirling = safe * log(safe) - safe + log(safe * constant(2 * std::numbers::pi, y)) * constant(0.5, y);
    terms = terms + where(y > one, stirling, constant(0, y));
  }
  return finished(terms, reduction, type);
}

Tensor gaussian_nll_loss(const Tensor& input, const Tensor& target, const Tensor& var, bool full, double eps,
                         Reduction reduction) {
  const auto [x, y, type] = pair("gaussian_nll_loss", input, target);
  Tensor given = cast(var, x.dtype());
  if (given.sizes() != x.sizes() && given.dim() + 1 == x.dim()) given = given.unsqueeze(-1);
  // The limit does not stop the gradient.
  const Tensor variance = given + (clamp_min(given, eps) - given).detach();
  const Tensor d = x - y;
  Tensor terms = (log(variance) + d * d / variance) * constant(0.5, x);
  if (full) terms = terms + constant(0.5 * std::log(2 * std::numbers::pi), x);
  return finished(terms, reduction, type);
}

Tensor cosine_similarity(const Tensor& x1, const Tensor& x2, std::int64_t axis, double eps) {
  const auto [x, y, type] = pair("cosine_similarity", x1, x2);
  const std::int64_t rank = std::max(x.dim(), y.dim());
  const std::int64_t along = wrap_axis(axis, static_cast<int>(rank)) - rank;
  const Tensor product = sum(x * y, along);
  const auto length = [&](const Tensor& v) { return clamp_min(norm(v, 2, along), eps); };
  return cast(product / (length(x) * length(y)), type);
}

Tensor pairwise_distance(const Tensor& x1, const Tensor& x2, double p, double eps, bool keepdim) {
  const auto [x, y, type] = pair("pairwise_distance", x1, x2);
  return cast(norm(x - y + eps, p, -1, keepdim), type);
}

Tensor cdist(const Tensor& x1, const Tensor& x2, double p) {
  functional::require_floating("cdist", x1);
  functional::require_floating("cdist", x2);
  if (!(p >= 0)) throw ValueError(fmt::format("cdist: p is {}, which is not 0 or more", p));
  if (x1.dim() < 2 || x2.dim() < 2 || x1.size(-1) != x2.size(-1)) {
    throw ShapeError(fmt::format("cdist: takes [..., n, width] and [..., m, width], not {} and {}",
                                 to_string(x1.sizes()), to_string(x2.sizes())));
  }
  const Tensor differences = single(x1).unsqueeze(-2) - single(x2).unsqueeze(-3);
  return x1.size(-1) == 0 ? sum(differences, -1) : norm(differences, p, -1);
}

Tensor cosine_embedding_loss(const Tensor& input1, const Tensor& input2, const Tensor& target, double margin,
                             Reduction reduction) {
  const auto [x, y, type] = pair("cosine_embedding_loss", input1, input2);
  if (x.dim() != target.dim() + 1 || x.dim() > 2) {
    throw ShapeError(fmt::format("cosine_embedding_loss: takes [n, width] twice and a target [n], not {}, {} and {}",
                                 to_string(x.sizes()), to_string(y.sizes()), to_string(target.sizes())));
  }
  const Tensor tiny = constant(1e-12, x);
  const auto square_length = [&](const Tensor& v) { return sum(v * v, -1) + tiny; };
  const Tensor cosine = sum(x * y, -1) / sqrt(square_length(x) * square_length(y));
  const Tensor zero = constant(0, x);
  const Tensor apart = where(target == -1, clamp_min(cosine - margin, 0), zero);
  return finished(where(target == 1, constant(1, x) - cosine, apart), reduction, type);
}

Tensor margin_ranking_loss(const Tensor& input1, const Tensor& input2, const Tensor& target, double margin,
                           Reduction reduction) {
  const auto [x, y, type] = pair("margin_ranking_loss", input1, input2);
  return finished(clamp_min(cast(target, x.dtype()) * (y - x) + margin, 0), reduction, type);
}

Tensor hinge_embedding_loss(const Tensor& input, const Tensor& target, double margin, Reduction reduction) {
  const auto [x, y, type] = pair("hinge_embedding_loss", input, target);
  const Tensor zero = constant(0, x);
  const Tensor apart = where(y == constant(1, y), zero, clamp_min(margin - x, 0));
  const Tensor together = where(y == constant(-1, y), zero, x);
  return finished(apart + together, reduction, type);
}

Tensor soft_margin_loss(const Tensor& input, const Tensor& target, Reduction reduction) {
  const auto [x, y, type] = pair("soft_margin_loss", input, target);
  return finished(-logsigmoid(x * y), reduction, type);
}

Tensor multilabel_soft_margin_loss(const Tensor& input, const Tensor& target, const Tensor& weight,
                                   Reduction reduction) {
  const auto [x, y, type] = pair("multilabel_soft_margin_loss", input, target);
  const Tensor terms = -(y * logsigmoid(x) + (constant(1, y) - y) * logsigmoid(-x));
  return finished(mean(weighted(terms, weight), -1), reduction, type);
}

Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                           const TripletMarginLossOptions& options) {
  const auto distance = [&](const Tensor& x, const Tensor& y) {
    return pairwise_distance(x, y, options.p, options.eps);
  };
  const Tensor near = distance(anchor, positive);
  Tensor far = distance(anchor, negative);
  if (options.swap) far = minimum(far, distance(positive, negative));
  return finished(clamp_min(near - far + options.margin, 0), options.reduction, near.dtype());
}

}  // namespace russet
