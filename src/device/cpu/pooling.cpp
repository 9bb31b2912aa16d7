// Pooling: sums over windows, values at the first maximum of a window, and the gradients of both. All four walk over
// rows of results. Vectors lie along the axis, batch or channels, whose elements are neighbours in memory (its elements
// are the lanes); where width is that axis, there is one lane and loops are scalar.
#include <fmt/format.h>

#include "device/cpu/lane_operand.h"
#include "device/cpu/operand.h"
#include "device/cpu/plain.h"
#include "device/cpu/pool_row.h"
#include "device/cpu/workers.h"

namespace russet::cpu {
namespace {

using compile::Bindings;
using compile::Operand;
using compile::Primitive;
using ops::Op;
using ops::Window;

// ---- loops for any type and number of lanes

template <class Visit>
void each_tap(const PoolRow& r, const TapRun& column, Visit&& visit) {
  for (std::int64_t i = 0; i < r.row.count; ++i) {
    const std::int64_t height = r.row.from + i * r.row.from_step;
    const std::int64_t tap = (r.row.tap + i * r.row.tap_step) * r.taps_across + column.tap;
    for (std::int64_t j = 0; j < column.count; ++j) {
      visit(height, column.from + j * column.from_step, static_cast<std::int32_t>(tap + j * column.tap_step));
    }
  }
}

template <class Visit>
void each_lane(const PoolRow& r, Visit&& visit) {
  for (std::int64_t w = 0; w < r.width; ++w) {
    for (std::int64_t lane = 0; lane < r.lanes; ++lane) visit(r.columns[w], w, lane);
  }
}

template <class Element>
void sum_lanes(const PoolRow& r, const Element* from, Element* to) {
  using T = SumType<Element>;
  each_lane(r, [&](const TapRun& column, std::int64_t w, std::int64_t lane) {
    T sum{};
    each_tap(r, column, [&](std::int64_t height, std::int64_t width, std::int32_t) {
      sum = wrapping_add(sum, convert_element<T>(from[height * r.from_row + width * r.from_column + lane]));
    });
    to[w * r.to_column + lane] = convert_element<Element>(sum);
  });
}

template <class Element>
void maximum_lanes(const PoolRow& r, const Element* from, Element* to, std::int32_t* chosen) {
  using T = SumType<Element>;
  each_lane(r, [&](const TapRun& column, std::int64_t w, std::int64_t lane) {
    T best{};
    std::int32_t choice = -1;
    each_tap(r, column, [&](std::int64_t height, std::int64_t width, std::int32_t tap) {
      const T value = convert_element<T>(from[height * r.from_row + width * r.from_column + lane]);
      if (choice >= 0 && !exceeds(value, best)) return;
      best = value;
      choice = tap;
    });
    to[w * r.to_column + lane] = convert_element<Element>(best);
    if (chosen != nullptr) chosen[w * r.chosen_column + lane] = choice;
  });
}

template <class Element>
void spread_lanes(const PoolRow& r, const Element* from, const std::int32_t* chosen, Element* to) {
  using T = SumType<Element>;
  each_lane(r, [&](const TapRun& column, std::int64_t w, std::int64_t lane) {
    T sum{};
    each_tap(r, column, [&](std::int64_t height, std::int64_t width, std::int32_t tap) {
      if (chosen[height * r.chosen_row + width * r.chosen_column + lane] != tap) return;
      sum = wrapping_add(sum, convert_element<T>(from[height * r.from_row + width * r.from_column + lane]));
    });
    to[w * r.to_column + lane] = convert_element<Element>(sum);
  });
}

template <class Element>
PoolLoops<Element> loops_for(std::int64_t lanes) {
  if constexpr (std::is_same_v<Element, float> || std::is_same_v<Element, float16> ||
                std::is_same_v<Element, bfloat16>) {
    const PoolLoops<Element> vectors = pool_vectors(Element{});
    if (lanes >= vectors.least_lanes) return vectors;
  }
  return {1, sum_lanes<Element>, maximum_lanes<Element>, spread_lanes<Element>};
}

// ---- kernels

/// The axis along which the operand's elements are neighbours: 0 (batch), 1 (channels), or -1 if it is neither.
int lane_axis(const Operand& operand) {
  const auto dense = [&](int axis) { return operand.access.strides[axis] == 1 && operand.sizes[axis] > 1; };
  return dense(1) ? 1 : dense(0) ? 0 : -1;
}

class Pool : public compile::Kernel {
 public:
  /// `large` is what windows move over, `small` has an element for each window. Lanes are those of `large`.
  Pool(const Primitive& primitive, const Operand& large, const Operand& small)
      : primitive_(primitive),
        window_(attribute<Window>(primitive)),
        large_(large.sizes),
        small_(small.sizes),
        axis_(lane_axis(large)),
        lanes_(axis_ < 0 ? 1 : large_[axis_]) {
    for (int axis = 0; axis < 2; ++axis) {
      const auto i = static_cast<std::size_t>(axis);
      const std::int64_t taps = window_.kernel[i];
      gathered_[i] = gathered_taps(window_, axis, taps, large_[axis + 2], small_[axis + 2]);
      scattered_[i] = scattered_taps(window_, axis, taps, large_[axis + 2], small_[axis + 2]);
    }
  }

