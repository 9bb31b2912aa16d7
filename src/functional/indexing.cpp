// x[i, a:b, mask, tensor] and its assignment, by PyTorch's rules of placement.
#include <fmt/format.h>
#include <russet/functional/comparison.h>
#include <russet/functional/elementwise.h>
#include <russet/functional/indexing.h>

#include <algorithm>

#include "functional/build.h"

namespace russet {

using functional::constant;
using ops::Op;

namespace {

/// A view of the tensor, and the index tensors that apply to its axes (undefined where the whole axis is meant).
struct Parsed {
  Tensor view;
  std::vector<Tensor> tensors;

  bool has_tensors() const {
    return std::any_of(tensors.begin(), tensors.end(), [](const Tensor& tensor) { return tensor.defined(); });
  }
};

/// How many axes of the tensor an entry stands for.
int axes_of(const Index& entry) {
  if (std::holds_alternative<NewAxis>(entry) || std::holds_alternative<Ellipsis>(entry)) return 0;
  const Tensor* tensor = std::get_if<Tensor>(&entry);
  return tensor && tensor->dtype() == DType::boolean ? tensor->dim() : 1;
}

void check_mask(const Tensor& x, int axis, const Tensor& mask) {
  for (int i = 0; i < mask.dim(); ++i) {
    if (mask.sizes()[i] == x.sizes()[axis + i]) continue;
    throw IndexError(fmt::format("index: the mask {} does not fit {} at axis {}", to_string(mask.sizes()),
                                 to_string(x.sizes()), axis));
  }
}

/// Integers, tensors of no axes among them, slices and new axes become a view; other tensors stay, each at its axis.
Parsed parse(const Tensor& x, const std::vector<Index>& indices) {
  int named = 0;
  int ellipses = 0;
  for (const Index& entry : indices) {
    named += axes_of(entry);
    ellipses += std::holds_alternative<Ellipsis>(entry);
  }
  if (named > x.dim()) {
    throw IndexError(
        fmt::format("index: {} indices for a tensor of {} axes, {}", named, x.dim(), to_string(x.sizes())));
  }
  if (ellipses > 1) throw IndexError("index: an index has at most one ellipsis");
  Parsed parsed{x, {}};
  int axis = 0;
  const auto whole = [&](int count) {
    for (int i = 0; i < count; ++i) parsed.tensors.emplace_back();
    axis += count;
  };
  for (const Index& entry : indices) {
    if (const auto* integer = std::get_if<std::int64_t>(&entry)) {
      parsed.view = parsed.view.select(axis, *integer);
    } else if (const auto* slice = std::get_if<Slice>(&entry)) {
      parsed.view = parsed.view.slice(axis, *slice);
      whole(1);
    } else if (std::holds_alternative<NewAxis>(entry)) {
      parsed.view = parsed.view.unsqueeze(axis);
      whole(1);
    } else if (std::holds_alternative<Ellipsis>(entry)) {
      whole(x.dim() - named);
    } else {
      const Tensor& tensor = std::get<Tensor>(entry);
      if (tensor.dtype() == DType::boolean) {
        if (tensor.dim() == 0) parsed.view = parsed.view.unsqueeze(axis);  // x[True] has a new axis
        const Tensor mask = tensor.dim() == 0 ? tensor.reshape({1}) : tensor;
        check_mask(parsed.view, axis, mask);
        parsed.tensors.push_back(mask);
        axis += mask.dim();
      } else if (tensor.dim() == 0 && is_integral(tensor.dtype()) && tensor.dtype() != DType::uint8) {
        parsed.view = parsed.view.select(axis, tensor.item<std::int64_t>());  // a number: this waits for it
      } else {
        functional::require_index_type("index", tensor);
        parsed.tensors.push_back(tensor);
        ++axis;
      }
    }
  }
  return parsed;
}

/// Masks become the positions where they hold, one vector an axis: this waits for the mask.
Parsed without_masks(Parsed parsed) {
  std::vector<Tensor> tensors;
  for (const Tensor& tensor : parsed.tensors) {
    if (!tensor.defined() || tensor.dtype() != DType::boolean) {
      tensors.push_back(tensor);
      continue;
    }
    const Tensor places = nonzero(tensor);
    for (int axis = 0; axis < tensor.dim(); ++axis) tensors.push_back(places.select(1, axis));
  }
  parsed.tensors = std::move(tensors);
  return parsed;
}

/// The indexed axes of a view moved to the front and flattened into one, and row-major positions along it.
struct Flattened {
  Tensor rows;       // [product of indexed sizes, rest...]
  Shape moved;       // [indexed sizes..., rest...]
  Dims order;        // the view's axes: indexed ones, then the rest
  Tensor positions;  // in the shape of the broadcast index
  int first = 0;     // where the index's axes go in the result

