#include "compile/step.h"

namespace russet::compile {
namespace {

using Visitor = base::FunctionRef<void(const Access&, bool)>;

void visit_group(const Group& group, Visitor visit) {
  std::vector<bool> written(group.accesses.size(), false);
  for (const Instruction& in : group.code) {
    if (in.kind == Instruction::Kind::store) written[static_cast<std::size_t>(in.access)] = true;
  }
  for (std::size_t i = 0; i < group.accesses.size(); ++i) {
    if (group.accesses[i].slot >= 0) visit(group.accesses[i], written[i]);
  }
}

void visit_primitive(const Primitive& primitive, Visitor visit) {
  for (const Operand& input : primitive.inputs) visit(input.access, false);
  for (const Access& access : primitive.epilogue.accesses) {
    if (access.slot >= 0 && access.slot != primitive.output.access.slot) visit(access, false);
  }
  visit(primitive.output.access, true);
}

}  // namespace

void for_each_access(const Step& step, Visitor visit) {
  if (const auto* group = std::get_if<Group>(&step)) return visit_group(*group, visit);
  if (const auto* primitive = std::get_if<Primitive>(&step)) return visit_primitive(*primitive, visit);
  for (const Group& group : std::get<Bundle>(step).groups) visit_group(group, visit);
}

}  // namespace russet::compile