  std::size_t scratch_bytes() const override { return workspace_.bytes(); }
  std::string name() const override { return axis_ < 0 ? "pool" : axis_ == 0 ? "pool:batch" : "pool:channels"; }

 protected:
  /// Dense strides with the lanes innermost.
  Strides lanes_last(const Shape& sizes) const {
    Strides strides = Strides::filled(4, 1);
    std::int64_t step = 1;
    for (const int axis : axis_ == 0 ? std::array{0, 3, 2, 1} : std::array{1, 3, 2, 0}) {
      strides[axis] = step;
      step *= sizes[axis];
    }
    return strides;
  }

  /// How many planes of lanes there are: channels if lanes are images, images if lanes are channels, else both.
  std::int64_t outer() const { return axis_ < 0 ? large_[0] * large_[1] : large_[1 - axis_]; }
  std::int64_t start(const Strides& strides, std::int64_t outer) const {
    if (axis_ >= 0) return outer * strides[1 - axis_];
    return outer / large_[1] * strides[0] + outer % large_[1] * strides[1];
  }

  /// The part of a row's description that all have in common.
  PoolRow row_of(const std::array<std::vector<TapRun>, 2>& runs, std::int64_t h, const Strides& from,
                 std::int64_t to_column) const {
    PoolRow row;
    row.row = runs[0][static_cast<std::size_t>(h)];
    row.columns = runs[1].data();
    row.width = static_cast<std::int64_t>(runs[1].size());
    row.lanes = lanes_;
    row.from_row = from[2];
    row.from_column = from[3];
    row.to_column = to_column;
    row.taps_across = window_.kernel[1];
    row.chosen_row = small_[3] * lanes_;
    row.chosen_column = lanes_;
    return row;
  }

  /// Calls body(outer, height, worker) for all rows of an array of these sizes.
  template <class Body>
  void for_each_row(const Shape& sizes, Body&& body) const {
    const double taps = static_cast<double>(numel(small_)) * window_.kernel[0] * window_.kernel[1];
    const double nanoseconds = (taps + static_cast<double>(numel(sizes))) * (lanes_ >= 16 ? 0.1 : 1);
    workers_.each(outer() * sizes[2], nanoseconds,
                  [&](std::int64_t row, int worker) { body(row / sizes[2], row % sizes[2], worker); });
  }

  /// A row of results whose lanes are not neighbours in memory is computed in scratch memory.
  template <class Element>
  void store_row(const Element* row, std::int64_t width, Element* to, const Strides& strides) const {
    for (std::int64_t w = 0; w < width; ++w) {
      for (std::int64_t lane = 0; lane < lanes_; ++lane) {
        to[w * strides[3] + lane * strides[axis_]] = row[w * lanes_ + lane];
      }
    }
  }
  bool lanes_step(const Strides& strides) const { return axis_ >= 0 && strides[axis_] != 1; }

