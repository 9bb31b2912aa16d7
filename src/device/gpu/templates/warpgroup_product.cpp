// Launches of products by warpgroups that multiply what a copier brings to threadgroup memory.
#include <algorithm>

#include "device/gpu/emitter/emit.h"
#include "device/gpu/templates/matrix_product.h"
#include "device/gpu/templates/templates.h"
#include "device/gpu/templates/text.h"

namespace russet::gpu {
namespace {

using compile::Instruction;
using compile::Primitive;

// As in warpgroup_product.metal and prelude/cuda/warpgroup_product.h.
constexpr std::int64_t tile = 128;
constexpr std::uint32_t slice = 64;
constexpr std::uint32_t threads = 640;
constexpr std::int64_t parts = 2;  // of a tile, by rows, whose sums are apart
constexpr std::uint32_t places = 5, tile_bytes = tile * tile * 2;
constexpr std::uint32_t memory_bytes = places * 2 * (tile * slice * 2) + 2 * tile_bytes + 2 * places * 8;

/// Results never depend on the device, so its number of cores is that of an H100.
constexpr std::int64_t cores = 132;

Division divide(const Contraction& c) {
  Division division;
  division.row_tiles = divide_up(c.rows, tile);
  division.column_tiles = divide_up(c.columns, tile);
  division.chunk = c.depth;
  return division;
}

/// Elements from line to line of a factor as it lies: from row to row, or from step to step of the depth.
std::int64_t stride_of(const ContractionAxis& line, const ContractionAxis& step) {
  return (is_along_depth(step) ? line : step).strides[2];
}

/// A factor as a matrix: lines of neighbours.
TensorMap map_of(const compile::Operand& factor, std::uint32_t buffer, std::int64_t first, const ContractionAxis& line,
                 std::int64_t lines, const ContractionAxis& step, std::int64_t steps) {
  const bool along = is_along_depth(step);
  const auto size = static_cast<std::int64_t>(size_of(factor.access.dtype));
  TensorMap map;
  map.buffer = buffer;
  map.offset = static_cast<std::uint64_t>((source_start(factor) + first) * size);
  map.width = static_cast<std::uint64_t>(along ? steps : lines);
  map.height = static_cast<std::uint64_t>(along ? lines : steps);
  map.stride = static_cast<std::uint64_t>(stride_of(line, step) * size);
  map.box_width = slice;
  map.box_height = along ? tile : slice;
  return map;
}

class Writer {
 public:
  Writer(const Primitive& primitive, const GpuContext& context)
      : shared_(primitive, context, describe_contraction(primitive)), division_(divide(c_)) {}

  KernelPtr make() const {
    return rows_kernel(shared_, "warpgroup product", division_.row_tiles * parts,
                       [&](const RowsVisitor& rows, bool sums) { return call(rows, sums); });
  }

 private:
  Call call(const RowsVisitor& rows, bool sums) const {
    const std::string body = fmt::format(
        "  warpgroup_product<{}, {}, {}, {}, {}>(left_source, right_source, visitor, {}, values.left_map, "
        "values.right_map, memory, group_id.x, group_count.x, thread_id);\n",
        memory_bytes, rows.width, sums, is_along_depth(c_.right_step), element_type(shared_.type()),
        shared_.product_of(rows.text, true));
    const Piece::Array memory{"uint4", "memory", fmt::format("{}", tile_bytes / 16), memory_bytes};
    const std::int64_t tiles = division_.row_tiles * division_.column_tiles;
    ProductKernel kernel{"warpgroup_product",      threads, body, {memory}, std::min(tiles, cores),
                         "warpgroup_product.metal"};
    kernel.maps = {
        {"left_map", map_of(shared_.left(), 0, 0, c_.left_line, c_.rows, c_.left_step, c_.depth)},
        {"right_map", map_of(shared_.right(), 1, c_.right_first, c_.right_line, c_.columns, c_.right_step, c_.depth)}};
    Call call = shared_.product_call(std::move(kernel), rows.text, division_);
    call.piece = nullptr;  // its memory is more than others may have
    return call;
  }

  ContractionWriter shared_;
  const Contraction& c_ = shared_.contraction();
  Division division_;
};

bool is_supported(const Properties& properties) { return properties.has_warpgroups && properties.has_bulk_copies; }

/// Of what is shown to a visitor.
DType result_type(const Primitive& primitive) {
  const compile::Group& group = primitive.epilogue;
  return group.code.empty() ? primitive.output.access.dtype : group.accesses[0].dtype;
}

/// Whether what runs with the product, and not after it, takes run-time arguments.
bool takes_arguments(const Primitive& primitive) {
  return std::ranges::any_of(primitive.epilogue.code, [&](const Instruction& in) {
    if (in.extent != compile::Extent::full) return false;
    return in.argument >= 0 ||
           (in.access >= 0 && primitive.epilogue.accesses[static_cast<std::size_t>(in.access)].offset_argument >= 0);
  });
}

std::string why_no_shape(const Primitive& primitive, const Contraction& c) {
  constexpr std::int64_t least_depth = 129;  // a stationary product's is less
  if (c.depth < least_depth) return "a small depth";
  if (result_type(primitive) != primitive.inputs[0].access.dtype) return "a result of another type";
  if (stride_of(c.left_line, c.left_step) <= 0 || stride_of(c.right_line, c.right_step) <= 0) {
    return "lines that are repeated, or lie backwards";
  }
  return why_no_matrices(primitive, c);
}

}  // namespace

/// Measured on an H100: see docs/devices/cuda_kernels.md. What follows the gradient of an image reads several arrays:
/// resnet50 trained 2 % slower with that.
bool prefers_warpgroup_product(const Primitive& primitive, const Properties& properties) {
  constexpr std::int64_t fewest_elements = 10'000'000;
  constexpr std::int64_t most_depth = 1024;
  constexpr double least_use = 0.9;  // of the cores, in the last tiles
  if (!is_supported(properties) || primitive.op == ops::Op::convolution_input) return false;
  if (!why_no_16_bit_product(primitive).empty()) return false;
  const Contraction c = describe_contraction(primitive);
  if (c.depth > most_depth || c.columns < 2 * c.depth || c.rows * c.columns < fewest_elements) return false;
  const Division division = divide(c);
  const std::int64_t tiles = division.row_tiles * division.column_tiles;
  const auto turns = static_cast<double>(divide_up(tiles, cores) * cores);
  return static_cast<double>(tiles) >= least_use * turns && why_no_shape(primitive, c).empty();
}

Verdict judge_warpgroup_product(const Primitive& primitive, const GpuContext& context) {
  if (!is_supported(context.properties))
    return decline("no warpgroups multiply by tensor cores what was copied in bulk");
  if (std::string reason = why_no_16_bit_product(primitive); !reason.empty()) return decline(reason);
  const Contraction c = describe_contraction(primitive);
  if (std::string reason = why_no_shape(primitive, c); !reason.empty()) return decline(reason);
  if (std::string reason = why_no_rows_epilogue(primitive, c); !reason.empty()) return decline(reason);
  if (takes_arguments(primitive)) return decline("run-time arguments beside what tells of matrices");
  return accept([&primitive, &context] { return Writer(primitive, context).make(); });
}

}  // namespace russet::gpu
