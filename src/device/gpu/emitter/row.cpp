// Row groups: a thread, a simdgroup or a threadgroup a row. Where the row fits into registers each element is loaded
// once, however many reductions follow each other; otherwise every phase sweeps over the row again. Long rows of few
// are cut into chunks, whose partial results a second kernel combines: a tree that depends on shapes alone.
#include <algorithm>
#include <utility>

#include "device/gpu/emitter/emit.h"
#include "device/gpu/emitter/reductions.h"

namespace russet::gpu {
namespace {

using compile::Group;

/// How a row is divided.
struct Division {
  std::uint32_t threads = usual_threads;  // of a threadgroup
  std::uint32_t lanes = 32;               // threads a row: 1, 32, or all of the threadgroup
  int items = 1;                          // a thread holds, in registers; 0: as many as the row has
  std::int64_t chunks = 1;
  std::int64_t chunk = 0;  // elements
};

int power_of_two_from(std::int64_t count) {
  int power = 1;
  while (power < count) power *= 2;
  return power;
}

class RowEmitter {
 public:
  RowEmitter(const Group& group, const GpuContext& context) : group_(group), context_(context) {
    for (int axis = 0; axis < group.split; ++axis) rows_ *= group.space[axis];
    for (int axis = group.split; axis < group.space.rank(); ++axis) columns_ *= group.space[axis];
    const int rank = group.space.rank();
    inner_ = rank > group.split ? rank - 1 : -1;
    walk_ = {inner_, vector_width(group, inner_), needs_wide_index(group)};
  }

  EmittedCalls run() {
    const Phases kept = make_phases(group_, true);
    divide(kept);
    if (division_.chunks > 1) return run_chunks();
    const bool keep = division_.items > 0;
    KernelText kernel("row", division_.threads);
    const Phases phases = keep ? kept : make_phases(group_, false);
    GroupText text(group_, phases, walk_, kernel, GroupPart::all);
    text.leave_rounding_to_stores();
    open_row(kernel, text);
    if (keep) text.declare_kept(division_.items);
    for (const Phase& phase : phases.list) {
      text.run_reduced(phase.reduced);
      if (phase.full.empty() && phase.stores.empty() && phase.reductions.empty()) continue;
      const std::vector<Reduction> reductions = reductions_of(group_, phase.reductions);
      for (const Reduction& reduction : reductions) reduction.define(kernel);
      sweep(kernel, text, phase, reductions);
      for (const Reduction& reduction : reductions) combine(kernel, reduction);
    }
    store_results(kernel, text, phases);
    const std::int64_t rows_a_group = division_.threads / division_.lanes;
    return {{kernel.finish(context_, {static_cast<std::uint32_t>(divide_up(rows_, rows_a_group)), 1, 1})}, 0};
  }

 private:
  void divide(const Phases& kept) {
    const std::int64_t items = divide_up(columns_, walk_.width);
    const std::uint32_t most = context_.properties.max_threads;
    const int per_item = walk_.width * std::max(kept.kept_count, 1);
    const Properties& gpu = context_.properties;
    const int room =
        std::max(1, std::min(gpu.row_elements / walk_.width, gpu.kept_values / per_item));  // items of a thread
    const bool several = kept.list.size() > 1 && kept.kept_count > 0;
    if (columns_ <= 8 && rows_ >= 2048) {
      division_.lanes = 1;
    } else if (items > 32 * std::int64_t{room} || (rows_ < 16 && items > 32)) {
      division_.lanes = 256;
      if (several && items > 256 * std::int64_t{room}) division_.lanes = 1024;
      while (division_.lanes > most) division_.lanes /= 2;
      division_.threads = division_.lanes;
    }
    const std::int64_t needed = divide_up(items, division_.lanes);
    division_.items = several && needed <= room ? power_of_two_from(needed) : 0;
    if (!several && division_.lanes >= 256) cut(items);
  }

