// Shape and type rules: from descriptions of the inputs to one of the result.
#include <fmt/format.h>
#include <russet/error.h>
#include <bit>
#include <string>

#include "ops/attention.h"
#include "ops/table.h"

namespace russet::ops {
namespace {

using Inputs = std::span<const Description* const>;

/// What is being inferred; every error message is made from it.
struct Inference {
  const OpRow& row;
  Inputs inputs;
  const Attributes& attributes;
  const Description& given;

  const Description& input(int i) const { return *inputs[static_cast<std::size_t>(i)]; }
  const Shape& shape(int i) const { return input(i).shape; }

  /// "add(float32 [2, 3], int64 [3])"
  std::string text() const {
    std::string list;
    for (const Description* input : inputs) {
      fmt::format_to(std::back_inserter(list), "{}{} {}", list.empty() ? "" : ", ", name_of(input->dtype),
                     to_string(input->shape));
    }
    return fmt::format("{}({})", row.name, list);
  }

  template <class Kind = ShapeError, class... Arguments>
  [[noreturn]] void fail(fmt::format_string<Arguments...> format, Arguments&&... arguments) const {
    throw Kind(fmt::format("{}: {}", text(), fmt::format(format, std::forward<Arguments>(arguments)...)));
  }

  template <class T>
  const T& attribute() const {
    if (const T* found = std::get_if<T>(&attributes)) return *found;
    fail<InternalError>("the operator's attributes are missing");
  }
};

// Types.

/// Inputs that choose rather than contribute have a type of their own.
enum class InputRole { value, condition, index, selector };

InputRole role_of(Op op, int input) {
  if (op == Op::where && input == 0) return InputRole::condition;
  if ((op == Op::take && input >= 1) || (op == Op::put && input >= 2)) return InputRole::index;
  if ((op == Op::max_pool || op == Op::max_unpool) && input == 0) return InputRole::selector;
  return InputRole::value;
}

[[noreturn]] void fail_of_types(const Inference& inference, DType a, DType b) {
  inference.fail<TypeError>("the types differ: {} and {}. Cast one of them with .to()", name_of(a), name_of(b));
}

DType wide_type(DType type) { return type == DType::float64 ? type : DType::float32; }

/// Statistics, and masks that are added, have the type in which scores are computed.
DType attention_type(const Inference& inference) {
  const AttentionInputs at = attention_inputs(inference.row.op, inference.attribute<Attention>());
  const DType type = inference.input(at.query).dtype;
  const DType wide = wide_type(type);
  for (int i = 0; i < static_cast<int>(inference.inputs.size()); ++i) {
    const DType own = inference.input(i).dtype;
    if (i == at.mask) {
      if (own != wide && own != DType::boolean) {
        inference.fail<TypeError>("the mask is bool or {}, not {}", name_of(wide), name_of(own));
      }
    } else if (i == at.uniform) {
      if (!is_floating(own)) inference.fail<TypeError>("random numbers are floating, not {}", name_of(own));
    } else if (i == at.logsumexp || i == at.delta) {
      if (own != wide) inference.fail<TypeError>("logsumexp and delta are {}, not {}", name_of(wide), name_of(own));
    } else if (own != type) {
      fail_of_types(inference, type, own);
    }
  }
  return type;
}

/// The one type of all value inputs.
DType value_type(const Inference& inference) {
  if (inference.row.family == Family::attention) return attention_type(inference);
  const Description* first = nullptr;
  for (int i = 0; i < static_cast<int>(inference.inputs.size()); ++i) {
    const Description& input = inference.input(i);
    const InputRole role = role_of(inference.row.op, i);
    if (role == InputRole::condition && input.dtype != DType::boolean) {
      inference.fail<TypeError>("the condition is bool, not {}", name_of(input.dtype));
    }
    if (role == InputRole::index && (!is_integral(input.dtype) || input.dtype == DType::boolean)) {
      inference.fail<TypeError>("an index is of an integer type, not {}", name_of(input.dtype));
    }
    if (role != InputRole::value) continue;
    if (first != nullptr && first->dtype != input.dtype) fail_of_types(inference, first->dtype, input.dtype);
    if (first == nullptr) first = &input;
  }
  return first == nullptr ? inference.given.dtype : first->dtype;
}

DType result_type(const Inference& inference) {
  const DType type = value_type(inference);
  switch (inference.row.type) {
    case TypeRule::given:
      if (inference.row.family == Family::random)
        return inference.row.op == Op::random_bits ? DType::int64 : DType::float32;
      return inference.given.dtype;
    case TypeRule::same: return type;
    case TypeRule::numeric:
      if (type == DType::boolean)
        inference.fail<TypeError>("takes numbers, not bool. Cast with .to() or use logical_*");
      return type;
    case TypeRule::floating:
      if (!is_floating(type)) inference.fail<TypeError>("takes floating types, not {}. Cast with .to()", name_of(type));
      return type;
    case TypeRule::integral:
      if (is_floating(type)) inference.fail<TypeError>("takes integers and bool, not {}", name_of(type));
      return type;
    case TypeRule::comparison: return DType::boolean;
    case TypeRule::widen: return is_floating(type) ? type : DType::int64;
    case TypeRule::wide:
      if (!is_floating(type)) inference.fail<TypeError>("takes floating types, not {}. Cast with .to()", name_of(type));
      return wide_type(type);
    case TypeRule::precise:
      if (type != DType::float32 && type != DType::float64) {
        inference.fail<TypeError>("takes float32 and float64, not {}. Cast with .to()", name_of(type));
      }
      return type;
    case TypeRule::index: break;
  }
  return DType::int64;
}

// Shapes.

Shape broadcast_all(const Inference& inference) {
  Shape result = inference.shape(0);
  for (int i = 1; i < inference.row.inputs; ++i) {
    const Shape& other = inference.shape(i);
    if (result == other) continue;
    const int rank = std::max(result.rank(), other.rank());
    Shape next = Shape::filled(rank, 1);
    for (int back = 1; back <= rank; ++back) {
      const std::int64_t a = back <= result.rank() ? result[result.rank() - back] : 1;
      const std::int64_t b = back <= other.rank() ? other[other.rank() - back] : 1;
      if (a != b && a != 1 && b != 1) {
        inference.fail("the shapes do not broadcast: {} and {} (sizes {} and {} of dimension {})", to_string(result),
                       to_string(other), a, b, -back);
      }
      next[rank - back] = a == 1 ? b : a;
    }
    result = next;
  }
  return result;
}

/// The chosen axes of the first input. A scalar counts as having one axis.
std::uint32_t checked_axes(const Inference& inference) {
  const int rank = inference.shape(0).rank();
  const std::uint32_t mask = inference.attribute<Axes>().mask;
  if (mask >> std::max(rank, 1) != 0) {
    inference.fail<IndexError>("dimension {} is out of range for {} dimensions", std::bit_width(mask) - 1, rank);
  }
  return mask;
}

std::uint32_t one_axis(const Inference& inference) {
  const std::uint32_t mask = checked_axes(inference);
  if (std::popcount(mask) != 1) inference.fail("works along one dimension, not {}", std::popcount(mask));
  return mask;
}

Shape reduced(const Inference& inference) {
  const std::uint32_t mask = checked_axes(inference);
  const Op op = inference.row.op;
  Shape result = inference.shape(0);
  const bool has_identity = op == Op::sum || op == Op::prod || op == Op::squared_deviations;
  const bool positions = op == Op::argmax || op == Op::argmin;
  const int count = std::popcount(mask);
  if (positions && count != 1 && count != result.rank()) {
    inference.fail("takes one dimension or all of them, not {} of {}", count, result.rank());
  }
  for (int axis = 0; axis < result.rank(); ++axis) {
    if (((mask >> axis) & 1U) == 0) continue;
    if (result[axis] == 0 && !has_identity)
      inference.fail("dimension {} has size 0, so there is no element to choose", axis);
    result[axis] = 1;
  }
  return result;
}

Shape matmul(const Inference& inference) {
  const Shape& a = inference.shape(0);
  const Shape& b = inference.shape(1);
  const int rank = a.rank();
  if (rank < 2 || b.rank() != rank) {
    inference.fail("takes two tensors of the same number of dimensions, at least 2: {} x {}", to_string(a),
                   to_string(b));
  }
  if (a[rank - 1] != b[rank - 2]) {
    throw ShapeError(fmt::format("{}: the inner sizes differ: {} x {} ({} and {}){}", inference.row.name, to_string(a),
                                 to_string(b), a[rank - 1], b[rank - 2],
                                 a[rank - 1] == b[rank - 1] ? ". Transpose the second factor?" : ""));
  }
  Shape result = a;
  for (int axis = 0; axis < rank - 2; ++axis) {
    if (a[axis] != b[axis] && a[axis] != 1 && b[axis] != 1) {
      inference.fail("the batch dimensions do not broadcast: {} x {} (sizes {} and {})", to_string(a), to_string(b),
                     a[axis], b[axis]);
    }
    result[axis] = a[axis] == 1 ? b[axis] : a[axis];
  }
  result[rank - 1] = b[rank - 1];
  return result;
}

void check_window(const Inference& inference, const Window& window) {
  for (std::size_t side = 0; side < 2; ++side) {
    if (window.kernel[side] < 1) inference.fail<ValueError>("the window's size is {}", window.kernel[side]);
    if (window.stride[side] < 1) inference.fail<ValueError>("the stride is {}, not at least 1", window.stride[side]);
    if (window.dilation[side] < 1)
      inference.fail<ValueError>("the dilation is {}, not at least 1", window.dilation[side]);
    if (window.padding[side] < 0 || window.padding_after[side] < 0) {
      inference.fail<ValueError>("the padding is negative: {} and {}", window.padding[side],
                                 window.padding_after[side]);
    }
  }
}

std::int64_t window_outputs(const Inference& inference, const Window& window, std::size_t side, std::int64_t size,
                            std::int64_t kernel) {
  const std::int64_t count = window_output(size, kernel, window.stride[side], window.padding[side],
                                           window.padding_after[side], window.dilation[side]);
  if (count < 1) {
    inference.fail("a window of {} (dilation {}) does not fit in size {} with padding {} and {}", kernel,
                   window.dilation[side], size, window.padding[side], window.padding_after[side]);
  }
  return count;
}

/// The result of convolving `x` with `weight`; the same check serves both gradients.
Shape convolved(const Inference& inference, const Shape& x, const Shape& weight) {
  const Window& window = inference.attribute<Window>();
  check_window(inference, window);
  if (x.rank() != 4 || weight.rank() != 4) {
    inference.fail("takes [n, c, h, w] and a weight [o, c / groups, kh, kw], not {} and {}", to_string(x),
                   to_string(weight));
  }
  if (window.groups < 1) inference.fail<ValueError>("the number of groups is {}", window.groups);
  if (weight[1] * window.groups != x[1]) {
    inference.fail("the input has {} channels, but the weight {} with {} group(s) takes {}", x[1], to_string(weight),
                   window.groups, weight[1] * window.groups);
  }
  if (weight[0] % window.groups != 0) {
    inference.fail("{} output channels do not split into {} groups", weight[0], window.groups);
  }
  if (weight[2] < 1 || weight[3] < 1) inference.fail("the weight {} has an empty window", to_string(weight));
  return {x[0], weight[0], window_outputs(inference, window, 0, x[2], weight[2]),
          window_outputs(inference, window, 1, x[3], weight[3])};
}

void check_gradient(const Inference& inference, const Shape& gradient, const Shape& expected) {
  if (gradient == expected) return;
  inference.fail("the gradient's shape is {} where the result's is {}", to_string(gradient), to_string(expected));
}

Shape pooled(const Inference& inference, const Shape& x) {
  const Window& window = inference.attribute<Window>();
  check_window(inference, window);
  if (x.rank() != 4) inference.fail("takes [n, c, h, w], not {}", to_string(x));
  return {x[0], x[1], window_outputs(inference, window, 0, x[2], window.kernel[0]),
          window_outputs(inference, window, 1, x[3], window.kernel[1])};
}

/// Checks that a view stays within `count` elements.
void check_view(const Inference& inference, const Shape& sizes, std::int64_t count) {
  const View& view = inference.attribute<View>();
  if (view.strides.rank() != sizes.rank()) {
    inference.fail("strides {} do not match sizes {}", to_string(view.strides), to_string(sizes));
  }
  if (numel(sizes) == 0) return;
  std::int64_t first = view.offset;
  std::int64_t last = view.offset;
  for (int axis = 0; axis < sizes.rank(); ++axis) {
    const std::int64_t reach = (sizes[axis] - 1) * view.strides[axis];
    (reach < 0 ? first : last) += reach;
  }
  // A dynamic offset is checked by whoever records it; here, that the view fits at all.
  const bool fits = view.dynamic ? last - first < count : first >= 0 && last < count;
  if (!fits) {
    inference.fail<IndexError>("sizes {}, strides {} and offset {} reach elements {} to {} of {}", to_string(sizes),
                               to_string(view.strides), view.offset, first, last, count);
  }
}

/// The sizes of what is taken from, or put into, an array; `first` is the first index tensor.
Shape taken(const Inference& inference, int first) {
  const Shape& x = inference.shape(0);
  const auto& indexing = inference.attribute<Indexing>();
  const Shape& lead = indexing.lead;
  if (indexing.axes > x.rank()) inference.fail("names {} dimensions of {}", indexing.axes, x.rank());
  const int tensors = static_cast<int>(inference.inputs.size()) - first;
  if (tensors != indexing.tensors()) inference.fail<InternalError>("takes {} index tensors", indexing.tensors());
  for (int i = first; i < first + tensors; ++i) {
    const Shape& index = inference.shape(i);
    bool fits = index.rank() <= lead.rank();
    for (int back = 1; fits && back <= index.rank(); ++back) {
      fits = index[index.rank() - back] == 1 || index[index.rank() - back] == lead[lead.rank() - back];
    }
    if (!fits) inference.fail("the index {} does not broadcast to {}", to_string(index), to_string(lead));
  }
  for (int axis = 0; axis < indexing.axes; ++axis) {
    if (indexing.is_by_tensor(axis)) continue;
    const int source = indexing.sources[static_cast<std::size_t>(axis)];
    if (source >= lead.rank() || lead[source] > x[axis]) {
      inference.fail("dimension {} of the index {} runs past dimension {} of {}", source, to_string(lead), axis,
                     to_string(x));
    }
  }
  Shape result = lead;
  for (int axis = indexing.axes; axis < x.rank(); ++axis) {
    if (result.rank() == max_rank) inference.fail("the result would have more than {} dimensions", max_rank);
    result.push_back(x[axis]);
  }
  return result;
}

/// [batch..., rows, columns] with another number of rows and columns.
Shape matrices(Shape like, std::int64_t rows, std::int64_t columns) {
  like[like.rank() - 2] = rows;
  like[like.rank() - 1] = columns;
  return like;
}

void check_input(const Inference& inference, int input, const char* what, const Shape& expected) {
  if (input < 0 || inference.shape(input) == expected) return;
  inference.fail("the {}'s shape is {} where {} is needed", what, to_string(inference.shape(input)),
                 to_string(expected));
}

Shape attended(const Inference& inference) {
  const AttentionInputs at = attention_inputs(inference.row.op, inference.attribute<Attention>());
  if (static_cast<int>(inference.inputs.size()) != at.count) {
    inference.fail<InternalError>("takes {} inputs with these attributes, not {}", at.count, inference.inputs.size());
  }
  const Shape& query = inference.shape(at.query);
  const Shape& key = inference.shape(at.key);
  const int rank = query.rank();
  if (rank < 2 || key.rank() != rank)
    inference.fail("takes query and key of the same number of dimensions, at least 2");
  const std::int64_t rows = query[rank - 2];
  const std::int64_t columns = key[rank - 2];
  check_input(inference, at.key, "key", matrices(query, columns, query.back()));
  const int valued = at.value >= 0 ? at.value : at.gradient;
  if (valued >= 0 && inference.shape(valued).rank() != rank) inference.fail("the numbers of dimensions differ");
  const std::int64_t width = valued >= 0 ? inference.shape(valued).back() : 0;
  check_input(inference, at.value, "value", matrices(query, columns, width));
  check_input(inference, at.gradient, "gradient", matrices(query, rows, width));
  check_input(inference, at.logsumexp, "logsumexp", matrices(query, rows, 1));
  check_input(inference, at.delta, "delta", matrices(query, rows, 1));
  const Shape scores = matrices(query, rows, columns);
  check_input(inference, at.uniform, "random numbers", scores);
  if (at.mask >= 0) {
    const Shape& mask = inference.shape(at.mask);
    bool fits = mask.rank() == rank;
    for (int axis = 0; fits && axis < rank; ++axis) fits = mask[axis] == 1 || mask[axis] == scores[axis];
    if (!fits) inference.fail("the mask {} does not broadcast to the scores {}", to_string(mask), to_string(scores));
  }
  switch (inference.row.op) {
    case Op::attention: return matrices(query, rows, width);
    case Op::attention_logsumexp: return matrices(query, rows, 1);
    case Op::attention_query_gradient: return query;
    case Op::attention_key_gradient: return key;
    default: return matrices(query, columns, width);
  }
}

/// Results of one factorisation lie in one tensor, one below the other (see the table).
Shape factored(const Inference& inference) {
  const Shape& x = inference.shape(0);
  const int rank = x.rank();
  if (rank < 2) inference.fail("takes matrices: at least 2 dimensions");
  const std::int64_t rows = x[rank - 2];
  const std::int64_t columns = x[rank - 1];
  const std::int64_t least = std::min(rows, columns);
  const Linalg& wanted = inference.attribute<Linalg>();
  if (inference.row.op == Op::qr) return matrices(x, rows + columns, least);
  if (inference.row.op == Op::svd) return matrices(x, wanted.vectors ? rows + 1 + columns : 1, least);
  if (rows != columns) inference.fail("takes square matrices, not {} x {}", rows, columns);
  switch (inference.row.op) {
    case Op::cholesky: return x;
    case Op::lu: return matrices(x, rows + 1, columns);
    case Op::eigh: return matrices(x, wanted.vectors ? rows + 1 : 1, columns);
    default: break;
  }
  const Shape& right = inference.shape(1);
  if (right.rank() != rank) inference.fail("the numbers of dimensions differ");
  check_input(inference, 1, "right side", matrices(x, columns, right.back()));
  return right;
}

Shape first_places(const Inference& inference) {
  const int axis = std::countr_zero(one_axis(inference));
  const std::int64_t first = inference.attribute<Axes>().first;
  Shape result = inference.shape(0);
  if (first == 0) return result;
  if (result.empty() || first < 0 || first > result[axis]) {
    inference.fail("there are no {} places along dimension {}", first, axis);
  }
  result[axis] = first;
  return result;
}

Shape like_first(const Inference& inference) {
  const Shape& x = inference.shape(0);
  switch (inference.row.op) {
    case Op::overwrite: check_view(inference, inference.shape(1), numel(x)); break;
    case Op::put: {
      const Shape values = taken(inference, 2);
      if (inference.shape(1) != values)
        inference.fail("the values' shape is {} where {} is needed", to_string(inference.shape(1)), to_string(values));
      break;
    }
    case Op::max_unpool: check_gradient(inference, inference.shape(1), pooled(inference, x)); break;
    case Op::argsort: return first_places(inference);
    case Op::cumsum:
    case Op::cumprod: one_axis(inference); break;
    default: break;
  }
  return x;
}

Shape stated(const Inference& inference) {
  const Shape& shape = inference.given.shape;
  for (const std::int64_t size : shape) {
    if (size < 0) inference.fail("the shape {} has a negative size", to_string(shape));
  }
  switch (inference.row.op) {
    case Op::strided: check_view(inference, shape, numel(inference.shape(0))); break;
    case Op::convolution_input:
      check_gradient(inference, inference.shape(0), convolved(inference, shape, inference.shape(1)));
      break;
    case Op::convolution_weight:
      check_gradient(inference, inference.shape(1), convolved(inference, inference.shape(0), shape));
      break;
    case Op::sum_unpool: check_gradient(inference, inference.shape(0), pooled(inference, shape)); break;
    default: break;
  }
  return shape;
}

Shape result_shape(const Inference& inference) {
  switch (inference.row.shape) {
    case ShapeRule::given: return stated(inference);
    case ShapeRule::same: return like_first(inference);
    case ShapeRule::broadcast: return broadcast_all(inference);
    case ShapeRule::reduced: return reduced(inference);
    case ShapeRule::matmul: return matmul(inference);
    case ShapeRule::convolution: return convolved(inference, inference.shape(0), inference.shape(1));
    case ShapeRule::pool:
      if (inference.row.inputs == 2 && inference.shape(0) != inference.shape(1)) {
        inference.fail("the shapes differ: {} and {}", to_string(inference.shape(0)), to_string(inference.shape(1)));
      }
      return pooled(inference, inference.shape(0));
    case ShapeRule::attention: return attended(inference);
    case ShapeRule::linalg: return factored(inference);
    case ShapeRule::take: break;
  }
  return taken(inference, 1);
}

}  // namespace

Description infer(Op op, std::span<const Description* const> inputs, const Attributes& attributes,
                  const Description& given) {
  const Inference inference{row(op), inputs, attributes, given};
  const int count = static_cast<int>(inputs.size());
  if (count > inference.row.inputs || count < inference.row.inputs - inference.row.optional_inputs) {
    inference.fail<InternalError>("takes {} input(s), not {}", inference.row.inputs, count);
  }
  return {result_type(inference), result_shape(inference)};
}

}  // namespace russet::ops
