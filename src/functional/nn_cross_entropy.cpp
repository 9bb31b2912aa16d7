// Cross entropy and its relatives over classes. Cross entropy of class indices owns its gradient: softmax minus the
// target's indicator, from the saved logsumexp, in one pass over the logits.
#include <russet/autograd.h>
#include <russet/functional/nn_loss.h>

#include <limits>
#include <optional>

#include "functional/nn_detail.h"
#include "graph/index_check.h"
#include "ops/failures.h"

namespace russet {
namespace {

using functional::autocast;
using functional::cast;
using functional::constant;
using functional::wide;

int class_axis(const Tensor& input) { return input.dim() == 1 ? 0 : 1; }

Shape without_classes(const Tensor& input) {
  Shape sizes = input.sizes();
  sizes.erase(class_axis(input));
  return sizes;
}

void check(const char* function, const Tensor& input, const Tensor& weight) {
  functional::require_floating(function, input);
  if (input.dim() == 0) throw ShapeError(fmt::format("{}: the input is [n, classes, ...] or [classes]", function));
  const std::int64_t classes = input.size(class_axis(input));
  if (!weight.defined() || (weight.dim() == 1 && weight.size(0) == classes)) return;
  throw ShapeError(
      fmt::format("{}: the weight's shape is {} where [{}] is needed", function, to_string(weight.sizes()), classes));
}

void check_classes(const char* function, const Tensor& input, const Tensor& target) {
  functional::require_index_type(function, target);
  if (target.sizes() == without_classes(input)) return;
  throw ShapeError(fmt::format("{}: the target's shape is {} where {} is needed for an input of {}", function,
                               to_string(target.sizes()), to_string(without_classes(input)), to_string(input.sizes())));
}

// The targets as int64 with the class axis at size 1, -1 for those to ignore. A class that does not exist is an
// IndexError: at once where the host can see it, else for whoever reads the result, for looking each class up in the
// list of classes is the check then.
Tensor checked_classes(const char* function, const Tensor& input, const Tensor& target,
                       std::optional<std::int64_t> ignored) {
  const int axis = class_axis(input);
  const std::int64_t classes = input.size(axis);
  const graph::RangeCheck range = graph::check_range(graph::value_of(target), 0, classes, ignored);
  if (range.stray) {
    ops::throw_out_of_range(function, range.stray->value, axis, classes, range.stray->place, target.numel());
  }
  const Tensor given = cast(target, DType::int64).unsqueeze(axis);
  const auto look_up = [&](const Tensor& index) {
    if (range.is_known) return index;
    return functional::taken(functional::iota({classes}, input.device()), {.lead = index.sizes()}, index);
  };
  if (!ignored) return look_up(given);
  const Tensor counts = given != *ignored;
  const Tensor found = range.is_known ? given : look_up(where(counts, given, constant(0, given)));
  return where(counts, found, constant(-1, given));
}

// What classes that are checked name: one number of each row, or of a vector.
Tensor of_class(const Tensor& x, int axis, const Tensor& at) {
  ops::Indexing indexing = functional::along_axis(axis, at.sizes());
  indexing.checked = true;
  return functional::taken(x, indexing, at);
}
Tensor of_class(const Tensor& weight, const Tensor& at) {
  return functional::taken(weight, {.lead = at.sizes(), .checked = true}, at);
}

// One number a class, as it broadcasts against the input.
Tensor along_classes(const Tensor& weight, const Tensor& input) {
  if (!weight.defined()) return weight;
  Shape sizes = Shape::filled(input.dim(), 1);
  sizes[class_axis(input)] = weight.size(0);
  return wide(weight).reshape(sizes);
}

// Terms of a cross entropy of class indices; shapes keep the class axis with size 1.
struct ClassTerms {
  int axis;
  double smoothing;

  Tensor indicator(const Tensor& x, const Tensor& target) const {
    return functional::iota_along(axis, x.dim(), x.size(axis), x.device()) == target;
  }
  Tensor counted(const Tensor& target) const { return target >= constant(0, target); }
  Tensor weight_of(const Tensor& hot, const Tensor& weight) const {
    return sum(where(hot, weight, constant(0, weight)), axis, true);
  }
  // What smoothing spreads over each class, before the weight.
  Tensor spread(const Tensor& x) const {
    return functional::number(smoothing / static_cast<double>(x.size(axis)), x.dtype(), x.device());
  }

