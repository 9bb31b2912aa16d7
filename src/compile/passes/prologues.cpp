// Prologues: a contraction computes the elements of an input where it reads them, where the device can and the input
// need not lie in memory for that.
//   group: z = relu(y * scale + shift); store z
//   c = convolution(z, w)                           =>    c = convolution(z, w) with prologue (z = relu(...) of y)
#include "compile/passes/passes.h"
#include "compile/passes/recomputation.h"
#include "ops/table.h"

namespace russet::compile::passes {
namespace {

/// Whether a group computes the value, element by element, or copies a view of another.
bool is_candidate(const Program& program, ValueId id) {
  const std::int32_t owner = program.owner[static_cast<std::size_t>(id)];
  if (owner < 0 || !(is_pointwise(value_at(program, id)) || is_view(value_at(program, id)))) return false;
  const Cluster& cluster = program.clusters[static_cast<std::size_t>(owner)];
  return !cluster.dead && cluster.kind == Cluster::Kind::group;
}

/// Every input that may be computed where it is read gets a prologue that computes nothing yet.
void open_prologues(Program& program) {
  const std::size_t count = program.clusters.size();
  for (std::size_t id = 0; id < count; ++id) {
    if (program.clusters[id].dead || program.clusters[id].kind != Cluster::Kind::primitive) continue;
    const Value& value = value_at(program, program.clusters[id].members.front());
    if (ops::row(value.op).family != ops::Family::contraction) continue;
    for (std::size_t i = 0; i < 2; ++i) {
      // It may be read through a view, but not one that only a run tells.
      const ValueId input = base_of(program, value.inputs[i]);
      if (!is_candidate(program, input)) continue;
      if (input != value.inputs[i] && value_at(program, value.inputs[i]).argument >= 0) continue;
      Cluster prologue;
      prologue.space = value_at(program, input).shape;
      prologue.dead = true;
      program.clusters[id].prologues[i] = static_cast<std::int32_t>(program.clusters.size());
      program.clusters.push_back(std::move(prologue));
    }
  }
}

void drop_empty_prologues(Program& program) {
  for (Cluster& cluster : program.clusters) {
    for (std::int32_t& prologue : cluster.prologues) {
      if (prologue >= 0 && program.clusters[static_cast<std::size_t>(prologue)].members.empty()) prologue = -1;
    }
  }
}

}  // namespace

void prologues(Program& program, const Target& target) {
  if (!target.takes_prologues()) return;
  open_prologues(program);
  Recomputation(program, target, Recomputation::Scope::prologues).run();
  drop_empty_prologues(program);
}

}  // namespace russet::compile::passes
