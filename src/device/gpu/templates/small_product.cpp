// Launches of contractions of little work (kernels/small_product.metal).
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

constexpr std::int64_t side = 16;  // rows of a tile, columns of a full one, and steps of a slice of the depth
constexpr std::int64_t simdgroups = 8;
constexpr std::int64_t most_ahead = 4;  // slices, in registers

std::int64_t tiles_of(const Contraction& c) {
  return divide_up(c.rows, side) * divide_up(c.columns, side) * c.batches();
}

/// How simdgroups and threadgroups share the work, by its shape alone, for sums are added up by it.
struct Sharing {
  std::int64_t slices = 1;  // simdgroups that share the depth of a tile
  std::int64_t ahead = 1;
  std::int64_t columns = side;  // of a tile
  Division division;
};

Sharing share(const Contraction& c, std::int64_t element_bytes) {
  constexpr std::int64_t enough = 2048;        // simdgroups, for a large GPU
  constexpr std::int64_t enough_groups = 264;  // of them
  constexpr std::int64_t least_part = 128;
  constexpr std::int64_t most_part = 1024;     // whose steps threadgroup memory holds; a depth up to that is left whole
  constexpr std::int64_t most_shared = 24576;  // bytes of fragments that the tiles of a threadgroup share
  const std::int64_t tiles = tiles_of(c);
  Sharing sharing;
  sharing.columns = c.columns <= side / 2 ? side / 2 : side;
  const bool can_share = c.depth * sharing.columns * element_bytes <= most_shared;
  const auto is_worth = [&](std::int64_t slices) { return slices / 2 * side < c.depth && tiles * slices <= enough; };
  while (sharing.slices < simdgroups && (!can_share || is_worth(sharing.slices * 2))) sharing.slices *= 2;
  Division& division = sharing.division;
  division.row_tiles = divide_up(c.rows, side * simdgroups / sharing.slices);
  division.column_tiles = divide_up(c.columns, side);
  const std::int64_t groups = std::max<std::int64_t>(division.row_tiles * division.column_tiles * c.batches(), 1);
  const std::int64_t part =
      c.depth <= most_part ? c.depth : divide_up(c.depth, std::max<std::int64_t>(enough_groups / groups, 1));
  division.chunk = divide_up(std::clamp(part, least_part, most_part), side) * side;
  division.splits = std::max<std::int64_t>(divide_up(c.depth, division.chunk), 1);
  const std::int64_t rounds = divide_up(std::min(c.depth, division.chunk), sharing.slices * side);
  sharing.ahead = std::clamp<std::int64_t>(rounds, 1, most_ahead);
  return sharing;
}

/// How many neighbours of a factor's depth a thread reads at once.
std::int64_t width_of(const Primitive& primitive, const Contraction& c, bool left) {
  if (!is_along_depth(left ? c.left_step : c.right_step)) return 1;
  return is_in_vectors(primitive, c, left, 4) ? 4 : is_in_vectors(primitive, c, left, 2) ? 2 : 1;
}

class Writer {
 public:
  Writer(const Primitive& primitive, const GpuContext& context)
      : shared_(primitive, context, describe_contraction(primitive)),
        sharing_(share(c_, static_cast<std::int64_t>(size_of(shared_.type())))) {}

  KernelPtr make() const {
    const Division& division = sharing_.division;
    std::vector<Call> calls =
        shared_.calls(division, true, [&](const VisitorText& visitor) { return product(visitor); });
    std::string name = fmt::format("small product, slices by {}", sharing_.slices);
    if (division.splits > 1) name += fmt::format(", depth in {} parts", division.splits);
    return std::make_unique<GpuKernel>(shared_.context(), std::move(name), std::move(calls),
                                       shared_.partial_bytes(division));
  }

 private:
  Call product(const VisitorText& visitor) const {
    const Primitive& primitive = shared_.primitive();
    std::string body = fmt::format(
        "  small_product<{}, {}, {}, {}, {}, {}, {}, {}, {}>(left_source, right_source, visitor, {}, memory, steps, "
        "fragments, group_id.x, thread_id);\n",
        element_type(shared_.type()), shared_.left_side(true), shared_.right_side(true), visitor.type, sharing_.slices,
        sharing_.ahead, across(), width_of(primitive, c_, true), width_of(primitive, c_, false),
        shared_.product_of(visitor));
    const Division& division = sharing_.division;
    return shared_.product_call(
        {"small_product", static_cast<std::uint32_t>(simdgroups * 32), std::move(body), arrays(),
         c_.batches() * division.splits * division.row_tiles * division.column_tiles, "small_product.metal"},
        visitor, division);
  }

