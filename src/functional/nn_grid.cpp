// Images at places between their pixels: affine grids and the sampling of images by grids.
#include <russet/functional/nn_image.h>

#include <array>
#include <utility>

#include "functional/nn_detail.h"
#include "functional/nn_grid.h"

namespace russet {
namespace {

using functional::cast;
using functional::constant;
using functional::wide;
using Tensors = std::vector<Tensor>;

/// Centres of the pixels along one of `rank` axes, -1 and 1 being the edges, or the outermost centres.
Tensor centres(int axis, int rank, std::int64_t size, bool align_corners, const Tensor& like) {
  const Tensor place = cast(functional::iota_along(axis, rank, size, like.device()), like.dtype());
  if (align_corners && size == 1) return constant(0, like, place.sizes());
  const Tensor one = constant(1, like);
  if (align_corners) return place * constant(2.0 / static_cast<double>(size - 1), like) - one;
  return (place * constant(2, like) + one) / constant(size, like) - one;
}

/// How grid_sample was called.
struct Sampling {
  GridSampleOptions options;
  Shape image;  // sizes of the axes behind the channels

  double low() const { return options.align_corners ? 0 : -0.5; }  // the edge that reflection mirrors at
  double span(int axis) const { return static_cast<double>(image[axis] - (options.align_corners ? 1 : 0)); }
};

/// From -1 .. 1 to pixels.
Tensor in_pixels(const Tensor& grid, std::int64_t size, bool align_corners) {
  const Tensor one = constant(1, grid);
  const Tensor two = constant(2, grid);
  if (align_corners) return (grid + one) / two * constant(size - 1, grid);
  return ((grid + one) * constant(size, grid) - one) / two;
}

Tensor reflected(const Tensor& x, double low, double span) {
  if (span == 0) return x * constant(0, x);
  const Tensor edge = constant(low, x);
  const Tensor width = constant(span, x);
  const Tensor distance = abs(x - edge);
  const Tensor inside = fmod(distance, width);
  const Tensor turns = floor(distance.detach() / width);
  const Tensor is_even = eq(fmod(turns, constant(2, x)), constant(0, x));
  return where(is_even, inside, width - inside) + edge;
}

/// At and beyond the outermost pixels there is no slope, as in PyTorch.
Tensor clipped(const Tensor& x, std::int64_t size) {
  const auto last = static_cast<double>(size - 1);
  const Tensor inside = logical_and(gt(x, constant(0, x)), lt(x, constant(last, x)));
  return where(inside, x, clamp(x.detach(), 0, last));
}

Tensor padded_place(const Tensor& x, int axis, const Sampling& sampling) {
  switch (sampling.options.padding_mode) {
    case GridPaddingMode::zeros: return x;
    case GridPaddingMode::border: return clipped(x, sampling.image[axis]);
    case GridPaddingMode::reflection: break;
  }
  return clipped(reflected(x, sampling.low(), sampling.span(axis)), sampling.image[axis]);
}

/// The pixels at whole places, one tensor for each axis of the image; zeros where there is none (or at NaN).
Tensor pixels_at(const Tensor& images, const Tensors& places) {
  Tensors indices;
  Tensor exists;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const Tensor place = places[i].detach();
    const Tensor last = constant(images.size(static_cast<std::int64_t>(i) + 2) - 1, place);
    const Tensor valid = logical_and(ge(place, constant(0, place)), le(place, last));
    indices.push_back(cast(where(valid, place, constant(0, place)), DType::int64));
    exists = exists.defined() ? logical_and(exists, valid) : valid;
  }
  ops::Indexing indexing{.lead = exists.sizes(), .axes = static_cast<std::int16_t>(images.dim())};
  indexing.lead[1] = images.size(1);
  indexing.sources[0] = 0;
  indexing.sources[1] = 1;
  for (std::size_t i = 0; i < places.size(); ++i) indexing.sources[i + 2] = ops::Indexing::by_tensor;
  indexing.checked = true;
  const Tensor found = autograd::indexed(ops::Op::take, {images}, indices, indexing);
  return where(exists, found, constant(0, found));
}

Tensor sum_of(const Tensor& sum, const Tensor& term) { return sum.defined() ? sum + term : term; }

/// The pixels on both sides along each axis, weighted by their distances.
Tensor linear_sample(const Tensor& images, const Tensors& places) {
  Tensor sum;
  for (unsigned corner = 0; corner < 1U << places.size(); ++corner) {
    Tensors whole;
    Tensor weight;
    for (std::size_t i = 0; i < places.size(); ++i) {
      const Tensor below = floor(places[i].detach());
      const Tensor one = constant(1, below);
      const bool is_after = (corner >> i) & 1U;
      const Tensor share = is_after ? places[i] - below : below + one - places[i];
      whole.push_back(is_after ? below + one : below);
      weight = weight.defined() ? weight * share : share;
    }
    sum = sum_of(sum, pixels_at(images, whole) * weight);
  }
  return sum;
}

/// The weights of the four neighbours of a place that lies `t` behind the second (Keys' cubic convolution).
std::array<Tensor, 4> cubic_shares(const Tensor& t) {
  const auto c = [&](double value) { return constant(value, t); };
  constexpr double a = -0.75;
  const auto inner = [&](const Tensor& x) { return (x * c(a + 2) - c(a + 3)) * x * x + c(1); };
  const auto outer = [&](const Tensor& x) { return ((x * c(a) - c(5 * a)) * x + c(8 * a)) * x - c(4 * a); };
  return {outer(t + c(1)), inner(t), inner(c(1) - t), outer(c(2) - t)};
}

Tensor cubic_sample(const Tensor& images, const Tensors& places, const Sampling& sampling) {
  const Tensor top = floor(places[0].detach());
  const Tensor left = floor(places[1].detach());
  const std::array<Tensor, 4> down = cubic_shares(places[0] - top);
  const std::array<Tensor, 4> across = cubic_shares(places[1] - left);
  Tensor sum;
  for (std::size_t i = 0; i < 4; ++i) {
    const Tensor y = padded_place(top + constant(static_cast<int>(i) - 1, top), 0, sampling);
    Tensor row;
    for (std::size_t j = 0; j < 4; ++j) {
      const Tensor x = padded_place(left + constant(static_cast<int>(j) - 1, left), 1, sampling);
      row = sum_of(row, pixels_at(images, {y, x}) * across[j]);
    }
    sum = sum_of(sum, row * down[i]);
  }
  return sum;
}

void check_grid(const Tensor& images, const Tensor& grid, GridSampleMode mode) {
  functional::require_floating("grid_sample", images);
  if (images.dtype() != grid.dtype()) {
    throw TypeError(
        fmt::format("grid_sample: the input is {}, the grid {}", name_of(images.dtype()), name_of(grid.dtype())));
  }
  const int rank = images.dim();
  if ((rank != 4 && rank != 5) || grid.dim() != rank || grid.size(-1) != rank - 2 || grid.size(0) != images.size(0)) {
    throw ShapeError(fmt::format("grid_sample: takes [n, c, h, w] and [n, oh, ow, 2], or one axis more, not {} and {}",
                                 to_string(images.sizes()), to_string(grid.sizes())));
  }
  if (mode == GridSampleMode::bicubic && rank != 4) {
    throw ShapeError(fmt::format("grid_sample: bicubic is for [n, c, h, w], not {}", to_string(images.sizes())));
  }
  for (int axis = 2; axis < rank; ++axis) {
    if (images.size(axis) == 0) {
      throw ShapeError(fmt::format("grid_sample: there are no pixels in {}", to_string(images.sizes())));
    }
  }
}

}  // namespace