  Primitive primitive_;
  Window window_;
  Shape large_, small_;
  int axis_;
  std::int64_t lanes_;
  Workers workers_;
  Workspace workspace_;
  /// By axis (height, width): the taps that each window reads, and the taps through which each element of `large` is
  /// read.
  std::array<std::vector<TapRun>, 2> gathered_, scattered_;
};

class SumPool final : public Pool {
 public:
  explicit SumPool(const Primitive& primitive)
      : Pool(primitive, forward(primitive) ? primitive.inputs[0] : primitive.output,
             forward(primitive) ? primitive.output : primitive.inputs[0]),
        from_(primitive.inputs[0], axis_, lanes_last(input_sizes(primitive, 0)), workspace_),
        row_(workspace_.add<std::byte>(row_bytes(), workers_.count())) {}

  void run(const Bindings& bindings) const override {
    visit_dtype(primitive_.output.access.dtype, [&]<class Element>() { sum<Element>(bindings); });
  }

 private:
  static bool forward(const Primitive& primitive) { return primitive.op == Op::sum_pool; }
  std::int64_t row_bytes() const {
    const Operand& output = primitive_.output;
    return output.sizes[3] * lanes_ * static_cast<std::int64_t>(size_of(output.access.dtype));
  }

  template <class Element>
  void sum(const Bindings& bindings) const {
    const auto* const from = from_.prepare_as<Element>(bindings);
    auto* const to = address_as<Element>(primitive_.output.access, bindings);
    const Strides& out = primitive_.output.access.strides;
    const Shape& sizes = primitive_.output.sizes;
    const auto& runs = forward(primitive_) ? gathered_ : scattered_;
    const PoolLoops<Element> loops = loops_for<Element>(lanes_);
    for_each_row(sizes, [&](std::int64_t outer, std::int64_t h, int worker) {
      Element* const target = to + start(out, outer) + h * out[2];
      const Element* const source = from + start(from_.strides(), outer);
      if (!lanes_step(out)) return loops.sum(row_of(runs, h, from_.strides(), out[3]), source, target);
      auto* const row = reinterpret_cast<Element*>(row_.at(bindings, worker));
      loops.sum(row_of(runs, h, from_.strides(), lanes_), source, row);
      store_row(row, sizes[3], target, out);
    });
  }

  LaneOperand from_;
  Scratch<std::byte> row_;
};

class MaxPool final : public Pool {
 public:
  explicit MaxPool(const Primitive& primitive)
      : Pool(primitive, primitive.inputs[0], primitive.op == Op::max_pool ? primitive.output : primitive.inputs[1]),
        keys_(primitive.inputs[0], axis_, lanes_last(large_), workspace_),
        gradient_(primitive.inputs[1], pools() ? -1 : axis_, lanes_last(small_), workspace_),
        own_(pools() && input_access(primitive, 0) == input_access(primitive, 1)),
        chosen_(workspace_.add<std::int32_t>(pools() ? 0 : numel(small_))),
        row_(workspace_.add<std::uint64_t>(std::max(large_[3], small_[3]) * lanes_, workers_.count())),
        row_taps_(workspace_.add<std::int32_t>(std::max(large_[3], small_[3]) * lanes_, workers_.count())) {}

  void run(const Bindings& bindings) const override {
    visit_dtype(input_access(primitive_, 0).dtype, [&]<class Key>() { choose<Key>(bindings); });
    if (pools()) return;
    visit_dtype(primitive_.output.access.dtype, [&]<class Element>() { unpool<Element>(bindings); });
  }

 private:
  bool pools() const { return primitive_.op == Op::max_pool; }

