// Contractions sample by sample (kernels/sample_product.metal).
#include <algorithm>
#include <array>
#include <cstdlib>
#include <ranges>
#include <set>

#include "compile/plan.h"
#include "device/gpu/emitter/emit.h"
#include "device/gpu/samples.h"
#include "device/gpu/templates/contraction_writer.h"
#include "device/gpu/templates/templates.h"
#include "device/gpu/templates/text.h"

namespace russet::gpu {
namespace {

using compile::Primitive;
using ops::Op;

Contraction contraction_of(const Primitive& primitive) {
  if (primitive.op == Op::matmul) return describe_contraction(primitive);
  Contraction c = describe_windows(primitive);
  c.in_pairs = false;
  return c;
}

/// Positions along an axis that windows come to.
struct Reach {
  std::int64_t first = 0, count = 1;
};

/// Of windows at start + i * step, i < windows, that see `taps` positions `dilation` (which may be negative) apart.
Reach reach_of(std::int64_t start, std::int64_t windows, std::int64_t step, std::int64_t taps, std::int64_t dilation) {
  const std::int64_t down = (windows - 1) * step;
  const std::int64_t across = (taps - 1) * dilation;
  const std::int64_t first = start + std::min<std::int64_t>(across, 0);
  return {first, start + down + std::max<std::int64_t>(across, 0) - first + 1};
}

/// SampleWindow.
struct Window {
  std::array<std::int64_t, 2> taps{1, 1}, stride{1, 1}, dilation{1, 1};
  bool reversed = false;

  std::string text() const {
    return fmt::format("SampleWindow<{}, {}, {}, {}, {}, {}, {}>", taps[0], taps[1], stride[0], stride[1], dilation[0],
                       dilation[1], reversed);
  }
};

Window window_of(const Contraction& c) {
  if (c.window == WindowSide::none) return {};
  const ContractionAxis& tap = c.left_step;
  Window window;
  window.taps = {c.depth / (tap.sizes[0] * tap.sizes[1]), tap.sizes[0]};
  window.stride = {c.left_line.y_strides[1], c.left_line.x_strides[1]};
  window.reversed = tap.y_strides[0] < 0;
  window.dilation = {std::abs(tap.y_strides[0]), std::abs(tap.x_strides[0])};
  return window;
}

/// A sample's left factor in threadgroup memory: SampleImage.
struct Image {
  std::int64_t channels = 1;
  Reach rows{}, columns{};
  std::int64_t pitch = columns.count;  // from line to line

  std::int64_t plane() const { return rows.count * pitch; }
  std::int64_t floats() const { return divide_up(channels * plane(), 4) * 4; }
  std::string text() const {
    return fmt::format("SampleImage<{}, {}, {}, {}, {}, {}>", channels, rows.count, columns.count, pitch, rows.first,
                       columns.first);
  }
};

Image image_of(const Contraction& c) {
  if (c.window == WindowSide::none) return {c.depth, {}, {}};
  const ContractionAxis& pixel = c.left_line;
  const ContractionAxis& tap = c.left_step;
  const auto taps = window_of(c).taps;
  return {tap.sizes[1],
          reach_of(pixel.y_start + tap.y_start, pixel.sizes[0], pixel.y_strides[1], taps[0], tap.y_strides[0]),
          reach_of(pixel.x_start + tap.x_start, pixel.sizes[1], pixel.x_strides[1], taps[1], tap.x_strides[0])};
}

/// SampleWork, and what it takes of threadgroup memory.
struct Work {
  std::int64_t height = 1, width = 1, columns = 1, channels = 1, depth = 1;
  Window window;
  Image image;
  std::int64_t down = 1, lanes = 4, shares = 1;
  bool staged = false, spread = false;

  std::int64_t rows() const { return height * width; }
  std::int64_t padded() const { return divide_up(columns, lanes) * lanes; }
  std::int64_t lines() const { return channels * window.taps[0]; }
  std::int64_t items() const { return height * divide_up(width, down) * divide_up(columns, lanes) * shares; }
  std::int64_t sums() const { return shares * rows() * padded(); }
  std::int64_t floats() const {
    const std::int64_t factors = image.floats() + (staged ? depth * padded() : 0);
    return std::max(factors, spread ? sums() : 0);
  }
  std::string text() const {
    return fmt::format("SampleWork<{}, {}, {}, {}, {}, {}, {}, {}, {}>", height, width, columns, channels,
                       window.text(), down, lanes, shares, spread);
  }

