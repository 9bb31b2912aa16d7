// Launches of contractions of which one matrix is small (kernels/narrow.metal).
#include <algorithm>

#include "compile/layouts.h"
#include "compile/plan.h"
#include "device/gpu/emitter/emit.h"
#include "device/gpu/templates/contraction_writer.h"
#include "device/gpu/templates/templates.h"
#include "device/gpu/templates/text.h"

namespace russet::gpu {
namespace {

using compile::Primitive;
using ops::Op;

std::int64_t round_up(std::int64_t count, std::int64_t step) { return divide_up(count, step) * step; }

std::int64_t columns_of_tile(std::int64_t columns) { return columns <= 8 ? 8 : columns <= 16 ? 16 : 32; }

// Threadgroup memory: a factor whole, where its steps lie, and what is staged fit 48 KiB together.
constexpr std::int64_t most_factor = 8192;  // floats
constexpr std::int64_t most_depth = 512;
constexpr std::int64_t most_lines = 256;  // of both sides of a weight's gradient

class Writer {
 public:
  Writer(const Primitive& primitive, const GpuContext& context)
      : shared_(primitive, context, describe_contraction(primitive)) {}

  KernelPtr make() const { return shared_.primitive().op == Op::convolution_weight ? depth() : rows(); }

 private:
  /// Few columns: rows are shared out.
  KernelPtr rows() const {
    constexpr std::int64_t threads = 128;
    constexpr std::int64_t deep = 64;
    const std::int64_t columns = columns_of_tile(c_.columns);
    const std::int64_t slices = c_.depth > deep ? 4 : 1;
    Division division;
    division.column_tiles = divide_up(c_.columns, columns);
    division.row_tiles = divide_up(c_.rows, threads / slices);
    const VisitorText visitor = shared_.result_visitor(shared_.source_bindings(), true);
    const bool along = c_.column.strides[2] == 1 && !c_.column.splits;
    std::string body = fmt::format(
        "  narrow_rows<{}, {}, {}, {}, {}, {}, {}>(left_source, right_source, visitor, {}, memory, steps, "
        "group_id.x, thread_id);\n",
        shared_.left_side(true), shared_.right_side(true), visitor.type, columns, slices, threads, along,
        shared_.product_of(visitor));
    const std::int64_t floats = std::max(c_.depth * columns, threads * (columns + 1));
    std::vector<Call> calls;
    calls.push_back(call(std::move(body), threads, {memory(floats), places("steps", c_.depth)}, visitor, division));
    return std::make_unique<GpuKernel>(shared_.context(), fmt::format("narrow rows of {}", columns), std::move(calls));
  }

  /// Few rows and columns: the depth is shared out, and its parts are added up.
  KernelPtr depth() const {
    const std::int64_t rows = round_up(c_.rows, 4);
    const std::int64_t columns = round_up(c_.columns, 4);
    const std::int64_t tiles = rows / 4 * (columns / 4);
    std::int64_t lanes = round_up(tiles, 32);
    std::int64_t slices = 1;
    if (tiles <= 16) {
      lanes = 16;
      slices = 8;
    } else if (lanes <= 128) {
      slices = 256 / lanes;
    }
    const std::int64_t threads = lanes * slices;
    const std::int64_t staged = rows + columns > 96 ? 32 : 64;  // of the depth at a time
    Division division = divide_depth(staged);
    const std::int64_t floats = std::max(staged * (rows + columns), threads * 16);
    std::vector<Call> calls = shared_.calls(division, true, [&](const VisitorText& visitor) {
      const std::string body = fmt::format(
          "  narrow_depth<{}, {}, {}, {}, {}, {}, {}, {}>(left_source, right_source, visitor, {}, memory, lines, "
          "steps, group_id.x, thread_id);\n",
          shared_.left_side(true), shared_.right_side(true), visitor.type, rows, columns, staged, slices, threads,
          shared_.product_of(visitor));
      return call(body, threads, {memory(floats), places("lines", rows + columns), places("steps", 2 * staged)},
                  visitor, division);
    });
    return std::make_unique<GpuKernel>(shared_.context(), fmt::format("narrow depth in {} parts", division.splits),
                                       std::move(calls), shared_.partial_bytes(division));
  }

  /// Several rounds a part, and not so many parts that adding them up takes long.
  Division divide_depth(std::int64_t staged) const {
    constexpr std::int64_t most = 512;
    const std::int64_t stages = divide_up(c_.depth, staged);
    Division division;
    division.row_tiles = 1;
    division.column_tiles = 1;
    division.chunk = divide_up(stages, std::min(stages, most)) * staged;
    division.splits = std::max<std::int64_t>(divide_up(c_.depth, division.chunk), 1);
    return division;
  }

  static Piece::Array memory(std::int64_t floats) {
    return {"float4", "memory", fmt::format("{}", divide_up(floats, 4))};
  }
  Piece::Array places(std::string name, std::int64_t count) const {
    return {fmt::format("Place<{}>", shared_.offset_type()), std::move(name), fmt::format("{}", count)};
  }

  Call call(std::string body, std::int64_t threads, std::vector<Piece::Array> arrays, const VisitorText& visitor,
            const Division& division) const {
    return shared_.product_call({"narrow", static_cast<std::uint32_t>(threads), std::move(body), std::move(arrays),
                                 division.row_tiles * division.column_tiles * division.splits, "narrow.metal"},
                                visitor, division);
  }

  ContractionWriter shared_;
  const Contraction& c_ = shared_.contraction();
};

}  // namespace

/// Measured on an H100: training lenet5 takes 0.19 instead of 0.39 ms in float32, 0.21 instead of 0.26 in bfloat16. For
/// the first convolutions of larger networks, of three channels, cuDNN is as fast.
bool is_narrow(const Primitive& primitive) {
  const auto* window = std::get_if<ops::Window>(&primitive.attributes);
  if (window == nullptr || ops::row(primitive.op).family != ops::Family::contraction || window->groups != 1)
    return false;
  const bool is_weight = primitive.op == Op::convolution_weight;
  const Shape& weight = compile::operand_of(primitive, is_weight ? -1 : 1).sizes;
  const std::int64_t taps = weight[2] * weight[3];
  constexpr double most_operations = 5e7;
  const double operations = compile::operations_of(compile::Step(primitive));
  if (!is_floating(primitive.inputs[0].access.dtype) || taps == 1 || operations == 0 || operations > most_operations)
    return false;
  constexpr std::int64_t most_channels = 32;
  if (is_weight) {
    const std::int64_t lines = round_up(weight[0], 4) + round_up(weight[1] * taps, 4);
    return weight[0] <= most_channels && lines <= most_lines;
  }
  const bool transposed = primitive.op == Op::convolution_input;
  const std::int64_t columns = weight[transposed ? 1 : 0];
  const std::int64_t depth = weight[transposed ? 0 : 1] * taps;
  return columns <= most_channels && depth <= most_depth && depth * columns_of_tile(columns) <= most_factor;
}

Verdict judge_narrow(const Primitive& primitive, const GpuContext& context) {
  if (!context.properties.takes_narrow) return decline("tiles take few channels here");
  if (!is_narrow(primitive)) return decline("not of few channels, or too much work");
  if (std::string reason = why_no_contraction(primitive); !reason.empty()) return decline(reason);
  if (std::string reason = why_only_tiles(primitive); !reason.empty()) return decline(reason);
  return accept([&primitive, &context] { return Writer(primitive, context).make(); });
}

}  // namespace russet::gpu
