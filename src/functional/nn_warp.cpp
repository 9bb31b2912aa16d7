// Images warped by maps of their pixels, and blurred, as kornia defines it. Places are computed in pixels: kornia's way
// by coordinates from -1 to 1 is the same map.
#include <russet/autocast.h>
#include <russet/functional/nn_convolution.h>
#include <russet/functional/nn_warp.h>

#include <algorithm>
#include <array>
#include <numbers>
#include <utility>

#include "functional/nn_detail.h"
#include "functional/nn_grid.h"

namespace russet {
namespace {

using functional::batched;
using functional::cast;
using functional::constant;
using functional::wide;
using Tensors = std::vector<Tensor>;

// Entry (row, column) of matrices [n, rows, columns], to be combined with places [n, 1, h, w].
Tensor entry(const Tensor& matrices, int row, int column) {
  return matrices.narrow(1, row, 1).narrow(2, column, 1).unsqueeze(3);
}

/// What is sampled where.
struct Warp {
  Tensor images;  // [n, c, h, w], float32 or float64
  Tensor map;     // [n, rows, 3], in the same type
  Tensor x;       // [1, 1, 1, w]: columns of the result
  Tensor y;       // [1, 1, h, 1]: its rows
};

/// The number of images and that of maps, of which either may be 1.
std::int64_t common_batch(const char* function, const Tensor& images, const Tensor& maps) {
  const std::int64_t n = images.size(0);
  const std::int64_t m = maps.size(0);
  if (n == m || m == 1) return n;
  if (n == 1) return m;
  throw ShapeError(fmt::format("{}: {} images and {} maps: as many of both, or one of either", function, n, m));
}

Warp make_warp(const char* function, const Tensor& src, const Tensor& map, std::int64_t rows, Size2 dsize) {
  functional::require_floating(function, src);
  functional::require_floating(function, map);
  if (src.dim() != 4 || map.dim() != 3 || map.size(1) != rows || map.size(2) != 3) {
    throw ShapeError(fmt::format("{}: takes images [n, c, h, w] and maps [n, {}, 3], not {} and {}", function, rows,
                                 to_string(src.sizes()), to_string(map.sizes())));
  }
  if (src.size(2) == 0 || src.size(3) == 0) {
    throw ShapeError(fmt::format("{}: there are no pixels in {}", function, to_string(src.sizes())));
  }
  if (dsize.height < 0 || dsize.width < 0) {
    throw ValueError(fmt::format("{}: a result of {} x {} pixels", function, dsize.height, dsize.width));
  }
  const std::int64_t batch = common_batch(function, src, map);
  const Tensor images = wide(src).expand({batch, src.size(1), src.size(2), src.size(3)});
  const auto along = [&](int axis, std::int64_t size) {
    return cast(functional::iota_along(axis, 4, size, src.device()), images.dtype());
  };
  return {images, cast(map, images.dtype()).expand({batch, rows, 3}), along(3, dsize.width), along(2, dsize.height)};
}

/// Where an affine map finds each pixel of its result: x, y.
std::array<Tensor, 2> affine_places(const Warp& warp) {
  const auto m = [&](int row, int column) { return entry(warp.map, row, column); };
  const Tensor determinant = m(0, 0) * m(1, 1) - m(0, 1) * m(1, 0);
  const Tensor x = warp.x - m(0, 2);
  const Tensor y = warp.y - m(1, 2);
  return {(m(1, 1) * x - m(0, 1) * y) / determinant, (m(0, 0) * y - m(1, 0) * x) / determinant};
}

/// The same for a projective map: its inverse is the adjugate matrix, but for a factor, which makes no difference.
std::array<Tensor, 2> projective_places(const Warp& warp) {
  // So that products of tiny or huge entries stay numbers.
  const Tensor map = warp.map / amax(abs(warp.map.detach()), {1, 2}, true);
  const auto cofactor = [&](int row, int column) {
    const auto m = [&](int i, int j) { return entry(map, (row + i) % 3, (column + j) % 3); };
    return m(1, 1) * m(2, 2) - m(1, 2) * m(2, 1);
  };
  const auto coordinate = [&](int row) {
    return cofactor(0, row) * warp.x + cofactor(1, row) * warp.y + cofactor(2, row);
  };
  const Tensor scale = coordinate(2);
  return {coordinate(0) / scale, coordinate(1) / scale};
}

GridPaddingMode grid_padding(WarpPaddingMode mode) {
  if (mode == WarpPaddingMode::border) return GridPaddingMode::border;
  return mode == WarpPaddingMode::reflection ? GridPaddingMode::reflection : GridPaddingMode::zeros;
}

/// What was sampled, and the fill for the share of each pixel that the images do not cover.
Tensor with_fill(const char* function, const Tensor& inside, const Tensor& fill, const Tensor& covered) {
  Tensor value = fill.defined() ? cast(fill, inside.dtype()) : constant(0, inside);
  if (value.dim() == 1) value = value.reshape({1, value.size(0), 1, 1});
  bool fits = value.dim() <= 4;
  for (int axis = 1; fits && axis <= value.dim(); ++axis) {
    fits = value.size(-axis) == 1 || value.size(-axis) == inside.size(-axis);
  }
  if (!fits) {
    throw ShapeError(fmt::format("{}: fill_value {} does not broadcast to the result {}", function,
                                 to_string(fill.sizes()), to_string(inside.sizes())));
  }
  return inside + (constant(1, covered) - covered) * value;
}

Tensor warped(const char* function, const Warp& warp, const std::array<Tensor, 2>& places, const WarpOptions& options) {
  const Shape sizes{warp.images.size(0), 1, warp.y.size(2), warp.x.size(3)};
  Tensors yx;
  for (const int axis : {1, 0}) {
    const Tensor& place = places[static_cast<std::size_t>(axis)];
    // As in grid_sample: from the first pixel's centre to the last one's is no way then.
    const bool single = options.align_corners && warp.images.size(3 - axis) == 1;
    yx.push_back(single ? constant(0, place, sizes) : place.expand(sizes));
  }
  const GridSampleOptions sampling{options.mode, grid_padding(options.padding_mode), options.align_corners};
  const Tensor inside = functional::sampled(warp.images, yx, sampling);
  if (options.padding_mode != WarpPaddingMode::fill) return inside;
  const Tensor ones = constant(1, warp.images, {sizes[0], 1, warp.images.size(2), warp.images.size(3)});
  return with_fill(function, inside, options.fill_value, functional::sampled(ones, yx, sampling));
}

WarpPaddingMode warp_padding(GridPaddingMode mode) {
  if (mode == GridPaddingMode::border) return WarpPaddingMode::border;
  return mode == GridPaddingMode::reflection ? WarpPaddingMode::reflection : WarpPaddingMode::zeros;
}

/// x [...] as vectors [n, 2]: one place for all, or one each.
Tensor as_places(const char* function, const Tensor& x, std::int64_t count) {
  const bool fits = (x.dim() == 1 || x.dim() == 2) && x.size(-1) == 2 &&
                    (x.dim() == 1 || x.size(0) == 1 || x.size(0) == count || count == 1);
  if (!fits) {
    throw ShapeError(
        fmt::format("{}: a center is [2] or [n, 2], not {}, for {} angles", function, to_string(x.sizes()), count));
  }
  return x.dim() == 1 ? x.unsqueeze(0) : x;
}

}  // namespace

Tensor warp_affine(const Tensor& src, const Tensor& map, Size2 dsize, const WarpOptions& options) {
  const Warp warp = make_warp("warp_affine", src, map, 2, dsize);
  return cast(warped("warp_affine", warp, affine_places(warp), options), src.dtype());
}

Tensor warp_perspective(const Tensor& src, const Tensor& map, Size2 dsize, const WarpOptions& options) {
  const Warp warp = make_warp("warp_perspective", src, map, 3, dsize);
  return cast(warped("warp_perspective", warp, projective_places(warp), options), src.dtype());
}

Tensor get_rotation_matrix2d(const Tensor& center, const Tensor& angle, const Tensor& scale) {
  for (const Tensor& x : {center, angle, scale}) functional::require_floating("get_rotation_matrix2d", x);
  const Shape pairs{angle.numel(), 2};
  if (angle.dim() != 1 || center.sizes() != pairs || scale.sizes() != pairs) {
    throw ShapeError(
        fmt::format("get_rotation_matrix2d: takes center [n, 2], angle [n] and scale [n, 2], not {}, {}, {}",
                    to_string(center.sizes()), to_string(angle.sizes()), to_string(scale.sizes())));
  }
  const Tensor turn = wide(angle) * constant(std::numbers::pi / 180, wide(angle));
  const Tensor xy = cast(center, turn.dtype());
  const Tensor factor = cast(scale, turn.dtype());
  const Tensor cosine = cos(turn);
  const Tensor sine = sin(turn);
  const Tensor factor_x = factor.select(1, 0);
  const Tensor factor_y = factor.select(1, 1);
  const Tensor turned =
      stack({stack({cosine * factor_x, sine * factor_y}, 1), stack({-sine * factor_x, cosine * factor_y}, 1)}, 1);
  const Tensor shift = xy - sum(turned * xy.unsqueeze(1), 2);
  return cast(cat({turned, shift.unsqueeze(2)}, 2), angle.dtype());
}

Tensor affine(const Tensor& images, const Tensor& matrix, const AffineOptions& options) {
  const Tensor batch = batched("affine", images, 4);
  const Tensor result = warp_affine(batch, matrix, {batch.size(2), batch.size(3)},
                                    {options.mode, warp_padding(options.padding_mode), options.align_corners, {}});
  return result.size(0) == 1 ? functional::unbatched(result, images, 4) : result;
}

Tensor rotate(const Tensor& images, const Tensor& angle, const Tensor& center, const AffineOptions& options) {
  const Tensor batch = batched("rotate", images, 4);
  if (angle.dim() > 1) {
    throw ShapeError(fmt::format("rotate: the angles are [n] or [1], not {}", to_string(angle.sizes())));
  }
  const Tensor angles = wide(angle).reshape({angle.numel()});
  Tensor about;
  if (center.defined()) {
    about = cast(as_places("rotate", center, angles.size(0)), angles.dtype());
  } else {
    const auto middle = [&](int axis) {
      return constant(static_cast<double>(batch.size(axis) - 1) / 2, angles, {1, 1});
    };
    about = cat({middle(3), middle(2)}, 1);
  }
  const std::int64_t count = std::max(angles.size(0), about.size(0));
  const Tensor matrix =
      get_rotation_matrix2d(about.expand({count, 2}), angles.expand({count}), constant(1, angles, {count, 2}));
  return affine(images, matrix, options);
}

namespace {

/// A Gaussian for each sigma [n, 1], cut to `size` places around its middle: [n, size].
Tensor gaussian(std::int64_t size, const Tensor& sigma) {
  const Tensor place = cast(functional::iota_along(1, 2, size, sigma.device()), sigma.dtype());
  const Tensor distance = (place - constant(size / 2, sigma)) / sigma;
  const Tensor values = exp(square(distance) * constant(-0.5, sigma));
  return values / sum(values, 1, true);
}

/// Each channel of each image [n, c, h, w] with its image's kernel [n, kh, kw], or all with the one [1, kh, kw].
Tensor filtered(const Tensor& images, const Tensor& kernels, PadMode border) {
  const std::int64_t rows = kernels.size(1);
  const std::int64_t columns = kernels.size(2);
  const Tensor padded = pad(images, {columns / 2, columns / 2, rows / 2, rows / 2}, border);
  const std::int64_t channels = images.size(1);
  const std::int64_t groups = kernels.size(0) * channels;
  const Tensor weight = kernels.unsqueeze(1).expand({kernels.size(0), channels, rows, columns});
  const bool shared = kernels.size(0) == 1;
  const Tensor input = shared ? padded : padded.reshape({1, groups, padded.size(2), padded.size(3)});
  Conv2dOptions options;
  options.groups = groups;
  return conv2d(input, weight.reshape({groups, 1, rows, columns}), {}, options).reshape(images.sizes());
}

Tensor blurred(const Tensor& input, Size2 size, const Tensor& sigma, const GaussianBlur2dOptions& options) {
  const Autocast off(DType::bfloat16, false);
  const Tensor images = wide(input);
  const Tensor spread = cast(sigma, images.dtype());
  const Tensor along_y = gaussian(size.height, spread.narrow(1, 0, 1)).unsqueeze(2);
  const Tensor along_x = gaussian(size.width, spread.narrow(1, 1, 1)).unsqueeze(1);
  const Tensor result = options.separable
                            ? filtered(filtered(images, along_x, options.border_type), along_y, options.border_type)
                            : filtered(images, along_y * along_x, options.border_type);
  return cast(result, input.dtype());
}

void check_blur(const Tensor& input, Size2 size) {
  functional::require_floating("gaussian_blur2d", input);
  if (input.dim() != 4) {
    throw ShapeError(fmt::format("gaussian_blur2d: takes images [n, c, h, w], not {}", to_string(input.sizes())));
  }
  if (size.height < 1 || size.width < 1 || size.height % 2 == 0 || size.width % 2 == 0) {
    throw ValueError(
        fmt::format("gaussian_blur2d: a kernel has an odd height and width, not {} x {}", size.height, size.width));
  }
}

}  // namespace

Tensor gaussian_blur2d(const Tensor& input, Size2 kernel_size, std::pair<double, double> sigma,
                       const GaussianBlur2dOptions& options) {
  check_blur(input, kernel_size);
  if (!(sigma.first > 0 && sigma.second > 0)) {
    throw ValueError(fmt::format("gaussian_blur2d: sigma must be positive, not {} and {}", sigma.first, sigma.second));
  }
  const Tensor images = wide(input);
  const auto along = [&](double value) { return functional::number(value, images.dtype(), input.device(), {1, 1}); };
  return blurred(input, kernel_size, cat({along(sigma.first), along(sigma.second)}, 1), options);
}

Tensor gaussian_blur2d(const Tensor& input, Size2 kernel_size, const Tensor& sigma,
                       const GaussianBlur2dOptions& options) {
  check_blur(input, kernel_size);
  functional::require_floating("gaussian_blur2d", sigma);
  if (sigma.dim() != 2 || sigma.size(1) != 2 || (sigma.size(0) != 1 && sigma.size(0) != input.size(0))) {
    throw ShapeError(fmt::format("gaussian_blur2d: sigma is [1, 2] or [n, 2] for images [n, c, h, w], not {} for {}",
                                 to_string(sigma.sizes()), to_string(input.sizes())));
  }
  return blurred(input, kernel_size, sigma, options);
}

}  // namespace russet