  /// Where in the image a thread's windows begin.
  std::int64_t begin_of(std::int64_t item) const {
    const std::int64_t across_line = divide_up(width, down);
    const std::int64_t block = item % (height * across_line);
    const std::int64_t share = item / (height * across_line) / divide_up(columns, lanes);
    const std::int64_t line = share * divide_up(lines(), shares);
    const std::int64_t y = block / across_line * window.stride[0] + line % window.taps[0] * window.dilation[0];
    const std::int64_t x = std::min(block % across_line * down, width - down) * window.stride[1];
    return line / window.taps[0] * image.plane() + y * image.pitch + x;
  }

  /// Cycles until threadgroup memory has given each lane of a simdgroup a number of the image: those that lie in one of
  /// its banks, and are not the same, come one after the other.
  std::int64_t conflicts() const {
    constexpr std::int64_t banks = 32;
    std::array<std::set<std::int64_t>, banks> places;
    for (std::int64_t lane = 0; lane < std::min<std::int64_t>(items(), 32); ++lane) {
      const std::int64_t begin = begin_of(lane);
      places[static_cast<std::size_t>(begin % banks)].insert(begin);
    }
    return static_cast<std::int64_t>(std::ranges::max(places | std::views::transform(&std::set<std::int64_t>::size)));
  }

  /// Moves the image's lines apart where that makes for fewer conflicts.
  void spread_lines(std::int64_t most_floats) {
    constexpr std::int64_t most_apart = 31;
    Work best = *this;
    for (std::int64_t apart = 1; apart <= most_apart && best.conflicts() > 1; ++apart) {
      Work work = *this;
      work.image.pitch += apart;
      if (work.floats() <= most_floats && work.conflicts() < best.conflicts()) best = work;
    }
    *this = best;
  }

  /// Cycles of a core by a rough count: threadgroup memory gives a simdgroup a number for each lane in one, or four of
  /// the same in four; each of its four parts multiplies for one. Few simdgroups wait for memory.
  double cycles() const {
    constexpr double enough = 8;  // simdgroups
    const bool shares_pixels = window.stride[1] == 1 && window.dilation[1] == 1;
    const std::int64_t taps = window.taps[1];
    const std::int64_t pixels = shares_pixels ? down + taps - 1 : down * taps;
    const auto loads = static_cast<double>(pixels * conflicts() + taps * lanes);
    const double products = static_cast<double>(down * taps * lanes) / 4;
    const auto simdgroups = static_cast<double>(divide_up(items(), 32));
    return std::max(simdgroups, enough) * static_cast<double>(divide_up(lines(), shares)) * std::max(loads, products);
  }
};

/// Floats of threadgroup memory that a launch of several members has for each of them.
std::int64_t most_floats(const GpuContext& context) {
  constexpr std::uint32_t most_bytes = 45056;  // of 48 KiB
  return std::min(context.properties.group_memory, most_bytes) / 4;
}

/// The work that takes least. Without room for sums threads store their own, and none shares the depth.
Work work_of(const Contraction& c, bool staged, std::int64_t most_floats) {
  Work best;
  if (c.window != WindowSide::none) {
    best.height = c.left_line.sizes[0];
    best.width = c.left_line.sizes[1];
  }
  best.columns = c.columns;
  best.depth = c.depth;
  best.window = window_of(c);
  best.image = image_of(c);
  best.channels = c.depth / (best.window.taps[0] * best.window.taps[1]);
  best.staged = staged;
  const Work alone = best;
  constexpr std::int64_t most_shares = 8;
  constexpr std::int64_t most_sums = 32;  // of a thread
  for (const std::int64_t lanes : {4, 8}) {
    for (const std::int64_t down : {1, 2, 4, 5, 7, 8}) {
      for (std::int64_t parts = 1; parts <= most_shares; ++parts) {
        Work work = alone;
        work.lanes = lanes;
        work.down = down;
        work.shares = divide_up(work.lines(), divide_up(work.lines(), parts));  // none is empty
        work.spread = work.items() <= sample_threads && work.sums() <= most_floats;
        if (!staged && lanes > 4) continue;  // of which several are in registers
        if (down > work.width || down * lanes > most_sums || (!work.spread && work.shares > 1)) continue;
        work.spread_lines(most_floats);
        if (work.cycles() < best.cycles()) best = work;
      }
    }
  }
  return best;
}

class Writer {
 public:
  Writer(const Primitive& primitive, const GpuContext& context)
      : shared_(primitive, context, contraction_of(primitive)) {}

