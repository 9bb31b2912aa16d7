// Losses.
#include <stdexcept>

#include "calls/call.h"

namespace golden {
namespace {

using namespace russet;

Reduction reduction_of(const Call& c, std::size_t i) {
  const std::string name = c.text(i);
  if (name == "none") return Reduction::none;
  if (name == "sum") return Reduction::sum;
  if (name == "mean") return Reduction::mean;
  throw std::runtime_error("no reduction is called " + name);
}

KlReduction kl_reduction_of(const std::string& name) {
  if (name == "none") return KlReduction::none;
  if (name == "sum") return KlReduction::sum;
  return name == "batchmean" ? KlReduction::batchmean : KlReduction::mean;
}

/// F(input, target, reduction, number), with as many arguments as the call has.
template <class F>
Results pairwise(const Call& c, F f) {
  if (c.has(3)) {
    if constexpr (std::is_invocable_v<F, Tensor, Tensor, Reduction, double>) {
      return {f(c.tensor(0), c.tensor(1), reduction_of(c, 2), c.real(3))};
    }
  }
  if (c.has(2)) return {f(c.tensor(0), c.tensor(1), reduction_of(c, 2))};
  return {f(c.tensor(0), c.tensor(1))};
}

template <class Options>
Options class_options(const Call& c) {
  Options options;
  options.weight = c.tensor(2);
  if (c.has(3)) options.ignore_index = c.integer(3);
  if (c.has(4)) options.reduction = reduction_of(c, 4);
  return options;
}

Results cross_entropies(const Call& c) {
  auto options = class_options<CrossEntropyOptions>(c);
  if (c.has(5)) options.label_smoothing = c.real(5);
  return {cross_entropy(c.tensor(0), c.tensor(1), options)};
}

void add_binary_losses(Functions& table) {
  table["binary_cross_entropy"] = [](const Call& c) -> Results {
    if (c.has(3)) return {binary_cross_entropy(c.tensor(0), c.tensor(1), c.tensor(2), reduction_of(c, 3))};
    return {binary_cross_entropy(c.tensor(0), c.tensor(1), c.tensor(2))};
  };
  table["binary_cross_entropy_with_logits"] = [](const Call& c) -> Results {
    if (!c.has(3)) return {binary_cross_entropy_with_logits(c.tensor(0), c.tensor(1), c.tensor(2))};
    return {binary_cross_entropy_with_logits(c.tensor(0), c.tensor(1), c.tensor(2), reduction_of(c, 3), c.tensor(4))};
  };
  table["kl_div"] = [](const Call& c) -> Results {
    return {kl_div(c.tensor(0), c.tensor(1), kl_reduction_of(c.text(2)), c.has(3) && c.flag(3))};
  };
}

/// Losses of two inputs and a target of ones and minus ones, with a margin.
void add_margin_losses(Functions& table) {
  table["cosine_embedding_loss"] = [](const Call& c) -> Results {
    if (c.has(3)) return {cosine_embedding_loss(c.tensor(0), c.tensor(1), c.tensor(2), c.real(3))};
    return {cosine_embedding_loss(c.tensor(0), c.tensor(1), c.tensor(2))};
  };
  table["margin_ranking_loss"] = [](const Call& c) -> Results {
    if (c.has(3)) return {margin_ranking_loss(c.tensor(0), c.tensor(1), c.tensor(2), c.real(3))};
    return {margin_ranking_loss(c.tensor(0), c.tensor(1), c.tensor(2))};
  };
  table["hinge_embedding_loss"] = [](const Call& c) -> Results {
    if (c.has(2)) return {hinge_embedding_loss(c.tensor(0), c.tensor(1), c.real(2))};
    return {hinge_embedding_loss(c.tensor(0), c.tensor(1))};
  };
  table["soft_margin_loss"] = [](const Call& c) -> Results { return {soft_margin_loss(c.tensor(0), c.tensor(1))}; };
  table["multi_margin_loss"] = [](const Call& c) -> Results {
    if (c.has(2)) return {multi_margin_loss(c.tensor(0), c.tensor(1), static_cast<int>(c.integer(2)), c.real(3))};
    return {multi_margin_loss(c.tensor(0), c.tensor(1))};
  };
  table["multilabel_soft_margin_loss"] = [](const Call& c) -> Results {
    return {multilabel_soft_margin_loss(c.tensor(0), c.tensor(1))};
  };
  table["triplet_margin_loss"] = [](const Call& c) -> Results {
    TripletOptions options;
    if (c.has(3)) options.margin = c.real(3);
    if (c.has(4)) options.p = c.real(4);
    if (c.has(5)) options.swap = c.flag(5);
    return {triplet_margin_loss(c.tensor(0), c.tensor(1), c.tensor(2), options)};
  };
  table["pairwise_distance"] = [](const Call& c) -> Results {
    if (c.has(2)) return {pairwise_distance(c.tensor(0), c.tensor(1), c.real(2))};
    return {pairwise_distance(c.tensor(0), c.tensor(1))};
  };
}

}  // namespace

void add_losses(Functions& table) {
  table["mse_loss"] = [](const Call& c) {
    return pairwise(c, [](const auto&... a) -> decltype(mse_loss(a...)) { return mse_loss(a...); });
  };
  table["l1_loss"] = [](const Call& c) {
    return pairwise(c, [](const auto&... a) -> decltype(l1_loss(a...)) { return l1_loss(a...); });
  };
  table["smooth_l1_loss"] = [](const Call& c) {
    return pairwise(c, [](const auto&... a) -> decltype(smooth_l1_loss(a...)) { return smooth_l1_loss(a...); });
  };
  table["huber_loss"] = [](const Call& c) {
    return pairwise(c, [](const auto&... a) -> decltype(huber_loss(a...)) { return huber_loss(a...); });
  };
  table["cross_entropy"] = cross_entropies;
  table["nll_loss"] = [](const Call& c) -> Results {
    return {nll_loss(c.tensor(0), c.tensor(1), class_options<NllLossOptions>(c))};
  };
  table["poisson_nll_loss"] = [](const Call& c) -> Results {
    if (c.has(2)) return {poisson_nll_loss(c.tensor(0), c.tensor(1), c.flag(2), c.flag(3))};
    return {poisson_nll_loss(c.tensor(0), c.tensor(1))};
  };
  table["gaussian_nll_loss"] = [](const Call& c) -> Results {
    if (c.has(3)) return {gaussian_nll_loss(c.tensor(0), c.tensor(1), c.tensor(2), c.flag(3))};
    return {gaussian_nll_loss(c.tensor(0), c.tensor(1), c.tensor(2))};
  };
  add_binary_losses(table);
  add_margin_losses(table);
}

}  // namespace golden
