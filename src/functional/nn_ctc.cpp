// Connectionist temporal classification. A target of s classes is a walk over 2 s + 1 states: a blank, the first class,
// a blank, ... Forward keeps log a(t, state), the probability of all walks that are there after step t; its gradient
// takes log b(t, state), that of all ways to go on, from the last step back. Lengths are values, so that batches of
// other lengths are of the same form.
#include <russet/autograd.h>
#include <russet/functional/nn_loss.h>

#include <algorithm>
#include <limits>

#include "functional/nn_detail.h"

namespace russet {
namespace {

using functional::cast;
using functional::constant;
using functional::iota_along;

constexpr double never = -std::numeric_limits<double>::infinity();

/// States `count` places before (count > 0) or behind (count < 0) each one, log 0 where there is none.
Tensor neighbours(const Tensor& x, std::int64_t count) {
  const std::int64_t size = x.size(-1);
  if (count > 0) return pad(x, {count, 0}, PadMode::constant, never).narrow(-1, 0, size);
  return pad(x, {0, -count}, PadMode::constant, never).narrow(-1, -count, size);
}

/// What keeps exponentials of x small; a constant of gradients.
Tensor offset_of(const Tensor& largest) {
  return where(largest == constant(never, largest), constant(0, largest), largest).detach();
}

/// log(total) + offset, log 0 where the total is 0: with gradients of 0 there.
Tensor log_total(const Tensor& total, const Tensor& offset) {
  const Tensor is_none = total == constant(0, total);
  return where(is_none, constant(never, total), log(where(is_none, constant(1, total), total)) + offset);
}

/// log(exp(x) + exp(y) + exp(z)), where any may be log 0.
Tensor log_sum(const Tensor& x, const Tensor& y, const Tensor& z) {
  const Tensor offset = offset_of(maximum(maximum(x, y), z));
  return log_total(exp(x - offset) + exp(y - offset) + exp(z - offset), offset);
}

/// The walks of a batch. Tensors of states are [n, states].
struct Walks {
  Tensor classes;         // int64: the class of each state
  Tensor may_skip;        // whether the state may follow that two places before
  Tensor input_lengths;   // int64: [n, 1]
  Tensor target_lengths;  // int64: [n, 1]

  std::int64_t states() const { return classes.size(1); }
  Tensor place() const { return iota_along(1, 2, states(), classes.device()); }
  /// log 1 in the states in which a walk may end: the last class and the blank behind it.
  Tensor ends(const Tensor& like) const {
    const Tensor last = target_lengths * 2;
    const Tensor is_end = logical_and(place() <= last, place() >= last - 1);
    return where(is_end, constant(0, like), constant(never, like));
  }
  /// The log probabilities of each state's class: [l, n, states].
  Tensor of_states(const Tensor& log_probs) const {
    return gather(log_probs, 2, classes.unsqueeze(0).expand({log_probs.size(0), classes.size(0), states()}));
  }
  Tensor is_active(std::int64_t step) const { return gt(input_lengths, step); }

  /// log a: [l, n, states]. Behind a sequence's end it stays as it was.
  std::vector<Tensor> forward(const Tensor& emitted) const {
    const Tensor nothing = constant(never, emitted);
    // As if a step before the first one had emitted a blank.
    Tensor a = where(place() == constant(0, place()), constant(0, emitted), nothing).expand(classes.sizes());
    std::vector<Tensor> steps;
    for (std::int64_t t = 0; t < emitted.size(0); ++t) {
      const Tensor skipped = where(may_skip, neighbours(a, 2), nothing);
      a = where(is_active(t), log_sum(a, neighbours(a, 1), skipped) + emitted.select(0, t), a);
      steps.push_back(a);
    }
    return steps;
  }

