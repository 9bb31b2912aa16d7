// Elementwise groups: a thread an item, an item a vector of elements where memory allows it.
#include <algorithm>

#include "device/gpu/emitter/emit.h"
#include "device/gpu/emitter/group_text.h"

namespace russet::gpu {
namespace {

using compile::Group;

Walk walk_of(const Group& group) {
  const int inner = group.space.rank() - 1;
  return {inner, vector_width(group, inner), needs_wide_index(group)};
}

std::uint32_t blocks_of(const Group& group) {
  return static_cast<std::uint32_t>(divide_up(numel(group.space) / walk_of(group).width, usual_threads));
}

/// What the thread of `item` does.
void write_item(const Group& group, KernelText& kernel) {
  const Walk walk = walk_of(group);
  const auto items = static_cast<std::uint64_t>(numel(group.space) / walk.width);
  const Phases phases = make_phases(group, false);
  GroupText text(group, phases, walk, kernel, GroupPart::all);
  text.leave_rounding_to_stores();
  const std::string count =
      walk.wide ? kernel.values().add_ulong("items", items) : kernel.values().add_uint("items", items);
  kernel.line("if (item >= {}) return;", count);
  text.define_bases();
  text.define_places(0, group.space.rank(), "item", true);
  text.run_full(phases.list[0], [] {});
}

}  // namespace

bool stores_whole_bytes(const Group& group) {
  const bool is_whole = group.kind == Group::Kind::elementwise && walk_of(group).width == 4;
  return is_whole || std::ranges::none_of(group.code, [&](const compile::Instruction& in) {
           return in.kind == compile::Instruction::Kind::store &&
                  group.accesses[static_cast<std::size_t>(in.access)].packed;
         });
}

EmittedCalls emit_elementwise(const Group& group, const GpuContext& context) {
  KernelText kernel("elementwise", usual_threads);
  kernel.line("const {0} item = {0}(group_id.x) * {1}u + thread_id;", walk_of(group).wide ? "ulong" : "uint",
              usual_threads);
  write_item(group, kernel);
  return {{kernel.finish(context, {blocks_of(group), 1, 1})}, 0};
}

}  // namespace russet::gpu
