// Tensor's views: other geometries on the same storage.
#include <fmt/format.h>
#include <russet/functional/movement.h>

#include <algorithm>

#include "functional/build.h"

namespace russet {

using functional::aliased;
using functional::geometry_of;

namespace {

/// `sizes` with a -1 replaced by what is left over. Throws ShapeError if the number of elements does not fit.
Shape completed(const char* function, const Shape& sizes, const Tensor& x) {
  const auto refuse = [&] {
    throw ShapeError(fmt::format("{}: {} with {} elements does not become {}", function, to_string(x.sizes()),
                                 x.numel(), to_string(sizes)));
  };
  int open = -1;
  std::int64_t known = 1;
  for (int axis = 0; axis < sizes.rank(); ++axis) {
    if (sizes[axis] == -1 && open < 0) {
      open = axis;
    } else if (sizes[axis] < 0) {
      refuse();
    } else if (__builtin_mul_overflow(known, sizes[axis], &known)) {
      refuse();
    }
  }
  Shape result = sizes;
  if (open >= 0) {
    if (known == 0 || x.numel() % known != 0) refuse();
    result[open] = x.numel() / known;
  } else if (known != x.numel()) {
    refuse();
  }
  return result;
}

}  // namespace

Tensor Tensor::view(const Shape& sizes) const {
  const auto geometry = graph::viewed(geometry_of(*this), completed("view", sizes, *this));
  if (!geometry) {
    throw ShapeError(fmt::format("view: a tensor of sizes {} and strides {} has no view of sizes {}. Use reshape()",
                                 russet::to_string(this->sizes()), russet::to_string(strides()),
                                 russet::to_string(sizes)));
  }
  return aliased(*this, *geometry);
}

Tensor reshape(const Tensor& x, const Shape& sizes) {
  const Shape target = completed("reshape", sizes, x);
  if (const auto geometry = graph::viewed(geometry_of(x), target)) return aliased(x, *geometry);
  // Row-major order of the elements with other sizes: one copy.
  return functional::strided(x, target, contiguous_strides(target));
}

Tensor flatten(const Tensor& x, std::int64_t start, std::int64_t end) {
  if (x.dim() == 0) return x.reshape({1});
  const int first = wrap_axis(start, x.dim());
  const int last = wrap_axis(end, x.dim());
  if (first > last)
    throw ValueError(fmt::format("flatten: the first dimension {} comes after the last, {}", first, last));
  if (first == last) return x;
  Shape target;
  for (int axis = 0; axis < x.dim(); ++axis) {
    if (axis > first && axis <= last) {
      target[first] *= x.sizes()[axis];
    } else {
      target.push_back(x.sizes()[axis]);
    }
  }
  return x.reshape(target);
}

Tensor permute(const Tensor& x, const DimList& dims) {
  return aliased(x, graph::permuted(geometry_of(x), dims.dims()));
}

Tensor transpose(const Tensor& x, std::int64_t a, std::int64_t b) {
  const int first = wrap_axis(a, x.dim());
  const int second = wrap_axis(b, x.dim());
  graph::Geometry geometry = geometry_of(x);
  if (x.dim() > 0) {
    std::swap(geometry.sizes[first], geometry.sizes[second]);
    std::swap(geometry.strides[first], geometry.strides[second]);
  }
  return aliased(x, std::move(geometry));
}

Tensor t(const Tensor& x) {
  if (x.dim() > 2) {
    throw ShapeError(fmt::format("t: takes at most two dimensions, not {}. Use transpose()", to_string(x.sizes())));
  }
  return x.dim() < 2 ? x.transpose(0, 0) : x.transpose(0, 1);
}

Tensor Tensor::expand(const Shape& size) const { return aliased(*this, graph::expanded(geometry_of(*this), size)); }
Tensor Tensor::expand_as(const Tensor& other) const { return expand(other.sizes()); }

Tensor squeeze(const Tensor& x, const DimList& dims) {
  return aliased(x, graph::squeezed(geometry_of(x), dims.mask(x.dim())));
}

Tensor unsqueeze(const Tensor& x, std::int64_t axis) {
  return aliased(x, graph::unsqueezed(geometry_of(x), wrap_axis(axis, x.dim() + 1)));
}

Tensor select(const Tensor& x, std::int64_t axis, std::int64_t index) {
  if (x.dim() == 0) throw IndexError("select: a tensor of no dimensions has no elements to choose from. Use item()");
  return aliased(x, graph::selected(geometry_of(x), wrap_axis(axis, x.dim()), index));
}

// Python's rules: bounds beyond the ends are clamped.
Tensor Tensor::slice(std::int64_t axis, Slice range) const {
  if (dim() == 0) throw IndexError("slice: a tensor of no dimensions cannot be sliced");
  if (range.step < 1) throw ValueError(fmt::format("slice: the step is {}, not at least 1. Use flip()", range.step));
  const int wrapped = wrap_axis(axis, dim());
  const std::int64_t size = sizes()[wrapped];
  const auto clamped = [size](std::int64_t bound) {
    return std::clamp<std::int64_t>(bound < 0 ? bound + size : bound, 0, size);
  };
  const std::int64_t start = clamped(range.start.value_or(0));
  const std::int64_t stop = std::max(clamped(range.stop.value_or(size)), start);
  const std::int64_t length = (stop - start) / range.step + ((stop - start) % range.step != 0);
  return aliased(*this, graph::sliced(geometry_of(*this), wrapped, start, length, range.step));
}

Tensor narrow(const Tensor& x, std::int64_t axis, std::int64_t start, std::int64_t length) {
  if (x.dim() == 0) throw IndexError("narrow: a tensor of no dimensions cannot be narrowed");
  const int wrapped = wrap_axis(axis, x.dim());
  const std::int64_t size = x.sizes()[wrapped];
  const std::int64_t first = start < 0 ? start + size : start;
  if (first < 0 || first > size) {
    throw IndexError(fmt::format("narrow: start {} is out of range for dimension {} of size {}", start, wrapped, size));
  }
  if (length < 0 || length > size - first) {
    throw ShapeError(
        fmt::format("narrow: {} elements from {} exceed dimension {} of size {}", length, first, wrapped, size));
  }
  return aliased(x, graph::sliced(geometry_of(x), wrapped, first, length, 1));
}

Tensor diagonal(const Tensor& x, std::int64_t offset, std::int64_t a, std::int64_t b) {
  if (x.dim() < 2) {
    throw ShapeError(fmt::format("diagonal: takes at least two dimensions, not {}", to_string(x.sizes())));
  }
  return aliased(x, graph::diagonal(geometry_of(x), offset, wrap_axis(a, x.dim()), wrap_axis(b, x.dim())));
}

Tensor as_strided(const Tensor& x, const Shape& sizes, const Strides& strides, std::int64_t offset) {
  if (sizes.rank() != strides.rank()) {
    throw ShapeError(fmt::format("as_strided: {} sizes but {} strides", sizes.rank(), strides.rank()));
  }
  std::int64_t last = offset;
  bool overflows = false;
  for (int axis = 0; axis < sizes.rank(); ++axis) {
    if (sizes[axis] < 0 || strides[axis] < 0) {
      throw ShapeError(fmt::format("as_strided: sizes {} and strides {} must not be negative", to_string(sizes),
                                   to_string(strides)));
    }
    std::int64_t reach = 0;
    overflows |= __builtin_mul_overflow(sizes[axis] - 1, strides[axis], &reach);
    overflows |= __builtin_add_overflow(last, reach, &last);
  }
  geometry_of(x);
  const std::int64_t available = x.state()->cell->numel();
  if (numel(sizes) > 0 && (offset < 0 || overflows || last >= available)) {
    throw ShapeError(fmt::format("as_strided: sizes {}, strides {} and offset {} reach element {} of a storage of {}",
                                 to_string(sizes), to_string(strides), offset,
                                 overflows ? "2^63 or one behind it" : std::to_string(last), available));
  }
  return aliased(x, {sizes, strides, offset});
}

Tensor unflatten(const Tensor& x, std::int64_t axis, const Shape& sizes) {
  const int wrapped = wrap_axis(axis, x.dim());
  if (x.dim() == 0 || sizes.empty()) {
    throw ShapeError(
        fmt::format("unflatten: dimension {} of {} does not become {}", axis, to_string(x.sizes()), to_string(sizes)));
  }
  std::int64_t known = 1;
  for (const std::int64_t size : sizes) known *= size == -1 ? 1 : size;
  const std::int64_t size = x.sizes()[wrapped];
  const bool open = std::find(sizes.begin(), sizes.end(), -1) != sizes.end();
  if (open ? known == 0 || size % known != 0 : known != size) {
    throw ShapeError(
        fmt::format("unflatten: dimension {} of size {} does not split into {}", axis, size, to_string(sizes)));
  }
  Shape target;
  for (int i = 0; i < wrapped; ++i) target.push_back(x.sizes()[i]);
  for (const std::int64_t part : sizes) target.push_back(part == -1 ? size / known : part);
  for (int i = wrapped + 1; i < x.dim(); ++i) target.push_back(x.sizes()[i]);
  return x.reshape(target);
}

Tensor swapaxes(const Tensor& x, std::int64_t a, std::int64_t b) { return x.transpose(a, b); }

Tensor movedim(const Tensor& x, const DimList& source, const DimList& destination) {
  const Dims& from = source.dims();
  const Dims& to = destination.dims();
  if (from.rank() != to.rank()) {
    throw ValueError(fmt::format("movedim: {} dimensions move to {} places", from.rank(), to.rank()));
  }
  const std::uint32_t moved = from.empty() ? 0 : source.mask(x.dim());
  const std::uint32_t taken = to.empty() ? 0 : destination.mask(x.dim());
  Dims axes = Dims::filled(x.dim(), -1);
  for (int i = 0; i < from.rank(); ++i) axes[wrap_axis(to[i], x.dim())] = wrap_axis(from[i], x.dim());
  int next = 0;
  for (int axis = 0; axis < x.dim(); ++axis) {
    if ((taken >> axis) & 1U) continue;
    while ((moved >> next) & 1U) ++next;
    axes[axis] = next++;
  }
  return x.permute(axes);
}

Tensor broadcast_to(const Tensor& x, const Shape& sizes) { return x.expand(sizes); }

std::vector<Tensor> broadcast_tensors(const std::vector<Tensor>& tensors) {
  Shape common;
  for (const Tensor& tensor : tensors) common = broadcast(common, tensor.sizes());
  std::vector<Tensor> result;
  for (const Tensor& tensor : tensors) result.push_back(tensor.expand(common));
  return result;
}

std::vector<Tensor> split(const Tensor& x, const std::vector<std::int64_t>& sizes, std::int64_t axis) {
  if (x.dim() == 0) throw ShapeError("split: a tensor of no dimensions cannot be split");
  const std::int64_t total = x.size(axis);
  std::int64_t sum = 0;
  for (const std::int64_t size : sizes) {
    if (size < 0) throw ValueError(fmt::format("split: a size is {}", size));
    sum += size;
  }
  if (sum != total) {
    throw ShapeError(fmt::format("split: the sizes add up to {}, dimension {} of {} has {}", sum, axis,
                                 to_string(x.sizes()), total));
  }
  std::vector<Tensor> parts;
  std::int64_t start = 0;
  for (const std::int64_t size : sizes) {
    parts.push_back(x.narrow(axis, start, size));
    start += size;
  }
  return parts;
}

std::vector<Tensor> split(const Tensor& x, std::int64_t size, std::int64_t axis) {
  if (x.dim() == 0) throw ShapeError("split: a tensor of no dimensions cannot be split");
  const std::int64_t total = x.size(axis);
  if (size < 0 || (size == 0 && total > 0)) throw ValueError(fmt::format("split: the size is {}", size));
  std::vector<std::int64_t> sizes;
  std::int64_t left = total;
  for (; left > size; left -= size) sizes.push_back(size);
  sizes.push_back(left);
  return split(x, sizes, axis);
}

std::vector<Tensor> chunk(const Tensor& x, std::int64_t chunks, std::int64_t axis) {
  if (chunks < 1) throw ValueError(fmt::format("chunk: the number of chunks is {}, not at least 1", chunks));
  if (x.dim() == 0) throw ShapeError("chunk: a tensor of no dimensions cannot be split");
  const std::int64_t total = x.size(axis);
  if (total == 0) return split(x, std::vector<std::int64_t>(static_cast<std::size_t>(chunks), 0), axis);
  return split(x, (total + chunks - 1) / chunks, axis);
}

std::vector<Tensor> unbind(const Tensor& x, std::int64_t axis) {
  if (x.dim() == 0) throw ShapeError("unbind: a tensor of no dimensions has no parts");
  std::vector<Tensor> parts;
  for (std::int64_t i = 0; i < x.size(axis); ++i) parts.push_back(x.select(axis, i));
  return parts;
}

Tensor Tensor::unfold(std::int64_t dimension, std::int64_t size, std::int64_t step) const {
  if (step < 1) throw ValueError(fmt::format("unfold: the step is {}, not at least 1", step));
  graph::Geometry geometry = geometry_of(*this);
  if (geometry.sizes.empty()) geometry = graph::unsqueezed(geometry, 0);
  const int wrapped = wrap_axis(dimension, geometry.sizes.rank());
  const std::int64_t total = geometry.sizes[wrapped];
  if (size < 0 || size > total) {
    throw ShapeError(fmt::format("unfold: windows of {} do not fit in dimension {} of size {}", size, wrapped, total));
  }
  const std::int64_t stride = geometry.strides[wrapped];
  geometry.sizes[wrapped] = (total - size) / step + 1;
  geometry.strides[wrapped] = stride * step;
  geometry.sizes.push_back(size);
  geometry.strides.push_back(stride);
  return aliased(*this, std::move(geometry));
}

}  // namespace russet
