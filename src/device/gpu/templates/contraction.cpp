// Launches of matrix products and convolutions by tiles, and by elements.
#include <algorithm>

#include "device/gpu/emitter/emit.h"
#include "device/gpu/templates/contraction_writer.h"
#include "device/gpu/templates/templates.h"
#include "device/gpu/templates/text.h"
#include "device/gpu/templates/tiles.h"

namespace russet::gpu {
namespace {

using compile::Primitive;

constexpr std::int64_t slice = 16;      // of the depth: parts of it are multiples
constexpr std::int64_t part_rows = 32;  // of a column, whose sum tiles leave: see visit_columns() of tile.metal
constexpr std::uint32_t tile_threads = 128;
constexpr std::int64_t least_side = 8;  // of a result that tiles are worth it for

/// Splits the depth so that about `wanted` pieces of work exist, each at least `least` deep.
void split_depth(Division& division, std::int64_t depth, std::int64_t pieces, std::int64_t wanted, std::int64_t least) {
  if (pieces > 0 && pieces < wanted) {
    division.splits = std::clamp<std::int64_t>(depth / least, 1, divide_up(wanted, pieces));
  }
  division.chunk = std::max<std::int64_t>(divide_up(divide_up(depth, division.splits), slice) * slice, slice);
  division.splits = std::max<std::int64_t>(divide_up(depth, division.chunk), 1);
}

Division divide_tiles(const Contraction& c) {
  Division division;
  split_depth(division, c.depth, divide_up(c.rows, 32) * divide_up(c.columns, 32) * c.batches(), 256, 256);
  return division;
}

Division divide_elements(const Contraction& c) {
  Division division;
  split_depth(division, c.depth, c.rows * c.columns * c.batches(), 16384, 128);
  return division;
}

class Writer {
 public:
  Writer(const Primitive& primitive, const GpuContext& context)
      : shared_(primitive, context, describe_contraction(primitive)) {}

  /// Takes the tile from the table, or from the adviser if there is one.
  KernelPtr tiled() const {
    const Division division = divide_tiles(c_);
    const TileProblem problem{c_.rows, c_.columns, c_.depth, c_.batches(), division.splits, division.chunk};
    const Properties& gpu = shared_.context().properties;
    const Tile preferred = preferred_tile(gpu.family, problem);
    if (shared_.context().tiles == nullptr) return make(division, preferred);
    const std::vector<Tile> candidates = candidate_tiles(gpu.family, gpu.group_memory, problem);
    const auto with = [&](const Tile& tile) { return make(division, tile); };
    const Tile advised = shared_.context().tiles->advise({candidates, [this] { return key(); }, with});
    if (advised.rows == 0) return make(division, preferred);
    return make(division, advised, ", tuned");
  }

  KernelPtr direct() const {
    const Division division = divide_elements(c_);
    return finish("elements", division, shared_.calls(division, false, [&](const VisitorText& visitor) {
      return element_call(division, visitor);
    }));
  }

 private:
  const Primitive& primitive() const { return shared_.primitive(); }

  /// `origin` is a part of the kernel's name.
  KernelPtr make(Division division, const Tile& tile, std::string_view origin = "") const {
    division.row_tiles = divide_up(c_.rows, tile.rows);
    division.column_tiles = divide_up(c_.columns, tile.columns);
    std::string name = fmt::format("tiles {}{}", to_string(tile), origin);
    if (const auto sums = epilogue_sums(primitive(), divide_up(c_.rows, part_rows), c_.columns)) {
      return make(division, tile, *sums, std::move(name));
    }
    return finish(std::move(name), division, shared_.calls(division, true, [&](const VisitorText& visitor) {
      return tile_call(division, tile, visitor);
    }));
  }

  /// The first launch stores partial sums of the epilogue's columns, the second one adds them up.
  KernelPtr make(const Division& division, const Tile& tile, const EpilogueSums& sums, std::string name) const {
    std::vector<Call> calls;
    calls.push_back(tile_call(division, tile, epilogue_visitor(primitive(), shared_.source_bindings(), &sums)));
    calls.push_back(epilogue_results(primitive(), sums, shared_.context()));
    return std::make_unique<GpuKernel>(shared_.context(), std::move(name), std::move(calls), sums.parts_bytes());
  }

  KernelPtr finish(std::string name, const Division& division, std::vector<Call> calls) const {
    if (division.splits > 1) name += fmt::format(", depth in {} parts", division.splits);
    return std::make_unique<GpuKernel>(shared_.context(), std::move(name), std::move(calls),
                                       shared_.partial_bytes(division));
  }

  /// Whether neighbouring threads should read along the depth.
  static bool along_depth(const ContractionAxis& line, const ContractionAxis& step) {
    return std::abs(step.strides[2]) <= std::abs(line.strides[2]);
  }

