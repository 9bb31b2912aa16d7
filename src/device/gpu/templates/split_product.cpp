// Launches of float32's products on tensor cores.
#include "device/gpu/emitter/emit.h"
#include "device/gpu/templates/contraction_writer.h"
#include "device/gpu/templates/templates.h"
#include "device/gpu/templates/text.h"

namespace russet::gpu {
namespace {

using compile::Operand;
using compile::Primitive;

constexpr std::int64_t side = 128;  // of a tile: split_product.metal
constexpr std::uint32_t threads = 256;

/// Parts of the depth, so that many tiles exist; each at least as deep as is worth a tile's end.
Division divide(const Contraction& c) {
  constexpr std::int64_t wanted = 528;
  constexpr std::int64_t least = 512;
  constexpr std::int64_t slice = 16;
  Division division;
  division.row_tiles = divide_up(c.rows, side);
  division.column_tiles = divide_up(c.columns, side);
  const std::int64_t tiles = std::max<std::int64_t>(division.row_tiles * division.column_tiles * c.batches(), 1);
  if (tiles < wanted) division.splits = std::clamp<std::int64_t>(c.depth / least, 1, wanted / tiles);
  division.chunk = divide_up(divide_up(c.depth, division.splits), slice) * slice;
  division.splits = divide_up(c.depth, division.chunk);
  return division;
}

class Writer {
 public:
  Writer(const Primitive& primitive, const GpuContext& context)
      : shared_(primitive, context, describe_contraction(primitive)) {}

  KernelPtr make() const {
    const Division division = divide(c_);
    std::vector<Call> calls = shared_.calls(division, true, [&](const VisitorText& visitor) {
      std::string body = "  TileThread self;\n  self.thread_id = thread_id;\n  self.lane_id = lane_id;\n";
      body += "  self.simdgroup_id = simdgroup_id;\n";
      body += fmt::format(
          "  split_product<{}, {}, {}>(left_source, right_source, visitor, {}, memory, flags, group_id.x, self);\n",
          shared_.offset_type(), c_.left_step.strides[2] == 1, c_.right_step.strides[2] == 1,
          shared_.product_of(visitor));
      const Piece::Array memory{"float4", "memory", "(split_memory / 4)"};
      const std::int64_t groups = c_.batches() * division.splits * division.row_tiles * division.column_tiles;
      return shared_.product_call(
          {"split_product", threads, body, {memory, {"uint", "flags", "8"}}, groups, "split_product.metal"}, visitor,
          division);
    });
    std::string name = "split product";
    if (division.splits > 1) name += fmt::format(", depth in {} parts", division.splits);
    return std::make_unique<GpuKernel>(shared_.context(), std::move(name), std::move(calls),
                                       shared_.partial_bytes(division));
  }

 private:
  ContractionWriter shared_;
  const Contraction& c_ = shared_.contraction();
};

/// Whether vectors of four neighbours, along the lines or along the depth, are aligned and whole.
bool in_vectors(const Operand& operand, const ContractionAxis& line, std::int64_t lines, const ContractionAxis& step,
                std::int64_t depth, const Strides& batch) {
  const Placed placed = place(operand, false);
  if (line.splits || step.splits || placed.first % 4 != 0 || placed.region.offset % 16 != 0 ||
      placed.region.scale % 16 != 0) {
    return false;
  }
  for (const std::int64_t stride : batch) {
    if (stride % 4 != 0) return false;
  }
  const bool along = step.strides[2] == 1;
  if (!along && line.strides[2] != 1) return false;
  const std::int64_t other = along ? line.strides[2] : step.strides[2];
  return other > 0 && other % 4 == 0 && (along ? depth : lines) % 4 == 0;
}

std::string why_no_split_product(const Primitive& primitive) {
  if (primitive.inputs[0].access.dtype != DType::float32) return "it is not float32's";
  if (compile::has_prologue(primitive)) return "a prologue";
  if (std::string reason = why_no_contraction(primitive); !reason.empty()) return reason;
  if (std::string reason = why_only_tiles(primitive); !reason.empty()) return reason;
  const Contraction c = describe_contraction(primitive);
  if (c.window != WindowSide::none) return "a window";
  if (!in_vectors(primitive.inputs[static_cast<std::size_t>(c.left_input)], c.left_line, c.rows, c.left_step, c.depth,
                  c.left_batch) ||
      !in_vectors(primitive.inputs[static_cast<std::size_t>(c.right_input)], c.right_line, c.columns, c.right_step,
                  c.depth, c.right_batch)) {
    return "operands that are not read in vectors";
  }
  return "";
}

}  // namespace

Verdict judge_split_product(const Primitive& primitive, const GpuContext& context) {
  if (!context.properties.has_fragments) return decline("there are no tensor cores");
  if (std::string reason = why_no_split_product(primitive); !reason.empty()) return decline(reason);
  return accept([&primitive, &context] { return Writer(primitive, context).make(); });
}

bool prefers_split_product(const Primitive& primitive) {
  if (ops::row(primitive.op).family != ops::Family::contraction || !primitive.epilogue.code.empty()) return false;
  if (!why_no_split_product(primitive).empty()) return false;
  constexpr std::int64_t least_side = 64;
  constexpr std::int64_t least_tiles = 100;
  const Contraction c = describe_contraction(primitive);
  const Division division = divide(c);
  return std::min(c.rows, c.columns) >= least_side && c.depth >= least_side &&
         division.row_tiles * division.column_tiles * division.splits * c.batches() >= least_tiles;
}

}  // namespace russet::gpu
