// Reordering, repeating and masking by position.
#include <fmt/format.h>
#include <russet/functional/comparison.h>
#include <russet/functional/elementwise.h>
#include <russet/functional/movement.h>

#include "functional/build.h"

namespace russet {

using functional::constant;
using functional::iota_along;

Tensor flip(const Tensor& x, const DimList& axes) {
  const std::uint32_t mask = axes.dims().empty() ? 0 : functional::mask_of(x, axes);
  Strides strides = contiguous_strides(x.sizes());
  std::int64_t offset = 0;
  for (int axis = 0; axis < x.dim(); ++axis) {
    if (((mask >> axis) & 1U) == 0 || x.numel() == 0) continue;
    offset += (x.sizes()[axis] - 1) * strides[axis];
    strides[axis] = -strides[axis];
  }
  return functional::strided(x, x.sizes(), strides, offset);
}

Tensor rot90(const Tensor& x, std::int64_t k, const DimList& axes) {
  if (axes.dims().rank() != 2) {
    throw ValueError(fmt::format("rot90: takes two dimensions, not {}", axes.dims().rank()));
  }
  axes.mask(x.dim());
  const std::int64_t a = axes.dims()[0];
  const std::int64_t b = axes.dims()[1];
  switch (((k % 4) + 4) % 4) {
    case 1: return functional::copied(flip(x, b).transpose(a, b));
    case 2: return flip(x, {a, b});
    case 3: return functional::copied(flip(x, a).transpose(a, b));
    default: return functional::copied(x);
  }
}

namespace {

/// `times` copies one after another along an axis.
Tensor tiled(const Tensor& x, int axis, std::int64_t times) {
  if (times == 1) return x;
  std::int64_t outer = 1;
  for (int i = 0; i < axis; ++i) outer *= x.sizes()[i];
  Shape sizes = x.sizes();
  std::int64_t inner = 1;
  for (int i = axis; i < x.dim(); ++i) inner *= sizes[i];
  sizes[axis] *= times;
  return x.reshape({outer, 1, inner}).expand({outer, times, inner}).reshape(sizes);
}

}  // namespace

Tensor Tensor::repeat(const Shape& repeats) const {
  if (repeats.rank() < dim()) {
    throw ShapeError(fmt::format("repeat: {} numbers for a tensor of {} dimensions", repeats.rank(), dim()));
  }
  Tensor result = *this;
  while (result.dim() < repeats.rank()) result = result.unsqueeze(0);
  for (int axis = 0; axis < repeats.rank(); ++axis) {
    if (repeats[axis] < 0) throw ValueError(fmt::format("repeat: {} copies", repeats[axis]));
    result = tiled(result, axis, repeats[axis]);
  }
  return result.shares_storage(*this) ? functional::copied(result) : result;
}

Tensor tile(const Tensor& x, const Shape& repeats) {
  Shape all = repeats;
  while (all.rank() < x.dim()) all.insert(0, 1);
  return x.repeat(all);
}

Tensor repeat_interleave(const Tensor& x, std::int64_t repeats, std::optional<std::int64_t> axis) {
  if (repeats < 0) throw ValueError(fmt::format("repeat_interleave: {} copies", repeats));
  if (!axis) return repeat_interleave(x.flatten(), repeats, 0);
  const Tensor source = x.dim() == 0 ? x.reshape({1}) : x;
  const int wrapped = wrap_axis(*axis, source.dim());
  Shape sizes = source.sizes();
  std::int64_t outer = 1;
  std::int64_t inner = 1;
  for (int i = 0; i <= wrapped; ++i) outer *= sizes[i];
  for (int i = wrapped + 1; i < source.dim(); ++i) inner *= sizes[i];
  sizes[wrapped] *= repeats;
  const Tensor result = source.reshape({outer, 1, inner}).expand({outer, repeats, inner}).reshape(sizes);
  return result.shares_storage(x) ? functional::copied(result) : result;
}

namespace {

/// Column minus row of each place of the last two axes, as [rows, columns].
Tensor diagonals(const char* function, const Tensor& x) {
  if (x.dim() < 2)
    throw ShapeError(fmt::format("{}: takes at least two dimensions, not {}", function, to_string(x.sizes())));
  const Tensor row = iota_along(0, 2, x.size(-2), x.device());
  const Tensor column = iota_along(1, 2, x.size(-1), x.device());
  return column - row;
}

Tensor offset_number(const Tensor& x, std::int64_t offset) {
  return functional::number(offset, DType::int64, x.device());
}

}  // namespace

Tensor tril(const Tensor& x, std::int64_t offset) {
  return where(le(diagonals("tril", x), offset_number(x, offset)), x, constant(0, x));
}

Tensor triu(const Tensor& x, std::int64_t offset) {
  return where(ge(diagonals("triu", x), offset_number(x, offset)), x, constant(0, x));
}

Tensor diag_embed(const Tensor& x, std::int64_t offset) {
  if (x.dim() == 0) throw ShapeError("diag_embed: takes at least one dimension");
  const std::int64_t length = x.size(-1);
  const std::int64_t side = length + std::abs(offset);
  Shape sizes = x.sizes();
  sizes[sizes.rank() - 1] = side;
  sizes.push_back(side);
  Strides strides = contiguous_strides(sizes);
  const std::int64_t start = offset >= 0 ? offset : -offset * side;
  strides.pop_back();
  strides[strides.rank() - 1] = side + 1;
  const Tensor base = constant(0, x, sizes);
  return x.numel() == 0 ? base : functional::overwritten(base, x, strides, start);
}

Tensor diag(const Tensor& x, std::int64_t offset) {
  if (x.dim() == 1) return diag_embed(x, offset);
  if (x.dim() == 2) return functional::copied(x.diagonal(offset));
  throw ShapeError(fmt::format("diag: takes a vector or a matrix, not {}", to_string(x.sizes())));
}

Tensor trace(const Tensor& x) {
  if (x.dim() != 2) throw ShapeError(fmt::format("trace: takes a matrix, not {}", to_string(x.sizes())));
  return sum(x.diagonal());
}

std::vector<Tensor> meshgrid(const std::vector<Tensor>& vectors, GridIndexing indexing) {
  Shape sizes;
  for (const Tensor& vector : vectors) {
    if (vector.dim() > 1) throw ShapeError(fmt::format("meshgrid: takes vectors, not {}", to_string(vector.sizes())));
    sizes.push_back(vector.numel());
  }
  std::vector<Tensor> grids;
  for (int axis = 0; axis < sizes.rank(); ++axis) {
    Shape own = Shape::filled(sizes.rank(), 1);
    own[axis] = sizes[axis];
    const Tensor grid = vectors[static_cast<std::size_t>(axis)].reshape(own).expand(sizes);
    grids.push_back(indexing == GridIndexing::xy && sizes.rank() >= 2 ? grid.transpose(0, 1) : grid);
  }
  return grids;
}

}  // namespace russet
