// Launches of running sums.
#include "device/gpu/templates/templates.h"
#include "device/gpu/templates/text.h"

namespace russet::gpu {
namespace {

using compile::Primitive;

/// Many short lines, or lines side by side in memory: a line a thread.
bool line_a_thread(const OrderedLines& lines) {
  return lines.length <= 32 || (lines.count >= 1024 && (lines.length <= 256 || lines.stride != 1));
}

KernelPtr make_scan(const Primitive& primitive, const Context& context) {
  const OrderedLines lines = ordered_lines(primitive);
  const bool by_thread = line_a_thread(lines);
  const DType type = primitive.output.access.dtype;
  Source source;
  source.stem = by_thread ? "scan_lines" : "scan_line";
  source.threads = 256;
  source.files = {"scan.metal"};
  const std::string body =
      by_thread ? "  scan_lines(x, result, values, ulong(group_id.x) * 256u + thread_id);\n"
                : fmt::format(
                      "  GROUP_MEMORY({}, totals, 256);\n  scan_line<{}, {}, 256>(x, result, "
                      "values, totals, group_id.x, thread_id);\n",
                      sum_type(type), element_type(primitive.inputs[0].access.dtype), element_type(type));
  source.text = fmt::format("KERNEL(@, 256, IN({}, x, 0), OUT({}, result, 1), VALUES(ScanValues, values, 2)) {{\n{}}}",
                            element_type(primitive.inputs[0].access.dtype), element_type(type), body);
  Call call;
  call.function = context.library.add(std::move(source));
  call.regions = {place(primitive.inputs[0], false).region, place(primitive.output, true).region};
  lines.from.add_to(call.values);
  lines.to.add_to(call.values);
  call.values.add(lines.stride);
  call.values.add(lines.result_stride);
  call.values.add(static_cast<std::uint64_t>(lines.count));
  call.values.add(static_cast<std::uint32_t>(lines.length));
  call.values.add(std::uint32_t{0});
  call.groups[0] = lines.length == 0 ? 0 : by_thread ? groups_for(lines.count) : grid_size(lines.count);
  std::vector<Call> calls;
  calls.push_back(std::move(call));
  return std::make_unique<GpuKernel>(context, by_thread ? "scan: a line a thread" : "scan: a line a threadgroup",
                                     std::move(calls));
}

}  // namespace

Verdict judge_scan(const Primitive& primitive, const Context& context) {
  if (std::string reason = why_no_type(primitive); !reason.empty()) return decline(reason);
  if (ordered_lines(primitive).length >= std::int64_t{1} << 31) return decline("lines beyond 2^31 elements");
  return accept([&primitive, &context] { return make_scan(primitive, context); });
}

}  // namespace russet::gpu
