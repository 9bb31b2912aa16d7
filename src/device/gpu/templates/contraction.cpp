// Launches of matrix products and convolutions.
#include "device/gpu/templates/contraction.h"

#include <algorithm>

#include "device/gpu/emitter/emit.h"
#include "device/gpu/templates/epilogue.h"
#include "device/gpu/templates/prologue.h"
#include "device/gpu/templates/templates.h"
#include "device/gpu/templates/text.h"
#include "device/gpu/templates/tiles.h"

namespace russet::gpu {
namespace {

using compile::Primitive;

constexpr std::int64_t slice = 16;      // of the depth: parts of it are multiples
constexpr std::int64_t part_rows = 32;  // of a column, whose sum tiles leave: see visit_columns() of tile.metal
constexpr std::uint32_t tile_threads = 128;
constexpr int max_batch_axes = 6;
constexpr std::int64_t least_side = 8;  // of a result that tiles are worth it for

/// How the work is shared out. The parts of the depth come from shapes alone, so that results never depend on the
/// device or on the tile.
struct Division {
  Tile tile;  // no rows: an element a thread
  std::int64_t splits = 1, chunk = 0;

  bool tiled() const { return tile.rows > 0; }
};

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

/// Whether the epilogue adds up columns.
bool sums_rows(const Primitive& primitive) {
  return !primitive.epilogue.code.empty() && primitive.epilogue.kind != compile::Group::Kind::elementwise;
}

/// Everything that the launches of a contraction have in common.
class Writer {
 public:
  Writer(const Primitive& primitive, const GpuContext& context)
      : primitive_(primitive),
        context_(context),
        c_(describe_contraction(primitive)),
        left_(place(input(c_.left_input), false)),
        right_(place(input(c_.right_input), false)),
        result_(place(primitive.output, true)),
        left_source_(source_of(primitive, c_.left_input, "left", offset_type(), 0)),
        right_source_(source_of(primitive, c_.right_input, "right", offset_type(), left_source_.regions.size())) {}

  /// Takes the tile from the table, or from the adviser if there is one.
  KernelPtr tiled() const {
    Division division = divide_tiles(c_);
    const TileProblem problem{c_.rows, c_.columns, c_.depth, c_.batches(), division.splits, division.chunk};
    const Properties& gpu = context_.properties;
    division.tile = preferred_tile(gpu.family, problem);
    if (context_.tiles == nullptr) return make(division);
    const auto with = [&](const Tile& tile) {
      Division other = division;
      other.tile = tile;
      return make(other);
    };
    const std::vector<Tile> candidates = candidate_tiles(gpu.family, gpu.group_memory, problem);
    const Tile advised = context_.tiles->advise({candidates, [this] { return key(); }, with});
    if (advised.rows == 0) return make(division);
    division.tile = advised;
    return make(division, ", tuned");
  }
  KernelPtr direct() const { return make(divide_elements(c_)); }

 private:
  const compile::Operand& input(int i) const { return primitive_.inputs[static_cast<std::size_t>(i)]; }
  DType type() const { return primitive_.inputs[0].access.dtype; }
  DType result_type() const { return primitive_.output.access.dtype; }

  std::size_t source_bindings() const { return left_source_.regions.size() + right_source_.regions.size(); }

  /// `origin` is a part of the kernel's name.
  KernelPtr make(const Division& division, std::string_view origin = "") const {
    const std::string tiles = fmt::format("tiles {}{}", to_string(division.tile), origin);
    if (const auto sums = epilogue_sums(primitive_, divide_up(c_.rows, part_rows), c_.columns)) {
      return make(division, *sums, tiles);
    }
    const bool splits = division.splits > 1;
    const std::int64_t elements = c_.batches() * c_.rows * c_.columns;
    const std::size_t sum_bytes = is_floating(type()) ? 4 : 8;
    const std::size_t scratch = splits ? static_cast<std::size_t>(division.splits * elements) * sum_bytes : 0;
    std::vector<Call> calls;
    const Region partials = scratch_region(0, scratch, true);
    const VisitorText first = splits ? partial_visitor(partials) : result_visitor(source_bindings(), division.tiled());
    calls.push_back(division.tiled() ? tile_call(division, first) : element_call(division, first));
    if (splits) {
      Region sums = partials;
      sums.writes = false;
      calls.push_back(sum_call(division, sums));
    }
    std::string name = division.tiled() ? tiles : "elements";
    if (splits) name += fmt::format(", depth in {} parts", division.splits);
    return std::make_unique<GpuKernel>(context_, std::move(name), std::move(calls), scratch);
  }

