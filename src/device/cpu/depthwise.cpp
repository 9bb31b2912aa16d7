#include "device/cpu/depthwise.h"

#include <fmt/format.h>
#include <algorithm>

#include "base/parallel.h"
#include "device/cpu/depthwise_row.h"
#include "device/cpu/layout.h"
#include "device/cpu/operand.h"

namespace russet::cpu {
namespace {

using compile::Bindings;
using compile::Operand;
using compile::Primitive;
using ops::Window;

/// Images are summed in at most this many parts, whatever the number of threads; parts are added up in order.
constexpr std::int64_t most_parts = 8;

class DepthwiseWeight final : public compile::Kernel {
 public:
  explicit DepthwiseWeight(const Primitive& primitive)
      : primitive_(primitive),
        window_(attribute<Window>(primitive)),
        x_(primitive.inputs[0].sizes),
        y_(primitive.inputs[1].sizes),
        taps_(primitive.output.sizes[2] * primitive.output.sizes[3]),
        parts_(std::min(most_parts, x_[0])) {}

  std::string name() const override { return "depthwise"; }
  std::size_t scratch_bytes() const override {
    return static_cast<std::size_t>(parts_ * taps_ * x_[1]) * sizeof(float);
  }

  void run(const Bindings& bindings) const override {
    if (input_access(primitive_, 0).dtype == DType::bfloat16) {
      sum_parts<std::uint16_t>(bindings);
    } else {
      sum_parts<float>(bindings);
    }
    store(bindings);
  }

 private:
  template <class Element>
  void sum_parts(const Bindings& bindings) const {
    const auto* const x = address_as<const Element>(input_access(primitive_, 0), bindings);
    const auto* const g = address_as<const Element>(input_access(primitive_, 1), bindings);
    auto* const sums = reinterpret_cast<float*>(bindings.scratch);
    base::parallel_for(parts_, 1e5, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t part = begin; part < end; ++part) {
        float* const own = sums + part * taps_ * x_[1];
        std::fill_n(own, taps_ * x_[1], 0.0F);
        for (std::int64_t image = x_[0] * part / parts_; image < x_[0] * (part + 1) / parts_; ++image) {
          for (std::int64_t row = 0; row < y_[2]; ++row) {
            add_row(x + image * x_[1] * x_[2] * x_[3], g + (image * y_[2] + row) * y_[3] * y_[1], row, own);
          }
        }
      }
    });
  }

  /// One row of gradients with every row of taps that it meets.
  template <class Element>
  void add_row(const Element* image, const Element* g, std::int64_t row, float* sums) const {
    const std::int64_t across = primitive_.output.sizes[3];
    const std::int64_t channels = x_[1];
    const std::int64_t stride = window_.stride[1];
    for (std::int64_t i = 0; i < primitive_.output.sizes[2]; ++i) {
      const std::int64_t h = row * window_.stride[0] - window_.padding[0] + i * window_.dilation[0];
      if (h < 0 || h >= x_[2]) continue;
      const Element* const line = image + h * x_[3] * channels;
      float* const target = sums + i * across * channels;
      const auto add = [&](std::int64_t first_pixel, std::int64_t pixels, std::int64_t first_tap, std::int64_t taps) {
        if (pixels <= 0) return;
        const std::int64_t w = first_pixel * stride - window_.padding[1] + first_tap * window_.dilation[1];
        add_depthwise_row(DepthwiseRow<Element>{line + w * channels, g + first_pixel * channels,
                                                target + first_tap * channels, pixels, channels, taps,
                                                stride * channels, window_.dilation[1] * channels, channels});
      };
      // Pixels at which all taps are inside go together; those at the edges tap by tap.
      const std::int64_t inner_begin = first_inside(0);
      const std::int64_t inner_end = std::max(inner_begin, end_inside(across - 1));
      add(inner_begin, inner_end - inner_begin, 0, across);
      for (std::int64_t j = 0; j < across; ++j) {
        const std::int64_t begin = first_inside(j);
        const std::int64_t end = end_inside(j);
        add(begin, std::min(end, inner_begin) - begin, j, 1);
        const std::int64_t after = std::max(begin, inner_end);
        add(after, end - after, j, 1);
      }
    }
  }

  /// The first pixel at which tap j is inside, and the one after the last.
  std::int64_t first_inside(std::int64_t j) const { return pixel_at(0, j); }
  std::int64_t end_inside(std::int64_t j) const { return pixel_at(x_[3], j); }
  std::int64_t pixel_at(std::int64_t width, std::int64_t j) const {
    const std::int64_t distance = width + window_.padding[1] - j * window_.dilation[1];
    const std::int64_t pixel = distance <= 0 ? 0 : (distance + window_.stride[1] - 1) / window_.stride[1];
    return std::min(pixel, y_[3]);
  }

  void store(const Bindings& bindings) const {
    const auto* const sums = reinterpret_cast<const float*>(bindings.scratch);
    const Strides& s = primitive_.output.access.strides;
    const std::int64_t across = primitive_.output.sizes[3];
    visit_dtype(primitive_.output.access.dtype, [&]<class Result>() {
      auto* const to = address_as<Result>(primitive_.output.access, bindings);
      for (std::int64_t tap = 0; tap < taps_; ++tap) {
        for (std::int64_t c = 0; c < x_[1]; ++c) {
          float sum = 0;
          for (std::int64_t part = 0; part < parts_; ++part) sum += sums[(part * taps_ + tap) * x_[1] + c];
          to[c * s[0] + tap / across * s[2] + tap % across * s[3]] = convert_element<Result>(sum);
        }
      }
    });
  }

  Primitive primitive_;
  Window window_;
  Shape x_, y_;
  std::int64_t taps_, parts_;
};

}  // namespace

Verdict judge_depthwise_weight(const Primitive& primitive) {
  if (primitive.op != ops::Op::convolution_weight) return decline("not a weight gradient");
  const DType type = input_access(primitive, 0).dtype;
  if (type != DType::float32 && type != DType::bfloat16) return decline("neither float32 nor bfloat16");
  const Operand& x = primitive.inputs[0];
  const Operand& y = primitive.inputs[1];
  const Shape& weight = primitive.output.sizes;
  if (numel(x.sizes) == 0 || numel(y.sizes) == 0 || numel(weight) == 0) return decline("there is nothing to compute");
  if (attribute<Window>(primitive).groups != x.sizes[1] || y.sizes[1] != x.sizes[1]) return decline("not depthwise");
  if (x.sizes[1] < 16) return decline("too few channels for a vector");
  if (weight[2] * weight[3] < 25) return decline("oneDNN is faster on small kernels");
  if (!primitive.epilogue.code.empty()) return decline("it takes no epilogue");
  if (!is_channels_last(x) || !is_channels_last(y)) return decline("activations are not channels-last");
  return accept([&primitive] { return std::make_unique<DepthwiseWeight>(primitive); });
}

}  // namespace russet::cpu
