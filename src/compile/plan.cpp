#include "compile/plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "compile/clusters.h"
#include "compile/failure.h"
#include "compile/passes/passes.h"
#include "compile/steady.h"
#include "ops/cost.h"
#include "ops/table.h"

namespace russet::compile {
namespace {

/// A kernel with its step, as measured; libraries keep generated code in bounded caches of their own.
constexpr std::size_t kernel_bytes = 8192;

std::string& disabled_pass() {
  static std::string name;
  return name;
}

/// For devices that run primitives one by one.
void isolate(Program& program, const Target&) {
  program.owner.assign(program.values.size(), -1);
  for (std::size_t id = 0; id < program.values.size(); ++id) {
    if (program.values[id].leaf >= 0) continue;
    Cluster cluster;
    cluster.kind = Cluster::Kind::primitive;
    cluster.members = cluster.stores = {static_cast<ValueId>(id)};
    program.owner[id] = static_cast<std::int32_t>(program.clusters.size());
    program.clusters.push_back(std::move(cluster));
  }
}

/// What only passes read.
void drop_workings(Program& program) {
  program.clusters = {};
  program.owner = {};
  program.order = {};
}

std::size_t host_bytes(const Program& program) {
  std::size_t bytes = sizeof(Plan) + program.values.size() * sizeof(Value) + program.slots.size() * sizeof(Slot) +
                      program.steps.size() * kernel_bytes;
  const auto add = [&](const Group& group) {
    bytes += group.accesses.size() * sizeof(Access) + group.code.size() * sizeof(Instruction);
  };
  for (const Step& step : program.steps) {
    for_each_member(step, [&](const Step& member) {
      if (const Group* group = group_of(member)) add(*group);
    });
  }
  return bytes;
}

constexpr Pass fused[] = {
    {"decompose", "writes attention with plain operators where the device prefers them", passes::decompose},
    {"patches", "writes convolutions to patches as products where the device prefers them", passes::patches},
    {"space_to_depth", "takes strides off convolutions of few channels where the device prefers that",
     passes::space_to_depth},
    {"subsample", "takes strides off convolutions of single pixels where the device prefers that", passes::subsample},
    {"pieces", "writes sums of disjoint pieces as one array", passes::pieces},
    {"simplify", "replaces values by cheaper ones with the same bits", passes::simplify},
    {"maxima", "lets what pools choose through before it is spread over what they choose of", passes::maxima},
    {"share", "computes common subexpressions once", passes::share},
    {"prune", "drops what no output needs", passes::prune},
    {"fold", "lets weights scale what convolutions give, where biases cost nothing", passes::fold},
    {"join", "makes one product of several that share a factor or are added up", passes::join},
    {"layout", "lets contractions choose the memory order of images", passes::layout},
    {"reorder", "copies what contractions take in another memory order", passes::reorder},
    {"fuse", "puts values over one index space into groups", passes::fuse},
    {"recompute", "computes again what is cheaper to compute than to store", passes::recompute},
    {"pair", "lets one kernel compute two results of an attention", passes::pair},
    {"epilogues", "gives contractions the elementwise work that follows them", passes::epilogues},
    {"prologues", "lets contractions compute what they read", passes::prologues},
    {"place", "computes pieces of an array where they belong", passes::place},
    {"schedule", "orders the clusters", passes::schedule},
    {"lower", "turns clusters into steps over slots", passes::lower},
    {"rematerialise", "computes again what there is no room for", passes::rematerialise},
    {"updates", "changes arrays that nobody needs as they were in their place", passes::updates},
    {"positions", "keeps where pools found their maxima for their gradients", passes::positions},
    {"dropout_bits", "keeps what the dropout of an attention keeps for its gradients", passes::dropout_bits},
    {"gradient_sums", "lets gradients of an attention add up their columns", passes::gradient_sums},
    {"masks", "stores large masks four elements to a byte", passes::masks},
    {"column_sums", "lets row groups add up the columns of what they read and compute", passes::column_sums},
    {"stages", "makes the two launches of a step two steps", passes::stages},
    {"hoist", "keeps what evaluations compute of parameters alone", passes::hoist},
    {"samples", "runs steps of small networks one after the other for each sample of a batch", passes::samples},
    {"bundle", "runs steps together that do not need each other", passes::bundle},
    {"indices", "checks each index once", passes::indices},
};

constexpr Pass plain[] = {
    {"isolate", "makes every value a step", isolate},
    {"schedule", "orders the clusters", passes::schedule},
    {"lower", "turns clusters into steps over slots", passes::lower},
    {"rematerialise", "computes again what there is no room for", passes::rematerialise},
    {"indices", "checks each index once", passes::indices},
};

}  // namespace

std::span<const Pass> pipeline(const Target& target) {
  return target.runs_groups() ? std::span<const Pass>(fused) : std::span<const Pass>(plain);
}

void disable_pass(std::string name) { disabled_pass() = std::move(name); }

namespace {

std::vector<std::vector<std::int32_t>> births_of(const Program& program) {
  std::vector<std::vector<std::int32_t>> births(program.steps.size());
  std::vector<bool> seen(program.slots.size());
  for (std::size_t slot = 0; slot < program.slots.size(); ++slot) {
    const Slot& place = program.slots[slot];
    const bool lent =
        place.kind == Slot::Kind::output && program.outputs[static_cast<std::size_t>(place.index)].donor >= 0;
    seen[slot] = lent || place.kind == Slot::Kind::leaf || place.kind == Slot::Kind::prepared;
  }
  for (std::size_t step = 0; step < program.steps.size(); ++step) {
    for_each_access(program.steps[step], [&](std::int32_t slot, bool) {
      if (seen[static_cast<std::size_t>(slot)]) return;
      seen[static_cast<std::size_t>(slot)] = true;
      births[step].push_back(slot);
    });
  }
  return births;
}

}  // namespace

namespace {

void run(std::span<const Pass> passes, Program& program, const Target& target) {
  for (const Pass& pass : passes) {
    if (pass.name == disabled_pass()) continue;
    if (program.preparation) pass.run(*program.preparation, target);
    pass.run(program, target);
  }
}

/// Bytes up to which the program's temporaries may lie apart (see Target) so that all of it still has room, should
/// every output need memory of its own.
std::size_t bytes_apart_in(const Program& program, const Target& target, std::optional<std::size_t> room) {
  if (!room) return target.bytes_apart();
  std::size_t kept = 0;
  for (const Slot& slot : program.slots) {
    if (slot.kind == Slot::Kind::output || slot.kind == Slot::Kind::prepared) kept += slot.bytes;
  }
  return std::min(target.bytes_apart(), *room - std::min(*room, kept));
}

/// Kernels and memory for a program of steps. `room`: bytes for what it takes, if something limits them.
Plan finish(Program program, const Target& target, std::optional<std::size_t> room) {
  Plan plan;
  if (const std::shared_ptr<Program> preparation = std::move(program.preparation)) {
    plan.preparation = std::make_shared<const Plan>(finish(std::move(*preparation), target, 0));
    plan.prepared_arguments = arguments_of(plan.preparation->program.steps);
  }
  plan.kernels.reserve(program.steps.size());
  for (const Step& step : program.steps) {
    try {
      plan.kernels.push_back(target.compile(step));
    } catch (...) {
      throw StepFailure{std::current_exception(), nodes_of(program, step)};
    }
    program.scratch.push_back(plan.kernels.back()->scratch_bytes());
    plan.step_bytes.push_back(bytes_of(step));
    plan.moved_bytes += plan.step_bytes.back();
  }
  target.share_code(plan.kernels);
  passes::arena(program, target, bytes_apart_in(program, target, room));
  for (const Slot& slot : program.slots) {
    if (slot.kind == Slot::Kind::output && program.outputs[static_cast<std::size_t>(slot.index)].donor < 0) {
      plan.output_bytes += slot.bytes;
    }
  }
  plan.total_bytes = plan.output_bytes + program.arena_bytes;
  if (plan.preparation) {
    const std::size_t arena = std::max(program.arena_bytes, plan.preparation->program.arena_bytes);
    plan.total_bytes = plan.output_bytes + plan.preparation->output_bytes + arena;
  }
  plan.births = births_of(program);
  drop_workings(program);
  plan.host_bytes = host_bytes(program) + (plan.preparation ? plan.preparation->host_bytes : 0);
  plan.program = std::move(program);
  return plan;
}

/// Plans that a program gets at most until one fits.
constexpr int most_plans = 8;

/// Plans again, with less room for temporaries, until the plan fits. What temporaries take in the end (scratch space,
/// gaps between them) is known only then, so each plan tells by how much the next one has to be smaller.
Plan fit(Plan plan, const Program& lowered, std::span<const Pass> passes, const Target& target, std::size_t room) {
  std::size_t temporaries = room - std::min(room, plan.output_bytes);
  for (int plans = 1; plans < most_plans && plan.total_bytes > room; ++plans) {
    Program smaller = lowered;
    smaller.room = temporaries;
    run(passes, smaller, target);
    Plan next = finish(std::move(smaller), target, room);
    const std::size_t excess = next.total_bytes - std::min(room, next.total_bytes);
    if (next.total_bytes < plan.total_bytes) plan = std::move(next);
    if (excess >= temporaries) break;
    temporaries -= excess;
  }
  return plan;
}

}  // namespace

Plan make_plan(Program program, const Target& target, std::optional<std::size_t> room) {
  const std::span<const Pass> passes = pipeline(target);
  const auto is_rematerialise = [](const Pass& pass) { return pass.run == passes::rematerialise; };
  const auto lowered = static_cast<std::size_t>(std::ranges::find_if(passes, is_rematerialise) - passes.begin());
  run(passes.first(lowered), program, target);
  if (!room) {
    run(passes.subspan(lowered), program, target);
    return finish(std::move(program), target, room);
  }
  Program first = program;
  run(passes.subspan(lowered), first, target);
  Plan plan = fit(finish(std::move(first), target, room), program, passes.subspan(lowered), target, *room);
  plan.room = room;
  return plan;
}

namespace {

std::size_t bytes_through(const Access& access, const Shape& sizes) {
  std::size_t count = size_of(access.dtype);
  for (int axis = 0; axis < sizes.rank(); ++axis) {
    if (access.strides[axis] != 0 || sizes[axis] == 0) count *= static_cast<std::size_t>(sizes[axis]);
  }
  return access.packed ? count / 4 : count;
}

std::size_t bytes_of_group(const Group& group) {
  std::size_t bytes = 0;
  for (const Access& access : group.accesses) {
    if (access.slot >= 0) bytes += bytes_through(access, group.space);
  }
  return bytes;
}

double operations_of_group(const Group& group) {
  double count = 0;
  for (const Instruction& in : group.code) {
    const bool works = in.kind == Instruction::Kind::compute || in.kind == Instruction::Kind::reduce;
    if (works && in.extent == Extent::full) count += static_cast<double>(numel(group.space));
  }
  return count;
}

/// The step that a stage is part of; the first stage does nearly all of its work.
Step whole_of(const Stage& stage) {
  return std::visit([](const auto& whole) -> Step { return whole; }, stage.whole);
}

/// Whether the second input is the first one again: a max pool finds maxima in the one and takes them from the other.
bool reads_again(const Primitive& primitive, std::size_t input) {
  return input == 1 && primitive.inputs[0] == primitive.inputs[1] && primitive.prologues[0] == primitive.prologues[1];
}

}  // namespace

std::size_t bytes_of(const Step& step) {
  if (const auto* group = std::get_if<Group>(&step)) return bytes_of_group(*group);
  if (const auto* stage = std::get_if<Stage>(&step)) return stage->number == 0 ? bytes_of(whole_of(*stage)) : 0;
  std::size_t bytes = 0;
  if (std::holds_alternative<Bundle>(step)) {
    for_each_member(step, [&](const Step& member) { bytes += bytes_of(member); });
    return bytes;
  }
  const auto& primitive = std::get<Primitive>(step);
  for (std::size_t i = 0; i < primitive.inputs.size(); ++i) {
    const Operand& input = primitive.inputs[i];
    if (reads_again(primitive, i)) continue;
    if (input.access.slot >= 0) bytes += bytes_through(input.access, input.sizes);
    if (i < primitive.prologues.size()) bytes += bytes_of_group(primitive.prologues[i]);
  }
  for (const Companion& companion : primitive.companions) {
    bytes += bytes_through(companion.output.access, companion.output.sizes);
  }
  for (const Access& access : primitive.epilogue.accesses) {
    if (access.slot < 0 || access.slot == primitive.output.access.slot) continue;
    bytes += bytes_through(access, primitive.epilogue.space);
  }
  return bytes + bytes_through(primitive.output.access, primitive.output.sizes);
}

double operations_of(const Step& step) {
  if (const auto* group = std::get_if<Group>(&step)) return operations_of_group(*group);
  if (const auto* stage = std::get_if<Stage>(&step)) return stage->number == 0 ? operations_of(whole_of(*stage)) : 0;
  if (std::holds_alternative<Bundle>(step)) {
    double sum = 0;
    for_each_member(step, [&](const Step& member) { sum += operations_of(member); });
    return sum;
  }
  const auto& p = std::get<Primitive>(step);
  std::vector<Shape> inputs;
  for (const Operand& input : p.inputs) inputs.push_back(input.sizes);
  std::vector<ops::Op> companions;
  for (const Companion& companion : p.companions) {
    if (!companion.is_sum) companions.push_back(companion.op);
  }
  return ops::operations(p.op, p.attributes, inputs, p.output.sizes, companions);
}

std::optional<DType> factors_of(const Step& step) {
  if (std::holds_alternative<Bundle>(step)) {
    std::optional<DType> narrowest;
    for_each_member(step, [&](const Step& member) {
      const std::optional<DType> factors = factors_of(member);
      if (factors && (!narrowest || size_of(*factors) < size_of(*narrowest))) narrowest = factors;
    });
    return narrowest;
  }
  const auto* const primitive = std::get_if<Primitive>(&step);
  if (primitive == nullptr || ops::row(primitive->op).family != ops::Family::contraction) return std::nullopt;
  return primitive->inputs[0].access.dtype;
}

}  // namespace russet::compile
