// Rearranging and resizing images.
#include <russet/functional/nn_image.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "autograd/rules_detail.h"
#include "functional/nn_detail.h"

namespace russet {
namespace {

using functional::batched;
using functional::cast;
using functional::wide;

// Leading axes as one: [n, c, h, w].
Tensor as_images(const char* function, const Tensor& x) {
  if (x.dim() < 3) throw ShapeError(fmt::format("{}: takes [..., c, h, w], not {}", function, to_string(x.sizes())));
  std::int64_t lead = 1;
  for (int axis = 0; axis + 3 < x.dim(); ++axis) lead *= x.sizes()[axis];
  return x.reshape({lead, x.size(-3), x.size(-2), x.size(-1)});
}

Tensor with_lead(const Tensor& y, const Tensor& x, std::int64_t c, std::int64_t h, std::int64_t w) {
  Shape sizes;
  for (int axis = 0; axis + 3 < x.dim(); ++axis) sizes.push_back(x.sizes()[axis]);
  for (const std::int64_t size : {c, h, w}) sizes.push_back(size);
  return y.reshape(sizes);
}

// Resizing one axis from `size` to `output` elements; `scale`: source elements for each output element.
struct Axis {
  int index;
  std::int64_t size;
  std::int64_t output;
  double scale;
};

Tensor positions(const std::vector<std::int64_t>& values, Device device) {
  return Tensor::from(values, {static_cast<std::int64_t>(values.size())}, device);
}

Tensor nearest(const Tensor& x, const Axis& axis, bool exact) {
  if (axis.output % axis.size == 0) return repeat_interleave(x, axis.output / axis.size, axis.index);
  std::vector<std::int64_t> source;
  for (std::int64_t i = 0; i < axis.output; ++i) {
    const double at = (static_cast<double>(i) + (exact ? 0.5 : 0)) * axis.scale;
    source.push_back(std::min(static_cast<std::int64_t>(std::floor(at)), axis.size - 1));
  }
  return index_select(x, axis.index, positions(source, x.device()));
}

/// Weights along an axis of x, in x's type: rounded here, for not every device has float64.
Tensor weights_along(const Axis& axis, const std::vector<double>& weights, const Tensor& x) {
  Shape sizes = Shape::filled(x.dim(), 1);
  sizes[axis.index] = axis.output;
  Tensor rounded;
  visit_dtype(x.dtype(), [&]<class Element>() {
    if constexpr (!std::is_same_v<Element, bool>) {
      std::vector<Element> elements;
      for (const double weight : weights) elements.push_back(convert_element<Element>(weight));
      rounded = Tensor::from(elements, sizes, x.device());
    }
  });
  return rounded;
}

Tensor linear_between(const Tensor& x, const Axis& axis, bool align_corners) {
  std::vector<std::int64_t> before;
  std::vector<std::int64_t> after;
  std::vector<double> share;
  const double step = axis.output > 1 ? static_cast<double>(axis.size - 1) / static_cast<double>(axis.output - 1) : 0;
  for (std::int64_t i = 0; i < axis.output; ++i) {
    const auto at = static_cast<double>(i);
    const double source = align_corners ? at * step : std::max((at + 0.5) * axis.scale - 0.5, 0.0);
    const std::int64_t first = std::min(static_cast<std::int64_t>(source), axis.size - 1);
    before.push_back(first);
    after.push_back(std::min(first + 1, axis.size - 1));
    share.push_back(source - static_cast<double>(first));
  }
  const Tensor weight = weights_along(axis, share, x);
  const Tensor low = index_select(x, axis.index, positions(before, x.device()));
  const Tensor high = index_select(x, axis.index, positions(after, x.device()));
  return low + (high - low) * weight;
}

/// The weights of the four neighbours of a place that lies `t` behind the second (Keys' cubic convolution).
std::array<double, 4> cubic_weights(double t) {
  constexpr double a = -0.75;
  const auto inner = [](double x) { return ((a + 2) * x - (a + 3)) * x * x + 1; };
  const auto outer = [](double x) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; };
  return {outer(t + 1), inner(t), inner(1 - t), outer(2 - t)};
}

Tensor cubic_between(const Tensor& x, const Axis& axis, bool align_corners) {
  std::array<std::vector<std::int64_t>, 4> places;
  std::array<std::vector<double>, 4> weights;
  const double step = axis.output > 1 ? static_cast<double>(axis.size - 1) / static_cast<double>(axis.output - 1) : 0;
  for (std::int64_t i = 0; i < axis.output; ++i) {
    const auto at = static_cast<double>(i);
    const double source = align_corners ? at * step : (at + 0.5) * axis.scale - 0.5;
    const double first = std::floor(source);
    const std::array<double, 4> shares = cubic_weights(source - first);
    for (std::size_t k = 0; k < 4; ++k) {
      const std::int64_t place = static_cast<std::int64_t>(first) + static_cast<std::int64_t>(k) - 1;
      places[k].push_back(std::clamp<std::int64_t>(place, 0, axis.size - 1));
      weights[k].push_back(shares[k]);
    }
  }
  Tensor sum;
  for (std::size_t k = 0; k < 4; ++k) {
    const Tensor weight = weights_along(axis, weights[k], x);
    const Tensor term = index_select(x, axis.index, positions(places[k], x.device())) * weight;
    sum = sum.defined() ? sum + term : term;
  }
  return sum;
}

/// The kernels of antialiasing: the triangle, and the cubic of a = -0.5, at a distance.
double smoothing_weight(double distance, bool is_cubic) {
  const double x = std::abs(distance);
  if (!is_cubic) return std::max(1 - x, 0.0);
  constexpr double a = -0.5;
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

/// Weighted means of all elements that the kernel covers, which an axis that shrinks widens.
Tensor antialiased(const Tensor& x, const Axis& axis, bool is_cubic, bool align_corners) {
  double scale = axis.scale;
  if (align_corners) {
    scale = axis.output > 1 ? static_cast<double>(axis.size - 1) / static_cast<double>(axis.output - 1) : 0;
  }
  const double widening = std::max(scale, 1.0);
  const double support = (is_cubic ? 2 : 1) * widening;
  const std::int64_t taps = 2 * static_cast<std::int64_t>(std::ceil(support)) + 1;
  std::vector<std::int64_t> places;
  std::vector<double> weights;
  for (std::int64_t i = 0; i < axis.output; ++i) {
    const double centre = scale * (static_cast<double>(i) + 0.5);
    const std::int64_t first = std::max<std::int64_t>(static_cast<std::int64_t>(centre - support + 0.5), 0);
    const std::int64_t end = std::min(static_cast<std::int64_t>(centre + support + 0.5), axis.size);
    double total = 0;
    for (std::int64_t place = first; place < first + taps; ++place) {
      const double distance = (static_cast<double>(place) - centre + 0.5) / widening;
      const double weight = place < end ? smoothing_weight(distance, is_cubic) : 0;
      places.push_back(std::min(place, axis.size - 1));
      weights.push_back(weight);
      total += weight;
    }
    for (auto weight = weights.end() - taps; weight != weights.end(); ++weight) *weight /= total;
  }
  const Tensor covered = index_select(x, axis.index, positions(places, x.device()));
  const Axis all{axis.index, axis.size, axis.output * taps, scale};
  return sum(unflatten(covered * weights_along(all, weights, x), axis.index, {axis.output, taps}), axis.index + 1);
}

/// Means as pixels of a type: integers are the nearest (halves go up, as in PyTorch), and the cubic's overshoots end at
/// the limits of narrow ones.
Tensor as_pixels(const Tensor& means, DType dtype) {
  Tensor pixels = means;
  visit_dtype(dtype, [&]<class Element>() {
    if constexpr (std::is_integral_v<Element> && !std::is_same_v<Element, bool>) {
      pixels = floor(means + 0.5);
      if constexpr (sizeof(Element) < sizeof(std::int32_t)) {
        using Limits = std::numeric_limits<Element>;
        pixels = clamp(pixels, static_cast<double>(Limits::min()), static_cast<double>(Limits::max()));
      }
    }
  });
  return cast(pixels, dtype);
}

std::vector<Axis> resized_axes(const Tensor& x, const InterpolateOptions& options) {
  if (x.dim() != 3 && x.dim() != 4) {
    throw ShapeError(fmt::format("interpolate: takes [n, c, l] or [n, c, h, w], not {}", to_string(x.sizes())));
  }
  if (options.size.has_value() == options.scale_factor.has_value()) {
    throw ValueError("interpolate: takes either a size or a scale factor");
  }
  std::vector<Axis> axes;
  for (int index = 2; index < x.dim(); ++index) {
    const std::int64_t size = x.size(index);
    const bool is_width = index == x.dim() - 1;
    std::int64_t output = 0;
    if (options.size) {
      output = is_width ? options.size->width : options.size->height;
    } else {
      output = static_cast<std::int64_t>(std::floor(static_cast<double>(size) * *options.scale_factor));
    }
    if (output < 1 || size < 1) {
      throw ValueError(fmt::format("interpolate: cannot resize dimension {} from {} to {}", index, size, output));
    }
    const double scale =
        options.scale_factor ? 1 / *options.scale_factor : static_cast<double>(size) / static_cast<double>(output);
    axes.push_back({index, size, output, scale});
  }
  return axes;
}

// The windows of padded images [n, c, h, w] as a view: [n, c, kh, kw, rows, columns].
struct Windows {
  Shape padded;
  Shape sizes;
  Strides strides;
};

Windows windows_of(const char* function, const Shape& images, Size2 kernel, const UnfoldOptions& options) {
  Windows windows;
  const std::int64_t h = images[2] + 2 * options.padding.height;
  const std::int64_t w = images[3] + 2 * options.padding.width;
  const bool valid = std::min({kernel.height, kernel.width, options.stride.height, options.stride.width,
                               options.dilation.height, options.dilation.width}) >= 1 &&
                     std::min(options.padding.height, options.padding.width) >= 0;
  if (!valid) throw ValueError(fmt::format("{}: sizes, strides and dilations are at least 1, padding 0", function));
  const std::int64_t rows = ops::window_output(h, kernel.height, options.stride.height, 0, 0, options.dilation.height);
  const std::int64_t columns = ops::window_output(w, kernel.width, options.stride.width, 0, 0, options.dilation.width);
  if (rows < 1 || columns < 1) {
    throw ShapeError(fmt::format("{}: a window of {} x {} does not fit in {}", function, kernel.height, kernel.width,
                                 to_string(images)));
  }
  windows.padded = {images[0], images[1], h, w};
  windows.sizes = {images[0], images[1], kernel.height, kernel.width, rows, columns};
  windows.strides = {images[1] * h * w,           h * w,
                     w * options.dilation.height, options.dilation.width,
                     w * options.stride.height,   options.stride.width};
  return windows;
}

}  // namespace

Tensor pixel_shuffle(const Tensor& x, std::int64_t upscale) {
  const Tensor images = as_images("pixel_shuffle", x);
  const std::int64_t r = upscale;
  const std::int64_t n = images.size(0);
  const std::int64_t h = images.size(2);
  const std::int64_t w = images.size(3);
  if (r < 1 || images.size(1) % (r * r) != 0) {
    throw ShapeError(fmt::format("pixel_shuffle: {} channels are not a multiple of {} squared", images.size(1), r));
  }
  const std::int64_t c = images.size(1) / (r * r);
  const Tensor moved = images.reshape({n, c, r, r, h, w}).permute({0, 1, 4, 2, 5, 3});
  return with_lead(moved, x, c, h * r, w * r);
}

Tensor pixel_unshuffle(const Tensor& x, std::int64_t downscale) {
  const Tensor images = as_images("pixel_unshuffle", x);
  const std::int64_t r = downscale;
  const std::int64_t n = images.size(0);
  const std::int64_t c = images.size(1);
  if (r < 1 || images.size(2) % r != 0 || images.size(3) % r != 0) {
    throw ShapeError(
        fmt::format("pixel_unshuffle: height and width of {} are no multiples of {}", to_string(x.sizes()), r));
  }
  const std::int64_t h = images.size(2) / r;
  const std::int64_t w = images.size(3) / r;
  const Tensor moved = images.reshape({n, c, h, r, w, r}).permute({0, 1, 3, 5, 2, 4});
  return with_lead(moved, x, c * r * r, h, w);
}

Tensor channel_shuffle(const Tensor& x, std::int64_t groups) {
  if (x.dim() < 3 || groups < 1 || x.size(1) % groups != 0) {
    throw ShapeError(
        fmt::format("channel_shuffle: the channels of {} do not split into {} groups", to_string(x.sizes()), groups));
  }
  return unflatten(x, 1, {groups, x.size(1) / groups}).transpose(1, 2).reshape(x.sizes());
}

Tensor interpolate(const Tensor& x, const InterpolateOptions& options) {
  const bool is_cubic = options.mode == Interpolation::bicubic;
  const bool is_linear = options.mode == Interpolation::linear || options.mode == Interpolation::bilinear;
  if (options.align_corners && !is_linear && !is_cubic) {
    throw ValueError("interpolate: align_corners is for linear, bilinear and bicubic modes");
  }
  if (is_cubic && x.dim() != 4) {
    throw ShapeError(fmt::format("interpolate: bicubic is for images [n, c, h, w], not {}", to_string(x.sizes())));
  }
  if (options.antialias && (x.dim() != 4 || (!is_cubic && options.mode != Interpolation::bilinear))) {
    throw ValueError("interpolate: antialias is for bilinear and bicubic modes and images [n, c, h, w]");
  }
  Tensor y = is_linear || is_cubic ? wide(x) : x;
  for (const Axis& axis : resized_axes(x, options)) {
    if (axis.output == axis.size && axis.scale == 1) continue;
    if (options.antialias) {
      y = antialiased(y, axis, is_cubic, options.align_corners);
    } else if (is_cubic) {
      y = cubic_between(y, axis, options.align_corners);
    } else {
      y = is_linear ? linear_between(y, axis, options.align_corners)
                    : nearest(y, axis, options.mode == Interpolation::nearest_exact);
    }
  }
  return is_linear || is_cubic ? as_pixels(y, x.dtype()) : y;
}

Tensor unfold(const Tensor& x, Size2 kernel, const UnfoldOptions& options) {
  const Tensor images = batched("unfold", x, 4);
  const Windows windows = windows_of("unfold", images.sizes(), kernel, options);
  const Size2 p = options.padding;
  const Tensor padded = p == Size2(0) ? images : pad(images, {p.width, p.width, p.height, p.height});
  const Shape& s = windows.sizes;
  const Tensor columns = functional::strided(padded, s, windows.strides);
  return functional::unbatched(columns.reshape({s[0], s[1] * s[2] * s[3], s[4] * s[5]}), x, 4);
}

Tensor fold(const Tensor& x, Size2 output, Size2 kernel, const UnfoldOptions& options) {
  const Tensor columns = batched("fold", x, 3);
  const std::int64_t area = kernel.height * kernel.width;
  if (area < 1 || columns.size(1) % area != 0) {
    throw ShapeError(fmt::format("fold: {} rows are no multiple of the window's {} elements", columns.size(1), area));
  }
  const Shape images{columns.size(0), columns.size(1) / area, output.height, output.width};
  const Windows windows = windows_of("fold", images, kernel, options);
  if (columns.size(2) != windows.sizes[4] * windows.sizes[5]) {
    throw ShapeError(fmt::format("fold: {} columns where {} x {} windows are needed", columns.size(2), windows.sizes[4],
                                 windows.sizes[5]));
  }
  const Tensor padded = autograd::transposed_view(columns.reshape(windows.sizes), {windows.strides}, 0, windows.padded);
  const Tensor y =
      padded.narrow(2, options.padding.height, output.height).narrow(3, options.padding.width, output.width);
  return functional::unbatched(y, x, 3);
}

}  // namespace russet
