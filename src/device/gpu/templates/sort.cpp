// Launches of sorting: blocks in threadgroup memory, then merges of pairs.
#include "device/gpu/templates/sort.h"

#include <bit>

#include "device/gpu/templates/templates.h"

namespace russet::gpu {
namespace {

using compile::Operand;
using compile::Primitive;

std::int64_t block_threads(const SortLines& lines) { return lines.length <= 64 ? 32 : 256; }
std::int64_t block_count(const SortLines& lines) {
  const std::int64_t block = 2 * block_threads(lines);
  return (lines.length + block - 1) / block;
}
std::size_t order_bytes(const SortLines& lines) {
  return static_cast<std::size_t>(lines.line_count * lines.length) * sizeof(std::uint32_t);
}
int merge_count(const SortLines& lines) {
  return std::bit_width(static_cast<std::uint64_t>(std::max<std::int64_t>(block_count(lines), 1)) - 1);
}

/// Where a pass writes: an order [line, length] in scratch memory, or the result.
struct Target {
  Region region;
  AxisList lines;
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
  values.add(std::uint32_t{lines.descending ? 1U : 0U});
  return values;
}

Source source_of(std::string stem, std::string text, std::int64_t threads) {
  Source source;
  source.stem = std::move(stem);
  source.text = std::move(text);
  source.files = {"sort.metal"};
  source.threads = static_cast<std::uint32_t>(threads);
  return source;
}

Call block_call(const SortLines& lines, const Target& target, const Context& context) {
  const std::int64_t threads = block_threads(lines);
  Call call;
  call.function = context.library.add(
      source_of("sort_block",
                fmt::format(R"(KERNEL(@, {0}, IN({1}, x, 0), OUT({2}, result, 1), VALUES(SortValues, values, 2)) {{
  GROUP_MEMORY({3}, keys, {4});
  GROUP_MEMORY(uint, positions, {4});
  sort_block<{1}, {2}, {0}>(x, result, values, keys, positions, group_id.x, thread_id);
}})",
                            threads, element_type(lines.type), target.type, key_type(lines.type), 2 * threads),
                threads));
  call.regions = {lines.from, target.region};
  call.values = values_of(lines, target, 0);
  call.groups[0] = grid_size(lines.line_count * block_count(lines));
  return call;
}

Call merge_call(const SortLines& lines, Region order, const Target& target, std::int64_t width,
                const Context& context) {
  Call call;
  call.function = context.library.add(source_of(
      "merge_blocks",
      fmt::format(
          R"(KERNEL(@, 256, IN({0}, x, 0), IN(uint, order, 1), OUT({1}, result, 2), VALUES(SortValues, values, 3)) {{
  merge_blocks<{0}, {1}>(x, order, result, values, ulong(group_id.x) * 256u + thread_id);
}})",
          element_type(lines.type), target.type),
      256));
  order.writes = false;
  call.regions = {lines.from, order, target.region};
  call.values = values_of(lines, target, width);
  call.groups[0] = groups_for(lines.line_count * lines.length);
  return call;
}

}  // namespace

std::size_t sort_scratch_bytes(const SortLines& lines) {
  return order_bytes(lines) * static_cast<std::size_t>(std::min(merge_count(lines), 2));
}

void add_sort(std::vector<Call>& calls, const SortLines& lines, std::size_t scratch, const Context& context) {
  Target result;
  result.region = lines.to;
  result.lines = lines.result_lines;
  result.stride = lines.result_stride;
  result.type = lines.to_scratch ? "uint" : "long";
  const int merges = merge_count(lines);
  // The passes write in turns to two orders in scratch memory, the last one to the result.
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

Verdict judge_sort(const Primitive& primitive, const Context& context) {
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
    std::vector<Call> calls;
    if (lines.length > 0) add_sort(calls, lines, 0, context);
    return std::make_unique<GpuKernel>(context, "sort", std::move(calls), sort_scratch_bytes(lines));
  });
}

}  // namespace russet::gpu