  /// Chunks enough to fill the device, each long enough to be worth a threadgroup.
  void cut(std::int64_t items) {
    constexpr std::int64_t shortest = 2048;  // items
    constexpr std::int64_t enough = 512;     // threadgroups
    if (full_follows() || items < 2 * shortest || rows_ * 2 > enough) return;
    const std::int64_t chunks = std::min({divide_up(items, shortest), enough / rows_, std::int64_t{256}});
    const std::int64_t steps = divide_up(divide_up(items, chunks), division_.lanes);
    division_.chunk = steps * division_.lanes * walk_.width;
    division_.chunks = divide_up(columns_, division_.chunk);
  }

  /// Whether any phase after the first reads elements.
  bool full_follows() const {
    const Phases phases = make_phases(group_, false);
    return std::any_of(phases.list.begin() + 1, phases.list.end(), [](const Phase& phase) {
      return !phase.full.empty() || !phase.stores.empty() || !phase.reductions.empty();
    });
  }

  std::string lane() const { return division_.lanes == 32 && division_.threads > 32 ? "lane_id" : "thread_id"; }

  void open_row(KernelText& kernel, GroupText& text) const {
    const std::string rows = walk_.wide ? kernel.values().add_ulong("rows", static_cast<std::uint64_t>(rows_))
                                        : kernel.values().add_uint("rows", static_cast<std::uint64_t>(rows_));
    kernel.values().add_uint("columns", static_cast<std::uint64_t>(columns_));
    const std::string_view type = text.item_type();
    if (division_.lanes == division_.threads) {
      kernel.line("const {0} row = {0}(group_id.x);", type);
    } else if (division_.lanes == 1) {
      kernel.line("const {0} row = {0}(group_id.x) * {1}u + thread_id;", type, division_.threads);
    } else {
      kernel.line("const {0} row = {0}(group_id.x) * {1}u + simdgroup_id;", type, division_.threads / division_.lanes);
    }
    if (division_.lanes != division_.threads) kernel.line("if (row >= {}) return;", rows);
    text.define_places(0, group_.split, "row", false);
  }

  /// A loop over the row's elements that runs a phase.
  void sweep(KernelText& kernel, GroupText& text, const Phase& phase, const std::vector<Reduction>& reductions) const {
    const int width = walk_.width;
    const std::string first = division_.lanes == 1 ? "0u" : lane();
    const bool in_blocks = division_.items > 0 && std::any_of(reductions.begin(), reductions.end(),
                                                              [](const Reduction& one) { return one.has_blocks(); });
    for (const Reduction& reduction : reductions) {
      if (in_blocks && reduction.has_blocks()) reduction.define_block(kernel, 1);
    }
    if (in_blocks) kernel.line("float counted = 0.0f;");
    if (division_.items > 0) {
      kernel.line("#pragma unroll");
      kernel.line("for (uint j = 0u; j < {}u; ++j) {{", division_.items);
      kernel.line("const uint at = (j * {}u + {}) * {}u;", division_.lanes, first, width);
      kernel.line("if (at < values.columns) {");
    } else {
      const bool cut = division_.chunks > 1;
      kernel.line("for (uint at = {}{} * {}u; at < {}; at += {}u) {{", cut ? "begin + " : "", first, width,
                  cut ? "end" : "values.columns", division_.lanes * static_cast<std::uint32_t>(width));
    }
    const std::string item = width > 1 ? fmt::format("(at / {}u)", width) : "at";
    text.define_places(group_.split, group_.space.rank(), item, true);
    text.run_full(phase, [&] {
      for (const Reduction& reduction : reductions) {
        const std::string value = reduction.element(text.value(text.at(reduction.position()).inputs[0]));
        if (in_blocks && reduction.has_blocks()) {
          reduction.add_to_block(kernel, value, width > 1 ? "j == 0u && k == 0u" : "j == 0u", "");
        } else {
          reduction.add(kernel, value, width > 1 ? "(at + k)" : "at");
        }
      }
    });
    if (in_blocks) kernel.line("counted += {}.0f;", width);
    kernel.line("}");
    if (division_.items > 0) kernel.line("}");
    if (in_blocks) kernel.line("const float share = counted > 0.0f ? 1.0f / counted : 0.0f;");
    for (const Reduction& reduction : reductions) {
      if (in_blocks && reduction.has_blocks()) reduction.end_block(kernel, "counted", "share", "");
    }
  }

