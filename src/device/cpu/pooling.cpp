// Pooling: sums over windows, and what lies at the first maximum of a window; both with their transposes. All four walk
// over lines of the result: channels of a pixel if those are neighbours in memory, else pixels of a row.
#include <fmt/format.h>

#include "base/parallel.h"
#include "device/cpu/operand.h"
#include "device/cpu/plain.h"

namespace russet::cpu {
namespace {

using compile::Bindings;
using compile::Operand;
using compile::Primitive;
using ops::Op;
using ops::Window;

/// A line of a plane: lanes along channels or along the width.
struct Line {
  std::int64_t image, channel, height, width;
};

/// What one tap of a window contributes to a line: `count` lanes from `first` on, `step` apart, read from a source at
/// `height` and `width` for the first one.
struct Reach {
  std::int64_t first = 0, count = 0, step = 1;
  std::int64_t height = 0, width = 0, width_step = 0;
};

class Pool : public compile::Kernel {
 public:
  /// `result` is what lines run over; `small` has an element for each window, `large` is what windows move over.
  Pool(const Primitive& primitive, const Operand& large, const Operand& small)
      : primitive_(primitive),
        window_(attribute<Window>(primitive)),
        large_(large.sizes),
        small_(small.sizes),
        along_channels_(input_access(primitive, 0).strides[1] == 1 && large.sizes[1] > 1),
        threads_(base::thread_count()) {}

  std::string name() const override { return along_channels_ ? "pool:channels" : "pool:rows"; }

 protected:
  std::int64_t lanes(const Shape& sizes) const { return along_channels_ ? sizes[1] : sizes[3]; }

  Line line_of(const Shape& sizes, std::int64_t i) const {
    const std::int64_t inner = along_channels_ ? sizes[3] : sizes[1];
    Line line{0, 0, 0, 0};
    if (along_channels_) {
      line.width = i % inner;
      line.height = i / inner % sizes[2];
      line.image = i / inner / sizes[2];
    } else {
      line.height = i % sizes[2];
      line.channel = i / sizes[2] % inner;
      line.image = i / sizes[2] / inner;
    }
    return line;
  }

  static std::int64_t divide_up(std::int64_t a, std::int64_t b) { return a <= 0 ? 0 : (a + b - 1) / b; }

  /// Which lanes of a line of windows read the large array at tap (i, j), and where.
  Reach gather(const Line& line, int i, int j) const {
    Reach reach;
    reach.height = line.height * window_.stride[0] - window_.padding[0] + i * window_.dilation[0];
    if (reach.height < 0 || reach.height >= large_[2]) return reach;
    const std::int64_t shift = j * window_.dilation[1] - window_.padding[1];
    if (along_channels_) {
      reach.width = line.width * window_.stride[1] + shift;
      if (reach.width >= 0 && reach.width < large_[3]) reach.count = small_[1];
      return reach;
    }
    const std::int64_t stride = window_.stride[1];
    reach.first = std::min(divide_up(-shift, stride), small_[3]);
    reach.count = std::min(divide_up(large_[3] - shift, stride), small_[3]) - reach.first;
    reach.width = reach.first * stride + shift;
    reach.width_step = stride;
    return reach;
  }

  /// Which lanes of a line of the large array are read by windows at tap (i, j), and by which windows.
  Reach scatter(const Line& line, int i, int j) const {
    Reach reach;
    const std::int64_t height = line.height + window_.padding[0] - i * window_.dilation[0];
    if (height < 0 || height % window_.stride[0] != 0 || height / window_.stride[0] >= small_[2]) return reach;
    reach.height = height / window_.stride[0];
    const std::int64_t shift = j * window_.dilation[1] - window_.padding[1];
    const std::int64_t stride = window_.stride[1];
    if (along_channels_) {
      const std::int64_t width = line.width - shift;
      if (width < 0 || width % stride != 0 || width / stride >= small_[3]) return reach;
      reach.width = width / stride;
      reach.count = large_[1];
      return reach;
    }
    reach.width = std::min(divide_up(-shift, stride), small_[3]);
    reach.count = std::min(divide_up(large_[3] - shift, stride), small_[3]) - reach.width;
    reach.first = reach.width * stride + shift;
    reach.step = stride;
    reach.width_step = 1;
    return reach;
  }

