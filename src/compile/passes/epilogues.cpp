// Epilogues: elementwise work on the result of a contraction or a pool is done before it is stored, where the device
// can.
//   c = matmul(a, b); y = relu(c + bias)      ->      y = matmul(a, b) with epilogue (+ bias, relu)
#include <algorithm>

#include "compile/clusters.h"
#include "compile/emit.h"
#include "compile/passes/passes.h"
#include "ops/table.h"

namespace russet::compile::passes {
namespace {

class Epilogues {
 public:
  Epilogues(Program& program, const Target& target) : program_(program), target_(target), reach_(program) {
    // Slots do not exist yet; a value's own number stands for its memory.
    for (std::size_t id = 0; id < program.values.size(); ++id) places_.push_back(static_cast<std::int32_t>(id));
    outputs_.assign(program.values.size(), false);
    for (const Output& output : program.outputs) outputs_[static_cast<std::size_t>(output.value)] = true;
  }

  void run() {
    for (std::size_t id = 0; id < program_.clusters.size(); ++id) {
      const Cluster& cluster = program_.clusters[id];
      if (cluster.dead || cluster.kind != Cluster::Kind::primitive) continue;
      const ValueId result = cluster.members.front();
      const ops::Family family = ops::row(value_at(program_, result).op).family;
      if (family == ops::Family::contraction || family == ops::Family::window) {
        consider(static_cast<std::int32_t>(id), result);
      }
    }
  }

 private:
  /// The one group that reads the result, all of it and nothing else of the program does; -1 if there is none.
  std::int32_t sole_reader(ValueId result) const {
    std::int32_t reader = -1;
    if (outputs_[static_cast<std::size_t>(result)]) return -1;
    for (std::size_t id = 0; id < program_.clusters.size(); ++id) {
      const Cluster& cluster = program_.clusters[id];
      if (cluster.dead) continue;
      for (const ValueId member : cluster.members) {
        for (const ValueId input : value_at(program_, member).inputs) {
          if (input < 0 || base_of(program_, input) != result) continue;
          if (input != result || (reader >= 0 && reader != static_cast<std::int32_t>(id))) return -1;
          reader = static_cast<std::int32_t>(id);
        }
      }
    }
    return reader;
  }

  void consider(std::int32_t producer, ValueId result) {
    const std::int32_t group = sole_reader(result);
    if (group < 0) return;
    const Cluster& tail = program_.clusters[static_cast<std::size_t>(group)];
    const Value& value = value_at(program_, result);
    if (tail.kind != Cluster::Kind::group || tail.reduced != 0 || tail.stores.size() != 1) return;
    const Value& stored = value_at(program_, tail.stores.front());
    if (tail.space != value.shape || stored.shape != value.shape || stored.strides != value.strides) return;
    if (reach_.reaches(producer, group, true)) return;
    if (!target_.accepts_epilogue(described(result, tail))) return;
    Cluster& head = program_.clusters[static_cast<std::size_t>(producer)];
    head.epilogue = group;
    head.stores = tail.stores;
    for (const ValueId member : tail.members) {
      if (program_.owner[static_cast<std::size_t>(member)] == group) {
        program_.owner[static_cast<std::size_t>(member)] = producer;
      }
    }
    program_.clusters[static_cast<std::size_t>(group)].dead = true;
    reach_.redirect(group, producer);
    reach_.absorb(producer, group);
  }

  Primitive described(ValueId result, const Cluster& tail) const {
    const Value& value = value_at(program_, result);
    Primitive primitive;
    primitive.op = value.op;
    primitive.attributes = value.attributes;
    for (std::size_t i = 0; i < 3 && value.inputs[i] >= 0; ++i) {
      primitive.inputs.push_back(
          {access_of(program_, value.inputs[i], places_), value_at(program_, value.inputs[i]).shape});
    }
    std::vector<std::int32_t> places = places_;
    places[static_cast<std::size_t>(result)] = -1;
    primitive.epilogue = emit_epilogue_group(program_, tail, result, places);
    const ValueId stored = tail.stores.front();
    const Value& out = value_at(program_, stored);
    primitive.output = {{stored, out.dtype, 0, -1, out.strides}, out.shape};
    return primitive;
  }

  Program& program_;
  const Target& target_;
  Reachability reach_;
  std::vector<std::int32_t> places_;
  std::vector<bool> outputs_;
};

}  // namespace

void epilogues(Program& program, const Target& target) { Epilogues(program, target).run(); }

}  // namespace russet::compile::passes
