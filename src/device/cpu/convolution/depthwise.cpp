// Weight gradients of depthwise convolutions with vectors along the channels. A task is a part of the images; it walks
// over the rows of y, and over the rows of taps that each meets.
#include "device/cpu/convolution/convolution.h"
#include "device/cpu/convolution/strategies.h"
#include "device/cpu/convolution/weight_sums.h"
#include "device/cpu/layout.h"
#include "device/cpu/operand.h"
#include "device/cpu/workers.h"
#include "device/cpu/workspace.h"

namespace russet::cpu {
namespace {

using compile::Bindings;
using compile::Primitive;

/// Images are summed in at most this many parts, whatever the number of threads; parts are added up in order.
constexpr std::int64_t most_parts = 8;

class DepthwiseWeight final : public compile::Kernel {
 public:
  explicit DepthwiseWeight(const Primitive& primitive)
      : convolution_(primitive),
        x_(convolution_.x.sizes),
        y_(convolution_.y.sizes),
        rows_(convolution_.taps_of_y(0)),
        columns_(convolution_.windows_of_taps(1)),
        parts_(std::min(most_parts, x_[0])),
        sums_(workspace_.add<float>(parts_ * task_size())) {
    inner_end_ = y_[3];
    for (const WindowRun& column : columns_) {
      inner_begin_ = std::max(inner_begin_, column.first);
      inner_end_ = std::min(inner_end_, column.first + column.count);
    }
    inner_end_ = std::max(inner_begin_, inner_end_);
  }

  std::string name() const override { return "depthwise"; }
  std::size_t scratch_bytes() const override { return workspace_.bytes(); }

  void run(const Bindings& bindings) const override {
    if (convolution_.x.access.dtype == DType::bfloat16) {
      sum_parts<std::uint16_t>(bindings);
    } else {
      sum_parts<float>(bindings);
    }
    store(bindings);
  }

 private:
  /// Sums of a task: (tap, channel).
  std::int64_t task_size() const { return convolution_.taps() * x_[1]; }

  template <class Element>
  void sum_parts(const Bindings& bindings) const {
    const auto* const x = address_as<const Element>(convolution_.x.access, bindings);
    const auto* const g = address_as<const Element>(convolution_.y.access, bindings);
    workers_.each(parts_, 1e5 * static_cast<double>(parts_), [&](std::int64_t part, int) {
      float* const sums = sums_.at(bindings) + part * task_size();
      std::fill_n(sums, task_size(), 0.0F);
      for (std::int64_t image = x_[0] * part / parts_; image < x_[0] * (part + 1) / parts_; ++image) {
        for (std::int64_t h = 0; h < y_[2]; ++h) {
          add_row(x + image * x_[1] * x_[2] * x_[3], g + (image * y_[2] + h) * y_[3] * y_[1], h, sums);
        }
      }
    });
  }

  /// One row of gradients with every row of taps that it meets. Pixels at which all taps of a row are inside go
  /// together; those at the borders tap by tap.
  template <class Element>
  void add_row(const Element* image, const Element* g, std::int64_t h, float* sums) const {
    const TapRun& row = rows_[static_cast<std::size_t>(h)];
    const auto across = static_cast<std::int64_t>(columns_.size());
    for (std::int64_t i = 0; i < row.count; ++i) {
      const Element* const line = image + (row.from + i * row.from_step) * x_[3] * x_[1];
      float* const target = sums + (row.tap + i * row.tap_step) * across * x_[1];
      add_pixels(line, g, inner_begin_, inner_end_, 0, across, target);
      for (std::int64_t j = 0; j < across; ++j) {
        const WindowRun& column = columns_[static_cast<std::size_t>(j)];
        const std::int64_t end = column.first + column.count;
        add_pixels(line, g, column.first, std::min(end, inner_begin_), j, 1, target);
        add_pixels(line, g, std::max(column.first, inner_end_), end, j, 1, target);
      }
    }
  }

  /// Pixels [begin, end) of a row with `taps` taps of a line, all inside.
  template <class Element>
  void add_pixels(const Element* line, const Element* g, std::int64_t begin, std::int64_t end, std::int64_t tap,
                  std::int64_t taps, float* sums) const {
    if (begin >= end) return;
    const std::int64_t channels = x_[1];
    WeightSums<Element> add;
    add.g = g + begin * channels;
    add.g_step = channels;
    add.x_step = convolution_.window.stride[1] * channels;
    add.pixels = end - begin;
    add.lanes = channels;
    for (std::int64_t j = tap; j < tap + taps; ++j) {
      const WindowRun& column = columns_[static_cast<std::size_t>(j)];
      const std::int64_t w = column.from + (begin - column.first) * convolution_.window.stride[1];
      add.tap[add.taps++] = {line + w * channels, sums + j * channels};
      if (add.taps < sums_taps && j + 1 < tap + taps) continue;
      add_channel_products(add);
      add.taps = 0;
    }
  }

  void store(const Bindings& bindings) const {
    const float* const sums = sums_.at(bindings);
    const compile::Access& weight = convolution_.weight.access;
    const Strides& s = weight.strides;
    const auto across = static_cast<std::int64_t>(columns_.size());
    visit_dtype(weight.dtype, [&]<class Result>() {
      auto* const to = address_as<Result>(weight, bindings);
      for (std::int64_t tap = 0; tap < convolution_.taps(); ++tap) {
        for (std::int64_t c = 0; c < x_[1]; ++c) {
          float sum = 0;
          for (std::int64_t part = 0; part < parts_; ++part) sum += sums[part * task_size() + tap * x_[1] + c];
          to[c * s[0] + tap / across * s[2] + tap % across * s[3]] = convert_element<Result>(sum);
        }
      }
    });
  }

  Workers workers_;
  Workspace workspace_;
  Convolution convolution_;
  Shape x_, y_;
  std::vector<TapRun> rows_;
  std::vector<WindowRun> columns_;
  /// The pixels of a row at which all taps are inside.
  std::int64_t inner_begin_ = 0, inner_end_ = 0;
  std::int64_t parts_;
  Scratch<float> sums_;
};

}  // namespace

Verdict judge_depthwise_weight(const Primitive& primitive) {
  const Convolution c(primitive);
  if (!c.computes_weight()) return decline("not a weight gradient");
  const DType type = c.x.access.dtype;
  if (type != DType::float32 && type != DType::bfloat16) return decline("neither float32 nor bfloat16");
  if (c.is_empty()) return decline("there is nothing to compute");
  if (c.channels != 1 || c.outputs != 1) return decline("not depthwise");
  if (c.groups < 16) return decline("too few channels for a vector");
  if (c.taps() < 25) return decline("oneDNN is faster on small kernels");
  if (!primitive.epilogue.code.empty()) return decline("it takes no epilogue");
  if (!is_channels_last(c.x) || !is_channels_last(c.y)) return decline("activations are not channels-last");
  return accept([&primitive] { return std::make_unique<DepthwiseWeight>(primitive); });
}

}  // namespace russet::cpu
