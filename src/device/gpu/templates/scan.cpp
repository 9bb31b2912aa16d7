// Launches of running sums and products.
#include "device/gpu/templates/templates.h"
#include "device/gpu/templates/text.h"

namespace russet::gpu {
namespace {

using compile::Primitive;

/// Many short lines, or lines side by side in memory: a line a thread.
bool line_a_thread(const OrderedLines& lines) {
  return lines.length <= 32 || (lines.count >= 1024 && (lines.length <= 256 || lines.stride != 1));
}

KernelPtr make_scan(const Primitive& primitive, const GpuContext& context) {
  const OrderedLines lines = ordered_lines(primitive);
  const bool by_thread = line_a_thread(lines);
  const DType type = primitive.output.access.dtype;
  const std::string from(element_type(primitive.inputs[0].access.dtype));
  const std::string to(element_type(type));
  const std::string_view kind = primitive.op == ops::Op::cumprod ? "Products" : "Sums";
  Piece piece;
  piece.stem = by_thread ? "scan_lines" : "scan_line";
  piece.threads = 256;
  piece.files = {"scan.metal"};
  piece.arguments = {{from, "x"}, {to, "result", true}};
  piece.values_type = "ScanValues";
  piece.values_are_wide = true;
  piece.shares = false;
  if (by_thread) {
    piece.body = fmt::format("  scan_lines<{}>(x, result, values, ulong(group_id.x) * 256u + thread_id);\n", kind);
  } else {
    piece.arrays = {{std::string(sum_type(type)), "totals", "256"}};
    piece.body = fmt::format("  scan_line<{}, {}, {}, 256>(x, result, values, totals, group_id.x, thread_id);\n", kind,
                             from, to);
  }
  Values values;
  lines.from.add_to(values);
  lines.to.add_to(values);
  values.add(lines.stride);
  values.add(lines.result_stride);
  values.add(static_cast<std::uint64_t>(lines.count));
  values.add(static_cast<std::uint32_t>(lines.length));
  values.add(std::uint32_t{0});
  const std::uint32_t groups = lines.length == 0 ? 0 : by_thread ? groups_for(lines.count) : grid_size(lines.count);
  std::vector<Call> calls;
  calls.push_back(make_call(std::move(piece), {groups, 1, 1},
                            {place(primitive.inputs[0], false).region, place(primitive.output, true).region},
                            std::move(values), context));
  return std::make_unique<GpuKernel>(context, by_thread ? "scan: a line a thread" : "scan: a line a threadgroup",
                                     std::move(calls));
}

}  // namespace

Verdict judge_scan(const Primitive& primitive, const GpuContext& context) {
  if (std::string reason = why_no_type(primitive); !reason.empty()) return decline(reason);
  if (ordered_lines(primitive).length >= std::int64_t{1} << 31) return decline("lines beyond 2^31 elements");
  return accept([&primitive, &context] { return make_scan(primitive, context); });
}

}  // namespace russet::gpu
