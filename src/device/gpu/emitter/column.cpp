// Column groups: neighbouring lanes take neighbouring columns, the simdgroups of a threadgroup every eighth row, and
// threadgroups chunks of rows. Where the columns would leave lanes idle, a simdgroup takes several rows, or parts of
// them.
// Partial results are combined by halves: first in group memory, then, where there are several chunks, by a second
// kernel. The tree depends on shapes alone.
#include <algorithm>
#include <vector>

#include "device/gpu/emitter/emit.h"
#include "device/gpu/emitter/group_parts.h"
#include "device/gpu/emitter/reductions.h"

namespace russet::gpu {
namespace {

using compile::Group;

constexpr std::uint32_t simdgroups = usual_threads / 32;
/// Threadgroups that a core is to hold at once: of the 512 that a group has at most, an H100 or an H200 runs all then.
/// GELU's gradient and its sums, which have 69 registers otherwise, take 60 us instead of 76 (bert_base, H100).
constexpr std::uint32_t resident = 4;
/// Below, a row is too short for vectors to be worth it.
constexpr std::int64_t least_columns = 16;

class ColumnEmitter {
 public:
  ColumnEmitter(const Group& group, const GpuContext& context)
      : group_(group), context_(context), phases_(make_phases(group, false)) {
    const int rank = group.space.rank();
    for (int axis = 0; axis < group.split; ++axis) rows_ *= group.space[axis];
    for (int axis = group.split; axis < rank; ++axis) columns_ *= group.space[axis];
    const int inner = rank > group.split ? rank - 1 : -1;
    walk_ = {inner, vector_width(group, inner), needs_wide_index(group)};
    if (columns_ < least_columns || phases_.elements_read_reduced) walk_.width = 1;
    divide_columns();
    divide_rows();
    constexpr std::int64_t busy = 128;                           // threadgroups
    if (chunks_ == 1 && (walk_.width == 1 || strips_ < busy)) {  // results follow in the same kernel, a column a thread
      walk_.width = 1;
      lanes_ = 32;
      strips_ = divide_up(columns_, lanes_);
    }
  }

  EmittedCalls run() {
    const std::vector<Reduction> reductions = reductions_of(group_, phases_.list[0].reductions);
    Partials partials(reductions, static_cast<std::size_t>(columns_ * chunks_));
    EmittedCalls emitted;
    if (chunks_ > 1) emitted.scratch_bytes = partials.bytes();
    emitted.calls.push_back(reduce(reductions, partials));
    if (chunks_ > 1) emitted.calls.push_back(finish());
    return emitted;
  }

  /// The second launch alone, of so many chunks.
  Call results(std::int64_t chunks) {
    chunks_ = chunks;
    return finish();
  }

 private:
  /// How many lanes a row has, and how many threadgroups stand side by side.
  void divide_columns() {
    const std::int64_t vectors = divide_up(columns_, walk_.width);
    while (lanes_ > 1 && vectors * 2 <= lanes_) lanes_ /= 2;
    strips_ = divide_up(vectors, lanes_);
    // Where a quarter of the lanes would be idle, rows begin at any lane: of many elements, for which it is worth
    // kernels of their own.
    constexpr std::int64_t fewest = 17;
    constexpr std::int64_t most = 64;
    constexpr std::int64_t many = std::int64_t{1} << 20;
    const bool leaves_lanes_idle = vectors * 4 <= strips_ * lanes_ * 3;
    if (walk_.width > 1 && vectors >= fewest && vectors <= most && leaves_lanes_idle && rows_ * columns_ >= many) {
      lanes_ = vectors;
      strips_ = 1;
    }
  }

  void divide_rows() {
    constexpr std::int64_t shortest = 64;  // rows
    constexpr std::int64_t enough = 512;   // threadgroups
    const std::int64_t most = std::max<std::int64_t>(1, enough / strips_);
    const std::int64_t wanted = std::clamp<std::int64_t>(divide_up(rows_, shortest), 1, most);
    chunk_ = std::max<std::int64_t>(divide_up(divide_up(rows_, wanted), simdgroups) * simdgroups, simdgroups);
    chunks_ = std::max<std::int64_t>(divide_up(rows_, chunk_), 1);
  }

