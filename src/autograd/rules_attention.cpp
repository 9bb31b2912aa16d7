// Attention and its gradients. The backward pass uses attention kernels, which never store the scores. Second gradients
// are those of the equivalent products and elementwise operators, which do store them.
#include <russet/autograd.h>

#include <limits>

#include "autograd/attention.h"
#include "autograd/rules_detail.h"
#include "ops/attention.h"

namespace russet::autograd {
namespace {

using ops::Op;

constexpr double infinity = std::numeric_limits<double>::infinity();

Tensor wide(const Tensor& x) { return size_of(x.dtype()) < 4 ? x.to(DType::float32) : x; }

graph::NodeInfo given(const AttentionOperands& operands) {
  graph::NodeInfo info;
  info.attributes = operands.attributes;
  std::get<ops::Attention>(info.attributes).masked = operands.mask.defined();
  return info;
}

/// Applies an operator to `inputs` and to the mask and the random numbers that there are.
Tensor applied(Op op, std::vector<Tensor> inputs, const AttentionOperands& operands) {
  if (operands.mask.defined()) inputs.push_back(operands.mask);
  if (operands.uniform.defined() && op != Op::attention_logsumexp) inputs.push_back(operands.uniform);
  return apply_many(op, inputs, given(operands));
}

/// 0, 1, ... along an axis of the scores.
Tensor positions_along(const Tensor& scores, int axis) {
  Shape sizes = Shape::filled(scores.dim(), 1);
  sizes[axis] = scores.sizes()[axis];
  graph::NodeInfo info;
  info.dtype = DType::int64;
  info.device = scores.device();
  info.shape = sizes;
  return graph::wrap(graph::record(Op::iota, graph::NodeRefs{}, std::move(info)));
}

/// Scaled and masked scores.
Tensor scores(const AttentionOperands& a) {
  Tensor s = wide(product(a.query, a.key.transpose(-2, -1)));
  s = s * constant(s, a.attributes.scale);
  const Tensor hidden = constant(s, -infinity);
  if (a.attributes.causal) {
    const int rank = s.dim();
    s = where(positions_along(s, rank - 1) <= positions_along(s, rank - 2), s, hidden);
  }
  if (!a.mask.defined()) return s;
  return a.mask.dtype() == DType::boolean ? where(a.mask, s, hidden) : s + a.mask;
}

/// What each probability is multiplied by in dropout.
Tensor kept(const AttentionOperands& a, const Tensor& p) {
  const double share = a.attributes.dropout;
  return where(constant(a.uniform, share) <= a.uniform, constant(p, 1 / (1 - share)), constant(p, 0));
}

/// The inputs of an operator by what they are.
struct Named {
  AttentionOperands operands;
  Tensor gradient;
  Tensor logsumexp;
  Tensor delta;
};

Named named(Op op, const ops::Attention& attributes, std::span<const Tensor> inputs) {
  const ops::AttentionInputs at = ops::attention_inputs(op, attributes);
  const auto input = [&](int i) { return i < 0 ? Tensor() : inputs[static_cast<std::size_t>(i)]; };
  return {{input(at.query), input(at.key), input(at.value), input(at.mask), input(at.uniform), attributes},
          input(at.gradient),
          input(at.logsumexp),
          input(at.delta)};
}

/// A gradient of attention, written with products and elementwise operators.
Tensor composed(Op op, const Named& x) {
  const AttentionOperands& a = x.operands;
  const DType type = a.query.dtype();
  const Tensor p = exp(scores(a) - x.logsumexp);
  const bool drops = a.uniform.defined();
  if (op == Op::attention_value_gradient) {
    const Tensor dropped = drops ? p * kept(a, p) : p;
    return product(dropped.to(type).transpose(-2, -1), x.gradient);
  }
  Tensor slope = wide(product(x.gradient, a.value.transpose(-2, -1)));
  if (drops) slope = slope * kept(a, p);
  const Tensor of_scores = (p * (slope - x.delta) * constant(p, a.attributes.scale)).to(type);
  if (op == Op::attention_query_gradient) return product(of_scores, a.key);
  return product(of_scores.transpose(-2, -1), a.query);
}

/// Attention, written with products and elementwise operators.
Tensor composed_attention(const Named& x) {
  const AttentionOperands& a = x.operands;
  const Tensor s = scores(a);
  const Tensor seen = s.detach();
  const Tensor largest = amax(seen, -1, true);
  const Tensor e = exp(s - where(largest == constant(s, -infinity), constant(s, 0), largest));
  const Tensor total = sum(e, -1, true);
  Tensor p = e / where(total == constant(s, 0), constant(s, 1), total);
  if (a.uniform.defined()) p = p * kept(a, p);
  return product(p.to(a.query.dtype()), a.value);
}

/// The gradients of what `compose` computes from the rule's inputs.
template <class Compose>
Gradients of_composite(const Context& c, const Tensor& g, Compose&& compose) {
  const bool again = is_grad_enabled();
  const SetGrad taped(true);
  const Op op = c.node.op;
  const auto& attributes = std::get<ops::Attention>(c.node.attributes);
  // Entries of their own on the tape: one tensor may be several of the inputs.
  std::vector<Tensor> inputs;
  std::vector<Tensor> wanted;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < c.inputs.size(); ++i) {
    inputs.push_back(c.inputs[i]);
    if (!c.needs[i]) continue;
    Tensor own = c.inputs[i].requires_grad() ? c.inputs[i] : c.inputs[i].detach().requires_grad_();
    graph::NodeInfo same;
    same.dtype = own.dtype();
    inputs.back() = apply(Op::cast, {own}, std::move(same));
    wanted.push_back(inputs.back());
    places.push_back(i);
  }
  const Tensor y = compose(named(op, attributes, inputs));
  const std::vector<Tensor> found = grad({y}, wanted, {g}, {.create_graph = again, .allow_unused = true});
  Gradients gradients;
  for (std::size_t i = 0; i < places.size(); ++i) gradients[places[i]] = found[i];
  return gradients;
}

}  // namespace

