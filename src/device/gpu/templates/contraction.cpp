// Launches of matrix products and convolutions.
#include "device/gpu/templates/contraction.h"

#include <algorithm>

#include "device/gpu/templates/templates.h"
#include "device/gpu/templates/text.h"

namespace russet::gpu {
namespace {

using compile::Primitive;

constexpr std::int64_t slice = 16;  // of the depth, in multiply_tile
constexpr int max_batch_axes = 6;
constexpr std::int64_t least_side = 8;  // of a result that tiles are worth it for

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// How the work is shared out: from shapes alone, so that results never depend on the device.
struct Division {
  std::int64_t tile = 0;  // rows and columns of a tile; 0 for an element a thread
  std::int64_t splits = 1, chunk = 0;
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
  const auto tiles = [&](std::int64_t side) {
    return divide_up(c.rows, side) * divide_up(c.columns, side) * c.batches();
  };
  split_depth(division, c.depth, tiles(32), 256, 256);
  const bool large = c.rows > 32 && c.columns > 32 && tiles(64) * division.splits >= 64;
  division.tile = large ? 64 : 32;
  return division;
}

Division divide_elements(const Contraction& c) {
  Division division;
  split_depth(division, c.depth, c.rows * c.columns * c.batches(), 16384, 128);
  return division;
}

/// Everything that the launches of a contraction have in common.
class Writer {
 public:
  Writer(const Primitive& primitive, const Context& context)
      : primitive_(primitive),
        context_(context),
        c_(describe_contraction(primitive)),
        left_(place(input(c_.left_input), false)),
        right_(place(input(c_.right_input), false)),
        result_(place(primitive.output, true)) {}

  KernelPtr tiled() const { return make(divide_tiles(c_)); }
  KernelPtr direct() const { return make(divide_elements(c_)); }

 private:
  const compile::Operand& input(int i) const { return primitive_.inputs[static_cast<std::size_t>(i)]; }
  DType type() const { return primitive_.inputs[0].access.dtype; }
  DType result_type() const { return primitive_.output.access.dtype; }

  KernelPtr make(const Division& division) const {
    const bool splits = division.splits > 1;
    const std::int64_t elements = c_.batches() * c_.rows * c_.columns;
    const std::size_t sum_bytes = is_floating(type()) ? 4 : 8;
    const std::size_t scratch = splits ? static_cast<std::size_t>(division.splits * elements) * sum_bytes : 0;
    std::vector<Call> calls;
    const Region partials = scratch_region(0, scratch, true);
    const Region to = splits ? partials : result_.region;
    const std::string visitor = splits ? fmt::format("PartialVisitor<{}>", sum_type(type())) : store_visitor();
    const std::string_view stored = splits ? sum_type(type()) : element_type(result_type());
    calls.push_back(division.tile > 0 ? tile_call(division, visitor, stored, to)
                                      : element_call(division, visitor, stored, to));
    if (splits) {
      Region sums = partials;
      sums.writes = false;
      calls.push_back(sum_call(division, sums));
    }
    std::string name = division.tile > 0 ? fmt::format("tiles {0}x{0}", division.tile) : std::string("elements");
    if (splits) name += fmt::format(", depth in {} parts", division.splits);
    return std::make_unique<GpuKernel>(context_, std::move(name), std::move(calls), scratch);
  }

  /// Elements of every operand within 2^31: offsets fit an int.
  std::string_view offset_type() const {
    for (const Placed* placed : {&left_, &right_, &result_}) {
      if (placed->region.bytes >= (std::size_t{1} << 31)) return "long";
    }
    return "int";
  }

  std::string side(const ContractionAxis& line, const ContractionAxis& step, WindowSide which) const {
    const bool divided = c_.divisors[0] != 1 || c_.divisors[1] != 1;
    const char* window = c_.window != which ? "no_window" : divided ? "divided_window" : "plain_window";
    return fmt::format("Side<{}, {}, {}, {}, {}>", element_type(type()), offset_type(), line.splits, step.splits,
                       window);
  }
  std::string left_side() const { return side(c_.left_line, c_.left_step, WindowSide::left); }
  std::string right_side() const { return side(c_.right_line, c_.right_step, WindowSide::right); }
  std::string store_visitor() const {
    return fmt::format("StoreVisitor<{}, {}, {}, {}>", element_type(result_type()), offset_type(), c_.row.splits,
                       c_.column.splits);
  }

  /// Whether neighbouring threads should read along the depth.
  static bool along_depth(const ContractionAxis& line, const ContractionAxis& step) {
    return std::abs(step.strides[2]) <= std::abs(line.strides[2]);
  }

  Call call(Source source, std::vector<Region> regions, const Division& division) const {
    Call call;
    source.files = {"contraction.metal"};
    call.function = context_.library.add(std::move(source));
    call.regions = std::move(regions);
    call.values = values(division);
    return call;
  }