  /// The first launch stores partial sums of the epilogue's columns, the second one adds them up.
  KernelPtr make(const Division& division, const EpilogueSums& sums, std::string name) const {
    std::vector<Call> calls;
    calls.push_back(tile_call(division, epilogue_visitor(primitive_, source_bindings(), &sums)));
    calls.push_back(epilogue_results(primitive_, sums, context_));
    return std::make_unique<GpuKernel>(context_, std::move(name), std::move(calls), sums.parts_bytes());
  }

  /// Elements of every operand within 2^31: offsets fit an int.
  std::string_view offset_type() const {
    for (const Placed* placed : {&left_, &right_, &result_}) {
      if (placed->region.bytes >= (std::size_t{1} << 31)) return "long";
    }
    return "int";
  }

  /// `exact`: which axes are flat is part of the text. Otherwise, for what a thread does once, it is one text where all
  /// are, and one for the rest.
  std::string side(const SourceText& source, const ContractionAxis& line, const ContractionAxis& step, WindowSide which,
                   bool exact) const {
    const bool divided = c_.divisors[0] != 1 || c_.divisors[1] != 1;
    const char* window = c_.window != which ? "no_window" : divided ? "divided_window" : "plain_window";
    return fmt::format("Side<{}, {}, {}, {}, {}>", source.type, offset_type(), exact ? line.splits : any_splits(),
                       step.splits, window);
  }
  std::string left_side(bool exact) const {
    return side(left_source_, c_.left_line, c_.left_step, WindowSide::left, exact);
  }
  std::string right_side(bool exact) const {
    return side(right_source_, c_.right_line, c_.right_step, WindowSide::right, exact);
  }
  bool any_splits() const {
    const bool factors = c_.left_line.splits || c_.left_step.splits || c_.right_line.splits || c_.right_step.splits;
    return factors || c_.row.splits || c_.column.splits || c_.window != WindowSide::none;
  }

  /// Stores the result, or runs the epilogue on it. Its bindings follow `first` others.
  VisitorText result_visitor(std::size_t first, bool exact) const {
    if (!primitive_.epilogue.code.empty()) return epilogue_visitor(primitive_, first);
    return plain_visitor(fmt::format("StoreVisitor<{}, {}, {}, {}>", element_type(result_type()), offset_type(),
                                     exact ? c_.row.splits : any_splits(), exact ? c_.column.splits : any_splits()),
                         element_type(result_type()), result_.region);
  }
  VisitorText partial_visitor(const Region& partials) const {
    return plain_visitor(fmt::format("PartialVisitor<{}>", sum_type(type())), sum_type(type()), partials);
  }
  static VisitorText plain_visitor(std::string type, std::string_view stored, const Region& region) {
    VisitorText visitor;
    visitor.type = std::move(type);
    visitor.values_type = "ContractionValues";
    visitor.bind(stored, "result", "result", region);
    return visitor;
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
      if (!primitive_.prologues[static_cast<std::size_t>(which)].code.empty()) text += " prologue";
      return text;
    };
    const char* const epilogue = primitive_.epilogue.code.empty() ? ""
                                 : sums_rows(primitive_)          ? ", sums"
                                                                  : ", epilogue";
    return fmt::format("{} {} to {}, {}x{}x{} of {}, left{}, right{}{}", ops::row(primitive_.op).name, name_of(type()),
                       name_of(result_type()), c_.rows, c_.columns, c_.depth, c_.batches(),
                       describe(c_.left_input, c_.left_line, c_.left_step, WindowSide::left),
                       describe(c_.right_input, c_.right_line, c_.right_step, WindowSide::right), epilogue);
  }

