#include "device/gpu/templates/prologue.h"

#include <algorithm>

#include "device/gpu/emitter/emit.h"
#include "device/gpu/emitter/group_text.h"
#include "device/gpu/templates/text.h"

namespace russet::gpu {

using compile::Group;
using compile::Primitive;

namespace {

SourceText memory_source(std::string_view name, std::string_view element, std::string_view offset_type, bool aligned,
                         const Region& region) {
  SourceText source;
  source.name = name;
  source.type = fmt::format("Memory<{}, {}{}>", element, offset_type, aligned ? ", true" : "");
  source.bind(element, name, "data", region);
  return source;
}

SourceText prologue_source(std::string_view name, const Group& prologue, std::string_view offset_type,
                           std::size_t first) {
  KernelText kernel = spliced_kernel("prologue", first);
  const Walk walk{prologue.space.rank() - 1, 1, needs_wide_index(prologue)};
  Phases phases = make_phases(prologue, false);
  std::vector<int>& stores = phases.list[0].stores;
  // The element is returned, and stored only if others read it.
  if (prologue.accesses[static_cast<std::size_t>(prologue.code.back().access)].slot < 0) stores.pop_back();
  GroupText text(prologue, phases, walk, kernel, GroupPart::all);
  text.places().define_bases();
  text.places().define(0, prologue.space.rank(), "item", true);
  text.run_full(phases.list[0], [&] {
    if (!stores.empty()) kernel.line("if (stores) {{");
  });
  if (!stores.empty()) kernel.line("}}");
  kernel.line("return {};", text.value(prologue.code.back().inputs[0]));

  SourceText source;
  source.name = name;
  source.type = fmt::format("{}_source_@", name);
  source.values_type = fmt::format("{}_values_@", name);
  source.values_are_wide = kernel.values().wide();
  source.take(kernel, first);
  const PointerText pointers = pointer_text(kernel, first, kernel.bindings());
  const std::string_view flag = stores.empty() ? "" : "  bool stores;\n";
  source.declarations = fmt::format(
      R"(struct {name}_values_@ {{ {values}}};
inline float {name}_element_@({item} item, {parameters}{stores}constant {name}_values_@& values) {{
{body}}}
struct {name}_source_@ {{
  typedef float Sum;
  typedef float Key;
  typedef float2 Pair;
{members}{flag}  constant {name}_values_@* values;
  {item} first = 0;

  void store_elements(bool {set}
  void start(long offset) {{ first += {item}(offset); }}
  float at({offset} offset) const {{ return {name}_element_@(first + {item}(offset), {arguments}{pass}*values); }}
  float2 pair({offset} offset) const {{ return make_float2(at(offset), at(offset + {offset}(1))); }}
  float2 no_pair() const {{ return make_float2(0.0f, 0.0f); }}
  float2 floats(float2 pair) const {{ return pair; }}
  float key({offset} offset) const {{ return at(offset); }}
}};
)",
      fmt::arg("name", name), fmt::arg("values", kernel.values().members()), fmt::arg("item", text.walk().item_type()),
      fmt::arg("parameters", pointers.parameters), fmt::arg("body", kernel.body()),
      fmt::arg("members", pointers.members), fmt::arg("offset", offset_type), fmt::arg("arguments", pointers.arguments),
      fmt::arg("flag", flag), fmt::arg("stores", stores.empty() ? "" : "bool stores, "),
      fmt::arg("pass", stores.empty() ? "" : "stores, "),
      fmt::arg("set", stores.empty() ? ") {}" : "wanted) { stores = wanted; }"));
  return source;
}

}  // namespace

SourceText source_of(const Primitive& primitive, int input, std::string_view name, std::string_view offset_type,
                     std::size_t first, bool in_pairs) {
  const Group& prologue = primitive.prologues[static_cast<std::size_t>(input)];
  if (!prologue.code.empty()) return prologue_source(name, prologue, offset_type, first);
  const compile::Operand& operand = primitive.inputs[static_cast<std::size_t>(input)];
  return memory_source(name, element_type(operand.access.dtype), offset_type,
                       in_pairs && is_aligned(operand.access, 1, 2), place(operand, false).region);
}

std::int64_t source_start(const compile::Operand& input) {
  const Placed placed = place(input, false);
  if (input.access.slot >= 0) return placed.first;
  return placed.first + placed.region.offset / static_cast<std::int64_t>(size_of(input.access.dtype));
}

void add_source(Piece& piece, const SourceText& source) {
  piece.files.insert(piece.files.end(), source.files.begin(), source.files.end());
  piece.body +=
      declare(piece, source, source.name + "_source", source.values_type.empty() ? "" : "values." + source.name);
}

void add_source_values(Piece& piece, Values& values, const std::vector<const SourceText*>& sources) {
  std::string members = fmt::format("{} rest; ", piece.values_type);
  values.align();
  for (const SourceText* source : sources) {
    if (source->values_type.empty()) continue;
    if (source->values_are_wide) values.align();
    values.append(source->values);
    members += fmt::format("{} {}; ", source->values_type, source->name);
  }
  piece.declarations += fmt::format("struct Whole_@ {{ {}}};\n", members);
  piece.values_type = "Whole_@";
}

std::string why_no_prologue(const Primitive& primitive) {
  for (const Group& prologue : primitive.prologues) {
    if (prologue.code.empty()) continue;
    if (!is_floating(prologue.code.back().dtype)) return "a prologue that gives integers";
    if (std::string reason = why_not_emitted(prologue); !reason.empty()) return reason;
  }
  if (input_bindings(primitive) > max_buffers) return "prologues with too many buffers";
  return "";
}

std::size_t input_bindings(const Primitive& primitive) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < primitive.inputs.size(); ++i) {
    const bool computed = i < primitive.prologues.size() && !primitive.prologues[i].code.empty();
    count += computed ? static_cast<std::size_t>(std::count_if(
                            primitive.prologues[i].accesses.begin(), primitive.prologues[i].accesses.end(),
                            [](const compile::Access& access) { return access.slot >= 0; }))
                      : 1;
  }
  return count;
}

}  // namespace russet::gpu
