#pragma once
// The tape: what composites and gradient rules are written against.
#include <russet/tensor.h>
#include <functional>
#include <initializer_list>
#include <span>
#include <vector>

#include "graph/geometry.h"
#include "graph/node.h"
#include "ops/op.h"

namespace russet::autograd {

/// Applies a primitive of at most three inputs and records it on the tape if grad mode is on and an input requires a
/// gradient. Elementwise inputs broadcast; they must have one type already (functional::promoted does that).
Tensor apply(ops::Op op, std::span<const Tensor> inputs, graph::NodeInfo&& given = {});
inline Tensor apply(ops::Op op, std::initializer_list<Tensor> inputs, graph::NodeInfo&& given = {}) {
  return apply(op, std::span(inputs.begin(), inputs.size()), std::move(given));
}

/// As apply, with any number of inputs. Rules of operators with more than three may read all inputs and the result.
Tensor apply_many(ops::Op op, const std::vector<Tensor>& inputs, graph::NodeInfo&& given = {});

/// take and put: an array and, for put, values, then the index tensors.
Tensor indexed(ops::Op op, std::initializer_list<Tensor> arrays, std::span<const Tensor> index,
               const ops::Indexing& indexing);

/// A composite that owns its gradient: `forward` runs outside the tape; `gradient` maps the result's gradient to one
/// gradient for each input (an undefined tensor means zero). `saved` tensors are what the rule reads, in order; they
/// arrive at the rule connected to the tape, so gradients of gradients follow. A saved tensor may be one of the
/// inputs, the result (leave `save_result` true: it comes last), or any other value, which then counts as constant.
using CustomGradient = std::function<std::vector<Tensor>(const Tensor& gradient, std::span<const Tensor> saved)>;
Tensor with_gradient(std::string_view name, const std::vector<Tensor>& inputs, const Tensor& result,
                     const std::vector<Tensor>& saved, bool save_result, CustomGradient gradient);

/// A handle with another geometry on the same storage; it shares the autograd record, so writes through either are
/// seen by both.
Tensor alias(const Tensor& tensor, graph::Geometry geometry);

/// What a composite has just computed, with another geometry: the caller sees a result, not a view.
Tensor reshaped_result(const Tensor& result, graph::Geometry geometry);

/// Whether the calling thread is within a backward pass.
bool is_differentiating();

/// Gradients of `output` for all leaves, added to what they keep; then a mark.
void backward(const Tensor& output, const Tensor& gradient, bool retain_graph, bool create_graph);

/// The one in-place write: `target`'s elements become `value`, broadcast and cast, in every alias and on the tape.
/// Throws AutogradError for a leaf that requires a gradient, or a view of one, in grad mode.
/// Throws ValueError for a target whose elements overlap in memory, unless all get one number.
enum class Overlap : std::uint8_t { refused, allowed };
void assign(const Tensor& target, const Tensor& value, Overlap overlap = Overlap::refused);

}  // namespace russet::autograd
