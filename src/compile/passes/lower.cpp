// Lowering: clusters, in their order, become steps over slots. An overwrite takes its base's memory where nobody else
// needs the base, and pieces that are computed where they belong (see place.cpp) lie in the array's.
#include <algorithm>

#include "compile/clusters.h"
#include "compile/emit.h"
#include "compile/failure.h"
#include "compile/passes/passes.h"
#include "graph/strided.h"

namespace russet::compile::passes {
namespace {

using ops::Op;

class Lowering {
 public:
  Lowering(Program& program, const Target& target) : program_(program), target_(target) {
    slot_of_.assign(program.values.size(), -1);
    is_shared_.assign(program.values.size(), false);
    output_of_.assign(program.values.size(), -1);
    for (std::size_t i = program.outputs.size(); i-- > 0;) {
      output_of_[static_cast<std::size_t>(program.outputs[i].value)] = static_cast<std::int32_t>(i);
    }
  }

  void run() {
    program_.slots.clear();
    program_.steps.clear();
    for (std::size_t i = 0; i < program_.leaves.size(); ++i) {
      new_slot(program_.leaves[i].value, Slot::Kind::leaf, static_cast<std::int32_t>(i));
    }
    find_shared_slots();
    for (std::size_t i = 0; i < program_.outputs.size(); ++i) {
      const ValueId value = program_.outputs[i].value;
      if (slot_of_[static_cast<std::size_t>(value)] < 0) {
        new_slot(value, Slot::Kind::output, static_cast<std::int32_t>(i));
      }
    }
    share_slots();
    place_pieces();
    for (const std::int32_t id : program_.order) lower(program_.clusters[static_cast<std::size_t>(id)]);
  }

 private:
  const Value& value(ValueId id) const { return value_at(program_, id); }
  std::int32_t& slot_of(ValueId id) { return slot_of_[static_cast<std::size_t>(id)]; }

  void new_slot(ValueId id, Slot::Kind kind, std::int32_t index) {
    slot_of(id) = static_cast<std::int32_t>(program_.slots.size());
    Slot slot;
    slot.kind = kind;
    slot.index = index;
    slot.bytes = byte_size(value(id));
    slot.value = id;
    program_.slots.push_back(slot);
  }

  /// The position in the order from which no cluster can fail any more; see first_sure_step.
  std::size_t first_sure_cluster() const {
    for (std::size_t i = program_.order.size(); i-- > 0;) {
      const Cluster& cluster = program_.clusters[static_cast<std::size_t>(program_.order[i])];
      for (const ValueId member : cluster.members) {
        if (!may_fail(program_, value(member), target_)) continue;
        return cluster.kind == Cluster::Kind::group ? i + 1 : i;
      }
    }
    return 0;
  }

  /// Finds overwrites that are the only reader of their base: base and result then share a slot.
  void find_shared_slots() {
    const auto sure = program_.order.begin() + static_cast<std::ptrdiff_t>(first_sure_cluster());
    std::vector<bool> is_sure(program_.clusters.size(), false);
    for (auto id = sure; id != program_.order.end(); ++id) is_sure[static_cast<std::size_t>(*id)] = true;
    const Readers readers(program_, Readers::Views::looked_through);
    for (std::size_t id = 0; id < program_.values.size(); ++id) {
      const Value& v = program_.values[id];
      if (v.op != Op::overwrite || program_.owner[id] < 0) continue;
      const ValueId base = v.inputs[0];
      const Value& source = value(base);
      if (is_view(source) || readers.of(base).size() != 1 || root_output(base) >= 0) continue;
      if (source.leaf >= 0 && !program_.leaves[static_cast<std::size_t>(source.leaf)].donatable) continue;
      if (source.leaf >= 0 && root_output(static_cast<ValueId>(id)) < 0) continue;
      if (source.leaf >= 0 && !is_sure[static_cast<std::size_t>(program_.owner[id])]) continue;
      next_.emplace_back(base, static_cast<ValueId>(id));
    }
  }

  /// The output that ends a chain of overwrites in one memory, or -1.
  std::int32_t root_output(ValueId id) const { return output_of_[static_cast<std::size_t>(id)]; }

  void share_slots() {
    // From the last overwrite of a chain to the first: all take the last one's slot.
    for (std::size_t i = next_.size(); i-- > 0;) {
      const auto [base, result] = next_[i];
      if (value(base).leaf >= 0) {
        const std::int32_t output = root_output(result);
        program_.outputs[static_cast<std::size_t>(output)].donor = value(base).leaf;
        is_shared_[static_cast<std::size_t>(result)] = true;
        slot_of(result) = slot_of(base);
        continue;
      }
      if (slot_of(result) < 0) new_slot(result, Slot::Kind::temporary, -1);
      slot_of(base) = slot_of(result);
      is_shared_[static_cast<std::size_t>(result)] = true;
    }
  }

  void place_pieces() {
    for (std::size_t id = 0; id < program_.values.size(); ++id) {
      const ValueId array = program_.values[id].within;
      if (array < 0) continue;
      if (slot_of(array) < 0) new_slot(array, Slot::Kind::temporary, -1);
      slot_of_[id] = slot_of(array);
    }
  }

  void lower(const Cluster& cluster) {
    for (const ValueId stored : cluster.stores) {
      if (slot_of(stored) < 0) new_slot(stored, Slot::Kind::temporary, -1);
    }
    if (cluster.kind == Cluster::Kind::group) {
      emit(emit_group(program_, cluster, slot_of_));
      return;
    }
    const ValueId id = first_of(program_, cluster);
    if (value(id).op == Op::overwrite && target_.runs_groups()) {
      overwrite(id);
    } else if (value(id).op != Op::empty) {
      emit(emit_primitive(program_, id, attached_to(program_, cluster), slot_of_));
    }
  }

  void emit(Step step) { program_.steps.push_back(std::move(step)); }

  void overwrite(ValueId id) {
    const Value& v = value(id);
    const Value& base = value(v.inputs[0]);
    const Value& source = value(v.inputs[1]);
    if (value(base_of(program_, v.inputs[1])).within == id) return;
    if (!is_shared_[static_cast<std::size_t>(id)] && base.op != Op::empty) {
      emit(emit_copy(v.shape, access_of(program_, v.inputs[0], slot_of_), {slot_of(id), v.dtype, 0, -1, v.strides}));
    }
    const ops::View& view = std::get<ops::View>(v.attributes);
    emit(emit_copy(source.shape, access_of(program_, v.inputs[1], slot_of_),
                   {slot_of(id), v.dtype, view.offset, v.argument, view.strides}));
  }

  Program& program_;
  const Target& target_;
  std::vector<std::int32_t> slot_of_;
  std::vector<std::pair<ValueId, ValueId>> next_;
  std::vector<bool> is_shared_;          // by value: an overwrite that takes its base's memory
  std::vector<std::int32_t> output_of_;  // by value; -1 for none
};

}  // namespace

void lower(Program& program, const Target& target) { Lowering(program, target).run(); }

}  // namespace russet::compile::passes
