// Elementwise groups: a thread an item, an item a vector of elements where memory allows it. Groups of one text share a
// launch: the text becomes a function, and ranges of threadgroups call it with the memory and values of their group.
#include <algorithm>
#include <map>

#include "device/gpu/emitter/emit.h"
#include "device/gpu/emitter/group_text.h"

namespace russet::gpu {
namespace {

using compile::Group;

constexpr std::uint32_t threads = 256;

Walk walk_of(const Group& group) {
  const int inner = group.space.rank() - 1;
  return {inner, vector_width(group, inner), needs_wide_index(group)};
}

std::uint32_t blocks_of(const Group& group) {
  return static_cast<std::uint32_t>(divide_up(numel(group.space) / walk_of(group).width, threads));
}

/// What the thread of `item` does.
void write_item(const Group& group, KernelText& kernel) {
  const Walk walk = walk_of(group);
  const auto items = static_cast<std::uint64_t>(numel(group.space) / walk.width);
  const Schedule schedule = make_schedule(group, false);
  GroupText text(group, schedule, walk, kernel, Part::all);
  const std::string count =
      walk.wide ? kernel.values().add_ulong("items", items) : kernel.values().add_uint("items", items);
  kernel.line("if (item >= {}) return;", count);
  text.define_indices(0, group.space.rank(), "item");
  text.define_offsets(0, 0, false);
  text.define_offsets(0, group.space.rank(), true);
  text.run_full(schedule.phases[0], [] {});
}

/// A group of a bundle, as its own text.
struct Piece {
  KernelText kernel;
  std::uint32_t blocks;
};

/// The call that runs pieces of one text.
Call combine(std::span<const Piece> pieces, bool wide, const Context& context) {
  const KernelText& model = pieces.front().kernel;
  const std::size_t bindings = model.bindings();
  const std::string_view item = wide ? "ulong" : "uint";
  Call call;
  std::string parameters;
  for (std::size_t i = 0; i < bindings; ++i) {
    parameters += fmt::format("device {}{}* a{}, ", model.regions()[i].writes ? "" : "const ", model.types()[i], i);
  }
  std::string arguments;
  std::string members;
  std::string body = "  const uint block = group_id.x;\n";
  std::uint32_t first = 0;
  for (std::size_t piece = 0; piece < pieces.size(); ++piece) {
    const KernelText& kernel = pieces[piece].kernel;
    std::string pointers;
    for (std::size_t i = 0; i < bindings; ++i) {
      const std::size_t index = piece * bindings + i;
      arguments +=
          fmt::format("{}({}, p{}, {}), ", kernel.regions()[i].writes ? "OUT" : "IN", kernel.types()[i], index, index);
      pointers += fmt::format("p{}, ", index);
      call.regions.push_back(kernel.regions()[i]);
    }
    const Values values = kernel.values().values();
    const auto base = static_cast<std::uint32_t>(call.values.bytes.size());
    call.values.bytes.insert(call.values.bytes.end(), values.bytes.begin(), values.bytes.end());
    for (Patch patch : values.patches) {
      patch.at += base;
      call.values.patches.push_back(patch);
    }
    members += fmt::format("Values_@ v{}; ", piece);
    const bool last = piece + 1 == pieces.size();
    if (!last) body += fmt::format("  if (block < bundle.end{}) {{\n", piece);
    body += fmt::format("  {}piece_@({}bundle.v{}, {}(block{}) * {}u + thread_id);\n", last ? "" : "  ", pointers,
                        piece, item, piece == 0 ? "" : fmt::format(" - bundle.end{}", piece - 1), threads);
    if (!last) body += "    return;\n  }\n";
    first += pieces[piece].blocks;
  }
  call.groups = {first, 1, 1};
  std::uint32_t end = 0;
  for (std::size_t piece = 0; piece + 1 < pieces.size(); ++piece) {
    end += pieces[piece].blocks;
    members += fmt::format("uint end{}; ", piece);
    call.values.add(end);
  }
  const std::string text = fmt::format(
      "struct Values_@ {{ {}}};\nstruct Bundle_@ {{ {}}};\n"
      "inline void piece_@({}constant Values_@& values, {} item) {{\n{}}}\n"
      "KERNEL(@, {}, {}VALUES(Bundle_@, bundle, {})) {{\n{}}}\n",
      model.values().members(), members, parameters, item, model.body(), threads, arguments, call.regions.size(), body);
  call.function = context.library.add({"bundle", text, model.files(), threads});
  return call;
}

}  // namespace

EmittedCalls emit_elementwise(const Group& group, const Context& context) {
  KernelText kernel("elementwise", threads);
  kernel.line("const {0} item = {0}(group_id.x) * {1}u + thread_id;", walk_of(group).wide ? "ulong" : "uint", threads);
  write_item(group, kernel);
  return {{kernel.finish(context, {blocks_of(group), 1, 1})}, 0};
}

EmittedCalls emit_bundle(const std::vector<Group>& groups, const Context& context) {
  struct Class {
    std::vector<Piece> pieces;
    bool wide;
  };
  std::map<std::string, Class> classes;  // by text
  for (const Group& group : groups) {
    Piece piece{KernelText("bundle", threads), blocks_of(group)};
    if (piece.blocks == 0) continue;
    write_item(group, piece.kernel);
    Class& same = classes[piece.kernel.text()];
    same.wide = walk_of(group).wide;
    same.pieces.push_back(std::move(piece));
  }
  EmittedCalls emitted;
  for (const auto& [text, same] : classes) {
    const KernelText& model = same.pieces.front().kernel;
    const std::size_t bytes = model.values().values().bytes.size() + 4;
    const std::size_t most = std::max<std::size_t>(
        1, std::min(max_buffers / std::max<std::size_t>(model.bindings(), 1), max_value_bytes / bytes));
    for (std::size_t i = 0; i < same.pieces.size(); i += most) {
      const auto share = std::span(same.pieces).subspan(i, std::min(most, same.pieces.size() - i));
      emitted.calls.push_back(combine(share, same.wide, context));
    }
  }
  return emitted;
}

}  // namespace russet::gpu