  Call reduce(const std::vector<Reduction>& reductions, Partials& partials) {
    KernelText kernel("column", usual_threads);
    const bool ends_here = chunks_ == 1 && walk_.width == 1;
    GroupText text(group_, phases_, walk_, kernel, ends_here ? GroupPart::all : GroupPart::elements);
    text.leave_rounding_to_stores();
    if (text.items_ahead(phases_.list[0]) > 1) kernel.keep_resident(resident);
    if (chunks_ > 1) partials.bind(kernel, true);
    ValueList& values = kernel.values();
    values.add_uint("columns", static_cast<std::uint64_t>(columns_));
    values.add_uint("rows", static_cast<std::uint64_t>(rows_));
    values.add_uint("chunk", static_cast<std::uint64_t>(chunk_));
    kernel.line("const uint column = (group_id.x * {0}u + thread_id % {0}u) * {1}u;", lanes_, walk_.width);
    const std::int64_t threads = lanes_ * rows_at_once();
    const std::string has_row = threads < usual_threads ? fmt::format("thread_id < {}u && ", threads) : "";
    kernel.line("const bool live = {}column < values.columns;", has_row);
    text.load_uniforms();
    define_accumulators(kernel, reductions);
    kernel.line("if (live) {");
    open_column(text);
    if (phases_.elements_read_reduced) text.run_reduced(phases_.list[0].reduced);
    kernel.line("const uint end = min((group_id.y + 1u) * values.chunk, values.rows);");
    kernel.line("const uint first_row = group_id.y * values.chunk + thread_id / {}u;", lanes_);
    text.load_common(phases_.list[0], 0, group_.split);
    if (std::any_of(reductions.begin(), reductions.end(), [](const Reduction& one) { return one.has_blocks(); })) {
      add_blocks(kernel, text, reductions);
    } else {
      kernel.line("uint row = first_row;");
      add_rows(kernel, text, reductions, "end");
    }
    kernel.line("}");
    for (std::size_t i = 0; i < reductions.size(); ++i) across_rows(kernel, reductions[i], i > 0);
    kernel.line("if (thread_id < {}u && live) {{", lanes_);
    if (chunks_ > 1) {
      store_partials(kernel, partials);
    } else if (ends_here) {
      finish_column(kernel, text, reductions, phases_);
    } else {
      finish_vector(kernel, reductions);
    }
    kernel.line("}");
    return kernel.finish(context_, {static_cast<std::uint32_t>(strips_), static_cast<std::uint32_t>(chunks_), 1});
  }

  /// The loop over rows before `stop`, from `row` on, which it moves there: rounds of several rows, whose elements are
  /// loaded before any is used, then those that are left.
  void add_rows(KernelText& kernel, GroupText& text, const std::vector<Reduction>& reductions,
                std::string_view stop) const {
    const int ahead = text.items_ahead(phases_.list[0]);
    const bool in_whole_rounds = has_whole_rounds(text);
    if (ahead > 1) add_round(kernel, text, reductions, stop, in_whole_rounds);
    if (ahead > 1 && !in_whole_rounds) return;
    kernel.line("for (; row < {}; row += {}u) {{", stop, rows_at_once());
    add_row(kernel, text, reductions, "row", "row == first_row");
    kernel.line("}");
  }

  /// Whether rounds are whole. Where conditions stand between a round's rows, compilers load some of them only when the
  /// one before is done; for a long phase that is better than what the registers cost otherwise.
  bool has_whole_rounds(const GroupText& text) const {
    return text.items_ahead(phases_.list[0]) > 1 && !GroupText::is_long(phases_.list[0]);
  }

