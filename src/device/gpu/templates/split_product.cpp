// Launches of float32's products and convolutions on tensor cores.
#include <algorithm>
#include <functional>

#include "compile/plan.h"
#include "device/gpu/emitter/emit.h"
#include "device/gpu/templates/contraction_writer.h"
#include "device/gpu/templates/templates.h"
#include "device/gpu/templates/text.h"

namespace russet::gpu {
namespace {

using compile::Primitive;

// As in split_product.metal and prelude/cuda/warpgroups.h.
constexpr std::int64_t tile_rows = 128;
constexpr std::int64_t slice = 32;
constexpr std::uint32_t threads = 512;
constexpr std::int64_t line_gap = 4, left_gap = 8, right_gap = 4;

/// Measured on an H100 and an H200, which do 100 to 110 TFLOP/s in large products.
constexpr double tile_rate = 100e12 / 132;  // operations a core and second, in tiles of 128 columns
constexpr double narrow_share = 0.65;       // of that rate in tiles of 64 columns

/// Columns of a tile: 64 where 128 would leave more of it empty than it is slower.
std::int64_t columns_of(std::int64_t columns) {
  const auto wide = static_cast<double>(divide_up(columns, 128) * 128);
  const auto narrow = static_cast<double>(divide_up(columns, 64) * 64);
  return narrow / narrow_share < wide ? 64 : 128;
}

/// Of that GPU; parts of the depth come from shapes alone, so that results never depend on the device.
constexpr std::int64_t cores = 132;
constexpr double tile_seconds = 1.5e-6;       // after a tile's last product
constexpr double first_seconds = 4e-6;        // before the first product of a core's first tile
constexpr double part_bytes_a_second = 3e12;  // of sums that are stored and added up
constexpr double launch_seconds = 4e-6;

/// What a core takes for its tiles if the depth is in so many parts, and what adding these up takes.
double seconds_of(const Contraction& c, std::int64_t tiles, std::int64_t columns, std::int64_t splits) {
  const double rate = columns == 64 ? tile_rate * narrow_share : tile_rate;
  const auto operations =
      static_cast<double>(2 * tile_rows * columns * divide_up(divide_up(c.depth, splits), slice) * slice);
  const double tile = operations / rate + tile_seconds;
  const double sums = 8.0 * static_cast<double>(splits * c.batches() * c.rows * c.columns) / part_bytes_a_second;
  return static_cast<double>(divide_up(tiles * splits, cores)) * tile + first_seconds + launch_seconds +
         (splits > 1 ? sums + launch_seconds : 0);
}

Division divide(const Contraction& c) {
  constexpr std::int64_t least_depth = 256;
  constexpr std::int64_t most_parts = 64;
  Division division;
  const std::int64_t columns = columns_of(c.columns);
  division.row_tiles = divide_up(c.rows, tile_rows);
  division.column_tiles = divide_up(c.columns, columns);
  const std::int64_t tiles = division.row_tiles * division.column_tiles * c.batches();
  const std::int64_t most = std::clamp<std::int64_t>(c.depth / least_depth, 1, most_parts);
  for (std::int64_t splits = 2; splits <= most && tiles > 0; ++splits) {
    if (seconds_of(c, tiles, columns, splits) < seconds_of(c, tiles, columns, division.splits))
      division.splits = splits;
  }
  division.chunk = std::max(divide_up(divide_up(c.depth, division.splits), slice) * slice, slice);
  division.splits = std::max<std::int64_t>(divide_up(c.depth, division.chunk), 1);
  return division;
}

double seconds_of(const Contraction& c) {
  const Division division = divide(c);
  const std::int64_t tiles = division.row_tiles * division.column_tiles * c.batches();
  return seconds_of(c, tiles, columns_of(c.columns), division.splits);
}

/// The transpose of the product.
Contraction transposed(Contraction c) {
  std::swap(c.left_input, c.right_input);
  std::swap(c.left_line, c.right_line);
  std::swap(c.left_step, c.right_step);
  std::swap(c.left_batch, c.right_batch);
  std::swap(c.row, c.column);
  std::swap(c.rows, c.columns);
  if (c.window != WindowSide::none) c.window = c.window == WindowSide::left ? WindowSide::right : WindowSide::left;
  return c;
}

/// The contractions that a kernel computes one after the other: the primitive's, or its transpose where that fills
/// tiles better; gradients of what was read in strides, by remainders. Epilogues count elements by row and column.
std::vector<Contraction> arranged(const Primitive& primitive) {
  Contraction c = describe_contraction(primitive);
  if (!primitive.epilogue.code.empty()) return {c};
  if (c.divisors[0] != 1 || c.divisors[1] != 1) {
    std::vector<Contraction> remainders = describe_remainders(primitive);
    // They run at once: those that take longest begin.
    std::ranges::stable_sort(remainders, std::greater(), &Contraction::depth);
    return remainders.empty() ? std::vector{c} : remainders;
  }
  Contraction other = transposed(c);
  return {seconds_of(other) < seconds_of(c) ? other : c};
}

/// Bytes of a core's memory: slices of both factors as they lie, two of the right one in two parts, flags, and strips
/// of results.
std::uint32_t memory_of(std::int64_t columns, bool left_along, bool right_along) {
  constexpr std::int64_t flags = 16, strips = 8 * 16 * 36;
  const std::int64_t left = left_along ? tile_rows * (slice + line_gap) : slice * (tile_rows + left_gap);
  const std::int64_t right = right_along ? columns * (slice + line_gap) : slice * (columns + right_gap);
  const std::int64_t stages = columns == 64 ? 6 : 4;
  return static_cast<std::uint32_t>((stages * (left + right) + 4 * columns * slice + flags + strips) * 4);
}

/// Sums of parts that several contractions leave would take each other's place.
Division division_of(const Contraction& c, std::size_t contractions) {
  Division division = divide(c);
  if (contractions > 1) {
    division.splits = 1;
    division.chunk = std::max(divide_up(c.depth, slice) * slice, slice);
  }
  return division;
}

/// `width`: columns that the visitor takes at once; 0: it takes elements.
Call call_of(const ContractionWriter& writer, const Division& division, const VisitorText& visitor, int width) {
  const Contraction& c = writer.contraction();
  const std::int64_t columns = columns_of(c.columns);
  const bool left_along = is_along_depth(c.left_step);
  const bool right_along = is_along_depth(c.right_step);
  const std::uint32_t bytes = memory_of(columns, left_along, right_along);
  std::string body = fmt::format(
      "  split_product<{}, {}, {}, {}, {}, {}, {}>(left_source, right_source, visitor, {}, memory, group_id.x, "
      "group_count.x, thread_id);\n",
      columns, bytes, width, writer.left_side(true), writer.right_side(true), left_along, right_along,
      writer.product_of(visitor));
  const Piece::Array memory{"float", "memory", fmt::format("{}", (tile_rows + columns) * slice), bytes};
  const std::int64_t tiles = c.batches() * division.splits * division.row_tiles * division.column_tiles;
  const std::int64_t groups = std::min<std::int64_t>(tiles, writer.context().properties.chip.cores);
  Call call = writer.product_call({"split_product", threads, std::move(body), {memory}, groups, "split_product.metal"},
                                  visitor, division);
  call.piece = nullptr;  // its memory is more than others may have
  return call;
}

std::vector<Call> calls_of(const ContractionWriter& writer, const Division& division) {
  if (division.splits == 1 && !writer.primitive().epilogue.code.empty()) {
    const RowsVisitor rows = writer.rows_visitor();
    return {call_of(writer, division, rows.text, rows.width)};
  }
  return writer.calls(division, true,
                      [&](const VisitorText& visitor) { return call_of(writer, division, visitor, 0); });
}

KernelPtr make_split_product(const Primitive& primitive, const GpuContext& context) {
  const std::vector<Contraction> contractions = arranged(primitive);
  std::vector<Call> calls;
  std::string name(split_product_name);
  std::size_t scratch_bytes = 0;
  for (const Contraction& c : contractions) {
    const ContractionWriter writer(primitive, context, c);
    const Division division = division_of(c, contractions.size());
    for (Call& call : calls_of(writer, division)) {
      call.is_further_part = contractions.size() > 1;  // each has elements of its own
      calls.push_back(std::move(call));
    }
    if (division.splits > 1) name += fmt::format(", depth in {} parts", division.splits);
    scratch_bytes = writer.partial_bytes(division);
  }
  if (contractions.size() > 1) name += fmt::format(", {} remainders", contractions.size());
  return std::make_unique<GpuKernel>(context, std::move(name), std::move(calls), scratch_bytes);
}

std::string why_no_split_product(const Primitive& primitive) {
  if (primitive.inputs[0].access.dtype != DType::float32) return "it is not float32's";
  if (compile::has_prologue(primitive)) return "a prologue";
  if (std::string reason = why_no_contraction(primitive); !reason.empty()) return reason;
  if (std::string reason = why_only_tiles(primitive); !reason.empty()) return reason;
  const std::vector<Contraction> contractions = arranged(primitive);
  const Contraction& first = contractions.front();
  // Few simdgroups run it, after the products: GELU took 160 us behind a product of 480, and 65 as a sweep of its own.
  constexpr std::size_t longest_epilogue = 10;
  if (primitive.epilogue.code.size() > longest_epilogue && divide(first).splits == 1) return "a long epilogue";
  if (!primitive.epilogue.code.empty() && (first.divisors[0] != 1 || first.divisors[1] != 1)) {
    return "an epilogue of a gradient that is computed by remainders";
  }
  for (const Contraction& c : contractions) {
    if (!is_in_vectors(primitive, c, true, 4) || !is_in_vectors(primitive, c, false, 4)) {
      return "operands that are not read in vectors";
    }
  }
  return "";
}

}  // namespace

Verdict judge_split_product(const Primitive& primitive, const GpuContext& context) {
  if (!context.properties.has_warpgroups) return decline("no warpgroups multiply by tensor cores");
  if (std::string reason = why_no_split_product(primitive); !reason.empty()) return decline(reason);
  return accept([&primitive, &context] { return make_split_product(primitive, context); });
}

bool prefers_split_product(const Primitive& primitive, const Properties& properties, double library_rate) {
  if (!properties.has_warpgroups || ops::row(primitive.op).family != ops::Family::contraction) return false;
  if (!why_no_split_product(primitive).empty()) return false;
  const double by_library = compile::operations_of(compile::Step(primitive)) / library_rate + launch_seconds;
  double seconds = 0;
  for (const Contraction& c : arranged(primitive)) seconds += seconds_of(c);
  return seconds < by_library;
}

/// cuDNN does 2 to 10 TFLOP/s of float32 there, 20 where it strides over large windows, and copies its operands; for a
/// small convolution copies of ours cost more, as they do for the first one of EfficientNet (3 x 3 by 2).
bool wants_channels_in_vectors(const Primitive& convolution, const Properties& properties) {
  constexpr double fewest_operations = 2e8;
  constexpr std::int64_t large_window = 25;  // pixels
  if (!properties.has_warpgroups || convolution.inputs[0].access.dtype != DType::float32) return false;
  if (compile::operations_of(compile::Step(convolution)) < fewest_operations) return false;
  if (convolution.op == ops::Op::convolution_weight) return true;
  const auto& stride = attribute<ops::Window>(convolution).stride;
  const Shape& weight = convolution.inputs[1].sizes;
  return convolution.op == ops::Op::convolution &&
         ((stride[0] == 1 && stride[1] == 1) || weight[2] * weight[3] >= large_window);
}

}  // namespace russet::gpu
