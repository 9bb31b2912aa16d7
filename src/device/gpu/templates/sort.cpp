// Launches of sorting: blocks in threadgroup memory, then merges of pairs.
#include "device/gpu/templates/sort.h"

#include <bit>

#include "device/gpu/templates/templates.h"

namespace russet::gpu {
namespace {

using compile::Primitive;

std::int64_t block_threads(const SortLines& lines) { return lines.length <= 64 ? 32 : 256; }
std::int64_t block_count(const SortLines& lines) {
  const std::int64_t block = 2 * block_threads(lines);
  return (lines.length + block - 1) / block;
}
std::int64_t wanted(const SortLines& lines) { return lines.first == 0 ? lines.length : lines.first; }
std::size_t order_bytes(const SortLines& lines) {
  return static_cast<std::size_t>(lines.line_count * lines.length) * sizeof(std::uint32_t);
}
int merge_count(const SortLines& lines) {
  return std::bit_width(static_cast<std::uint64_t>(std::max<std::int64_t>(block_count(lines), 1)) - 1);
}

/// Where a pass writes: an order [line, length] in scratch memory, or the result.
struct Target {
  Region region;
  StridedAxes lines;
  std::int64_t stride = 1;
  std::string_view type;
};

Target scratch_target(const SortLines& lines, std::size_t offset) {
  Target target;
  target.region = scratch_region(offset, order_bytes(lines), true);
  if (lines.line_count > 1) {
    target.lines.sizes.push_back(lines.line_count);
    target.lines.strides.push_back(lines.length);
  }
  target.type = "uint";
  return target;
}

Values values_of(const SortLines& lines, const Target& target, std::int64_t width) {
  Values values;
  lines.lines.add_to(values);
  target.lines.add_to(values);
  values.add(lines.stride);
  values.add(target.stride);
  values.add(static_cast<std::uint64_t>(lines.line_count));
  values.add(static_cast<std::uint32_t>(lines.length));
  values.add(static_cast<std::uint32_t>(width));
  values.add(static_cast<std::uint32_t>(block_count(lines)));
  values.add(static_cast<std::uint32_t>(wanted(lines)));
  values.add(std::uint32_t{lines.descending ? 1U : 0U});
  values.add(std::uint32_t{0});
  return values;
}

/// A piece that reads `arguments` and writes the result.
Piece piece_of(std::string stem, std::uint32_t threads, std::vector<Piece::Argument> arguments, const Target& target) {
  Piece piece;
  piece.stem = std::move(stem);
  piece.threads = threads;
  piece.arguments = std::move(arguments);
  piece.arguments.push_back({std::string(target.type), "result", true});
  piece.values_type = "SortValues";
  piece.values_are_wide = true;
  piece.files = {"sort.metal"};
  piece.shares = false;
  return piece;
}

Call block_call(const SortLines& lines, const Target& target, const GpuContext& context) {
  const std::int64_t threads = block_threads(lines);
  const std::string type(element_type(lines.type));
  const std::string length = std::to_string(2 * threads);
  Piece piece = piece_of("sort_block", static_cast<std::uint32_t>(threads), {{type, "x"}}, target);
  piece.arrays = {{std::string(key_type(lines.type)), "keys", length}, {"uint", "positions", length}};
  piece.body = fmt::format("  sort_block<{}, {}, {}>(x, result, values, keys, positions, group_id.x, thread_id);\n",
                           type, target.type, threads);
  return make_call(std::move(piece), {grid_size(lines.line_count * block_count(lines)), 1, 1},
                   {lines.from, target.region}, values_of(lines, target, 0), context);
}

Call merge_call(const SortLines& lines, Region order, const Target& target, std::int64_t width,
                const GpuContext& context) {
  const std::string type(element_type(lines.type));
  Piece piece = piece_of("merge_blocks", 256, {{type, "x"}, {"uint", "order"}}, target);
  piece.body = fmt::format("  merge_blocks<{}, {}>(x, order, result, values, ulong(group_id.x) * 256u + thread_id);\n",
                           type, target.type);
  order.writes = false;
  const std::int64_t blocks = (lines.length + width - 1) / width;
  const std::int64_t kept = std::min(width, wanted(lines));
  return make_call(std::move(piece), {groups_for(lines.line_count * blocks * kept), 1, 1},
                   {lines.from, order, target.region}, values_of(lines, target, width), context);
}

}  // namespace

std::size_t sort_scratch_bytes(const SortLines& lines) {
  return order_bytes(lines) * static_cast<std::size_t>(std::min(merge_count(lines), 2));
}

void add_sort(std::vector<Call>& calls, const SortLines& lines, std::size_t scratch, const GpuContext& context) {
  Target result;
  result.region = lines.to;
  result.lines = lines.result_lines;
  result.stride = lines.result_stride;
  result.type = lines.to_scratch ? "uint" : "long";
  const int merges = merge_count(lines);
  // Passes alternate between two arrays in scratch memory; the last one writes the result.
  const auto target = [&](int pass) {
    return pass == merges ? result
                          : scratch_target(lines, scratch + static_cast<std::size_t>(pass % 2) * order_bytes(lines));
  };
  calls.push_back(block_call(lines, target(0), context));
  std::int64_t width = 2 * block_threads(lines);
  for (int pass = 1; pass <= merges; ++pass, width *= 2) {
    calls.push_back(merge_call(lines, target(pass - 1).region, target(pass), width, context));
  }
}

Verdict judge_sort(const Primitive& primitive, const GpuContext& context) {
  if (std::string reason = why_no_type(primitive); !reason.empty()) return decline(reason);
  const OrderedLines ordered = ordered_lines(primitive);
  if (ordered.length >= std::int64_t{1} << 30) return decline("lines beyond 2^30 elements");
  return accept([&primitive, &context]() -> KernelPtr {
    const OrderedLines ordered = ordered_lines(primitive);
    SortLines lines;
    lines.type = primitive.inputs[0].access.dtype;
    lines.from = place(primitive.inputs[0], false).region;
    lines.lines = ordered.from;
    lines.stride = ordered.stride;
    lines.to = place(primitive.output, true).region;
    lines.result_lines = ordered.to;
    lines.result_stride = ordered.result_stride;
    lines.line_count = ordered.count;
    lines.length = ordered.length;
    lines.descending = attribute<ops::Axes>(primitive).descending;
    lines.first = attribute<ops::Axes>(primitive).first;
    std::vector<Call> calls;
    if (lines.length > 0) add_sort(calls, lines, 0, context);
    return std::make_unique<GpuKernel>(context, "sort", std::move(calls), sort_scratch_bytes(lines));
  });
}

}  // namespace russet::gpu
