// Pooling. One axis is two with a height of 1.
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
  return autograd::apply(op, inputs, given);
}

Tensor maxima(const Tensor& x, const Window& window) { return pooled(Op::max_pool, {x.detach(), x}, window); }

ValuesIndices maxima_with_indices(const Tensor& x, const Window& window) {
  const Tensor positions = functional::iota({x.size(2), x.size(3)}, x.device()).expand(x.sizes());
  return {maxima(x, window), pooled(Op::max_pool, {x.detach(), positions}, window)};
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

}  // namespace

Tensor max_pool1d(const Tensor& x, std::int64_t kernel, const MaxPool1dOptions& options) {
  const Tensor flat = raised("max_pool1d", x);
  return lowered(maxima(flat, max_window("max_pool1d", flat, {1, kernel}, raised(options, kernel))), x);
}

Tensor max_pool2d(const Tensor& x, Size2 kernel, const MaxPool2dOptions& options) {
  const Tensor images = batched("max_pool2d", x, 4);
  return unbatched(maxima(images, max_window("max_pool2d", images, kernel, options)), x, 4);
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

Tensor max_unpool2d(const Tensor& x, const Tensor& indices, Size2 kernel, const MaxUnpool2dOptions& options) {
  functional::require_index_type("max_unpool2d", indices);
  if (indices.sizes() != x.sizes()) {
    throw ShapeError(fmt::format("max_unpool2d: values {} and indices {} have different shapes", to_string(x.sizes()),
                                 to_string(indices.sizes())));
  }
  const Tensor values = batched("max_unpool2d", x, 4);
  const Size2 stride = options.stride.value_or(kernel);
  const Size2 size = options.output_size.value_or(
      Size2((values.size(2) - 1) * stride.height - 2 * options.padding.height + kernel.height,
            (values.size(3) - 1) * stride.width - 2 * options.padding.width + kernel.width));
  const std::int64_t n = values.size(0);
  const std::int64_t c = values.size(1);
  if (size.height < 1 || size.width < 1) {
    throw ShapeError(fmt::format("max_unpool2d: {} x {} is no size of a result", size.height, size.width));
  }
  const Shape flat{n, c, values.size(2) * values.size(3)};
  const Tensor empty = constant(0, x, {n, c, size.height * size.width});
  const Tensor placed = scatter(empty, 2, batched("max_unpool2d", indices, 4).reshape(flat), values.reshape(flat));
  return unbatched(placed.reshape({n, c, size.height, size.width}), x, 4);
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

Tensor adaptive_avg_pool1d(const Tensor& x, std::int64_t output) {
  return lowered(adaptive_average(raised("adaptive_avg_pool1d", x), {1, output}), x);
}

Tensor adaptive_avg_pool2d(const Tensor& x, Size2 output) {
  return unbatched(adaptive_average(batched("adaptive_avg_pool2d", x, 4), output), x, 4);
}

Tensor adaptive_max_pool1d(const Tensor& x, std::int64_t output) {
  return lowered(adaptive_maximum(raised("adaptive_max_pool1d", x), {1, output}), x);
}

Tensor adaptive_max_pool2d(const Tensor& x, Size2 output) {
  return unbatched(adaptive_maximum(batched("adaptive_max_pool2d", x, 4), output), x, 4);
}

}  // namespace russet