  /// log b: [l, n, states].
  Tensor backward(const Tensor& emitted) const {
    const Tensor nothing = constant(never, emitted);
    const Tensor skips = pad(may_skip, {0, 2}, PadMode::constant, false).narrow(1, 2, states());
    const Tensor end = ends(emitted);
    std::vector<Tensor> steps(static_cast<std::size_t>(emitted.size(0)));
    Tensor b = end;
    for (std::int64_t t = emitted.size(0) - 1; t >= 0; --t) {
      if (t + 1 < emitted.size(0)) {
        const Tensor next = b + emitted.select(0, t + 1);
        const Tensor skipped = where(skips, neighbours(next, -2), nothing);
        b = where(is_active(t + 1), log_sum(next, neighbours(next, -1), skipped), end);
      }
      steps[static_cast<std::size_t>(t)] = b;
    }
    return stack(steps);
  }

  /// -log of the probability of all walks: [n, 1].
  Tensor loss(const Tensor& a) const {
    const Tensor reached = a + ends(a);
    const Tensor offset = offset_of(amax(reached, 1, true));
    return -log_total(sum(exp(reached - offset), 1, true), offset);
  }

  // As PyTorch, log_probs are taken for the result of a log_softmax: the gradient is that of its input.
  Tensor slope(const Tensor& gradient, const Tensor& log_probs, const Tensor& a, const Tensor& loss,
               bool zero_infinity) const {
    const Tensor at_state = exp(a + backward(of_states(log_probs)) + loss);
    const Tensor index = classes.unsqueeze(0).expand(at_state.sizes());
    const Tensor expected = scatter_add(constant(0, log_probs, log_probs.sizes()), 2, index, at_state);
    const Tensor step = iota_along(0, 3, log_probs.size(0), log_probs.device());
    Tensor counts = step < input_lengths;
    if (zero_infinity) counts = logical_and(counts, logical_not(isinf(loss)));
    return where(counts, (exp(log_probs) - expected) * gradient, constant(0, log_probs));
  }
};

/// [n, 1]: the losses of walks.
Tensor losses_of(const Tensor& log_probs, const Walks& walks, bool zero_infinity) {
  Tensor a;
  const Tensor losses = functional::outside_tape([&] {
    const std::vector<Tensor> steps = walks.forward(walks.of_states(log_probs));
    a = stack(steps);
    return walks.loss(steps.back());
  });
  const std::vector<Tensor> saved{log_probs,           a, walks.classes, walks.may_skip, walks.input_lengths,
                                  walks.target_lengths};
  const auto gradient = [zero_infinity](const Tensor& g, std::span<const Tensor> kept) -> std::vector<Tensor> {
    const Walks walks{kept[2], kept[3], kept[4], kept[5]};
    // What was saved is a constant: a gradient that is itself differentiated computes it again.
    const Tensor a = is_grad_enabled() ? stack(walks.forward(walks.of_states(kept[0]))) : kept[1];
    return {walks.slope(g, kept[0], a, kept[6], zero_infinity)};
  };
  return autograd::with_gradient("ctc_loss", {log_probs}, losses, saved, true, gradient);
}

using Lengths = std::vector<std::int64_t>;

Lengths read_lengths(const char* name, const Tensor& lengths, std::int64_t batch, std::int64_t most) {
  functional::require_index_type("ctc_loss", lengths);
  if (lengths.dim() > 1 || lengths.numel() != batch) {
    throw ShapeError(
        fmt::format("ctc_loss: {} has the shape {} for a batch of {}", name, to_string(lengths.sizes()), batch));
  }
  Lengths values = lengths.to_vector<std::int64_t>();
  for (const std::int64_t value : values) {
    if (value >= 0 && value <= most) continue;
    throw ValueError(fmt::format("ctc_loss: {} has the value {}, which is not from 0 to {}", name, value, most));
  }
  return values;
}

/// Targets that lie one behind the other, side by side: [n, longest]. column: the lengths as a tensor, [n, 1].
Tensor side_by_side(const Tensor& targets, const Lengths& lengths, const Tensor& column) {
  const std::int64_t longest = lengths.empty() ? 0 : *std::max_element(lengths.begin(), lengths.end());
  std::int64_t total = 0;
  for (const std::int64_t length : lengths) total += length;
  if (targets.size(0) != total) {
    throw ShapeError(fmt::format("ctc_loss: {} targets, where target_lengths add up to {}", targets.size(0), total));
  }
  const auto batch = static_cast<std::int64_t>(lengths.size());
  if (total == 0) return constant(0, targets, {batch, longest});
  const Tensor start = cumsum(column, 0) - column;
  const Tensor place = start + iota_along(1, 2, longest, targets.device());
  return take(targets, clamp_max(place, total - 1));
}

/// A blank before, between and behind the classes of each target, and behind its end.
Walks walks_of(const Tensor& targets, const Tensor& input_lengths, const Tensor& target_lengths, std::int64_t blank) {
  const std::int64_t batch = targets.size(0);
  const std::int64_t length = targets.size(1);
  const Tensor no_class = constant(blank, targets);
  const Tensor is_class = iota_along(1, 2, length, targets.device()) < target_lengths;
  const Tensor classes = where(is_class, targets, no_class);
  const Tensor pairs = stack({no_class.expand(targets.sizes()), classes}, 2).reshape({batch, 2 * length});
  const Tensor states = cat({pairs, no_class.expand({batch, 1})}, 1);
  const Tensor two_before = pad(states, {2, 0}, PadMode::constant, blank).narrow(1, 0, states.size(1));
  return {states, states != two_before, input_lengths, target_lengths};
}

void check(const Tensor& log_probs, const Tensor& targets, std::int64_t blank) {
  functional::require_floating("ctc_loss", log_probs);
  if (log_probs.dim() != 2 && log_probs.dim() != 3) {
    throw ShapeError(
        fmt::format("ctc_loss: log_probs is [l, n, classes] or [l, classes], not {}", to_string(log_probs.sizes())));
  }
  if (blank < 0 || blank >= log_probs.size(-1)) {
    throw ValueError(fmt::format("ctc_loss: blank {} is none of {} classes", blank, log_probs.size(-1)));
  }
  if (log_probs.size(0) == 0) throw ShapeError("ctc_loss: log_probs has no time steps");
  if (targets.dim() != 1 && targets.dim() != 2) {
    throw ShapeError(fmt::format("ctc_loss: targets is [n, s] or a vector, not {}", to_string(targets.sizes())));
  }
}

/// [n, s] of int64, checked against the lengths; `column` as above.
Tensor batched_targets(const Tensor& targets, const Tensor& target_lengths, std::int64_t batch, const Tensor& column) {
  const Tensor given = cast(targets, DType::int64);
  const Lengths lengths = read_lengths("target_lengths", target_lengths, batch, given.size(-1));
  if (given.dim() == 1) return side_by_side(given, lengths, column);
  if (given.size(0) == batch) return given;
  throw ShapeError(
      fmt::format("ctc_loss: targets has the shape {} for a batch of {}", to_string(targets.sizes()), batch));
}

}  // namespace

Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                const Tensor& target_lengths, std::int64_t blank, Reduction reduction, bool zero_infinity) {
  check(log_probs, targets, blank);
  const bool is_batched = log_probs.dim() == 3;
  const Tensor given = functional::autocast(ops::Autocast::float32, log_probs);
  const Tensor x = functional::wide(is_batched ? given : given.unsqueeze(1));
  const std::int64_t batch = x.size(1);
  read_lengths("input_lengths", input_lengths, batch, x.size(0));
  const auto column = [&](const Tensor& lengths) {
    return cast(lengths.to(x.device()), DType::int64).reshape({lengths.numel(), 1});
  };
  const Tensor ends = column(target_lengths);
  const Tensor rows = batched_targets(targets.to(x.device()), target_lengths, batch, ends);
  const Walks walks = functional::outside_tape([&] { return walks_of(rows, column(input_lengths), ends, blank); });
  Tensor losses = losses_of(x, walks, zero_infinity).squeeze(1);
  if (zero_infinity) losses = where(isinf(losses), constant(0, losses), losses);
  if (reduction == Reduction::mean) losses = losses / cast(clamp_min(ends.squeeze(1), 1), losses.dtype());
  if (!is_batched && reduction == Reduction::none) losses = losses.squeeze(0);
  return cast(functional::reduced(losses, reduction), given.dtype());
}

}  // namespace russet
