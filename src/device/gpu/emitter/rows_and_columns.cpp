// Row groups that add up columns, too: a threadgroup takes one row after the other, a vector of four a thread, which so
// meets the same columns again and again, whose sums its registers hold. What the next row needs is loaded before
// anything is computed for this one. Each threadgroup leaves a part of the sums; a second kernel adds up the parts, as
// those of column groups.
#include <algorithm>

#include "device/gpu/emitter/emit.h"
#include "device/gpu/emitter/group_parts.h"
#include "device/gpu/emitter/reductions.h"

namespace russet::gpu {
namespace {

using compile::Extent;
using compile::Group;
using compile::Instruction;
using Kind = Instruction::Kind;

constexpr int width = 4;

bool is_column_sum(const Instruction& in) { return in.kind == Kind::reduce && in.extent == Extent::column; }

class RowsAndColumnsEmitter {
 public:
  RowsAndColumnsEmitter(const Group& group, const GpuContext& context)
      : whole_(group), context_(context), group_(rows_of(group)), phases_(make_phases(group_, true)) {
    for (int axis = 0; axis < group_.space.rank(); ++axis) {
      (axis < group_.split ? rows_ : columns_) *= group_.space[axis];
    }
    walk_ = {group_.space.rank() - 1, width, needs_wide_index(group_)};
    threads_ = static_cast<std::uint32_t>(divide_up(columns_, 32 * width) * 32);
    is_filled_ = columns_ == threads_ * width;
    for (std::size_t i = 0; i < group_.code.size(); ++i) {
      if (is_column_sum(group_.code[i])) sums_.emplace_back(group_, static_cast<int>(i));
    }
  }

  bool lies_in_vectors() const {
    return group_.split < group_.space.rank() && vector_width(group_, walk_.inner, width) == width;
  }

  /// Whether rows and columns are such that the machine has enough to do, and no thread too much.
  bool is_worth_it() const {
    constexpr std::int64_t fewest_rows = 1024;
    constexpr std::int64_t fewest_columns = 256;
    constexpr std::int64_t most_columns = 4096;
    return rows_ >= fewest_rows && columns_ >= fewest_columns && columns_ <= most_columns &&
           threads_ <= context_.properties.max_threads;
  }

  EmittedCalls run() {
    KernelText kernel("rows", threads_);
    GroupText text(group_, phases_, walk_, kernel, GroupPart::all);
    text.leave_rounding_to_stores();
    text.put_rows_inside();
    Partials partials(sums_, static_cast<std::size_t>(parts() * columns_));
    partials.bind(kernel, true);
    define_column(kernel, text);
    run_rows(kernel, text);
    if (!is_filled_) kernel.line("if (live) {");
    kernel.line("for (uint k = 0u; k < {}u; ++k) {{", width);
    partials.store(kernel, "group_id.x * values.columns + at + k", "[k]");
    kernel.line("}");
    if (!is_filled_) kernel.line("}");
    return {{kernel.finish(context_, {static_cast<std::uint32_t>(parts()), 1, 1}),
             column_results(whole_, parts(), context_)},
            partials.bytes()};
  }

 private:
  /// Threadgroups: a few for each core, which go over several rows each.
  std::int64_t parts() const {
    constexpr std::int64_t fewest_rows = 8;
    constexpr std::int64_t enough = 396;  // of 256 threads
    return std::min(divide_up(rows_, fewest_rows), enough * std::max<std::int64_t>(usual_threads / threads_, 1));
  }

  /// What a thread knows of its columns. Threads without any look at the first ones, and leave no trace.
  void define_column(KernelText& kernel, GroupText& text) const {
    kernel.values().add_uint("columns", static_cast<std::uint64_t>(columns_));
    if (is_filled_) {
      kernel.line("const uint at = thread_id * {}u;", width);
    } else {
      kernel.line("const bool live = thread_id * {}u < values.columns;", width);
      kernel.line("const uint at = live ? thread_id * {}u : 0u;", width);
    }
    text.load_uniforms();
    for (const Reduction& sum : sums_) sum.define_array(kernel, width);
    text.places().define(group_.split, group_.space.rank(), fmt::format("(at / {}u)", width), false);
    for (const Phase& phase : phases_.list) text.load_common(phase, 0, group_.split);
  }