  Tensor logsumexp(const Tensor& x) const {
    const Tensor largest = amax(x.detach(), axis, true);
    return log(sum(exp(x - largest), axis, true)) + largest;
  }

  Tensor value(const Tensor& x, const Tensor& target, const Tensor& weight, const Tensor& lse) const {
    const Tensor hot = indicator(x, target);
    const double nowhere = -std::numeric_limits<double>::infinity();
    Tensor terms = lse - amax(where(hot, x, constant(nowhere, x)), axis, true);
    if (weight.defined()) terms = terms * weight_of(hot, weight);
    if (smoothing > 0) {
      const Tensor uniform = sum(weight.defined() ? (lse - x) * weight : lse - x, axis, true);
      terms = terms * (1 - smoothing) + uniform * spread(x);
    }
    return where(counted(target), terms, constant(0, x));
  }

  // softmax * (the weights' total) - (the target's distribution times the weights).
  Tensor slope(const Tensor& gradient, const Tensor& x, const Tensor& target, const Tensor& weight,
               const Tensor& lse) const {
    const Tensor hot = indicator(x, target);
    const Tensor zero = constant(0, x);
    const Tensor g = where(counted(target), gradient, zero);
    Tensor at_target = weight.defined() ? weight_of(hot, weight) : constant(1, x);
    Tensor total = at_target;
    if (smoothing > 0) {
      at_target = at_target * (1 - smoothing);
      total = weight.defined() ? at_target + sum(weight, axis, true) * spread(x)
                               : at_target + functional::number(smoothing, x.dtype(), x.device());
    }
    const Tensor p = exp(x - lse);
    Tensor slope = total.dim() == 0 && smoothing == 0 ? p : p * total;
    slope = slope - where(hot, at_target, zero);
    if (smoothing > 0) slope = slope - (weight.defined() ? weight * spread(x) : spread(x));
    return slope * g;
  }
};

Tensor class_terms(const Tensor& input, const Tensor& target, const Tensor& weight, const ClassTerms& rule) {
  Tensor lse;
  const Tensor result = functional::outside_tape([&] {
    lse = rule.logsumexp(wide(input));
    return rule.value(wide(input), target, weight, lse);
  });
  std::vector<Tensor> saved{input, target, lse};
  if (weight.defined()) saved.push_back(weight);
  return autograd::with_gradient("cross_entropy", {input}, result, saved, false,
                                 [rule](const Tensor& g, std::span<const Tensor> kept) -> std::vector<Tensor> {
                                   const Tensor x = wide(kept[0]);
                                   const Tensor lse = is_grad_enabled() ? rule.logsumexp(x) : kept[2];
                                   return {rule.slope(wide(g), x, kept[1], kept.size() > 3 ? kept[3] : Tensor(), lse)};
                                 });
}

// Over all axes, which stay with size 1: without a view in between, what follows is computed where the sum is.
Tensor total(const Tensor& terms) { return functional::reduced(ops::Op::sum, terms, (1U << terms.dim()) - 1U, true); }

// The weights of the targets that count, in total: what the mean divides by.
Tensor total_weight(const Tensor& x, const Tensor& target, const Tensor& weight, const ClassTerms& rule) {
  const Tensor counted = rule.counted(target);
  if (!weight.defined()) return total(cast(counted, x.dtype()));
  const Tensor weights = rule.weight_of(rule.indicator(x, target), weight);
  return total(where(counted, weights, constant(0, weights)));
}

Tensor of_classes(const Tensor& input, const Tensor& target, const CrossEntropyOptions& options) {
  check_classes("cross_entropy", input, target);
  const int axis = class_axis(input);
  const ClassTerms rule{axis, options.label_smoothing};
  const Tensor at = checked_classes("cross_entropy", input, target, options.ignore_index);
  const Tensor weight = functional::outside_tape([&] { return along_classes(options.weight, input); });
  const Tensor terms = class_terms(input, at, weight, rule);
  if (options.reduction == Reduction::none) return terms.squeeze(axis);
  if (options.reduction == Reduction::sum) return sum(terms);
  const Tensor weights = functional::outside_tape([&] { return total_weight(wide(input), at, weight, rule); });
  return (total(terms) / weights).reshape({});
}

Tensor of_probabilities(const Tensor& input, const Tensor& target, const CrossEntropyOptions& options) {
  if (target.sizes() != input.sizes()) {
    throw ShapeError(fmt::format("cross_entropy: probabilities have the input's shape {}, not {}",
                                 to_string(input.sizes()), to_string(target.sizes())));
  }
  const int axis = class_axis(input);
  const auto classes = static_cast<double>(input.size(axis));
  Tensor p = cast(target, wide(input).dtype());
  if (options.label_smoothing > 0) {
    p = p * (1 - options.label_smoothing) + options.label_smoothing / classes;
  }
  Tensor products = log_softmax(wide(input), axis) * p;
  if (options.weight.defined()) products = products * along_classes(options.weight, input);
  const Tensor terms = -sum(products, axis);
  if (options.reduction == Reduction::none) return terms;
  if (options.reduction == Reduction::sum) return sum(terms);
  return sum(terms) * constant(1.0 / static_cast<double>(terms.numel()), terms);
}

}  // namespace

Tensor cross_entropy(const Tensor& input, const Tensor& target, const CrossEntropyOptions& options) {
  check("cross_entropy", input, options.weight);
  if (!(options.label_smoothing >= 0 && options.label_smoothing <= 1)) {
    throw ValueError(fmt::format("cross_entropy: label_smoothing is in [0, 1], not {}", options.label_smoothing));
  }
  const Tensor logits = autocast(ops::Autocast::float32, input);
  const Tensor loss =
      is_floating(target.dtype()) ? of_probabilities(logits, target, options) : of_classes(logits, target, options);
  return cast(loss, logits.dtype());
}

Tensor nll_loss(const Tensor& input, const Tensor& target, const NllLossOptions& options) {
  check("nll_loss", input, options.weight);
  check_classes("nll_loss", input, target);
  const int axis = class_axis(input);
  const Tensor x = wide(autocast(ops::Autocast::float32, input));
  const Tensor at = checked_classes("nll_loss", input, target, options.ignore_index);
  const Tensor counted = at >= constant(0, at);
  const Tensor safe = where(counted, at, constant(0, at));
  Tensor weights = counted.to(x.dtype());
  if (options.weight.defined()) {
    const Tensor each = of_class(wide(options.weight), safe);
    weights = where(counted, each, constant(0, each));
  }
  const Tensor picked = of_class(x, axis, safe);
  const Tensor terms = -(where(counted, picked, constant(0, x)) * weights);
  const DType type = autocast(ops::Autocast::float32, input).dtype();
  if (options.reduction == Reduction::none) return cast(terms.squeeze(axis), type);
  const Tensor result = options.reduction == Reduction::sum ? total(terms) : total(terms) / total(weights);
  return cast(result.reshape({}), type);
}

Tensor multi_margin_loss(const Tensor& input, const Tensor& target, std::int64_t p, double margin, const Tensor& weight,
                         Reduction reduction) {
  check("multi_margin_loss", input, weight);
  check_classes("multi_margin_loss", input, target);
  if (p != 1 && p != 2) throw ValueError(fmt::format("multi_margin_loss: p is 1 or 2, not {}", p));
  if (input.dim() > 2) throw ShapeError("multi_margin_loss: the input is [n, classes] or [classes]");
  const int axis = class_axis(input);
  const Tensor given = autocast(ops::Autocast::float32, input);
  const Tensor x = wide(given);
  const Tensor at = checked_classes("multi_margin_loss", input, target, {});
  Tensor terms = clamp_min(x - of_class(x, axis, at) + margin, 0);
  if (p == 2) terms = terms * terms;
  const Tensor hot = functional::iota_along(axis, x.dim(), x.size(axis), x.device()) == at;
  terms = where(hot, constant(0, x), terms);
  if (weight.defined()) {
    terms = terms * of_class(wide(weight), at);
  }
  const Tensor losses = sum(terms, axis) * constant(1.0 / static_cast<double>(x.size(axis)), x);
  return cast(functional::reduced(losses, reduction), given.dtype());
}

}  // namespace russet