  /// Address of a line's first lane, and the distance of lanes.
  static std::int64_t start(const Strides& s, const Line& line, std::int64_t height, std::int64_t width) {
    return line.image * s[0] + line.channel * s[1] + height * s[2] + width * s[3];
  }
  std::int64_t lane_step(const Strides& s) const { return along_channels_ ? s[1] : s[3]; }
  std::int64_t source_step(const Strides& s, const Reach& reach) const {
    return along_channels_ ? s[1] : reach.width_step * s[3];
  }

  /// Calls body(line, scratch of this thread) for all lines of `sizes`.
  template <class Body>
  void for_each_line(const Bindings& bindings, const Shape& sizes, std::size_t skip, std::size_t scratch_per_thread,
                     Body&& body) const {
    const std::int64_t count = lanes(sizes) == 0 ? 0 : numel(sizes) / lanes(sizes);
    const double cost = static_cast<double>(lanes(sizes) * window_.kernel[0] * window_.kernel[1]) * 0.5;
    const auto work = [&](int thread, int threads) {
      std::byte* const scratch = bindings.scratch + skip + static_cast<std::size_t>(thread) * scratch_per_thread;
      const std::int64_t end = count * (thread + 1) / threads;
      for (std::int64_t i = count * thread / threads; i < end; ++i) body(line_of(sizes, i), scratch);
    };
    if (threads_ == 1 || static_cast<double>(count) * cost < 8000) return work(0, 1);
    base::parallel_region([&](int thread, int threads) {
      if (thread < threads_) work(thread, std::min(threads, threads_));
    });
  }

  template <class Visit>
  void for_each_tap(Visit&& visit) const {
    int tap = 0;
    for (int i = 0; i < window_.kernel[0]; ++i) {
      for (int j = 0; j < window_.kernel[1]; ++j) visit(i, j, tap++);
    }
  }

  static std::size_t rounded(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

  Primitive primitive_;
  Window window_;
  Shape large_, small_;
  bool along_channels_;
  int threads_;
};

class SumPool final : public Pool {
 public:
  explicit SumPool(const Primitive& primitive)
      : Pool(primitive, primitive.op == Op::sum_pool ? primitive.inputs[0] : primitive.output,
             primitive.op == Op::sum_pool ? primitive.output : primitive.inputs[0]) {}

  std::size_t scratch_bytes() const override { return static_cast<std::size_t>(threads_) * thread_bytes(); }

  void run(const Bindings& bindings) const override {
    visit_dtype(primitive_.output.access.dtype, [&]<class Element>() { sum<Element>(bindings); });
  }

 private:
  std::size_t thread_bytes() const {
    return rounded(static_cast<std::size_t>(lanes(primitive_.output.sizes)) * sizeof(double));
  }

  template <class Element>
  void sum(const Bindings& bindings) const {
    using T = Accumulator<Element>;
    const auto* const from = address_as<const Element>(input_access(primitive_, 0), bindings);
    auto* const to = address_as<Element>(primitive_.output.access, bindings);
    const Strides& in = input_access(primitive_, 0).strides;
    const Strides& out = primitive_.output.access.strides;
    const Shape& sizes = primitive_.output.sizes;
    const std::int64_t count = lanes(sizes);
    const bool forward = primitive_.op == Op::sum_pool;
    for_each_line(bindings, sizes, 0, thread_bytes(), [&](const Line& line, std::byte* scratch) {
      auto* const sums = reinterpret_cast<T*>(scratch);
      std::fill_n(sums, count, T{});
      for_each_tap([&](int i, int j, int) {
        const Reach reach = forward ? gather(line, i, j) : scatter(line, i, j);
        const Element* const source = from + start(in, line, reach.height, reach.width);
        const std::int64_t step = source_step(in, reach);
        if (step == 1 && reach.step == 1) {
          for (std::int64_t t = 0; t < reach.count; ++t) {
            sums[reach.first + t] = wrapping_add(sums[reach.first + t], convert_element<T>(source[t]));
          }
        } else {
          for (std::int64_t t = 0; t < reach.count; ++t) {
            T& sum = sums[reach.first + t * reach.step];
            sum = wrapping_add(sum, convert_element<T>(source[t * step]));
          }
        }
      });
      Element* const target = to + start(out, line, line.height, line.width);
      const std::int64_t step = lane_step(out);
      for (std::int64_t t = 0; t < count; ++t) target[t * step] = convert_element<Element>(sums[t]);
    });
  }
};

/// For each lane of a line of windows, the tap of the first maximum, or -1 if all of the window is padding.
template <class T>
struct Maxima {
  T* best;
  std::int32_t* tap;
};

class MaxPool final : public Pool {
 public:
  explicit MaxPool(const Primitive& primitive)
      : Pool(primitive, primitive.inputs[0], primitive.op == Op::max_pool ? primitive.output : primitive.inputs[1]) {}