  /// The shape of what the index reads, with the index's axes in front.
  Shape result_shape() const {
    Shape shape = positions.sizes();
    for (int axis = 1; axis < rows.dim(); ++axis) shape.push_back(rows.sizes()[axis]);
    return shape;
  }
};

/// Adjacent index tensors leave their result where they stood, others put it in front. Tensors of no axes count as
/// integers here.
int placement(const std::vector<Tensor>& tensors) {
  int before = 0;
  int first = -1;
  bool ended = false;
  for (const Tensor& tensor : tensors) {
    if (!tensor.defined()) {
      if (first >= 0)
        ended = true;
      else
        ++before;
    } else if (tensor.dim() > 0) {
      if (ended) return 0;
      first = before;
    }
  }
  return std::max(first, 0);
}

Flattened flattened(const Parsed& parsed) {
  const Tensor& view = parsed.view;
  Flattened result;
  Dims rest;
  Shape rest_sizes;
  std::int64_t count = 1;
  for (int axis = 0; axis < view.dim(); ++axis) {
    const auto place = static_cast<std::size_t>(axis);
    if (place < parsed.tensors.size() && parsed.tensors[place].defined()) {
      const std::int64_t size = view.sizes()[axis];
      const Tensor index = functional::wrapped_index(parsed.tensors[place], size);
      const Tensor previous = result.positions;
      result.positions = previous.defined() ? previous * constant(size, index) + index : index;
      result.order.push_back(axis);
      result.moved.push_back(size);
      count *= size;
    } else {
      rest.push_back(axis);
      rest_sizes.push_back(view.sizes()[axis]);
    }
  }
  Shape rows{count};
  for (int i = 0; i < rest.rank(); ++i) {
    result.order.push_back(rest[i]);
    result.moved.push_back(rest_sizes[i]);
    rows.push_back(rest_sizes[i]);
  }
  result.rows = view.permute(result.order).reshape(rows);
  result.first = placement(parsed.tensors);
  return result;
}

/// Axes [0, count) moved to stand at `first`, or back.
Dims placed_order(int rank, int count, int first, bool back) {
  Dims order(rank, 0);
  for (int axis = 0; axis < rank; ++axis) {
    // Axis `axis` of the placed tensor is axis `front` of the one with the index's axes in front.
    const int front = axis < first ? axis + count : axis < first + count ? axis - first : axis;
    order[back ? front : axis] = back ? axis : front;
  }
  return order;
}

Tensor read(const Parsed& parsed) {
  const Flattened flat = flattened(parsed);
  const Tensor result = autograd::apply(Op::take, {flat.rows, flat.positions});
  if (flat.first == 0) return result;
  return functional::copied(result.permute(placed_order(result.dim(), flat.positions.dim(), flat.first, false)));
}

/// A mask alone, and a value that is the same wherever it holds: no need to know where it does.
bool write_by_mask(const Parsed& parsed, const Tensor& value) {
  const Tensor* mask = nullptr;
  int axis = 0;
  for (const Tensor& tensor : parsed.tensors) {
    if (!tensor.defined()) {
      axis += mask == nullptr;
    } else if (mask || tensor.dtype() != DType::boolean) {
      return false;
    } else {
      mask = &tensor;
    }
  }
  if (!mask) return false;
  const int trailing = parsed.view.dim() - axis - mask->dim();
  Tensor spread = value;
  if (value.dim() > trailing) {
    const int place = value.dim() - 1 - trailing;  // the axis that runs over the places where the mask holds
    if (value.sizes()[place] != 1) return false;
    if (value.dim() + mask->dim() - 1 > max_rank) return false;
    for (int i = 1; i < mask->dim(); ++i) spread = spread.unsqueeze(place);
  }
  Tensor condition = *mask;
  for (int i = 0; i < trailing; ++i) condition = condition.unsqueeze(-1);
  autograd::assign(parsed.view, where(condition, functional::cast(spread, parsed.view.dtype()), parsed.view));
  return true;
}

void check_value_type(const Tensor& x, const Tensor& value) {
  if (x.dtype() == value.dtype() || value.dim() == 0) return;
  if (functional::can_cast(value.dtype(), x.dtype())) return;
  throw TypeError(fmt::format("index_put_: a value of type {} does not go into a tensor of type {}. Cast with .to()",
                              name_of(value.dtype()), name_of(x.dtype())));
}

/// PyTorch drops leading axes of size 1 of the value.
Tensor fitted(Tensor value, const Shape& target) {
  while (value.dim() > target.rank() && value.sizes()[0] == 1) value = value.squeeze(0);
  if (value.dim() > target.rank() || broadcast(value.sizes(), target) != target) {
    throw ShapeError(fmt::format("index_put_: a value of shape {} does not broadcast to what is indexed, {}",
                                 to_string(value.sizes()), to_string(target)));
  }
  return value.expand(target);
}

void write(const Parsed& parsed, const Tensor& value, bool accumulate) {
  const Flattened flat = flattened(parsed);
  const int count = flat.positions.dim();
  const Shape front = flat.result_shape();
  Shape target;
  const Dims order = placed_order(front.rank(), count, flat.first, false);
  for (const std::int64_t axis : order) target.push_back(front[static_cast<int>(axis)]);
  const Tensor values = fitted(functional::cast(value, parsed.view.dtype()), target)
                            .permute(placed_order(front.rank(), count, flat.first, true));
  graph::NodeInfo given;
  given.attributes = ops::Accumulate{accumulate};
  const Tensor rows = autograd::apply(Op::put, {flat.rows, flat.positions, values}, std::move(given));
  Dims inverse(flat.order.rank(), 0);
  for (int i = 0; i < flat.order.rank(); ++i) inverse[static_cast<int>(flat.order[i])] = i;
  autograd::assign(parsed.view, rows.reshape(flat.moved).permute(inverse));
}

}  // namespace

Tensor index(const Tensor& x, const std::vector<Index>& indices) {
  const Parsed parsed = parse(x, indices);
  return parsed.has_tensors() ? read(without_masks(parsed)) : parsed.view;
}

void index_put_(const Tensor& x, const std::vector<Index>& indices, const Tensor& value, bool accumulate) {
  check_value_type(x, value);
  const Parsed parsed = parse(x, indices);
  const Tensor source = value.dim() == 0 ? value.to(x.device()) : value;
  if (!parsed.has_tensors()) {
    const Tensor fitting = fitted(functional::cast(source, x.dtype()), parsed.view.sizes());
    autograd::assign(parsed.view, accumulate ? parsed.view + fitting : fitting);
    return;
  }
  if (!accumulate && write_by_mask(parsed, source)) return;
  write(without_masks(parsed), source, accumulate);
}

void index_put_(const Tensor& x, const std::vector<Index>& indices, const Tensor& value) {
  index_put_(x, indices, value, false);
}

void index_put_(const Tensor& x, const std::vector<Index>& indices, Scalar value) {
  index_put_(x, indices, functional::number(value, x.dtype(), x.device()), false);
}

}  // namespace russet
