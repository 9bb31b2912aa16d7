// Elementwise groups: a thread an item, an item a vector of elements where memory allows it.
#include <algorithm>

#include "device/gpu/emitter/emit.h"
#include "device/gpu/emitter/group_text.h"

namespace russet::gpu {
namespace {

using compile::Group;

/// A group with its axes in the order in which threads count them, and how items lie in it.
struct Walked {
  Group group;
  Walk walk;
};

constexpr int gathered_width = 4;
/// Elements that are worth a kernel of their own.
constexpr std::int64_t fewest_elements = std::int64_t{1} << 17;

/// A short axis along which elements that are loaded lie side by side, where along the inner one others do: weights of
/// windows that are copied to where neighbouring channels lie side by side. -1 if there is none, or for few elements.
int gathered_axis(const Group& group, int inner) {
  constexpr std::int64_t longest = 32;
  if (inner < 1 || group.space[inner] % gathered_width != 0 || numel(group.space) < fewest_elements) return -1;
  const std::vector<bool> written = compile::written_accesses(group);
  int found = -1;
  for (std::size_t i = 0; i < group.accesses.size(); ++i) {
    const compile::Access& access = group.accesses[i];
    if (access.slot < 0 || access.strides[inner] == 0 || is_aligned(access, inner, gathered_width)) continue;
    int axis = inner - 1;
    while (axis >= 0 && (access.strides[axis] != 1 || group.space[axis] > longest)) --axis;
    if (written[i] || access.packed || axis < 0) return -1;
    found = axis;
  }
  return found;
}

/// Neighbouring threads take neighbours along that axis, and a vector along the inner one: of what is gathered they
/// read whole lines of memory together, though each reads elements that lie apart.
Walked gathered(const Group& group, int axis, int inner) {
  const auto to_the_end = [axis](auto& list, int rank) {
    for (int i = axis; i + 1 < rank; ++i) std::swap(list[i], list[i + 1]);
  };
  Walked walked{group, {inner - 1, gathered_width, needs_wide_index(group)}};
  to_the_end(walked.group.space, group.space.rank());
  for (compile::Access& access : walked.group.accesses) to_the_end(access.strides, access.strides.rank());
  return walked;
}

/// Whether the last axis is short, and what is loaded lies side by side along the one before it: an image whose
/// channels, planes of memory, are to lie side by side. Threads take vectors along the planes then, neighbours among
/// them of one plane after the other.
bool are_planes(const Group& group, int inner) {
  if (inner < 1 || group.space[inner] >= gathered_width || group.space[inner - 1] % gathered_width != 0 ||
      numel(group.space) < fewest_elements) {
    return false;
  }
  const std::vector<bool> written = compile::written_accesses(group);
  bool any = false;
  for (std::size_t i = 0; i < group.accesses.size(); ++i) {
    const compile::Access& access = group.accesses[i];
    if (access.packed) return false;
    if (access.slot < 0 || written[i] || access.strides[inner - 1] == 0) continue;
    if (!is_aligned(access, inner - 1, gathered_width)) return false;
    any = true;
  }
  return any;
}

Walked walked(const Group& group) {
  const int inner = group.space.rank() - 1;
  if (are_planes(group, inner)) return {group, {inner - 1, gathered_width, needs_wide_index(group)}};
  if (const int axis = gathered_axis(group, inner); axis >= 0) return gathered(group, axis, inner);
  return {group, {inner, vector_width(group, inner), needs_wide_index(group)}};
}

/// What the thread of `item` does.
void write_item(const Group& group, const Walk& walk, KernelText& kernel) {
  const auto items = static_cast<std::uint64_t>(numel(group.space) / walk.width);
  const Phases phases = make_phases(group, false);
  GroupText text(group, phases, walk, kernel, GroupPart::all);
  text.leave_rounding_to_stores();
  const std::string count =
      walk.wide ? kernel.values().add_ulong("items", items) : kernel.values().add_uint("items", items);
  kernel.line("if (item >= {}) return;", count);
  text.places().define_bases();
  text.places().define(0, group.space.rank(), "item", true);
  text.run_full(phases.list[0], [] {});
}

}  // namespace

bool stores_whole_bytes(const Group& group) {
  const bool is_whole = group.kind == Group::Kind::elementwise && walked(group).walk.width == 4;
  return is_whole || std::ranges::none_of(group.code, [&](const compile::Instruction& in) {
           return in.kind == compile::Instruction::Kind::store &&
                  group.accesses[static_cast<std::size_t>(in.access)].packed;
         });
}

EmittedCalls emit_elementwise(const Group& whole, const GpuContext& context) {
  const auto [group, walk] = walked(whole);
  KernelText kernel("elementwise", usual_threads);
  kernel.line("const {0} item = {0}(group_id.x) * {1}u + thread_id;", walk.wide ? "ulong" : "uint", usual_threads);
  write_item(group, walk, kernel);
  const std::int64_t items = numel(group.space) / walk.width;
  Call call = kernel.finish(context, {static_cast<std::uint32_t>(divide_up(items, usual_threads)), 1, 1});
  if (group == whole) call.units = {static_cast<std::uint64_t>(items), 1};
  return {{std::move(call)}, 0};
}

}  // namespace russet::gpu
