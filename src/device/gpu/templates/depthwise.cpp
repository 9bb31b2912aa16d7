// Launches of depthwise convolutions.
#include <algorithm>

#include "compile/layouts.h"
#include "device/gpu/emitter/emit.h"
#include "device/gpu/templates/contraction_writer.h"
#include "device/gpu/templates/templates.h"
#include "device/gpu/templates/text.h"

namespace russet::gpu {
namespace {

using compile::Operand;
using compile::Primitive;
using ops::Op;
using ops::Window;

constexpr std::int64_t line_threads = 256;
/// Threadgroups of lines that a core holds at once: their registers are limited to that.
constexpr std::int64_t resident_lines = 2;

/// Pairs of channels that a threadgroup takes side by side: 32, or 16 where the last 32 would be mostly idle.
std::int64_t pairs_of(std::int64_t channels) {
  const std::int64_t wide = divide_up(channels, 64) * 64;
  const std::int64_t narrow = divide_up(channels, 32) * 32;
  return wide * 8 > narrow * 9 ? 16 : 32;
}

/// Slices of the lines that a threadgroup of a weight's gradient takes side by side: with `row` threads each, about as
/// many threads as for lines, in whole simdgroups. `row` is a multiple of 16.
std::int64_t slices_of(std::int64_t row) {
  const std::int64_t step = row % 32 == 0 ? 1 : 2;
  return std::max(line_threads / row / step * step, step);
}

class Writer {
 public:
  Writer(const Primitive& primitive, const GpuContext& context)
      : shared_(primitive, context, describe_windows(primitive)),
        window_(attribute<Window>(primitive)),
        kernel_{compile::operand_of(primitive, weight()).sizes[2], compile::operand_of(primitive, weight()).sizes[3]},
        pairs_(pairs_of(c_.batches())) {}

  KernelPtr make() const { return shared_.primitive().op == Op::convolution_weight ? weight_gradient() : lines(); }

 private:
  int weight() const { return shared_.primitive().op == Op::convolution_weight ? -1 : 1; }

  KernelPtr lines() const {
    Division division;
    const std::int64_t height = c_.left_line.sizes[0];
    const std::int64_t images = c_.rows / std::max<std::int64_t>(c_.left_line.sizes[1] * height, 1);
    const std::int64_t lines = lines_of_a_thread();
    const bool transposed = shared_.primitive().op == Op::convolution_input;
    const std::int64_t groups = divide_up(images * divide_up(height, lines), line_threads / pairs_);
    division.column_tiles = divide_up(c_.batches(), 2 * pairs_);
    division.chunk = pixels_of_a_thread(groups * division.column_tiles, strip(transposed));
    division.row_tiles = groups * divide_up(length(1), division.chunk);
    const auto count = static_cast<int>(strip(transposed));
    const std::optional<VisitorText> strips = shared_.strip_visitor(count);
    const VisitorText visitor = strips ? *strips : shared_.result_visitor(shared_.source_bindings(), true);
    std::string body;
    if (!strips) {
      body = fmt::format("  StripOfElements<{}, {}> strips;\n  strips.visitor = &visitor;\n", visitor.type, count);
    }
    body += fmt::format(
        "  depthwise_lines<{}, {}, {}, {}, {}u, {}u, {}>(left_source, right_source, {}, {}, memory, group_id.x, "
        "thread_id);\n",
        axis(0, transposed), axis(1, transposed), shared_.offset_type(), pixel_stride(shared_.left()), pairs_,
        line_threads, lines, strips ? "visitor" : "strips", shared_.product_of(visitor));
    std::vector<Call> calls;
    calls.push_back(call(std::move(body), static_cast<std::uint32_t>(line_threads),
                         kernel_[0] * kernel_[1] * (pairs_ + 1), visitor, division, resident_lines));
    return std::make_unique<GpuKernel>(shared_.context(), "depthwise", std::move(calls));
  }

  bool is_half() const { return size_of(shared_.type()) == 2; }