  /// `whole`: as long as there are enough rows; otherwise until there are none.
  void add_round(KernelText& kernel, GroupText& text, const std::vector<Reduction>& reductions, std::string_view stop,
                 bool whole) const {
    const auto ahead = static_cast<std::uint32_t>(text.items_ahead(phases_.list[0]));
    const std::uint32_t step = rows_at_once();
    kernel.line("for (; row + {}u < {}; row += {}u) {{", whole ? (ahead - 1) * step : 0, stop, ahead * step);
    text.declare_ahead(phases_.list[0], static_cast<int>(ahead));
    kernel.line("#pragma unroll");
    kernel.line("for (uint ahead = 0u; ahead < {}u; ++ahead) {{", ahead);
    kernel.line("const uint row_now = row + ahead * {}u;", step);
    // Past the end it reads its first row again: another thread may be writing its own.
    const std::string read = whole ? "row_now" : fmt::format("row_now < {} ? row_now : row", stop);
    kernel.line("const uint row_ahead = {};", read);
    text.places().define(0, group_.split, "row_ahead", true);
    text.load_ahead(phases_.list[0]);
    kernel.line("}");
    kernel.line("#pragma unroll");
    kernel.line("for (uint ahead = 0u; ahead < {}u; ++ahead) {{", ahead);
    kernel.line("const uint row_now = row + ahead * {}u;", step);
    if (!whole) kernel.line("if (ahead == 0u || row_now < {}) {{", stop);
    add_row(kernel, text, reductions, "row_now", "ahead == 0u && row == first_row");
    if (!whole) kernel.line("}");
    kernel.line("}");
    kernel.line("}");
    text.end_ahead();
  }

  void add_row(KernelText& kernel, GroupText& text, const std::vector<Reduction>& reductions, std::string_view row,
               std::string_view is_first) const {
    text.places().define(0, group_.split, row, true);
    text.run_full(phases_.list[0], [&] {
      for (const Reduction& reduction : reductions) {
        const std::string value = reduction.element(text.value(text.at(reduction.position()).inputs[0]));
        if (reduction.has_blocks()) {
          reduction.add_to_block(kernel, value, is_first, lane_suffix());
        } else {
          reduction.add(kernel, value, row, lane_suffix());
        }
      }
    });
  }

  /// The loop over all rows, a block of them at a time.
  void add_blocks(KernelText& kernel, GroupText& text, const std::vector<Reduction>& reductions) const {
    constexpr std::uint32_t block = 16;
    for (const Reduction& reduction : reductions) {
      if (reduction.has_blocks()) reduction.define_block(kernel, walk_.width);
    }
    kernel.line("float counted = 0.0f;");
    kernel.line("for (uint row = first_row; row < end;) {");
    kernel.line("const uint stop = end - row <= {0}u ? end : row + {0}u;", block * rows_at_once());
    kernel.line("counted += float((stop - row + {0}u) / {1}u);", rows_at_once() - 1, rows_at_once());
    add_rows(kernel, text, reductions, "stop");
    kernel.line("const float share = 1.0f / counted;");
    for_each_lane(kernel, [&] {
      for (const Reduction& reduction : reductions) {
        if (reduction.has_blocks()) reduction.end_block(kernel, "counted", "share", lane_suffix());
      }
    });
    kernel.line("}");
  }

  /// Rows that a threadgroup takes side by side.
  std::uint32_t rows_at_once() const { return simdgroups * 32 / static_cast<std::uint32_t>(lanes_); }

  /// Accumulators are arrays, a lane of the vector an element.
  std::string lane_suffix() const { return walk_.width > 1 ? "[k]" : ""; }

  void define_accumulators(KernelText& kernel, const std::vector<Reduction>& reductions) const {
    if (walk_.width == 1) {
      for (const Reduction& reduction : reductions) reduction.define(kernel);
      return;
    }
    for (const Reduction& reduction : reductions) reduction.define_array(kernel, walk_.width);
  }

