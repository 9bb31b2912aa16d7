// Fusion: fusable values that share an index space become one group, so that what lies between them never goes through
// memory. Before:            After:
//   a = exp(x)                 group [N, C]: load x; exp; sum along C; divide; store
//   s = sum(a, C)
//   y = a / s
// A value joins the group of one of its inputs, and groups of several inputs become one, where no path through other
// steps leads from the group back into it.
#include "compile/clusters.h"
#include "compile/passes/fusion.h"
#include "compile/passes/passes.h"

namespace russet::compile::passes {
namespace {

/// Whether a view of a view may read the memory behind both.
bool sees_through(const Program& program, const Value& view) {
  const Value& source = value_at(program, view.inputs[0]);
  return is_view(source) && !std::get<ops::View>(view.attributes).dynamic && is_alias(program, source);
}

/// Which views and free values must lie in memory themselves: outputs, what primitives read and cannot reach through a
/// view, and bases of further views.
std::vector<bool> find_stored(const Program& program) {
  std::vector<bool> stored(program.values.size(), false);
  const auto mark = [&](ValueId id) { stored[static_cast<std::size_t>(id)] = true; };
  for (const Output& output : program.outputs) mark(output.value);
  for (std::size_t id = 0; id < program.values.size(); ++id) {
    const Value& value = program.values[id];
    if (is_view(value) && !sees_through(program, value)) mark(value.inputs[0]);
    if (is_view(value) || is_fusable(value)) continue;
    for (std::size_t input = 0; input < ops::max_inputs && value.inputs[input] >= 0; ++input) {
      if (draws(program, value, input)) continue;
      const Value& source = value_at(program, value.inputs[input]);
      if (!is_view(source) || !reads_through_view(value, static_cast<int>(input), source)) mark(value.inputs[input]);
    }
  }
  return stored;
}

/// Values that nothing but attentions reads, which draw them themselves.
std::vector<bool> find_drawn(const Program& program, const std::vector<bool>& stored) {
  std::vector<bool> drawn(program.values.size(), false);
  std::vector<bool> read(stored);
  for (const Value& value : program.values) {
    for (std::size_t input = 0; input < ops::max_inputs && value.inputs[input] >= 0; ++input) {
      (draws(program, value, input) ? drawn : read)[static_cast<std::size_t>(value.inputs[input])] = true;
    }
  }
  for (std::size_t id = 0; id < drawn.size(); ++id) drawn[id] = drawn[id] && !read[id];
  return drawn;
}

/// Every computed value starts alone.
void start_clusters(Program& program) {
  const std::vector<bool> stored = find_stored(program);
  const std::vector<bool> drawn = find_drawn(program, stored);
  program.owner.assign(program.values.size(), -1);
  program.clusters.clear();
  for (std::size_t id = 0; id < program.values.size(); ++id) {
    const Value& value = program.values[id];
    if (value.leaf >= 0 || drawn[id] || ((is_view(value) || is_free(value)) && !stored[id])) continue;
    Cluster cluster;
    cluster.kind = is_fusable(value) || is_view(value) ? Cluster::Kind::group : Cluster::Kind::primitive;
    cluster.members = {static_cast<ValueId>(id)};
    cluster.space = value.shape;
    if (is_reduction(value)) {
      cluster.space = value_at(program, value.inputs[0]).shape;
      cluster.reduced = std::get<ops::Axes>(value.attributes).mask;
    }
    program.owner[id] = static_cast<std::int32_t>(program.clusters.size());
    program.clusters.push_back(std::move(cluster));
  }
}

/// What other clusters or the outside read must be stored.
void find_stores(Program& program) {
  std::vector<bool> read(program.values.size(), false);
  for (const Output& output : program.outputs) read[static_cast<std::size_t>(output.value)] = true;
  for (std::size_t id = 0; id < program.values.size(); ++id) {
    const std::int32_t own = program.owner[id];
    if (own < 0) continue;
    const bool by_group = program.clusters[static_cast<std::size_t>(own)].kind == Cluster::Kind::group;
    for (const ValueId input : program.values[id].inputs) {
      if (input < 0) continue;
      const ValueId base = base_of(program, input);
      const auto at = static_cast<std::size_t>(base);
      const bool through_view = base != input;
      const bool leaves_group = program.owner[at] != own || (by_group && through_view);
      // A group computes free values itself wherever it reads them directly.
      const bool computed_again = by_group && !through_view && is_free(program.values[at]);
      if (leaves_group && !computed_again) read[at] = true;
    }
  }
  for (Cluster& cluster : program.clusters) {
    for (const ValueId member : cluster.members) {
      if (read[static_cast<std::size_t>(member)]) cluster.stores.push_back(member);
    }
    if (cluster.stores.empty()) cluster.dead = true;
  }
}

}  // namespace

void fuse(Program& program, const Target& target) {
  start_clusters(program);
  Fusion fusion(program, target);
  fusion.merge_along_reads();
  fusion.merge_siblings();
  find_stores(program);
}

}  // namespace russet::compile::passes