  bool has_prologue() const { return compile::has_prologue(primitive_); }
  /// The contraction's own values among those of the kernel of the factors.
  std::string product_of(const VisitorText& visitor) const {
    constexpr std::string_view all = "values";
    return has_prologue() ? "values.rest" + visitor.product.substr(all.size()) : visitor.product;
  }

  /// A kernel that multiplies factors and gives elements to the visitor.
  Call product_call(std::string stem, std::uint32_t threads, const VisitorText& visitor, std::string_view body,
                    const Division& division, std::int64_t groups) const {
    Piece piece;
    piece.stem = std::move(stem);
    piece.threads = threads;
    add_source(piece, left_source_);
    add_source(piece, right_source_);
    add_visitor(piece, visitor, has_prologue() ? "values.rest" : "values");
    piece.body += body;
    if (division.tiled()) {
      const Tile& tile = division.tile;
      piece.arrays.push_back(
          {"float", "memory", fmt::format("(TileMemory<{}, {}, {}>::count)", tile.rows, tile.columns, tile.depth)});
    }
    std::vector<Region> regions = left_source_.regions;
    regions.insert(regions.end(), right_source_.regions.begin(), right_source_.regions.end());
    Values all = values_with(visitor, division);
    if (has_prologue()) add_source_values(piece, all, {&left_source_, &right_source_});
    return call(std::move(piece), std::move(regions), visitor, std::move(all), groups);
  }

  Values values_with(const VisitorText& visitor, const Division& division) const {
    Values all = values(division);
    all.append(visitor.values);
    return all;
  }

  Call call(Piece piece, std::vector<Region> inputs, const VisitorText& visitor, Values all,
            std::int64_t groups) const {
    piece.files.emplace_back("contraction.metal");
    inputs.insert(inputs.end(), visitor.regions.begin(), visitor.regions.end());
    return make_call(std::move(piece), {grid_size(groups), 1, 1}, std::move(inputs), std::move(all), context_);
  }

  std::int64_t row_tiles(const Division& division) const {
    return division.tiled() ? divide_up(c_.rows, division.tile.rows) : 0;
  }
  std::int64_t column_tiles(const Division& division) const {
    return division.tiled() ? divide_up(c_.columns, division.tile.columns) : 0;
  }

  Call tile_call(const Division& division, const VisitorText& visitor) const {
    const std::string body = fmt::format(
        R"(  TileThread self;
  self.thread_id = thread_id;
  self.lane_id = lane_id;
  self.simdgroup_id = simdgroup_id;
  tiled_product<{}, {}, {}, {}, {}, {}, {}, {}>(left_source, right_source, visitor, {}, memory, group_id.x, self);
)",
        left_side(true), right_side(true), visitor.type, division.tile.rows, division.tile.columns, division.tile.depth,
        along_depth(c_.left_line, c_.left_step), along_depth(c_.right_line, c_.right_step), product_of(visitor));
    return product_call(std::string(ops::row(primitive_.op).name), tile_threads, visitor, body, division,
                        c_.batches() * division.splits * row_tiles(division) * column_tiles(division));
  }

  Call element_call(const Division& division, const VisitorText& visitor) const {
    const std::string body = fmt::format(
        "  direct_product<{}, {}>(left_source, right_source, visitor, {}, ulong(group_id.x) * 256u + thread_id);\n",
        left_side(false), right_side(false), product_of(visitor));
    return product_call("product_elements", 256, visitor, body, division,
                        groups_for(c_.batches() * division.splits * c_.rows * c_.columns));
  }

  Call sum_call(const Division& division, const Region& partials) const {
    const VisitorText visitor = result_visitor(1, false);
    Piece piece;
    piece.stem = "product_sum";
    piece.threads = 256;
    piece.arguments.push_back({std::string(sum_type(type())), "partials", false});
    add_visitor(piece, visitor);
    piece.body +=
        fmt::format("  add_partials(partials, visitor, {}, ulong(group_id.x) * 256u + thread_id);\n", visitor.product);
    return call(std::move(piece), {partials}, visitor, values_with(visitor, division),
                groups_for(c_.batches() * c_.rows * c_.columns));
  }