  /// See depthwise_lines: as many as leave enough registers for what is read ahead, and few lines without a partner.
  std::int64_t lines_of_a_thread() const {
    const bool neighbours_read_neighbours = window_.stride[0] == 1 && window_.dilation[0] == 1;
    if (!neighbours_read_neighbours) return 1;
    constexpr std::int64_t short_images = 8;
    return is_half() && length(0) > short_images ? 3 : 2;
  }

  /// Lines are cut into whole strips where `groups` threadgroups are few, and would leave cores idle in the last round.
  std::int64_t pixels_of_a_thread(std::int64_t groups, std::int64_t strip) const {
    constexpr std::int64_t few = 3;  // rounds
    constexpr double start = 0.08;   // of a whole line's time
    const std::int64_t strips = divide_up(length(1), strip);
    const auto rounds = [&](std::int64_t chunk) {
      return divide_up(groups * divide_up(strips, chunk), resident_lines * shared_.context().properties.chip.cores);
    };
    const auto time = [&](std::int64_t chunk) {
      return static_cast<double>(rounds(chunk)) * (static_cast<double>(chunk) / static_cast<double>(strips) + start);
    };
    std::int64_t best = strips;
    for (std::int64_t parts = 2; parts <= strips && rounds(strips) <= few; ++parts) {
      const std::int64_t chunk = divide_up(strips, parts);
      if (time(chunk) < time(best)) best = chunk;
    }
    return best * strip;
  }

  KernelPtr weight_gradient() const {
    const std::int64_t row = pairs_ * kernel_[0];
    const std::int64_t slices = slices_of(row);
    const auto threads = static_cast<std::uint32_t>(row * slices);
    const std::uint32_t held = threads <= 160 ? 5 : threads <= 192 ? 4 : 3;  // by a core
    const std::int64_t column_tiles = divide_up(c_.batches(), 2 * pairs_);
    // As many as the cores of an H100 or H200 hold at once, whatever the GPU: sums depend on shapes alone. Larger ones,
    // as of windows of 7 x 7, were faster in several rounds.
    const std::int64_t parts = threads <= 192 ? 132 * held / column_tiles : divide_up(1024, column_tiles);
    const Division division = divide_lines(slices, column_tiles, std::max<std::int64_t>(parts, 1));
    std::vector<Call> calls = shared_.calls(division, false, [&](const VisitorText& visitor) {
      const std::string body = fmt::format(
          "  depthwise_weight<{}, {}, {}, {}, {}, {}u, {}u>(left_source, right_source, visitor, {}, memory, "
          "group_id.x, thread_id);\n",
          axis(0, false), axis(1, false), shared_.offset_type(), pixel_stride(shared_.left()),
          pixel_stride(shared_.right()), pairs_, slices, shared_.product_of(visitor));
      return call(body, threads, std::max<std::int64_t>(slices - 1, 1) * kernel_[0] * kernel_[1] * pairs_, visitor,
                  division, is_half() ? held : 1);
    });
    return std::make_unique<GpuKernel>(shared_.context(), fmt::format("depthwise, lines in {} parts", division.splits),
                                       std::move(calls), shared_.partial_bytes(division));
  }

  /// At most `parts` of the lines.
  Division divide_lines(std::int64_t slices, std::int64_t column_tiles, std::int64_t parts) const {
    Division division;
    division.column_tiles = column_tiles;
    const std::int64_t count = c_.depth / c_.right_step.sizes[1];
    division.chunk = std::max(divide_up(count, parts), 2 * slices);
    division.splits = std::max<std::int64_t>(divide_up(count, division.chunk), 1);
    division.row_tiles = division.splits;
    return division;
  }

  /// `pairs`: of numbers in group memory.
  Call call(std::string body, std::uint32_t threads, std::int64_t pairs, const VisitorText& visitor,
            const Division& division, std::uint32_t resident) const {
    const Piece::Array memory{"float2", "memory", fmt::format("{}", pairs)};
    return shared_.product_call({"depthwise",
                                 threads,
                                 std::move(body),
                                 {memory},
                                 division.row_tiles * division.column_tiles,
                                 "depthwise.metal",
                                 resident},
                                visitor, division);
  }