  void open_column(GroupText& text) const {
    const std::string item = walk_.width > 1 ? fmt::format("(column / {}u)", walk_.width) : "column";
    text.places().define(group_.split, group_.space.rank(), item, false);
  }

  /// Combines the accumulators of the rows that a threadgroup takes side by side: group memory holds all of them, and
  /// in each round every row of the first half, which has the middle one, takes in its partner of the second. The
  /// threads of the first row have the totals then.
  void across_rows(KernelText& kernel, const Reduction& reduction, bool again) const {
    const std::vector<Reduction::Part>& parts = reduction.parts();
    std::vector<std::string> shared;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      shared.push_back(fmt::format("shared{}_{}", i, parts[i].type));
      kernel.group_memory(parts[i].type, shared[i], usual_threads * static_cast<std::size_t>(walk_.width));
    }
    const std::string own = walk_.width > 1 ? fmt::format("[thread_id * {}u + k]", walk_.width) : "[thread_id]";
    if (again) kernel.line("threadgroup_barrier(mem_flags::mem_threadgroup);");
    for_each_lane(kernel, [&] {
      for (std::size_t i = 0; i < parts.size(); ++i) {
        kernel.line("{}{} = {};", shared[i], own, reduction.variable(parts[i], lane_suffix()));
      }
    });
    kernel.line("threadgroup_barrier(mem_flags::mem_threadgroup);");
    merge_halves(kernel, reduction, shared);
    kernel.line("if (thread_id < {}u) {{", lanes_);
    for_each_lane(kernel, [&] {
      for (std::size_t i = 0; i < parts.size(); ++i) {
        kernel.line("{} = {}{};", reduction.variable(parts[i], lane_suffix()), shared[i], own);
      }
    });
    kernel.line("}");
  }

  /// All threads share the work of a round.
  void merge_halves(KernelText& kernel, const Reduction& reduction, const std::vector<std::string>& shared) const {
    constexpr std::string_view mine = "_of_row";
    const std::uint32_t columns = lanes_ * static_cast<std::uint32_t>(walk_.width);
    kernel.line(
        "for (uint rows = {0}u, half_rows = {1}u; half_rows < rows; rows = half_rows, half_rows -= half_rows / 2u) {{",
        rows_at_once(), (rows_at_once() + 1) / 2);
    kernel.line("for (uint at = thread_id; at < (rows - half_rows) * {}u; at += {}u) {{", columns, usual_threads);
    std::vector<std::string> others;
    for (std::size_t i = 0; i < shared.size(); ++i) {
      const Reduction::Part& part = reduction.parts()[i];
      kernel.line("{} {} = {}[at];", part.type, reduction.variable(part, mine), shared[i]);
      others.push_back(fmt::format("{}[at + half_rows * {}u]", shared[i], columns));
    }
    reduction.merge(kernel, others, mine);
    for (std::size_t i = 0; i < shared.size(); ++i) {
      kernel.line("{}[at] = {};", shared[i], reduction.variable(reduction.parts()[i], mine));
    }
    kernel.line("}");
    kernel.line("threadgroup_barrier(mem_flags::mem_threadgroup);");
    kernel.line("}");
  }

  template <class Visitor>
  void for_each_lane(KernelText& kernel, const Visitor& visit) const {
    if (walk_.width > 1) kernel.line("for (uint k = 0u; k < {}u; ++k) {{", walk_.width);
    visit();
    if (walk_.width > 1) kernel.line("}");
  }

  void store_partials(KernelText& kernel, const Partials& partials) const {
    for_each_lane(kernel, [&] {
      partials.store(kernel, fmt::format("group_id.y * values.columns + column{}", walk_.width > 1 ? " + k" : ""),
                     lane_suffix());
    });
  }

  /// What follows the reductions of one column, whose accumulators end with `suffix`.
  void finish_column(KernelText& kernel, GroupText& text, const std::vector<Reduction>& reductions,
                     const Phases& phases, std::string_view column = "column", std::string_view suffix = "") const {
    for (const Reduction& reduction : reductions) reduction.define_result(kernel, suffix);
    text.places().define(group_.split, group_.space.rank(), column, false);
    for (const Phase& phase : phases.list) text.run_reduced(phase.reduced);
    for (const int store : phases.reduced_stores) text.store_reduced(store);
  }