  std::size_t scratch_bytes() const override {
    return chosen_bytes() + static_cast<std::size_t>(threads_) * thread_bytes();
  }

  void run(const Bindings& bindings) const override {
    visit_dtype(input_access(primitive_, 0).dtype, [&]<class Key>() {
      if (primitive_.op == Op::max_pool) {
        pool<Key>(bindings);
      } else {
        choose_all<Key>(bindings);
      }
    });
    if (primitive_.op == Op::max_unpool) {
      visit_dtype(primitive_.output.access.dtype, [&]<class Element>() { unpool<Element>(bindings); });
    }
  }

 private:
  std::size_t lane_count() const { return static_cast<std::size_t>(std::max(lanes(large_), lanes(small_))); }
  std::size_t thread_bytes() const { return rounded(lane_count() * 8) + rounded(lane_count() * 4); }
  /// max_unpool keeps the chosen tap of every window.
  std::size_t chosen_bytes() const {
    return primitive_.op == Op::max_pool ? 0 : rounded(static_cast<std::size_t>(numel(small_)) * sizeof(std::int32_t));
  }

  template <class Key, class T>
  void find(const Key* from, const Line& line, Maxima<T> maxima) const {
    const Strides& in = input_access(primitive_, 0).strides;
    const std::int64_t count = lanes(small_);
    std::fill_n(maxima.tap, count, -1);
    std::fill_n(maxima.best, count, T{});
    for_each_tap([&](int i, int j, int tap) {
      const Reach reach = gather(line, i, j);
      const Key* const source = from + start(in, line, reach.height, reach.width);
      const std::int64_t step = source_step(in, reach);
      T* const best = maxima.best + reach.first;
      std::int32_t* const chosen = maxima.tap + reach.first;
      const auto compare = [&](std::int64_t t, T value) {
        const bool take = (chosen[t] < 0) | exceeds(value, best[t]);
        best[t] = take ? value : best[t];
        chosen[t] = take ? tap : chosen[t];
      };
      if (step == 1) {
        for (std::int64_t t = 0; t < reach.count; ++t) compare(t, convert_element<T>(source[t]));
      } else {
        for (std::int64_t t = 0; t < reach.count; ++t) compare(t, convert_element<T>(source[t * step]));
      }
    });
  }

  template <class Key>
  void pool(const Bindings& bindings) const {
    using T = Accumulator<Key>;
    const auto* const from = address_as<const Key>(input_access(primitive_, 0), bindings);
    const bool own = input_access(primitive_, 0) == input_access(primitive_, 1);
    const Strides& out = primitive_.output.access.strides;
    const std::int64_t step = lane_step(out);
    const std::int64_t count = lanes(small_);
    for_each_line(bindings, small_, 0, thread_bytes(), [&](const Line& line, std::byte* scratch) {
      const Maxima<T> maxima{reinterpret_cast<T*>(scratch),
                             reinterpret_cast<std::int32_t*>(scratch + rounded(lane_count() * 8))};
      find(from, line, maxima);
      if (own) {
        Key* const target =
            address_as<Key>(primitive_.output.access, bindings) + start(out, line, line.height, line.width);
        for (std::int64_t t = 0; t < count; ++t) target[t * step] = convert_element<Key>(maxima.best[t]);
      } else {
        visit_dtype(primitive_.output.access.dtype,
                    [&]<class Element>() { pick<Element>(bindings, line, maxima.tap); });
      }
    });
  }