  static void add_axis(Values& values, const ContractionAxis& axis) {
    for (const std::int64_t stride : axis.strides) values.add(stride);
    for (const std::int64_t size : axis.sizes) values.add(static_cast<std::uint32_t>(std::max<std::int64_t>(size, 1)));
    for (const std::int64_t stride : axis.y_strides) values.add(static_cast<std::int32_t>(stride));
    for (const std::int64_t stride : axis.x_strides) values.add(static_cast<std::int32_t>(stride));
    values.add(static_cast<std::int32_t>(axis.y_start));
    values.add(static_cast<std::int32_t>(axis.x_start));
  }

  /// ContractionValues of contraction.metal.
  Values values(const Division& division) const {
    Values values;
    values.add(source_start(input(c_.left_input)));
    values.add(source_start(input(c_.right_input)));
    values.add(result_.first);
    const int rank = c_.batch.rank();
    for (const Strides* strides : {&c_.left_batch, &c_.right_batch, &c_.result_batch}) {
      for (int axis = 0; axis < max_batch_axes; ++axis) values.add(axis < rank ? (*strides)[axis] : std::int64_t{0});
    }
    values.add(c_.y_stride);
    values.add(c_.x_stride);
    for (const ContractionAxis* axis :
         {&c_.left_line, &c_.left_step, &c_.right_line, &c_.right_step, &c_.row, &c_.column}) {
      add_axis(values, *axis);
    }
    const auto add = [&](std::int64_t number) { values.add(static_cast<std::uint32_t>(number)); };
    for (int axis = 0; axis < max_batch_axes; ++axis) add(axis < rank ? c_.batch[axis] : 1);
    add(rank);
    add(c_.batches());
    add(c_.rows);
    add(c_.columns);
    add(c_.depth);
    add(division.splits);
    add(division.chunk);
    add(row_tiles(division));
    add(column_tiles(division));
    add(c_.channels_last_batch ? 1 : 0);
    add(c_.height);
    add(c_.width);
    add(c_.divisors[0]);
    add(c_.divisors[1]);
    return values;
  }

  const Primitive& primitive_;
  const GpuContext& context_;
  Contraction c_;
  Placed left_, right_, result_;
  SourceText left_source_, right_source_;
};

/// Why no kernel of ours takes the contraction; empty if one does.
std::string why_not(const Primitive& primitive) {
  if (std::string reason = why_no_type(primitive); !reason.empty()) return reason;
  if (std::string reason = why_no_prologue(primitive); !reason.empty()) return reason;
  if (std::string reason = why_no_epilogue(primitive); !reason.empty()) return reason;
  const DType type = primitive.inputs[0].access.dtype;
  if (primitive.inputs[1].access.dtype != type) return "factors of two types";
  if (primitive.epilogue.code.empty() && is_floating(type) != is_floating(primitive.output.access.dtype))
    return "a result of another kind of type";
  constexpr std::int64_t limit = std::int64_t{1} << 31;
  const Contraction c = describe_contraction(primitive);
  if (c.rows >= limit || c.columns >= limit || c.depth >= limit - slice || c.batches() >= limit) {
    return "an index beyond 2^31";
  }
  return "";
}

bool has_storing_prologue(const Primitive& primitive) {
  return std::any_of(primitive.prologues.begin(), primitive.prologues.end(), compile::is_storing);
}

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
  if (std::string reason = why_not(primitive); !reason.empty()) return decline(reason);
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
  if (std::string reason = why_not(primitive); !reason.empty()) return decline(reason);
  if (sums_rows(primitive)) return decline("tiles alone add up what they hold");
  if (has_storing_prologue(primitive)) return decline("tiles alone know which of them stores what they read");
  return accept([&primitive, &context] { return Writer(primitive, context).direct(); });
}

}  // namespace russet::gpu