  /// Likewise for the columns of a vector, one after the other.
  void finish_vector(KernelText& kernel, const std::vector<Reduction>& reductions) const {
    kernel.values().name_apart("result_");
    GroupText text(group_, phases_, {walk_.inner, 1, walk_.wide}, kernel, GroupPart::results);
    kernel.line("for (uint k = 0u; k < {}u; ++k) {{", walk_.width);
    finish_column(kernel, text, reductions, phases_, "(column + k)", "[k]");
    kernel.line("}");
  }

  /// A threadgroup for a few neighbouring columns, whose threads take every 32nd chunk of one, or every 64th: what this
  /// launch takes is the time of a thread that reads one chunk after the other. Of 512 chunks of sums and deviations it
  /// takes 7.3 us with 64 and load_ahead(), 8.4 with 32 and without; of 128 chunks 7.0 and 6.5 (H100, by ncu).
  Call finish() {
    const Group group = column_results_of(group_);
    const Phases phases = make_phases(group, false);
    const std::vector<Reduction> reductions = reductions_of(group, phases.list[0].reductions);
    Partials partials(reductions, static_cast<std::size_t>(columns_ * chunks_));
    KernelText kernel("results", usual_threads);
    walk_.width = 1;
    constexpr std::int64_t many = 256;
    lanes_ = chunks_ > many ? 4 : 8;
    GroupText text(group, phases, walk_, kernel, GroupPart::results);
    partials.bind(kernel, false);
    kernel.values().add_uint("columns", static_cast<std::uint64_t>(columns_));
    kernel.values().add_uint("chunks", static_cast<std::uint64_t>(chunks_));
    kernel.line("const uint column = group_id.x * {0}u + thread_id % {0}u;", lanes_);
    kernel.line("const bool live = column < values.columns;");
    Phases rest = phases;
    load_ahead(kernel, text, rest);
    for (const Reduction& reduction : reductions) reduction.define(kernel);
    kernel.line("if (live) {");
    add_chunks(kernel, partials);
    kernel.line("}");
    across_threads(kernel, reductions);
    kernel.line("if (thread_id < {}u && live) {{", lanes_);
    finish_column(kernel, text, reductions, rest);
    kernel.line("}");
    return kernel.finish(context_, {static_cast<std::uint32_t>(divide_up(columns_, lanes_)), 1, 1});
  }

  /// What follows the reductions of a column is loaded before them: the memory answers meanwhile. Takes it from
  /// `phases`.
  void load_ahead(KernelText& kernel, GroupText& text, Phases& phases) const {
    std::vector<int> loads;
    for (Phase& phase : phases.list) {
      std::erase_if(phase.reduced, [&](int position) {
        const bool is_load = text.at(position).kind == compile::Instruction::Kind::load;
        if (is_load) loads.push_back(position);
        return is_load;
      });
    }
    if (loads.empty()) return;
    text.declare_reduced(loads);
    kernel.line("if (thread_id < {}u && live) {{", lanes_);
    text.places().define(group_.split, group_.space.rank(), "column", false);
    text.assign_reduced(loads);
    kernel.line("}");
  }