Tensor attention(const AttentionOperands& a) { return applied(Op::attention, {a.query, a.key, a.value}, a); }

Tensor attention_logsumexp(const AttentionOperands& a) { return applied(Op::attention_logsumexp, {a.query, a.key}, a); }

AttentionGradients attention_gradients(const AttentionOperands& a, const Tensor& result, const Tensor& logsumexp,
                                       const Tensor& gradient) {
  const Tensor g = gradient.contiguous();
  const Tensor delta = sum(wide(g) * wide(result.contiguous()), -1, true);
  const std::vector<Tensor> inputs{a.query, a.key, a.value, g, logsumexp, delta};
  return {applied(Op::attention_query_gradient, inputs, a), applied(Op::attention_key_gradient, inputs, a),
          applied(Op::attention_value_gradient, {a.query, a.key, g, logsumexp}, a)};
}

Gradients attention_gradient(const Context& c, const Tensor& g) {
  const auto& attributes = std::get<ops::Attention>(c.node.attributes);
  const ops::AttentionInputs at = ops::attention_inputs(Op::attention, attributes);
  if (at.mask >= 0 && c.needs[static_cast<std::size_t>(at.mask)]) return of_composite(c, g, composed_attention);
  const AttentionOperands operands = named(Op::attention, attributes, c.inputs).operands;
  const AttentionGradients found = attention_gradients(operands, c.out(), attention_logsumexp(operands), g);
  return {found.query, found.key, found.value};
}

// The gradient for a score is its probability.
Gradients attention_logsumexp_gradient(const Context& c, const Tensor& g) {
  const auto& attributes = std::get<ops::Attention>(c.node.attributes);
  const AttentionOperands a = named(Op::attention_logsumexp, attributes, c.inputs).operands;
  const Tensor slope = exp(scores(a) - c.out()) * g;
  const Tensor of_products = (slope * constant(slope, attributes.scale)).to(a.query.dtype());
  Gradients gradients{product(of_products, a.key), product(of_products.transpose(-2, -1), a.query)};
  if (a.mask.defined() && c.needs[2]) gradients[2] = slope;
  return gradients;
}

Gradients attention_backward_gradient(const Context& c, const Tensor& g) {
  return of_composite(c, g, [&](const Named& x) { return composed(c.node.op, x); });
}

}  // namespace russet::autograd