  /// Why there is no such kernel; empty if there is one.
  std::string why_not() const {
    if (samples_ == 0 || c_.rows % samples_ != 0 || c_.batches() != 1) return "rows that are not those of samples";
    if (c_.window == WindowSide::none && c_.rows != samples_) return "several rows a sample";
    if (c_.depth == 0 || c_.columns == 0 || c_.rows == 0) return "nothing to multiply";
    if (is_row())
      return work_.image.floats() <= most_floats(shared_.context()) ? "" : "a row beyond threadgroup memory";
    if (work_.staged && !has_even_taps()) return "taps that do not lie evenly";
    if (!work_.staged && !has_vectors()) return "a right factor that threadgroup memory does not hold";
    return work_.floats() <= most_floats(shared_.context()) ? "" : "more than threadgroup memory holds";
  }

  KernelPtr make() const {
    const VisitorText visitor = shared_.result_visitor(shared_.source_bindings(), true);
    Division division;
    division.chunk = c_.depth;
    ProductKernel kernel{"sample_product", sample_threads, body(visitor), {}, samples_, "sample_product.metal"};
    kernel.arrays = {{"float", "memory", std::to_string(most_floats(shared_.context()))}};
    std::vector<Call> calls{shared_.product_call(std::move(kernel), visitor, division)};
    return std::make_unique<GpuKernel>(shared_.context(), "sample by sample", std::move(calls));
  }

 private:
  bool is_row() const {
    return rows_ == 1 && is_along_depth(c_.right_step) && !c_.right_step.splits && is_plain_right() &&
           is_in_vectors(shared_.primitive(), c_, false, 4);
  }
  /// Whether four columns lie side by side in memory.
  bool has_vectors() const {
    return !is_along_depth(c_.right_step) && !c_.right_step.splits && c_.columns % 4 == 0 && is_plain_right() &&
           is_in_vectors(shared_.primitive(), c_, false, 4);
  }
  /// Whether one stride leads from tap to tap of a window.
  bool has_even_taps() const {
    const ContractionAxis& step = c_.right_step;
    return !step.splits || work_.window.taps[0] == 1 || step.strides[0] == step.strides[1] * work_.window.taps[1];
  }
  bool is_plain_right() const {
    return shared_.primitive().prologues[static_cast<std::size_t>(c_.right_input)].code.empty();
  }

  Work work() const {
    if (c_.depth == 0 || c_.columns == 0 || rows_ == 0) return {};
    return work_of(c_, rows_ > 1 || !has_vectors(), most_floats(shared_.context()));
  }

  std::string body(const VisitorText& visitor) const {
    const std::string sides = fmt::format("{}, {}", shared_.left_side(true), shared_.right_side(true));
    const std::string arguments = fmt::format("left_source, right_source, visitor, {}, memory, group_id.x, thread_id",
                                              shared_.product_of(visitor));
    if (is_row()) {
      return fmt::format("  sample_row<{}, {}, {}, {}>({});\n", element_type(shared_.type()), work_.text(),
                         work_.image.text(), sides, arguments);
    }
    return fmt::format("  sample_tiles<{}, {}, {}, {}, {}, {}, {}>({});\n", element_type(shared_.type()), work_.text(),
                       work_.image.text(), work_.window.text(), sides, c_.window != WindowSide::none, work_.staged,
                       arguments);
  }

  ContractionWriter shared_;
  const Contraction& c_ = shared_.contraction();
  std::int64_t samples_ = shared_.primitive().output.sizes[0];
  std::int64_t rows_ = samples_ == 0 ? 0 : c_.rows / samples_;  // of a sample
  Work work_ = work();
};

}  // namespace

Verdict judge_sample_product(const Primitive& primitive, const GpuContext& context) {
  if (std::string reason = why_no_contraction(primitive); !reason.empty()) return decline(reason);
  if (std::string reason = why_only_tiles(primitive); !reason.empty()) return decline(reason);
  if (!is_floating(primitive.inputs[0].access.dtype)) return decline("integers");
  if (const auto* window = std::get_if<ops::Window>(&primitive.attributes); window != nullptr && window->groups != 1) {
    return decline("groups of channels");
  }
  if (std::string reason = Writer(primitive, context).why_not(); !reason.empty()) return decline(reason);
  return accept([&primitive, &context] { return Writer(primitive, context).make(); });
}

}  // namespace russet::gpu