  /// Fragments of a tile side by side.
  std::int64_t across() const { return sharing_.columns / 8; }

  /// In threadgroup memory, of which there are 48 KiB: sums take 8, steps at most 24, fragments at most 24 where they
  /// are shared, and then there are few steps.
  std::vector<Piece::Array> arrays() const {
    const std::int64_t round = sharing_.slices * sharing_.ahead * side;
    const std::int64_t depth =
        std::max<std::int64_t>(divide_up(std::min(c_.depth, sharing_.division.chunk), round), 1) * round;
    const std::int64_t steps = c_.left_step.splits ? depth : 1;
    const std::int64_t fragments = sharing_.slices < simdgroups ? depth / side * across() * 32 : 1;
    return {{"float", "memory", fmt::format("{}", simdgroups * side * sharing_.columns)},
            {fmt::format("Place<{}>", shared_.offset_type()), "steps", fmt::format("{}", steps)},
            {shared_.type() == DType::float32 ? "float4" : "uint2", "fragments", fmt::format("{}", fragments)}};
  }

  ContractionWriter shared_;
  const Contraction& c_ = shared_.contraction();
  Sharing sharing_;
};

/// Whether a convolution with windows, or a gradient of one, has so few channels that tiles of a library would be
/// mostly empty. Measured on an H100: for the first convolutions of larger networks, of three channels, cuDNN is as
/// fast.
bool has_few_channels(const Primitive& primitive) {
  const auto* window = std::get_if<ops::Window>(&primitive.attributes);
  if (window == nullptr || window->groups != 1) return false;
  const bool is_weight = primitive.op == Op::convolution_weight;
  const Shape& weight = compile::operand_of(primitive, is_weight ? -1 : 1).sizes;
  const std::int64_t taps = weight[2] * weight[3];
  constexpr double most_operations = 5e7;
  const double operations = compile::operations_of(compile::Step(primitive));
  if (taps == 1 || operations == 0 || operations > most_operations) return false;
  constexpr std::int64_t most_channels = 32;
  constexpr std::int64_t most_taps = 256;  // of all channels
  constexpr std::int64_t most_depth = 512;
  if (is_weight) return weight[0] <= most_channels && weight[1] * taps <= most_taps;
  const bool transposed = primitive.op == Op::convolution_input;
  return weight[transposed ? 1 : 0] <= most_channels && weight[transposed ? 0 : 1] * taps <= most_depth;
}

}  // namespace

/// Measured on an H100: training lenet5 in bfloat16 takes 0.125 ms instead of 0.151 with cuBLASLt's products and
/// kernels without tensor cores for its convolutions, its evaluation 0.029 instead of 0.045.
bool is_small_product(const Primitive& primitive) {
  if (ops::row(primitive.op).family != ops::Family::contraction) return false;
  const DType type = primitive.inputs[0].access.dtype;
  if (!is_floating(type) || type == DType::float64 || compile::has_prologue(primitive)) return false;
  if (has_few_channels(primitive)) return true;
  constexpr std::int64_t most_work = 2500;  // tiles times slices
  const Contraction c = describe_contraction(primitive);
  return c.window == WindowSide::none && c.rows <= most_work * side && c.columns <= most_work * side &&
         c.depth <= most_work * side && c.batches() <= most_work && tiles_of(c) * divide_up(c.depth, side) <= most_work;
}

Verdict judge_small_product(const Primitive& primitive, const GpuContext& context) {
  if (!context.properties.has_fragments) return decline("tensor cores multiply no fragments here");
  if (!is_small_product(primitive)) return decline("not of float32 or 16 bits, or too much work");
  if (std::string reason = why_no_contraction(primitive); !reason.empty()) return decline(reason);
  if (std::string reason = why_only_tiles(primitive); !reason.empty()) return decline(reason);
  return accept([&primitive, &context] { return Writer(primitive, context).make(); });
}

}  // namespace russet::gpu
