// x[i, a:b, mask, tensor] and its assignment, by PyTorch's rules of placement.
#include <fmt/format.h>
#include <russet/functional/comparison.h>
#include <russet/functional/elementwise.h>
#include <russet/functional/indexing.h>

#include <algorithm>

#include "functional/build.h"

namespace russet {

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

/// A bool or uint8 tensor says which elements are meant, rather than where they are.
bool is_mask(const Tensor& tensor) { return tensor.dtype() == DType::boolean || tensor.dtype() == DType::uint8; }

/// How many axes of the tensor an entry stands for.
int axes_of(const Index& entry) {
  if (std::holds_alternative<NewAxis>(entry) || std::holds_alternative<Ellipsis>(entry)) return 0;
  const Tensor* tensor = std::get_if<Tensor>(&entry);
  return tensor && is_mask(*tensor) ? tensor->dim() : 1;
}

void check_mask(const Tensor& x, int axis, const Tensor& mask) {
  for (int i = 0; i < mask.dim(); ++i) {
    if (mask.sizes()[i] == x.sizes()[axis + i]) continue;
    throw IndexError(fmt::format("index: the mask {} does not fit {} at dimension {}", to_string(mask.sizes()),
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
        fmt::format("index: {} indices for a tensor of {} dimensions, {}", named, x.dim(), to_string(x.sizes())));
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
      if (is_mask(tensor)) {
        if (tensor.dim() == 0) parsed.view = parsed.view.unsqueeze(axis);  // x[True] has a new axis
        const Tensor truth = functional::truth(tensor);
        const Tensor mask = truth.dim() == 0 ? truth.reshape({1}) : truth;
        check_mask(parsed.view, axis, mask);
        parsed.tensors.push_back(mask);
        axis += mask.dim();
      } else if (tensor.dim() == 0 && is_integral(tensor.dtype())) {
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

/// What the index tensors of a parsed index name.
struct Named {
  ops::Indexing indexing;
  std::vector<Tensor> tensors;
  Shape result;  // of what is read, or written
};

/// Whether index tensors stand side by side: their result then stands where they stood, else in front. Tensors of no
/// axes count as integers here.
bool are_adjacent(const std::vector<Tensor>& tensors) {
  bool seen = false;
  bool ended = false;
  for (const Tensor& tensor : tensors) {
    if (!tensor.defined()) {
      ended = seen;
    } else if (tensor.dim() > 0) {
      if (ended) return false;
      seen = true;
    }
  }
  return true;
}

Named named(const Parsed& parsed) {
  const Tensor& view = parsed.view;
  const bool in_place = are_adjacent(parsed.tensors);
  Shape common;  // of the index tensors
  Shape before;  // axes up to the last index tensor that have none
  int last = 0;
  int first = -1;  // how many of those axes stand before the index
  for (int axis = 0; axis < static_cast<int>(parsed.tensors.size()); ++axis) {
    const Tensor& tensor = parsed.tensors[static_cast<std::size_t>(axis)];
    if (!tensor.defined()) continue;
    common = broadcast(common, tensor.sizes());
    last = axis;
    if (first < 0 && tensor.dim() > 0) first = axis;
  }
  Named result;
  result.indexing.axes = static_cast<std::int16_t>(last + 1);
  const auto tensor_at = [&](int axis) { return parsed.tensors[static_cast<std::size_t>(axis)]; };
  for (int axis = 0; axis <= last; ++axis) {
    if (!tensor_at(axis).defined()) before.push_back(view.sizes()[axis]);
  }
  // The index's axes stand where the tensors stood, or in front of all others.
  int place = 0;
  if (in_place) {
    for (int axis = 0; axis < first; ++axis) place += tensor_at(axis).defined() ? 0 : 1;
  }
  Shape& lead = result.indexing.lead;
  for (int i = 0; i < place; ++i) lead.push_back(before[i]);
  for (const std::int64_t size : common) lead.push_back(size);
  for (int i = place; i < before.rank(); ++i) lead.push_back(before[i]);
  const int behind = before.rank() - place;
  int unnamed = 0;
  for (int axis = 0; axis <= last; ++axis) {
    std::int16_t& source = result.indexing.sources[static_cast<std::size_t>(axis)];
    if (tensor_at(axis).defined()) {
      source = ops::Indexing::by_tensor;
      Tensor index = tensor_at(axis);
      for (int i = 0; i < behind; ++i) index = index.unsqueeze(-1);
      result.tensors.push_back(index);
    } else {
      source = static_cast<std::int16_t>(unnamed < place ? unnamed : common.rank() + unnamed);
      ++unnamed;
    }
  }
  result.indexing.from_end = true;
  result.result = lead;
  for (int axis = last + 1; axis < view.dim(); ++axis) result.result.push_back(view.sizes()[axis]);
  return result;
}

Tensor read(const Parsed& parsed) {
  const Named index = named(parsed);
  return autograd::indexed(Op::take, {parsed.view}, index.tensors, index.indexing);
}

/// A mask alone, and a value that is the same wherever it holds: no need to know where it does.
bool write_by_mask(const Parsed& parsed, const Tensor& value) {
  const Tensor* mask = nullptr;
  int axis = 0;
  for (const Tensor& tensor : parsed.tensors) {
    if (!tensor.defined()) {
      axis += mask == nullptr;
    } else if (mask || !is_mask(tensor)) {
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
  Named index = named(parsed);
  index.indexing.accumulates = accumulate;
  const Tensor values = fitted(functional::cast(value, parsed.view.dtype()), index.result);
  autograd::assign(parsed.view, autograd::indexed(Op::put, {parsed.view, values}, index.tensors, index.indexing));
}

}  // namespace

Tensor Tensor::index(const std::vector<Index>& indices) const {
  const Parsed parsed = parse(*this, indices);
  return parsed.has_tensors() ? read(without_masks(parsed)) : parsed.view;
}

const Tensor& Tensor::index_put_(const std::vector<Index>& indices, const Tensor& values, bool accumulate) const {
  check_value_type(*this, values);
  const Parsed parsed = parse(*this, indices);
  const Tensor source = values.dim() == 0 ? values.to(device()) : values;
  if (!parsed.has_tensors()) {
    const Tensor fitting = fitted(functional::cast(source, dtype()), parsed.view.sizes());
    autograd::assign(parsed.view, accumulate ? parsed.view + fitting : fitting);
  } else if (accumulate || !write_by_mask(parsed, source)) {
    write(without_masks(parsed), source, accumulate);
  }
  return *this;
}

const Tensor& Tensor::index_put_(const std::vector<Index>& indices, Scalar values, bool accumulate) const {
  return index_put_(indices, functional::held_number("index_put_", values, dtype(), device()), accumulate);
}

}  // namespace russet