Tensor affine_grid(const Tensor& theta, const Shape& size, bool align_corners) {
  functional::require_floating("affine_grid", theta);
  const int axes = size.rank() - 2;
  const bool fits = (axes == 2 || axes == 3) && theta.sizes() == Shape{size[0], axes, axes + 1};
  if (!fits) {
    throw ShapeError(
        fmt::format("affine_grid: takes theta [n, 2, 3] and size [n, c, h, w], or [n, 3, 4] and [n, c, d, h, w], "
                    "not {} and {}",
                    to_string(theta.sizes()), to_string(size)));
  }
  Shape column = Shape::filled(axes + 2, 1);
  column[0] = size[0];
  column[axes + 1] = axes;
  // Column i of theta belongs to the i-th coordinate: x first, which is the last axis.
  Tensor grid = theta.select(2, axes).reshape(column);
  for (int i = 0; i < axes; ++i) {
    const Tensor centre = centres(axes - i, axes + 2, size[axes + 1 - i], align_corners, theta);
    grid = theta.select(2, i).reshape(column) * centre + grid;
  }
  return grid;
}

Tensor functional::sampled(const Tensor& images, std::vector<Tensor> places, const GridSampleOptions& options) {
  Sampling sampling{options, {}};
  for (int axis = 2; axis < images.dim(); ++axis) sampling.image.push_back(images.size(axis));
  if (options.mode == GridSampleMode::bicubic) return cubic_sample(images, places, sampling);
  for (int i = 0; i < sampling.image.rank(); ++i) {
    Tensor& place = places[static_cast<std::size_t>(i)];
    place = padded_place(place, i, sampling);
    if (options.mode == GridSampleMode::nearest) place = round(place);
  }
  return options.mode == GridSampleMode::nearest ? pixels_at(images, places) : linear_sample(images, places);
}

Tensor grid_sample(const Tensor& images, const Tensor& grid, const GridSampleOptions& options) {
  check_grid(images, grid, options.mode);
  Tensors places;
  const int axes = images.dim() - 2;
  for (int i = 0; i < axes; ++i) {
    const Tensor coordinate = wide(grid.select(-1, axes - 1 - i).unsqueeze(1));
    places.push_back(in_pixels(coordinate, images.size(i + 2), options.align_corners));
  }
  return cast(functional::sampled(wide(images), std::move(places), options), images.dtype());
}

}  // namespace russet