  /// What the speed of a tile depends on: the operator, its sizes, how each side reads, and what is spliced in.
  std::string key() const {
    const auto describe = [&](int which, const ContractionAxis& line, const ContractionAxis& step, WindowSide side) {
      std::string text = along_depth(line, step) ? " along" : " across";
      if (line.splits) text += " split-lines";
      if (step.splits) text += " split-steps";
      if (c_.window == side) text += c_.divisors[0] != 1 || c_.divisors[1] != 1 ? " divided-window" : " window";
      if (!primitive().prologues[static_cast<std::size_t>(which)].code.empty()) text += " prologue";
      return text;
    };
    const char* const epilogue = primitive().epilogue.code.empty() ? ""
                                 : sums_rows(primitive())          ? ", sums"
                                                                   : ", epilogue";
    return fmt::format("{} {} to {}, {}x{}x{} of {}, left{}, right{}{}", ops::row(primitive().op).name,
                       name_of(shared_.type()), name_of(primitive().output.access.dtype), c_.rows, c_.columns, c_.depth,
                       c_.batches(), describe(c_.left_input, c_.left_line, c_.left_step, WindowSide::left),
                       describe(c_.right_input, c_.right_line, c_.right_step, WindowSide::right), epilogue);
  }

  Call tile_call(const Division& division, const Tile& tile, const VisitorText& visitor) const {
    const std::string body = fmt::format(
        "{}  tiled_product<{}, {}, {}, {}, {}, {}, {}, {}>(left_source, right_source, visitor, {}, memory, group_id.x, "
        "self);\n",
        own_thread, shared_.left_side(true), shared_.right_side(true), visitor.type, tile.rows, tile.columns,
        tile.depth, along_depth(c_.left_line, c_.left_step), along_depth(c_.right_line, c_.right_step),
        shared_.product_of(visitor));
    const Piece::Array memory{"float", "memory",
                              fmt::format("(TileMemory<{}, {}, {}>::count)", tile.rows, tile.columns, tile.depth)};
    const std::int64_t groups = c_.batches() * division.splits * division.row_tiles * division.column_tiles;
    return shared_.product_call({std::string(ops::row(primitive().op).name), tile_threads, body, {memory}, groups},
                                visitor, division);
  }

  Call element_call(const Division& division, const VisitorText& visitor) const {
    const std::string body = fmt::format(
        "  direct_product<{}, {}>(left_source, right_source, visitor, {}, ulong(group_id.x) * 256u + thread_id);\n",
        shared_.left_side(false), shared_.right_side(false), shared_.product_of(visitor));
    const std::int64_t groups = groups_for(c_.batches() * division.splits * c_.rows * c_.columns);
    return shared_.product_call({"product_elements", 256, body, {}, groups}, visitor, division);
  }

  ContractionWriter shared_;
  const Contraction& c_ = shared_.contraction();
};

/// Why a contraction cannot store the arrays of its prologues: it must read each element, and no tile one twice. Empty
/// if it can, or need not.
std::string why_no_storing(const Primitive& primitive, const Contraction& c) {
  for (int i = 0; i < 2; ++i) {
    const compile::Group& prologue = primitive.prologues[static_cast<std::size_t>(i)];
    if (!compile::is_storing(prologue)) continue;
    if (const auto* window = std::get_if<ops::Window>(&primitive.attributes)) {
      const std::array<std::int32_t, 2> ones{1, 1};
      const std::array<std::int32_t, 2> zeros{0, 0};
      if (window->kernel != ones || window->stride != ones || window->padding != zeros ||
          window->padding_after != zeros) {
        return "elements that windows share, or leave out";
      }
    }
    const std::int64_t read = c.batches() * (i == c.left_input ? c.rows : c.columns) * c.depth;
    if (read != numel(prologue.space)) return "elements that batches share, or leave out";
  }
  return "";
}

/// Why tiles cannot add up their columns for the epilogue; empty if they can, or if there is nothing to add up.
std::string why_no_sums(const Primitive& primitive, const Contraction& c) {
  if (!sums_rows(primitive)) return "";
  const Shape& space = primitive.epilogue.space;
  // The columns of a weight's gradient are taps, not channels alone.
  if (c.batches() > 1 || c.columns != space[space.rank() - 1]) return "sums that are not those of columns";
  if (divide_tiles(c).splits > 1) return "sums of results that come in parts";
  return "";
}

}  // namespace

Verdict judge_tiles(const Primitive& primitive, const GpuContext& context) {
  if (std::string reason = why_no_contraction(primitive); !reason.empty()) return decline(reason);
  if (!is_floating(primitive.inputs[0].access.dtype)) return decline("the matrices of simdgroups are floating");
  const Contraction c = describe_contraction(primitive);
  if (std::string reason = why_no_sums(primitive, c); !reason.empty()) return decline(reason);
  if (std::string reason = why_no_storing(primitive, c); !reason.empty()) return decline(reason);
  if (c.rows < least_side || c.columns < least_side) {
    return decline(fmt::format("{} x {} results a group leave tiles empty", c.rows, c.columns));
  }
  return accept([&primitive, &context] { return Writer(primitive, context).tiled(); });
}

Verdict judge_elements(const Primitive& primitive, const GpuContext& context) {
  if (std::string reason = why_no_contraction(primitive); !reason.empty()) return decline(reason);
  if (std::string reason = why_only_tiles(primitive); !reason.empty()) return decline(reason);
  return accept([&primitive, &context] { return Writer(primitive, context).direct(); });
}

}  // namespace russet::gpu