  Call tile_call(const Division& division, const std::string& visitor, std::string_view stored, Region to) const {
    Source source;
    source.stem = std::string(ops::row(primitive_.op).name);
    source.threads = 128;
    source.text = fmt::format(
        R"(KERNEL(@, 128, IN({0}, left, 0), IN({0}, right, 1), OUT({1}, result, 2), VALUES(ContractionValues, values, 3)) {{
  GROUP_MEMORY(float, memory, (TileMemory<{2}, {2}, 16>::count));
  TileThread self;
  self.thread_id = thread_id;
  self.lane_id = lane_id;
  self.simdgroup_id = simdgroup_id;
  tiled_product<{3}, {4}, {5}, {2}, {2}, {6}, {7}>(left, right, result, values, memory, group_id.x, self);
}})",
        element_type(type()), stored, division.tile, left_side(), right_side(), visitor,
        along_depth(c_.left_line, c_.left_step), along_depth(c_.right_line, c_.right_step));
    Call made = call(std::move(source), {left_.region, right_.region, to}, division);
    made.groups[0] = grid_size(c_.batches() * division.splits * divide_up(c_.rows, division.tile) *
                               divide_up(c_.columns, division.tile));
    return made;
  }

  Call element_call(const Division& division, const std::string& visitor, std::string_view stored, Region to) const {
    Source source;
    source.stem = fmt::format("{}_elements", ops::row(primitive_.op).name);
    source.threads = 256;
    source.text = fmt::format(
        R"(KERNEL(@, 256, IN({0}, left, 0), IN({0}, right, 1), OUT({1}, result, 2), VALUES(ContractionValues, values, 3)) {{
  direct_product<{2}, {3}, {4}>(left, right, result, values, ulong(group_id.x) * 256u + thread_id);
}})",
        element_type(type()), stored, left_side(), right_side(), visitor);
    Call made = call(std::move(source), {left_.region, right_.region, to}, division);
    made.groups[0] = groups_for(c_.batches() * division.splits * c_.rows * c_.columns);
    return made;
  }

  Call sum_call(const Division& division, Region partials) const {
    Source source;
    source.stem = fmt::format("{}_sum", ops::row(primitive_.op).name);
    source.threads = 256;
    source.text = fmt::format(
        R"(KERNEL(@, 256, IN({0}, partials, 0), OUT({1}, result, 1), VALUES(ContractionValues, values, 2)) {{
  add_partials<{2}>(partials, result, values, ulong(group_id.x) * 256u + thread_id);
}})",
        sum_type(type()), element_type(result_type()), store_visitor());
    Call made = call(std::move(source), {partials, result_.region}, division);
    made.groups[0] = groups_for(c_.batches() * c_.rows * c_.columns);
    return made;
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
    for (const Placed* placed : {&left_, &right_, &result_}) values.add(placed->first);
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
    add(division.tile > 0 ? divide_up(c_.rows, division.tile) : 0);
    add(division.tile > 0 ? divide_up(c_.columns, division.tile) : 0);
    add(c_.channels_last_batch ? 1 : 0);
    add(c_.height);
    add(c_.width);
    add(c_.divisors[0]);
    add(c_.divisors[1]);
    return values;
  }

  const Primitive& primitive_;
  const Context& context_;
  Contraction c_;
  Placed left_, right_, result_;
};

/// Why no kernel of ours takes the contraction; empty if one does.
std::string why_not(const Primitive& primitive) {
  if (std::string reason = why_no_type(primitive); !reason.empty()) return reason;
  if (!primitive.epilogue.code.empty()) return "an epilogue";
  const DType type = primitive.inputs[0].access.dtype;
  if (primitive.inputs[1].access.dtype != type) return "factors of two types";
  if (is_floating(type) != is_floating(primitive.output.access.dtype)) return "a result of another kind of type";
  constexpr std::int64_t limit = std::int64_t{1} << 31;
  const Contraction c = describe_contraction(primitive);
  if (c.rows >= limit || c.columns >= limit || c.depth >= limit - slice || c.batches() >= limit) {
    return "an index beyond 2^31";
  }
  return "";
}

}  // namespace

Verdict judge_tiles(const Primitive& primitive, const Context& context) {
  if (std::string reason = why_not(primitive); !reason.empty()) return decline(reason);
  if (!is_floating(primitive.inputs[0].access.dtype)) return decline("the matrices of simdgroups are floating");
  const Contraction c = describe_contraction(primitive);
  if (c.rows < least_side || c.columns < least_side) {
    return decline(fmt::format("{} x {} results a group leave tiles empty", c.rows, c.columns));
  }
  return accept([&primitive, &context] { return Writer(primitive, context).tiled(); });
}

Verdict judge_elements(const Primitive& primitive, const Context& context) {
  if (std::string reason = why_not(primitive); !reason.empty()) return decline(reason);
  return accept([&primitive, &context] { return Writer(primitive, context).direct(); });
}

}  // namespace russet::gpu
