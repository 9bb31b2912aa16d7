// Elementwise groups: a thread an item, an item a vector of elements where memory allows it.
#include "device/gpu/emitter/emit.h"
#include "device/gpu/emitter/group_text.h"

namespace russet::gpu {

EmittedCalls emit_elementwise(const compile::Group& group, const Context& context) {
  constexpr std::uint32_t threads = 256;
  const int rank = group.space.rank();
  const int inner = rank - 1;
  const Walk walk{inner, vector_width(group, inner), needs_wide_index(group)};
  const std::int64_t items = numel(group.space) / walk.width;
  const Schedule schedule = make_schedule(group, false);
  KernelText kernel("elementwise", threads);
  GroupText text(group, schedule, walk, kernel, Part::all);
  const std::string count = walk.wide ? kernel.values().add_ulong("items", static_cast<std::uint64_t>(items))
                                      : kernel.values().add_uint("items", static_cast<std::uint64_t>(items));
  kernel.line("const {0} item = {0}(group_id.x) * {1}u + thread_id;", text.item_type(), threads);
  kernel.line("if (item >= {}) return;", count);
  text.define_indices(0, rank, "item");
  text.define_offsets(0, 0, false);
  text.define_offsets(0, rank, true);
  text.run_full(schedule.phases[0], [] {});
  return {{kernel.finish(context, {static_cast<std::uint32_t>(divide_up(items, threads)), 1, 1})}, 0};
}

}  // namespace russet::gpu
