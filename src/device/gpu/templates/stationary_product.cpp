// Launches of products whose right factor stays in threadgroup memory.
#include <algorithm>

#include "device/gpu/emitter/emit.h"
#include "device/gpu/templates/matrix_product.h"
#include "device/gpu/templates/templates.h"
#include "device/gpu/templates/text.h"
#include "ops/table.h"

namespace russet::gpu {
namespace {

using compile::Primitive;
using ops::Op;

/// StationaryShape of stationary_product.metal.
struct StationaryShape {
  static constexpr std::int64_t rows = 64, stages = 2, strip = 16 * 36;
  std::int64_t depth, across, down = 1;
  bool right_along;

  explicit StationaryShape(const Contraction& c)
      : depth(divide_up(c.depth, 16) * 16), right_along(is_along_depth(c.right_step)) {
    // Columns that a threadgroup holds: 256 of a small depth, so that memory has room for two of them.
    constexpr std::int64_t shallow = 64;
    const std::int64_t most = depth <= shallow ? 8 : 4;
    const std::int64_t wanted = divide_up(c.columns, 32);
    across = std::min(divide_up(wanted, divide_up(wanted, most)), most);
    if (across <= 4 && depth > shallow / 2) down = 2;
  }
  std::int64_t columns() const { return across * 32; }
  std::uint32_t threads() const { return static_cast<std::uint32_t>(across * down * 32); }
  /// Threadgroups of a core.
  std::uint32_t resident() const {
    constexpr std::uint32_t threads_of_a_core = 512;  // of 128 registers
    return std::max(threads_of_a_core / threads(), 1U);
  }
  std::string text() const { return fmt::format("StationaryShape<{}, {}, {}, {}>", depth, across, down, right_along); }
  std::int64_t bytes() const {
    const std::int64_t right = right_along ? columns() * (depth + 8) : depth * (columns() + 8);
    return 2 * (right + stages * rows * (depth + 8)) + across * down * strip * 4;
  }
};

/// Threadgroups that share the rows of a block of columns: from shapes alone, so that results never depend on the
/// device.
std::int64_t sharers_of(const Contraction& c, const StationaryShape& shape) {
  constexpr std::int64_t cores = 132;
  const std::int64_t column_tiles = divide_up(c.columns, shape.columns());
  const std::int64_t wanted = std::max<std::int64_t>(cores * shape.resident() / column_tiles, 1);
  return std::min(divide_up(c.rows, StationaryShape::rows), wanted);
}

class Writer {
 public:
  Writer(const Primitive& primitive, const GpuContext& context)
      : shared_(primitive, context, describe_contraction(primitive)), shape_(c_), sharers_(sharers_of(c_, shape_)) {}

  KernelPtr make() const {
    return rows_kernel(shared_, "stationary product", sharers_ * shape_.down,
                       [&](const RowsVisitor& rows, bool sums) { return call(rows, sums); });
  }

 private:
  Call call(const RowsVisitor& rows, bool sums) const {
    Division division;
    division.row_tiles = divide_up(c_.rows, StationaryShape::rows);
    division.column_tiles = divide_up(c_.columns, shape_.columns());
    const std::string body = fmt::format(
        "{}  stationary_product<{}, {}, {}, {}>(left_source, right_source, visitor, {}, memory, group_id.x, "
        "group_count.x, self);\n",
        own_thread, shape_.text(), rows.width, sums, element_type(shared_.type()), shared_.product_of(rows.text));
    const bool is_large = shape_.bytes() > shared_.context().properties.group_memory;
    const Piece::Array memory{"uint4", "memory", fmt::format("({}::memory)", shape_.text()),
                              is_large ? static_cast<std::uint32_t>(shape_.bytes()) : 0};
    Call call = shared_.product_call({"stationary_product",
                                      shape_.threads(),
                                      body,
                                      {memory},
                                      sharers_ * division.column_tiles,
                                      "stationary_product.metal",
                                      shape_.resident()},
                                     rows.text, division);
    call.piece = nullptr;  // launches that share their threadgroups' memory would all have as much
    return call;
  }

  ContractionWriter shared_;
  const Contraction& c_ = shared_.contraction();
  StationaryShape shape_;
  std::int64_t sharers_;
};

std::string why_no_layout(const Primitive& primitive, const Contraction& c) {
  constexpr std::int64_t deepest = 128;  // that threadgroup memory holds
  if (c.depth == 0 || c.depth > deepest) return "another depth";
  return why_no_matrices(primitive, c);
}

}  // namespace

/// Measured on an H100: see docs/devices/cuda_kernels.md.
bool is_stationary_product(const Primitive& primitive) {
  constexpr std::int64_t fewest_elements = 10'000'000;
  if (!why_no_16_bit_product(primitive).empty()) return false;
  const Contraction c = describe_contraction(primitive);
  return c.columns >= 2 * c.depth && c.columns >= 64 && c.rows * c.columns >= fewest_elements &&
         why_no_layout(primitive, c).empty();
}

Verdict judge_stationary_product(const Primitive& primitive, const GpuContext& context) {
  if (!context.properties.has_fragments) return decline("tensor cores multiply no fragments here");
  if (std::string reason = why_no_16_bit_product(primitive); !reason.empty()) return decline(reason);
  const Contraction c = describe_contraction(primitive);
  if (std::string reason = why_no_layout(primitive, c); !reason.empty()) return decline(reason);
  if (std::string reason = why_no_rows_epilogue(primitive, c); !reason.empty()) return decline(reason);
  return accept([&primitive, &context] { return Writer(primitive, context).make(); });
}

}  // namespace russet::gpu