  /// max_pool: the result. max_unpool: the chosen tap of every window.
  template <class Key>
  void choose(const Bindings& bindings) const {
    const auto* const keys = keys_.prepare_as<Key>(bindings);
    const Strides& in = keys_.strides();
    const Strides& out = primitive_.output.access.strides;
    const PoolLoops<Key> loops = loops_for<Key>(lanes_);
    for_each_row(small_, [&](std::int64_t outer, std::int64_t h, int worker) {
      const Key* const source = keys + start(in, outer);
      auto* const best = reinterpret_cast<Key*>(row_.at(bindings, worker));
      if (own_) {
        Key* const target = address_as<Key>(primitive_.output.access, bindings) + start(out, outer) + h * out[2];
        if (!lanes_step(out)) return loops.maximum(row_of(gathered_, h, in, out[3]), source, target, nullptr);
        loops.maximum(row_of(gathered_, h, in, lanes_), source, best, nullptr);
        return store_row(best, small_[3], target, out);
      }
      std::int32_t* const taps = pools() ? row_taps_.at(bindings, worker)
                                         : chosen_.at(bindings) + (outer * small_[2] + h) * small_[3] * lanes_;
      loops.maximum(row_of(gathered_, h, in, lanes_), source, best, taps);
      if (pools()) {
        visit_dtype(primitive_.output.access.dtype, [&]<class Element>() { pick<Element>(bindings, outer, h, taps); });
      }
    });
  }

  /// The values at the chosen taps of a row of windows.
  template <class Element>
  void pick(const Bindings& bindings, std::int64_t outer, std::int64_t h, const std::int32_t* taps) const {
    const Strides& in = input_access(primitive_, 1).strides;
    const Strides& out = primitive_.output.access.strides;
    const auto* const from = address_as<const Element>(input_access(primitive_, 1), bindings) + start(in, outer);
    auto* const to = address_as<Element>(primitive_.output.access, bindings) + start(out, outer) + h * out[2];
    const std::int64_t in_lane = axis_ < 0 ? 0 : in[axis_];
    const std::int64_t out_lane = axis_ < 0 ? 0 : out[axis_];
    for (std::int64_t w = 0; w < small_[3]; ++w) {
      for (std::int64_t lane = 0; lane < lanes_; ++lane) {
        const std::int64_t tap = taps[w * lanes_ + lane];
        const std::int64_t i = tap / window_.kernel[1] * window_.dilation[0] - window_.padding[0];
        const std::int64_t j = tap % window_.kernel[1] * window_.dilation[1] - window_.padding[1];
        const std::int64_t at = (h * window_.stride[0] + i) * in[2] + (w * window_.stride[1] + j) * in[3];
        to[w * out[3] + lane * out_lane] = tap < 0 ? Element{} : from[at + lane * in_lane];
      }
    }
  }

  /// Each element of the result is the sum of the gradients of the windows whose maximum it was.
  template <class Element>
  void unpool(const Bindings& bindings) const {
    const auto* const gradient = gradient_.prepare_as<Element>(bindings);
    const std::int32_t* const chosen = chosen_.at(bindings);
    auto* const to = address_as<Element>(primitive_.output.access, bindings);
    const Strides& in = gradient_.strides();
    const Strides& out = primitive_.output.access.strides;
    const PoolLoops<Element> loops = loops_for<Element>(lanes_);
    for_each_row(large_, [&](std::int64_t outer, std::int64_t h, int worker) {
      const Element* const source = gradient + start(in, outer);
      const std::int32_t* const marks = chosen + outer * small_[2] * small_[3] * lanes_;
      Element* const target = to + start(out, outer) + h * out[2];
      if (!lanes_step(out)) return loops.spread(row_of(scattered_, h, in, out[3]), source, marks, target);
      auto* const row = reinterpret_cast<Element*>(row_.at(bindings, worker));
      loops.spread(row_of(scattered_, h, in, lanes_), source, marks, row);
      store_row(row, large_[3], target, out);
    });
  }

  LaneOperand keys_, gradient_;
  bool own_;
  Scratch<std::int32_t> chosen_;    // of all windows, for max_unpool
  Scratch<std::uint64_t> row_;      // of results of any type
  Scratch<std::int32_t> row_taps_;  // chosen by them
};

}  // namespace

Verdict judge_pool(const Primitive& primitive) {
  if (!primitive.epilogue.code.empty()) return decline("pools take no epilogue");
  return accept([&primitive]() -> KernelPtr {
    if (primitive.op == Op::sum_pool || primitive.op == Op::sum_unpool) return std::make_unique<SumPool>(primitive);
    return std::make_unique<MaxPool>(primitive);
  });
}

}  // namespace russet::cpu
