// Pooling. One axis is two with a height of 1. Three are two pools: of planes, then along the depth.
#include <russet/functional/nn_pooling.h>

#include "functional/nn_detail.h"

namespace russet {
namespace {

using functional::batched;
using functional::constant;
using functional::unbatched;
using ops::Op;
using ops::Window;

std::array<std::int32_t, 2> pair(Size2 sizes) {
  return {static_cast<std::int32_t>(sizes.height), static_cast<std::int32_t>(sizes.width)};
}

struct PoolShape {
  Size2 kernel;
  Size2 stride;
  Size2 padding;
  Size2 dilation;
  bool ceil_mode;
};

void check(const char* function, const PoolShape& pool) {
  const auto fail = [&](const char* what, Size2 sizes) {
    throw ValueError(fmt::format("{}: {}: {} x {}", function, what, sizes.height, sizes.width));
  };
  if (pool.kernel.height < 1 || pool.kernel.width < 1) fail("the window's size is at least 1", pool.kernel);
  if (pool.stride.height < 1 || pool.stride.width < 1) fail("the stride is at least 1", pool.stride);
  if (pool.dilation.height < 1 || pool.dilation.width < 1) fail("the dilation is at least 1", pool.dilation);
  if (pool.padding.height < 0 || pool.padding.width < 0) fail("the padding is not negative", pool.padding);
  if (2 * pool.padding.height > pool.kernel.height || 2 * pool.padding.width > pool.kernel.width) {
    fail("the padding is at most half the window", pool.padding);
  }
}

// Padding after the end, so that the last window that starts inside fits.
std::int64_t padding_after(std::int64_t size, std::int64_t kernel, std::int64_t stride, std::int64_t padding,
                           std::int64_t dilation, bool ceil_mode) {
  const std::int64_t reach = dilation * (kernel - 1) + 1;
  const std::int64_t room = size + 2 * padding - reach;
  if (!ceil_mode || room < 0) return padding;
  std::int64_t windows = (room + stride - 1) / stride + 1;
  if ((windows - 1) * stride >= size + padding) --windows;
  return std::max(padding, (windows - 1) * stride + reach - size - padding);
}

Window window_of(const char* function, const Tensor& x, const PoolShape& pool) {
  check(function, pool);
  Window window;
  window.kernel = pair(pool.kernel);
  window.stride = pair(pool.stride);
  window.padding = pair(pool.padding);
  window.dilation = pair(pool.dilation);
  window.padding_after = pair({padding_after(x.size(2), pool.kernel.height, pool.stride.height, pool.padding.height,
                                             pool.dilation.height, pool.ceil_mode),
                               padding_after(x.size(3), pool.kernel.width, pool.stride.width, pool.padding.width,
                                             pool.dilation.width, pool.ceil_mode)});
  return window;
}

// `large` is what a transposed pool gives, and nothing for others.
Tensor pooled(Op op, std::initializer_list<Tensor> inputs, const Window& window, const Shape& large = {}) {
  graph::NodeInfo given;
  given.attributes = window;
  given.shape = large;
  return autograd::apply(op, inputs, std::move(given));
}

Tensor maxima(const Tensor& x, const Window& window) { return pooled(Op::max_pool, {x.detach(), x}, window); }

/// The largest elements, and those of `positions` that stand where they do.
ValuesIndices maxima_with(const Tensor& positions, const Tensor& x, const Window& window) {
  return {maxima(x, window), pooled(Op::max_pool, {x.detach(), positions}, window)};
}

ValuesIndices maxima_with_indices(const Tensor& x, const Window& window) {
  return maxima_with(functional::iota({x.size(2), x.size(3)}, x.device()).expand(x.sizes()), x, window);
}

// How many elements each window averages: those inside the input, or inside the input and its padding.
Tensor divisors(const Tensor& like, const Tensor& x, Window window, bool count_include_pad) {
  Shape sizes{1, 1, x.size(2), x.size(3)};
  if (count_include_pad) {
    const Window given = window;
    for (const int side : {0, 1}) {
      const auto at = static_cast<std::size_t>(side);
      sizes[2 + side] += 2 * given.padding[at];
      window.padding[at] = 0;
      window.padding_after[at] = given.padding_after[at] - given.padding[at];
    }
  }
  return pooled(Op::sum_pool, {constant(1, like, sizes)}, window);
}

// Sums times a number. The gradient multiplies last, where its reader can.
Tensor scaled_sums(const Tensor& x, const Window& window, double scale) {
  const Tensor result =
      functional::outside_tape([&] { return pooled(Op::sum_pool, {x}, window) * constant(scale, x); });
  return autograd::with_gradient("avg_pool", {x}, result, {}, false,
                                 [window, scale, sizes = x.sizes()](const Tensor& g, std::span<const Tensor>) {
                                   const Tensor sums = pooled(Op::sum_unpool, {g}, window, sizes);
                                   return std::vector<Tensor>{sums * constant(scale, g)};
                                 });
}

Tensor averages(const Tensor& x, const Window& window, const AvgPool2dOptions& options) {
  const Tensor wide = functional::wide(x);
  const bool padded = window.padding != std::array{0, 0} || window.padding_after != std::array{0, 0};
  const bool even = !padded || (options.count_include_pad && window.padding == window.padding_after);
  if (options.divisor_override && *options.divisor_override == 0) throw ValueError("avg_pool: divisor_override is 0");
  if (!even && !options.divisor_override) {
    const Tensor sums = pooled(Op::sum_pool, {wide}, window);
    return functional::cast(sums / divisors(wide, x, window, options.count_include_pad), x.dtype());
  }
  const std::int64_t area = std::int64_t{window.kernel[0]} * window.kernel[1];
  const auto divisor = static_cast<double>(options.divisor_override.value_or(area));
  return functional::cast(scaled_sums(wide, window, 1.0 / divisor), x.dtype());
}

Tensor averaged(const char* function, const Tensor& x, const Size2& kernel, const AvgPool2dOptions& options) {
  functional::require_floating(function, x);
  const PoolShape pool{kernel, options.stride.value_or(kernel), options.padding, 1, options.ceil_mode};
  return averages(x, window_of(function, x, pool), options);
}

Window max_window(const char* function, const Tensor& x, const Size2& kernel, const MaxPool2dOptions& options) {
  return window_of(function, x,
                   {kernel, options.stride.value_or(kernel), options.padding, options.dilation, options.ceil_mode});
}

// [n, c, l] or [c, l] as [n, c, 1, l].
Tensor raised(const char* function, const Tensor& x) { return batched(function, x, 3).unsqueeze(2); }
Tensor lowered(const Tensor& y, const Tensor& x) { return unbatched(y.squeeze(2), x, 3); }

MaxPool2dOptions raised(const MaxPool1dOptions& options, std::int64_t kernel) {
  return {Size2(1, options.stride.value_or(kernel)), {0, options.padding}, {1, options.dilation}, options.ceil_mode};
}

// One axis at a time: `pool` makes of a slice one element along the axis.
template <class Pool>
Tensor adapted(const Tensor& x, int axis, std::int64_t output, Pool&& pool) {
  const std::int64_t size = x.size(axis);
  if (output < 1) throw ValueError(fmt::format("adaptive pooling: the output's size is at least 1, not {}", output));
  if (size < 1) throw ShapeError(fmt::format("adaptive pooling: nothing to pool in {}", to_string(x.sizes())));
  if (size == output) return x;
  std::vector<Tensor> parts;
  for (std::int64_t i = 0; i < output; ++i) {
    const std::int64_t begin = i * size / output;
    const std::int64_t end = ((i + 1) * size + output - 1) / output;
    parts.push_back(pool(x.narrow(axis, begin, end - begin)));
  }
  return parts.size() == 1 ? parts.front() : cat(parts, axis);
}

Tensor adaptive_average(const Tensor& x, const Size2& output) {
  functional::require_floating("adaptive_avg_pool", x);
  const Size2 size{x.size(2), x.size(3)};
  if (output == size) return functional::copied(x);
  if (output == Size2(1)) return mean(functional::wide(x), {2, 3}, true).to(x.dtype());
  if (output.height > 0 && output.width > 0 && size.height % output.height == 0 && size.width % output.width == 0) {
    return avg_pool2d(x, {size.height / output.height, size.width / output.width});
  }
  Tensor y = functional::wide(x);
  for (const int axis : {3, 2}) {
    y = adapted(y, axis, axis == 3 ? output.width : output.height,
                [&](const Tensor& part) { return mean(part, axis, true); });
  }
  return functional::cast(y, x.dtype());
}

// Columns first, then rows: so the first of equal maxima in row-major order takes the gradient.
Tensor adaptive_maximum(const Tensor& x, const Size2& output) {
  if (output == Size2(x.size(2), x.size(3))) return functional::copied(x);
  Tensor y = x;
  for (const int axis : {3, 2}) {
    y = adapted(y, axis, axis == 3 ? output.width : output.height, [&](const Tensor& part) {
      Window window;
      window.kernel[static_cast<std::size_t>(axis - 2)] = static_cast<std::int32_t>(part.size(axis));
      return maxima(part, window);
    });
  }
  return y;
}

/// [n, c, d, h, w] as planes [n, c d, h, w].
Tensor as_planes(const Tensor& volumes) {
  const Shape& s = volumes.sizes();
  return volumes.reshape({s[0], s[1] * s[2], s[3], s[4]});
}

/// Pooled planes of those volumes with the depth as the height: [n, c, d, h w].
Tensor as_depths(const Tensor& planes, const Tensor& volumes) {
  const Shape& s = volumes.sizes();
  return planes.reshape({s[0], s[1], s[2], planes.size(2) * planes.size(3)});
}

/// What pooling these depths gave, as volumes.
Tensor as_volumes(const Tensor& depths, const Tensor& planes) {
  return depths.reshape({depths.size(0), depths.size(1), depths.size(2), planes.size(2), planes.size(3)});
}

/// Volumes of which `pool_planes` and then `pool_depths` pool what they take as images [n, c, h, w].
template <class PoolPlanes, class PoolDepths>
Tensor pooled_twice(const char* function, const Tensor& x, PoolPlanes&& pool_planes, PoolDepths&& pool_depths) {
  const Tensor volumes = batched(function, x, 5);
  const Tensor planes = pool_planes(as_planes(volumes));
  return unbatched(as_volumes(pool_depths(as_depths(planes, volumes)), planes), x, 5);
}

Window plane_window(const Tensor& planes, const Size3& kernel, const MaxPool3dOptions& options) {
  return max_window(
      "max_pool3d", planes, kernel.plane(),
      {options.stride.value_or(kernel).plane(), options.padding.plane(), options.dilation.plane(), options.ceil_mode});
}

Window depth_window(const Tensor& depths, const Size3& kernel, const MaxPool3dOptions& options) {
  return max_window("max_pool3d", depths, {kernel.depth, 1},
                    {Size2(options.stride.value_or(kernel).depth, 1),
                     {options.padding.depth, 0},
                     {options.dilation.depth, 1},
                     options.ceil_mode});
}

Shape sizes_of(const Size2& sizes) { return {sizes.height, sizes.width}; }
Shape sizes_of(const Size3& sizes) { return {sizes.depth, sizes.height, sizes.width}; }

/// Which windows the values that are put back come from.
struct Unpool {
  Shape kernel;
  Shape stride;
  Shape padding;
  Shape output;  // empty: the smallest that has such windows
};

Tensor unpooled(const char* function, const Tensor& x, const Tensor& indices, const Unpool& pool) {
  functional::require_index_type(function, indices);
  if (indices.sizes() != x.sizes()) {
    throw ShapeError(fmt::format("{}: values {} and indices {} have different shapes", function, to_string(x.sizes()),
                                 to_string(indices.sizes())));
  }
  const int axes = pool.kernel.rank();
  const Tensor values = batched(function, x, axes + 2);
  const std::int64_t n = values.size(0);
  const std::int64_t c = values.size(1);
  Shape sizes{n, c};
  std::int64_t places = 1;
  std::int64_t count = 1;
  for (int axis = 0; axis < axes; ++axis) {
    const std::int64_t stride = pool.stride[axis];
    const std::int64_t least = (values.size(axis + 2) - 1) * stride - 2 * pool.padding[axis] + pool.kernel[axis];
    const std::int64_t size = pool.output.empty() ? least : pool.output[axis];
    if (size < 1) throw ShapeError(fmt::format("{}: {} is no size of a result", function, size));
    if (std::abs(size - least) >= stride && size != least) {
      throw ValueError(fmt::format("{}: the output's size along dimension {} lies between {} and {}, which {} does not",
                                   function, axis + 2, least - stride, least + stride, size));
    }
    sizes.push_back(size);
    places *= size;
    count *= values.size(axis + 2);
  }
  const Shape flat{n, c, count};
  const Tensor placed = scatter(constant(0, x, {n, c, places}), 2, indices.reshape(flat), values.reshape(flat));
  return unbatched(placed.reshape(sizes), x, axes + 2);
}

}  // namespace

Tensor max_pool1d(const Tensor& x, std::int64_t kernel, const MaxPool1dOptions& options) {
  const Tensor flat = raised("max_pool1d", x);
  return lowered(maxima(flat, max_window("max_pool1d", flat, {1, kernel}, raised(options, kernel))), x);
}

Tensor max_pool2d(const Tensor& x, Size2 kernel, const MaxPool2dOptions& options) {
  const Tensor images = batched("max_pool2d", x, 4);
  return unbatched(maxima(images, max_window("max_pool2d", images, kernel, options)), x, 4);
}

Tensor max_pool3d(const Tensor& x, Size3 kernel, const MaxPool3dOptions& options) {
  return pooled_twice(
      "max_pool3d", x, [&](const Tensor& planes) { return maxima(planes, plane_window(planes, kernel, options)); },
      [&](const Tensor& depths) { return maxima(depths, depth_window(depths, kernel, options)); });
}

ValuesIndices max_pool1d_with_indices(const Tensor& x, std::int64_t kernel, const MaxPool1dOptions& options) {
  const Tensor flat = raised("max_pool1d", x);
  const auto [values, indices] =
      maxima_with_indices(flat, max_window("max_pool1d", flat, {1, kernel}, raised(options, kernel)));
  return {lowered(values, x), lowered(indices, x)};
}

ValuesIndices max_pool2d_with_indices(const Tensor& x, Size2 kernel, const MaxPool2dOptions& options) {
  const Tensor images = batched("max_pool2d", x, 4);
  const auto [values, indices] = maxima_with_indices(images, max_window("max_pool2d", images, kernel, options));
  return {unbatched(values, x, 4), unbatched(indices, x, 4)};
}

ValuesIndices max_pool3d_with_indices(const Tensor& x, Size3 kernel, const MaxPool3dOptions& options) {
  const Tensor volumes = batched("max_pool3d", x, 5);
  const Tensor first = as_planes(volumes);
  const Shape inner{volumes.size(2), volumes.size(3), volumes.size(4)};
  const Tensor positions = as_planes(functional::iota(inner, x.device()).expand(volumes.sizes()));
  const ValuesIndices planes = maxima_with(positions, first, plane_window(first, kernel, options));
  const Tensor second = as_depths(planes.values, volumes);
  const auto [values, indices] =
      maxima_with(as_depths(planes.indices, volumes), second, depth_window(second, kernel, options));
  return {unbatched(as_volumes(values, planes.values), x, 5), unbatched(as_volumes(indices, planes.values), x, 5)};
}

Tensor max_unpool1d(const Tensor& x, const Tensor& indices, std::int64_t kernel, const MaxUnpool1dOptions& options) {
  const Shape output = options.output_size ? Shape{*options.output_size} : Shape{};
  return unpooled("max_unpool1d", x, indices, {{kernel}, {options.stride.value_or(kernel)}, {options.padding}, output});
}

Tensor max_unpool2d(const Tensor& x, const Tensor& indices, Size2 kernel, const MaxUnpool2dOptions& options) {
  const Shape output = options.output_size ? sizes_of(*options.output_size) : Shape{};
  return unpooled("max_unpool2d", x, indices,
                  {sizes_of(kernel), sizes_of(options.stride.value_or(kernel)), sizes_of(options.padding), output});
}

Tensor max_unpool3d(const Tensor& x, const Tensor& indices, Size3 kernel, const MaxUnpool3dOptions& options) {
  const Shape output = options.output_size ? sizes_of(*options.output_size) : Shape{};
  return unpooled("max_unpool3d", x, indices,
                  {sizes_of(kernel), sizes_of(options.stride.value_or(kernel)), sizes_of(options.padding), output});
}

Tensor avg_pool1d(const Tensor& x, std::int64_t kernel, const AvgPool1dOptions& options) {
  const Tensor flat = raised("avg_pool1d", x);
  return lowered(averaged("avg_pool1d", flat, {1, kernel},
                          {Size2(1, options.stride.value_or(kernel)),
                           {0, options.padding},
                           options.ceil_mode,
                           options.count_include_pad,
                           {}}),
                 x);
}

Tensor avg_pool2d(const Tensor& x, Size2 kernel, const AvgPool2dOptions& options) {
  return unbatched(averaged("avg_pool2d", batched("avg_pool2d", x, 4), kernel, options), x, 4);
}

Tensor avg_pool3d(const Tensor& x, Size3 kernel, const AvgPool3dOptions& options) {
  functional::require_floating("avg_pool3d", x);
  const Size3 stride = options.stride.value_or(kernel);
  AvgPool2dOptions plane{stride.plane(), options.padding.plane(), options.ceil_mode, options.count_include_pad,
                         options.divisor_override};
  AvgPool2dOptions depth{
      Size2(stride.depth, 1), {options.padding.depth, 0}, options.ceil_mode, options.count_include_pad, {}};
  if (options.divisor_override) depth.divisor_override = 1;
  const Tensor y = pooled_twice(
      "avg_pool3d", functional::wide(x),
      [&](const Tensor& planes) { return averaged("avg_pool3d", planes, kernel.plane(), plane); },
      [&](const Tensor& depths) {
        return averaged("avg_pool3d", depths, {kernel.depth, 1}, depth);
      });
  return functional::cast(y, x.dtype());
}

Tensor adaptive_avg_pool1d(const Tensor& x, std::int64_t output) {
  return lowered(adaptive_average(raised("adaptive_avg_pool1d", x), {1, output}), x);
}

Tensor adaptive_avg_pool2d(const Tensor& x, Size2 output) {
  return unbatched(adaptive_average(batched("adaptive_avg_pool2d", x, 4), output), x, 4);
}

Tensor adaptive_avg_pool3d(const Tensor& x, Size3 output) {
  functional::require_floating("adaptive_avg_pool3d", x);
  const Tensor y = pooled_twice(
      "adaptive_avg_pool3d", functional::wide(x),
      [&](const Tensor& planes) { return adaptive_average(planes, output.plane()); },
      [&](const Tensor& depths) {
        return adaptive_average(depths, {output.depth, depths.size(3)});
      });
  return functional::cast(y, x.dtype());
}

Tensor adaptive_max_pool1d(const Tensor& x, std::int64_t output) {
  return lowered(adaptive_maximum(raised("adaptive_max_pool1d", x), {1, output}), x);
}

Tensor adaptive_max_pool2d(const Tensor& x, Size2 output) {
  return unbatched(adaptive_maximum(batched("adaptive_max_pool2d", x, 4), output), x, 4);
}

Tensor adaptive_max_pool3d(const Tensor& x, Size3 output) {
  return pooled_twice(
      "adaptive_max_pool3d", x, [&](const Tensor& planes) { return adaptive_maximum(planes, output.plane()); },
      [&](const Tensor& depths) {
        return adaptive_maximum(depths, {output.depth, depths.size(3)});
      });
}

}  // namespace russet