  /// The values at chosen taps.
  template <class Element>
  void pick(const Bindings& bindings, const Line& line, const std::int32_t* taps) const {
    const Strides& in = input_access(primitive_, 1).strides;
    const Strides& out = primitive_.output.access.strides;
    const auto* const from = address_as<const Element>(input_access(primitive_, 1), bindings);
    Element* const target =
        address_as<Element>(primitive_.output.access, bindings) + start(out, line, line.height, line.width);
    const std::int64_t corner = start(in, line, line.height * window_.stride[0] - window_.padding[0],
                                      (along_channels_ ? line.width * window_.stride[1] : 0) - window_.padding[1]);
    const std::int64_t in_step = along_channels_ ? in[1] : in[3] * window_.stride[1];
    for (std::int64_t t = 0; t < lanes(small_); ++t) {
      const std::int64_t i = taps[t] / window_.kernel[1] * window_.dilation[0];
      const std::int64_t j = taps[t] % window_.kernel[1] * window_.dilation[1];
      target[t * lane_step(out)] = taps[t] < 0 ? Element{} : from[corner + t * in_step + i * in[2] + j * in[3]];
    }
  }

  /// Row-major number of a line of windows.
  std::int64_t number(const Line& line, std::int64_t height, std::int64_t width) const {
    return along_channels_ ? (line.image * small_[2] + height) * small_[3] + width
                           : (line.image * small_[1] + line.channel) * small_[2] + height;
  }

  template <class Key>
  void choose_all(const Bindings& bindings) const {
    using T = Accumulator<Key>;
    const auto* const from = address_as<const Key>(input_access(primitive_, 0), bindings);
    auto* const chosen = reinterpret_cast<std::int32_t*>(bindings.scratch);
    for_each_line(bindings, small_, chosen_bytes(), thread_bytes(), [&](const Line& line, std::byte* scratch) {
      find(from, line,
           Maxima<T>{reinterpret_cast<T*>(scratch), chosen + number(line, line.height, line.width) * lanes(small_)});
    });
  }

  /// Every element of the result adds up the windows that chose it.
  template <class Element>
  void unpool(const Bindings& bindings) const {
    using T = Accumulator<Element>;
    const auto* const chosen = reinterpret_cast<const std::int32_t*>(bindings.scratch);
    const auto* const from = address_as<const Element>(input_access(primitive_, 1), bindings);
    auto* const to = address_as<Element>(primitive_.output.access, bindings);
    const Strides& in = input_access(primitive_, 1).strides;
    const Strides& out = primitive_.output.access.strides;
    const std::int64_t count = lanes(large_);
    for_each_line(bindings, large_, chosen_bytes(), thread_bytes(), [&](const Line& line, std::byte* scratch) {
      auto* const sums = reinterpret_cast<T*>(scratch);
      std::fill_n(sums, count, T{});
      for_each_tap([&](int i, int j, int tap) {
        const Reach reach = scatter(line, i, j);
        if (reach.count <= 0) return;
        const Element* const source = from + start(in, line, reach.height, reach.width);
        const std::int32_t* const taps =
            chosen + number(line, reach.height, reach.width) * lanes(small_) + (along_channels_ ? 0 : reach.width);
        const std::int64_t step = source_step(in, reach);
        for (std::int64_t t = 0; t < reach.count; ++t) {
          T& sum = sums[reach.first + t * reach.step];
          sum = taps[t] == tap ? wrapping_add(sum, convert_element<T>(source[t * step])) : sum;
        }
      });
      Element* const target = to + start(out, line, line.height, line.width);
      const std::int64_t step = lane_step(out);
      for (std::int64_t t = 0; t < count; ++t) target[t * step] = convert_element<Element>(sums[t]);
    });
  }
};

}  // namespace

Verdict judge_pool(const Primitive& primitive) {
  return accept([&primitive]() -> KernelPtr {
    if (primitive.op == Op::sum_pool || primitive.op == Op::sum_unpool) return std::make_unique<SumPool>(primitive);
    return std::make_unique<MaxPool>(primitive);
  });
}

}  // namespace russet::cpu
