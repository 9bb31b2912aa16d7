// Reading and writing along one axis by index tensors: gather, scatter, index_select and their kin.
#include <fmt/format.h>
#include <russet/functional/comparison.h>
#include <russet/functional/elementwise.h>
#include <russet/functional/indexing.h>
#include <russet/functional/movement.h>

#include "functional/build.h"
#include "functional/write.h"

namespace russet {

using functional::on_axis;
using functional::placed;
using functional::require_same_type;
using functional::taken;

namespace {

/// Checks gather's and scatter's rule: one rank, and no size larger than `limit`'s but along `axis`.
void check_index(const char* function, const Tensor& x, int axis, const Tensor& index, const char* what) {
  bool fits = index.dim() == x.dim();
  for (int i = 0; fits && i < x.dim(); ++i) fits = i == axis || index.sizes()[i] <= x.sizes()[i];
  if (fits) return;
  throw ShapeError(
      fmt::format("{}: the index {} does not fit {} {} along dimension {}: it has as many dimensions, and no larger "
                  "sizes on the others",
                  function, to_string(index.sizes()), what, to_string(x.sizes()), axis));
}

struct Along {
  Tensor x;
  Tensor index;
  int axis;
};

/// A tensor of no axes counts as a vector of one element.
Along checked(const char* function, const Tensor& x, std::int64_t axis, const Tensor& index) {
  functional::require_index_type(function, index);
  const int wrapped = wrap_axis(axis, x.dim());
  Along result{x.dim() == 0 ? x.reshape({1}) : x, index.dim() == 0 ? index.reshape({1}) : index, wrapped};
  check_index(function, result.x, wrapped, result.index, "the tensor");
  return result;
}

Tensor scattered(const char* function, const Tensor& x, std::int64_t axis, const Tensor& index, const Tensor& source,
                 bool accumulate) {
  require_same_type(function, x, source);
  const Along call = checked(function, x, axis, index);
  Tensor values = source.dim() == 0 ? source.reshape({1}) : source;
  bool fits = values.dim() == call.index.dim();
  for (int i = 0; fits && i < values.dim(); ++i) fits = call.index.sizes()[i] <= values.sizes()[i];
  if (!fits) {
    throw ShapeError(fmt::format("{}: the index {} is larger than the source {}", function,
                                 to_string(call.index.sizes()), to_string(values.sizes())));
  }
  if (call.index.numel() == 0) return functional::copied(x);
  for (int i = 0; i < values.dim(); ++i) {
    if (values.sizes()[i] != call.index.sizes()[i]) values = values.narrow(i, 0, call.index.sizes()[i]);
  }
  ops::Indexing indexing = functional::along_axis(call.axis, call.index.sizes());
  indexing.accumulates = accumulate;
  return placed(call.x, values, indexing, call.index).reshape(x.sizes());
}

/// For index_select and its kin: a vector of positions along one axis.
Tensor vector_index(const char* function, const Tensor& index) {
  functional::require_index_type(function, index);
  if (index.dim() > 1) {
    throw ShapeError(fmt::format("{}: the index is a vector, not {}", function, to_string(index.sizes())));
  }
  return index.dim() == 0 ? index.reshape({1}) : index;
}

struct Slices {
  bool accumulates = false;
  bool from_end = false;
};

/// A copy of x with the slices along an axis replaced by, or added to, those of `source`.
Tensor with_slices(const char* function, const Tensor& x, std::int64_t axis, const Tensor& index, const Tensor& source,
                   Slices slices) {
  require_same_type(function, x, source);
  if (x.dim() == 0) return with_slices(function, x.reshape({1}), axis, index, source.reshape({1}), slices).reshape({});
  const int wrapped = wrap_axis(axis, x.dim());
  const Tensor positions = vector_index(function, index);
  Shape expected = x.sizes();
  expected[wrapped] = positions.numel();
  const Tensor values = source.dim() == 0 ? source.expand(expected) : source;
  if (values.sizes() != expected) {
    throw ShapeError(fmt::format("{}: the source is {} where {} is needed", function, to_string(source.sizes()),
                                 to_string(expected)));
  }
  ops::Indexing indexing = on_axis(x, wrapped, positions.numel());
  indexing.accumulates = slices.accumulates;
  indexing.from_end = slices.from_end;
  return placed(x, values, indexing, positions);
}

}  // namespace

Tensor gather(const Tensor& x, std::int64_t axis, const Tensor& index) {
  const Along call = checked("gather", x, axis, index);
  const Tensor result = taken(call.x, functional::along_axis(call.axis, call.index.sizes()), call.index);
  return index.dim() == 0 ? result.reshape({}) : result;
}

Tensor scatter(const Tensor& x, std::int64_t axis, const Tensor& index, const Tensor& source) {
  return scattered("scatter", x, axis, index, source, false);
}
Tensor scatter(const Tensor& x, std::int64_t axis, const Tensor& index, Scalar value) {
  const Tensor values = functional::held_number("scatter", value, x.dtype(), x.device(), index.sizes());
  return scattered("scatter", x, axis, index, values, false);
}
Tensor scatter_add(const Tensor& x, std::int64_t axis, const Tensor& index, const Tensor& source) {
  return scattered("scatter_add", x, axis, index, source, true);
}

Tensor index_select(const Tensor& x, std::int64_t axis, const Tensor& index) {
  if (x.dim() == 0) return index_select(x.reshape({1}), axis, index).reshape({});
  const int wrapped = wrap_axis(axis, x.dim());
  const Tensor positions = vector_index("index_select", index);
  return taken(x, on_axis(x, wrapped, positions.numel()), positions);
}

Tensor index_add(const Tensor& x, std::int64_t axis, const Tensor& index, const Tensor& source, Scalar alpha) {
  const Tensor values =
      alpha.to_double() == 1 ? source : source * functional::number(alpha, source.dtype(), source.device());
  return with_slices("index_add", x, axis, index, values, {.accumulates = true});
}
Tensor index_copy(const Tensor& x, std::int64_t axis, const Tensor& index, const Tensor& source) {
  return with_slices("index_copy", x, axis, index, source, {});
}
Tensor index_fill(const Tensor& x, std::int64_t axis, const Tensor& index, Scalar value) {
  return with_slices("index_fill", x, axis, index, functional::held_number("index_fill", value, x.dtype(), x.device()),
                     {.from_end = true});
}

Tensor take(const Tensor& x, const Tensor& index) {
  functional::require_index_type("take", index);
  ops::Indexing indexing{.lead = index.sizes()};
  indexing.from_end = true;
  return taken(x.reshape({x.numel()}), indexing, index);
}

Tensor take_along_dim(const Tensor& x, const Tensor& index, std::optional<std::int64_t> axis) {
  if (!axis) return gather(x.flatten(), 0, index.flatten());
  if (x.dim() != index.dim()) {
    throw ShapeError(fmt::format("take_along_dim: {} and the index {} have different numbers of dimensions",
                                 to_string(x.sizes()), to_string(index.sizes())));
  }
  const int wrapped = wrap_axis(*axis, x.dim());
  Shape x_sizes = x.sizes();
  Shape index_sizes = index.sizes();
  if (x.dim() > 0) {
    x_sizes[wrapped] = 1;
    index_sizes[wrapped] = 1;
    const Shape common = broadcast(x_sizes, index_sizes);
    x_sizes = index_sizes = common;
    x_sizes[wrapped] = x.sizes()[wrapped];
    index_sizes[wrapped] = index.sizes()[wrapped];
  }
  return gather(x.expand(x_sizes), wrapped, index.expand(index_sizes));
}

namespace {

void require_mask(const char* function, const Tensor& mask) {
  if (mask.dtype() == DType::boolean) return;
  throw TypeError(fmt::format("{}: the mask is bool, not {}", function, name_of(mask.dtype())));
}

}  // namespace

Tensor masked_fill(const Tensor& x, const Tensor& mask, Scalar value) {
  require_mask("masked_fill", mask);
  if (!functional::can_cast(value.kind(), x.dtype())) {
    throw TypeError(
        fmt::format("masked_fill: the number {} does not fit type {}", value.to_double(), name_of(x.dtype())));
  }
  return where(mask, functional::held_number("masked_fill", value, x.dtype(), x.device()), x);
}

Tensor masked_fill(const Tensor& x, const Tensor& mask, const Tensor& value) {
  require_mask("masked_fill", mask);
  if (value.dim() != 0) {
    throw ShapeError(
        fmt::format("masked_fill: the value has no dimensions, not {}. Use where()", to_string(value.sizes())));
  }
  return where(mask, functional::cast(value, x.dtype()), x);
}

}  // namespace russet
