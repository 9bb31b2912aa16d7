// Row groups: a thread, some lanes of a simdgroup, a simdgroup or a threadgroup a row. Where the row fits into
// registers each element is loaded once, however many reductions follow each other; otherwise every phase sweeps over
// the row again. Long rows of few are cut into chunks, whose partial results a second kernel combines: a tree that
// depends on shapes alone.
#include <algorithm>
#include <utility>

#include "device/gpu/emitter/deviations.h"
#include "device/gpu/emitter/emit.h"
#include "device/gpu/emitter/group_parts.h"
#include "device/gpu/emitter/reductions.h"

namespace russet::gpu {
namespace {

using compile::Group;

/// How a row is divided.
struct Division {
  std::uint32_t threads = usual_threads;  // of a threadgroup
  std::uint32_t lanes = 32;               // threads a row: a power of two up to 32, or all of the threadgroup
  int items = 1;                          // a thread holds, in registers; 0: as many as the row has
  bool whole = false;                     // these are the row: no thread has fewer
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
    divide(make_phases(group_, true));
  }

  /// Whether registers hold a row.
  bool keeps() const { return division_.items > 0; }

  EmittedCalls run() {
    if (division_.chunks > 1) return run_chunks();
    KernelText kernel("row", division_.threads);
    const Phases phases = make_phases(group_, keeps());
    constexpr int few = 48;  // registers of 80, which three threadgroups of 256 leave
    if (division_.items > 1 && division_.items * walk_.width * phases.kept_count <= few) kernel.keep_resident(3);
    GroupText text(group_, phases, walk_, kernel, GroupPart::all);
    text.leave_rounding_to_stores();
    open_row(kernel, text);
    if (keeps()) text.declare_kept(division_.items);
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
    Call call = kernel.finish(context_, {static_cast<std::uint32_t>(divide_up(rows_, rows_a_group)), 1, 1});
    if (division_.lanes == 32) call.units = {static_cast<std::uint64_t>(rows_), 32};
    return {{std::move(call)}, 0};
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
    constexpr std::int64_t many = 2048;  // rows
    const auto narrow = static_cast<std::uint32_t>(power_of_two_from(items));
    if (columns_ <= 8 && rows_ >= many) {
      division_.lanes = 1;
    } else if (narrow < 32 && rows_ >= many && rows_ % (32 / narrow) == 0) {  // simdgroups take whole rows
      division_.lanes = narrow;
    } else if (items > 32 * std::int64_t{room} || (rows_ < 16 && items > 32)) {
      division_.lanes = 256;
      if (several && items > 256 * std::int64_t{room}) division_.lanes = 1024;
      while (division_.lanes > most) division_.lanes /= 2;
      division_.threads = division_.lanes;
    }
    const std::int64_t needed = divide_up(items, division_.lanes);
    division_.whole = needed * division_.lanes * walk_.width == columns_;
    division_.items =
        several && needed <= room ? (division_.whole ? static_cast<int>(needed) : power_of_two_from(needed)) : 0;
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

  std::string lane() const {
    if (division_.lanes == division_.threads) return "thread_id";
    return division_.lanes == 32 ? "lane_id" : fmt::format("(lane_id % {}u)", division_.lanes);
  }

  void open_row(KernelText& kernel, GroupText& text) const {
    const std::string rows = walk_.wide ? kernel.values().add_ulong("rows", static_cast<std::uint64_t>(rows_))
                                        : kernel.values().add_uint("rows", static_cast<std::uint64_t>(rows_));
    kernel.values().add_uint("columns", static_cast<std::uint64_t>(columns_));
    const std::string_view type = text.walk().item_type();
    if (division_.lanes == division_.threads) {
      kernel.line("const {0} row = {0}(group_id.x);", type);
    } else if (division_.lanes == 1) {
      kernel.line("const {0} row = {0}(group_id.x) * {1}u + thread_id;", type, division_.threads);
    } else {
      kernel.line("const {0} row = {0}(group_id.x) * {1}u + thread_id / {2}u;", type,
                  division_.threads / division_.lanes, division_.lanes);
    }
    if (division_.lanes != division_.threads) kernel.line("if (row >= {}) return;", rows);
    text.places().define(0, group_.split, "row", false);
  }

  /// A loop over the row's elements that runs a phase.
  void sweep(KernelText& kernel, GroupText& text, const Phase& phase, const std::vector<Reduction>& reductions) const {
    const int ahead = items_ahead(text, phase);
    if (ahead > 1) {
      open_loop(kernel, "first", division_.items, ahead);
      text.declare_ahead(phase, ahead);
      open_loop(kernel, "ahead", ahead);
      open_item(kernel, text, "first + ahead");
      text.load_ahead(phase);
      close_item(kernel);
      open_loop(kernel, "ahead", ahead);
      open_item(kernel, text, "first + ahead");
    } else if (keeps()) {
      open_loop(kernel, "item", division_.items);
      open_item(kernel, text, "item");
    } else {
      open_element(kernel, text);
    }
    text.run_full(phase, [&] {
      for (const Reduction& reduction : reductions) {
        const std::string value = reduction.element(text.value(text.at(reduction.position()).inputs[0]));
        reduction.add(kernel, value, walk_.width > 1 ? "(at + k)" : "at");
      }
    });
    if (keeps()) {
      close_item(kernel);
    } else {
      kernel.line("}");
    }
    if (ahead > 1) {
      kernel.line("}");
      text.end_ahead();
    }
  }

  /// How many items' loads come before anything that the items store: compilers cannot tell that these do not overlap,
  /// so a loop that does both waits for the memory of one item after the other.
  int items_ahead(const GroupText& text, const Phase& phase) const {
    constexpr std::size_t most = 192;  // bytes a thread
    const std::size_t bytes = text.bytes_of_item(phase);
    int ahead = bytes > 0 ? division_.items : 1;
    while (ahead > 1 && (division_.items % ahead != 0 || static_cast<std::size_t>(ahead) * bytes > most)) --ahead;
    return ahead;
  }

  static void open_loop(KernelText& kernel, std::string_view name, int count, int step = 1) {
    kernel.line("#pragma unroll");
    kernel.line("for (uint {0} = 0u; {0} < {1}u; {0} += {2}u) {{", name, count, step);
  }

  /// Of what registers hold: an item of a thread, whose number is j from then on.
  void open_item(KernelText& kernel, GroupText& text, std::string_view number) const {
    kernel.line("const uint j = {};", number);
    kernel.line("const uint at = (j * {}u + {}) * {}u;", division_.lanes, own_lane(), walk_.width);
    if (!division_.whole) kernel.line("if (at < values.columns) {");
    define_item(text);
  }

  void close_item(KernelText& kernel) const {
    if (!division_.whole) kernel.line("}");
    kernel.line("}");
  }

  /// Begins a loop over items that registers do not hold.
  void open_element(KernelText& kernel, GroupText& text) const {
    const bool cut = division_.chunks > 1;
    kernel.line("for (uint at = {}{} * {}u; at < {}; at += {}u) {{", cut ? "begin + " : "", own_lane(), walk_.width,
                cut ? "end" : "values.columns", division_.lanes * static_cast<std::uint32_t>(walk_.width));
    define_item(text);
  }

  void define_item(GroupText& text) const {
    const std::string item = walk_.width > 1 ? fmt::format("(at / {}u)", walk_.width) : "at";
    text.places().define(group_.split, group_.space.rank(), item, true);
  }

  std::string own_lane() const { return division_.lanes == 1 ? "0u" : lane(); }

  void combine(KernelText& kernel, const Reduction& reduction) const {
    if (division_.lanes > 1) reduction.across_lanes(kernel, std::min(division_.lanes, 32U) / 2);
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
        reduction.across_lanes(first, 16);
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
      const Division of_chunks = std::exchange(division_, {.threads = 32, .lanes = 32, .items = 0});
      open_row(second, text);
      second.values().add_uint("chunks", static_cast<std::uint64_t>(of_chunks.chunks));
      for (const Reduction& reduction : reductions) reduction.define(second);
      second.line("for (uint at = lane_id; at < values.chunks; at += 32u) {");
      partials.add(second, "row * values.chunks + at");
      second.line("}");
      for (const Reduction& reduction : reductions) {
        reduction.across_lanes(second, 16);
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

EmittedCalls emit_row(const Group& group, const GpuContext& context) {
  if (adds_up_columns(group)) return emit_rows_and_columns(group, context);
  const bool deviates = std::any_of(group.code.begin(), group.code.end(), [](const compile::Instruction& in) {
    return in.kind == compile::Instruction::Kind::reduce && in.op == ops::Op::squared_deviations;
  });
  if (deviates) {
    const Group swept = with_two_sweeps(group);
    RowEmitter emitter(swept, context);
    if (emitter.keeps()) return emitter.run();
  }
  return RowEmitter(group, context).run();
}

}  // namespace russet::gpu