  void run_rows(KernelText& kernel, GroupText& text) const {
    const auto count = static_cast<std::uint64_t>(rows_);
    const std::string rows =
        walk_.wide ? kernel.values().add_ulong("rows", count) : kernel.values().add_uint("rows", count);
    const std::string_view type = text.walk().item_type();
    for (const Phase& phase : phases_.list) text.declare_ahead(phase, 2);
    load_next(kernel, text, fmt::format("{}(group_id.x)", type));
    kernel.line("for ({0} row = group_id.x; row < {1}; row += group_count.x) {{", type, rows);
    for (const Phase& phase : phases_.list) text.take_next(phase);
    load_next(kernel, text, fmt::format("(row + group_count.x < {} ? row + group_count.x : row)", rows));
    kernel.line("const uint ahead = 0u;");
    kernel.line("const uint j = 0u;");
    text.places().define(0, group_.split, "row", true);
    run_row(kernel, text);
    kernel.line("}");
    text.end_ahead();
  }

  void load_next(KernelText& kernel, GroupText& text, std::string_view row) const {
    kernel.line("{");
    kernel.line("const uint ahead = 1u;");
    kernel.line("const {} next = {};", text.walk().item_type(), row);
    text.places().define(0, group_.split, "next", true);
    for (const Phase& phase : phases_.list) text.load_ahead(phase);
    kernel.line("}");
  }

  void run_row(KernelText& kernel, GroupText& text) const {
    text.declare_kept(1);
    std::size_t combined = 0;
    for (const Phase& phase : phases_.list) {
      text.run_reduced(phase.reduced);
      const std::vector<Reduction> reductions = reductions_of(group_, phase.reductions);
      for (const Reduction& reduction : reductions) reduction.define(kernel);
      run_elements(kernel, text, phase, reductions);
      for (const Reduction& reduction : reductions) {
        reduction.across_lanes(kernel, 16);
        if (threads_ > 32) reduction.across_simdgroups(kernel);
        reduction.define_result(kernel);
      }
      combined += reductions.size();
    }
    if (!phases_.reduced_stores.empty()) {
      kernel.line("if (thread_id == 0u) {");
      for (const int store : phases_.reduced_stores) text.store_reduced(store);
      kernel.line("}");
    }
    // Where there are several reductions, one waits for the others before the next row.
    if (combined == 1 && threads_ > 32) kernel.line("threadgroup_barrier(mem_flags::mem_threadgroup);");
  }

  void run_elements(KernelText& kernel, GroupText& text, const Phase& phase,
                    const std::vector<Reduction>& reductions) const {
    if (!is_filled_) kernel.line("if (live) {");
    kernel.line("{");
    text.run_full(phase, [&] {
      for (const Reduction& reduction : reductions) {
        reduction.add(kernel, element_of(text, reduction), "(at + k)");
      }
      for (const Reduction& sum : reductions_of(group_, phase.column_sums)) {
        sum.add(kernel, element_of(text, sum), "row", "[k]");
      }
    });
    kernel.line("}");
    if (!is_filled_) kernel.line("}");
  }

  static std::string element_of(const GroupText& text, const Reduction& reduction) {
    return reduction.element(text.value(text.at(reduction.position()).inputs[0]));
  }

  const Group& whole_;
  const GpuContext& context_;
  Group group_;  // without what follows the sums
  Phases phases_;
  std::vector<Reduction> sums_;
  std::int64_t rows_ = 1;
  std::int64_t columns_ = 1;
  Walk walk_;
  std::uint32_t threads_ = 0;
  bool is_filled_ = false;  // every thread has columns
};

}  // namespace

bool should_add_up_columns(const Group& group, const GpuContext& context) {
  const bool all_are_sums = std::ranges::all_of(group.code, [](const Instruction& in) {
    if (in.kind != Kind::reduce) return true;
    if (in.extent != Extent::column) return in.op != ops::Op::squared_deviations;
    return in.op == ops::Op::sum && is_floating(in.dtype);
  });
  if (group.kind != Group::Kind::row || !all_are_sums) return false;
  const RowsAndColumnsEmitter emitter(group, context);
  return emitter.lies_in_vectors() && emitter.is_worth_it();
}

EmittedCalls emit_rows_and_columns(const Group& group, const GpuContext& context) {
  return RowsAndColumnsEmitter(group, context).run();
}

}  // namespace russet::gpu