  void combine(KernelText& kernel, const Reduction& reduction) const {
    if (division_.lanes > 1) reduction.across_lanes(kernel);
    if (division_.lanes > 32) {
      reduction.across_simdgroups(kernel);
    }
    reduction.define_result(kernel);
  }

  void store_results(KernelText& kernel, GroupText& text, const Phases& phases) const {
    if (phases.reduced_stores.empty()) return;
    if (division_.lanes > 1) kernel.line("if ({} == 0u) {{", lane());
    for (const int store : phases.reduced_stores) text.store_reduced(store);
    if (division_.lanes > 1) kernel.line("}");
  }

  EmittedCalls run_chunks() {
    const Phases phases = make_phases(group_, false);
    const Phase& phase = phases.list[0];
    const std::vector<Reduction> reductions = reductions_of(group_, phase.reductions);
    Partials partials(reductions, static_cast<std::size_t>(rows_ * division_.chunks));
    EmittedCalls emitted;
    emitted.scratch_bytes = partials.bytes();

    KernelText first("chunks", division_.threads);
    {
      GroupText text(group_, phases, walk_, first, GroupPart::elements);
      text.leave_rounding_to_stores();
      partials.bind(first, true);
      open_row(first, text);
      first.values().add_uint("chunk", static_cast<std::uint64_t>(division_.chunk));
      first.line("const uint begin = group_id.y * values.chunk;");
      first.line("const uint end = min(begin + values.chunk, values.columns);");
      if (phases.elements_read_reduced) text.run_reduced(phase.reduced);
      for (const Reduction& reduction : reductions) reduction.define(first);
      sweep(first, text, phase, reductions);
      for (const Reduction& reduction : reductions) {
        reduction.across_lanes(first);
        reduction.across_simdgroups(first);
      }
      first.line("if (thread_id == 0u) {");
      partials.store(first, "row * group_count.y + group_id.y");
      first.line("}");
    }
    emitted.calls.push_back(
        first.finish(context_, {static_cast<std::uint32_t>(rows_), static_cast<std::uint32_t>(division_.chunks), 1}));

    // The chunks of a row are the elements of a short row.
    KernelText second("results", 32);
    {
      GroupText text(group_, phases, {walk_.inner, 1, walk_.wide}, second, GroupPart::results);
      partials.bind(second, false);
      const Division whole = std::exchange(division_, {32, 32, 0, 1, 0});
      open_row(second, text);
      second.values().add_uint("chunks", static_cast<std::uint64_t>(whole.chunks));
      for (const Reduction& reduction : reductions) reduction.define(second);
      second.line("for (uint at = lane_id; at < values.chunks; at += 32u) {");
      partials.add(second, "row * values.chunks + at");
      second.line("}");
      for (const Reduction& reduction : reductions) {
        reduction.across_lanes(second);
        reduction.define_result(second);
      }
      for (const Phase& later : phases.list) text.run_reduced(later.reduced);
      store_results(second, text, phases);
    }
    emitted.calls.push_back(second.finish(context_, {static_cast<std::uint32_t>(rows_), 1, 1}));
    return emitted;
  }

  const Group& group_;
  const GpuContext& context_;
  std::int64_t rows_ = 1;
  std::int64_t columns_ = 1;
  int inner_ = -1;
  Walk walk_;
  Division division_;
};

}  // namespace

EmittedCalls emit_row(const Group& group, const GpuContext& context) { return RowEmitter(group, context).run(); }

}  // namespace russet::gpu
