#include "compile/step.h"

namespace russet::compile {

std::vector<bool> written_accesses(const Group& group) {
  std::vector<bool> written(group.accesses.size(), false);
  for (const Instruction& in : group.code) {
    if (in.kind == Instruction::Kind::store) written[static_cast<std::size_t>(in.access)] = true;
  }
  return written;
}

namespace {

using Visitor = base::FunctionRef<void(std::int32_t, bool)>;

void visit_group(const Group& group, Visitor visit) {
  const std::vector<bool> written = written_accesses(group);
  for (std::size_t i = 0; i < group.accesses.size(); ++i) {
    if (group.accesses[i].slot >= 0) visit(group.accesses[i].slot, written[i]);
  }
}

void visit_primitive(const Primitive& primitive, Visitor visit) {
  for (const Operand& input : primitive.inputs) {
    if (input.access.slot >= 0) visit(input.access.slot, false);
  }
  for (const Group& prologue : primitive.prologues) visit_group(prologue, visit);
  visit_group(primitive.epilogue, [&](std::int32_t slot, bool writes) {
    if (slot != primitive.output.access.slot) visit(slot, writes);
  });
  visit(primitive.output.access.slot, true);
  for (const Companion& companion : primitive.companions) visit(companion.output.access.slot, true);
}

void visit_stage(const Stage& stage, Visitor visit) {
  for (const std::int32_t slot : stage.reads) visit(slot, false);
  if (stage.number == 1) visit(stage.parts, false);
  for (const std::int32_t slot : stage.writes) visit(slot, true);
  if (stage.number == 0) visit(stage.parts, true);
}

}  // namespace

bool has_prologue(const Primitive& primitive) {
  return !primitive.prologues[0].code.empty() || !primitive.prologues[1].code.empty();
}

bool is_storing(const Group& prologue) {
  bool stores = false;
  visit_group(prologue, [&](std::int32_t, bool writes) { stores |= writes; });
  return stores;
}

void for_each_access(const Step& step, Visitor visit) {
  if (const auto* group = std::get_if<Group>(&step)) return visit_group(*group, visit);
  if (const auto* primitive = std::get_if<Primitive>(&step)) return visit_primitive(*primitive, visit);
  if (const auto* stage = std::get_if<Stage>(&step)) return visit_stage(*stage, visit);
  for (const Step& member : std::get<Bundle>(step).members) for_each_access(member, visit);
}

namespace {

using SlotPlace = base::FunctionRef<std::int32_t(std::int32_t)>;

void rename_slot(std::int32_t& slot, SlotPlace place) {
  if (slot >= 0) slot = place(slot);
}

void rename_group(Group& group, SlotPlace place) {
  for (Access& access : group.accesses) rename_slot(access.slot, place);
}

void rename_primitive(Primitive& primitive, SlotPlace place) {
  for (Operand& input : primitive.inputs) rename_slot(input.access.slot, place);
  for (Group& prologue : primitive.prologues) rename_group(prologue, place);
  rename_group(primitive.epilogue, place);
  rename_slot(primitive.output.access.slot, place);
  for (Companion& companion : primitive.companions) rename_slot(companion.output.access.slot, place);
}

void rename_stage(Stage& stage, SlotPlace place) {
  if (auto* group = std::get_if<Group>(&stage.whole)) rename_group(*group, place);
  if (auto* primitive = std::get_if<Primitive>(&stage.whole)) rename_primitive(*primitive, place);
  for (std::int32_t& slot : stage.reads) rename_slot(slot, place);
  for (std::int32_t& slot : stage.writes) rename_slot(slot, place);
  rename_slot(stage.parts, place);
}

}  // namespace

void rename_slots(Step& step, SlotPlace place) {
  if (auto* group = std::get_if<Group>(&step)) return rename_group(*group, place);
  if (auto* primitive = std::get_if<Primitive>(&step)) return rename_primitive(*primitive, place);
  if (auto* stage = std::get_if<Stage>(&step)) return rename_stage(*stage, place);
  auto& bundle = std::get<Bundle>(step);
  for (Step& member : bundle.members) rename_slots(member, place);
  for (HandedOn& memory : bundle.handed_on) rename_slot(memory.slot, place);
  for (std::int32_t& slot : bundle.shared) rename_slot(slot, place);
}

void for_each_member(const Step& step, base::FunctionRef<void(const Step&)> visit) {
  const auto* bundle = std::get_if<Bundle>(&step);
  if (bundle == nullptr) return visit(step);
  for (const Step& member : bundle->members) visit(member);
}

const Group* group_of(const Step& step) {
  const auto* stage = std::get_if<Stage>(&step);
  return stage != nullptr ? std::get_if<Group>(&stage->whole) : std::get_if<Group>(&step);
}

}  // namespace russet::compile