  /// Every rows_at_once()-th chunk, several of which are read at once.
  void add_chunks(KernelText& kernel, const Partials& partials) const {
    constexpr int ahead = 8;
    kernel.line("for (uint chunk = thread_id / {}u; chunk < values.chunks; chunk += {}u) {{", lanes_,
                ahead * static_cast<int>(rows_at_once()));
    partials.declare_ahead(kernel, ahead);
    kernel.line("#pragma unroll");
    kernel.line("for (uint ahead = 0u; ahead < {}u; ++ahead) {{", ahead);
    kernel.line("const uint next = chunk + ahead * {}u;", rows_at_once());
    kernel.line("const uint read = next < values.chunks ? next : chunk;");
    partials.read_ahead(kernel, "read * values.columns + column");
    kernel.line("}");
    kernel.line("#pragma unroll");
    kernel.line("for (uint ahead = 0u; ahead < {}u; ++ahead) {{", ahead);
    kernel.line("if (chunk + ahead * {}u < values.chunks) {{", rows_at_once());
    partials.add_ahead(kernel);
    kernel.line("}");
    kernel.line("}");
    kernel.line("}");
  }

  /// Combines the accumulators of a column's threads, which are lanes of all simdgroups: of one by itself, then those
  /// of the simdgroups, one or two a lane. Every thread has the totals. Group memory is as in across_rows, so that
  /// kernels that share launches fit each other; it has room for several reductions at once.
  void across_threads(KernelText& kernel, const std::vector<Reduction>& reductions) const {
    const auto at_once = static_cast<std::size_t>(usual_threads / (simdgroups * lanes_));
    for (const Reduction& reduction : reductions) reduction.across_lanes(kernel, 16, lanes_);
    for (std::size_t first = 0; first < reductions.size(); first += at_once) {
      const std::span<const Reduction> some(reductions.data() + first, std::min(at_once, reductions.size() - first));
      if (first > 0) kernel.line("threadgroup_barrier(mem_flags::mem_threadgroup);");
      merge_simdgroups(kernel, some);
    }
  }

  /// Of reductions whose totals in all simdgroups fit an array each.
  void merge_simdgroups(KernelText& kernel, std::span<const Reduction> reductions) const {
    const std::int64_t totals = simdgroups * lanes_;
    const auto shared = [&](std::size_t part, std::string_view type) { return fmt::format("shared{}_{}", part, type); };
    kernel.line("if (lane_id < {}u) {{", lanes_);
    for (std::size_t i = 0; i < reductions.size(); ++i) {
      const std::vector<Reduction::Part>& parts = reductions[i].parts();
      for (std::size_t j = 0; j < parts.size(); ++j) {
        kernel.group_memory(parts[j].type, shared(j, parts[j].type), usual_threads);
        kernel.line("{}[simdgroup_id * {}u + lane_id + {}u] = {};", shared(j, parts[j].type), lanes_,
                    static_cast<std::int64_t>(i) * totals, reductions[i].variable(parts[j]));
      }
    }
    kernel.line("}");
    kernel.line("threadgroup_barrier(mem_flags::mem_threadgroup);");
    for (std::size_t i = 0; i < reductions.size(); ++i) {
      const std::vector<Reduction::Part>& parts = reductions[i].parts();
      const std::int64_t place = static_cast<std::int64_t>(i) * totals;
      std::vector<std::string> others;
      for (std::size_t j = 0; j < parts.size(); ++j) {
        const std::string array = shared(j, parts[j].type);
        kernel.line("{} = {}[lane_id + {}u];", reductions[i].variable(parts[j]), array, place);
        others.push_back(fmt::format("{}[lane_id + {}u]", array, place + 32));
      }
      if (totals > 32) reductions[i].merge(kernel, others);
      reductions[i].across_lanes(kernel, 16, lanes_);
    }
  }

  const Group& group_;
  const GpuContext& context_;
  Phases phases_;
  std::int64_t rows_ = 1;
  std::int64_t columns_ = 1;
  std::int64_t strips_ = 1;
  std::int64_t lanes_ = 32;  // that a row has
  std::int64_t chunk_ = 1;
  std::int64_t chunks_ = 1;
  Walk walk_;
};

}  // namespace

EmittedCalls emit_column(const Group& group, const GpuContext& context) { return ColumnEmitter(group, context).run(); }

Call column_results(const Group& group, std::int64_t parts, const GpuContext& context) {
  return ColumnEmitter(group, context).results(parts);
}

}  // namespace russet::gpu