  static std::int64_t pixel_stride(const Operand& image) { return image.access.strides[3]; }

  /// Pixels that are computed for, along an axis, and pixels from which they are.
  std::int64_t length(std::size_t which) const {
    const bool weight = shared_.primitive().op == Op::convolution_weight;
    return std::max<std::int64_t>((weight ? c_.right_step : c_.left_line).sizes[which], 1);
  }

  /// Pixels that a thread takes at a time: all lines of a network's images, as a rule, are multiples of 8 or of 7.
  std::int64_t strip(bool transposed) const {
    const bool sevens = length(1) % 8 != 0 && length(1) % 7 == 0 && !(transposed && window_.stride[1] > 1);
    return sevens ? 7 : 8;
  }

  /// Lengths are told where an axis is several whole strips: other sizes share their kernels.
  std::string axis(std::size_t which, bool transposed) const {
    const std::int64_t strip = which == 1 ? this->strip(transposed) : 1;
    const bool whole = which == 1 && length(1) % strip == 0 && length(1) > strip;
    return fmt::format("DepthwiseAxis<{}, {}, {}, {}, {}, {}, {}, {}>", kernel_[which], window_.stride[which],
                       window_.padding[which], window_.dilation[which], transposed, strip, whole ? length(1) : 0,
                       whole ? c_.width : 0);
  }

  ContractionWriter shared_;
  const Contraction& c_ = shared_.contraction();
  const Window& window_;
  std::array<std::int64_t, 2> kernel_;
  std::int64_t pairs_;
};

/// Why the kernels do not take the operands as they lie.
std::string why_no_layout(const Primitive& primitive) {
  for (const int operand : {0, 1, -1}) {
    if (compile::is_weight(primitive, operand)) continue;
    if (compile::operand_of(primitive, operand).access.strides[1] != 1) return "channels lie apart";
  }
  // The text of a kernel has these strides.
  for (const int operand : {0, 1, -1}) {
    const std::int64_t stride = compile::operand_of(primitive, operand).access.strides[3];
    if (std::abs(stride) >= std::int64_t{1} << 24) return "pixels lie far apart";
  }
  return "";
}

}  // namespace

bool is_depthwise(const Primitive& primitive) {
  const auto* window = std::get_if<Window>(&primitive.attributes);
  if (window == nullptr || ops::row(primitive.op).family != ops::Family::contraction) return false;
  const Operand& weight = compile::operand_of(primitive, primitive.op == Op::convolution_weight ? -1 : 1);
  if (window->groups != weight.sizes[0] || weight.sizes[1] != 1 || window->groups % 2 != 0) return false;
  constexpr std::int64_t widest_strip = 24;  // pixels of a window's eight neighbours
  constexpr std::int64_t most_taps = 121;
  for (std::size_t axis = 0; axis < 2; ++axis) {
    const int stride = window->stride[axis];
    if (stride != 1 && stride != 2) return false;
    const std::int64_t reach = (weight.sizes[static_cast<int>(axis) + 2] - 1) * window->dilation[axis];
    if (7 * stride + reach + 1 > widest_strip) return false;
  }
  return weight.sizes[2] * weight.sizes[3] <= most_taps && is_floating(primitive.inputs[0].access.dtype);
}

Verdict judge_depthwise(const Primitive& primitive, const GpuContext& context) {
  if (!is_depthwise(primitive)) return decline("not depthwise");
  if (std::string reason = why_no_contraction(primitive); !reason.empty()) return decline(reason);
  if (std::string reason = why_no_layout(primitive); !reason.empty()) return decline(reason);
  if (std::string reason = why_only_tiles(primitive); !reason.empty()) return decline(reason);
  if (primitive.op == Op::convolution_weight) {
    const std::int64_t row = pairs_of(primitive.output.sizes[0]) * primitive.output.sizes[2];
    if (row * slices_of(row) > context.properties.max_threads) return decline("more rows of taps than threads");
  }
  return accept([&primitive, &context] { return Writer(primitive, context).make(); });
}

}  // namespace russet::gpu
