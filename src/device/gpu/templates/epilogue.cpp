#include "device/gpu/templates/epilogue.h"

#include "compile/emit.h"
#include "device/gpu/emitter/emit.h"
#include "device/gpu/emitter/group_text.h"
#include "device/gpu/templates/text.h"

namespace russet::gpu {
namespace {

using compile::Access;
using compile::Group;
using compile::Instruction;
using compile::Primitive;

constexpr std::size_t other_bindings = 2;  // the factors

/// The epilogue over the axes in the order in which a kernel counts elements: channels after pixels or taps.
Group ordered_epilogue(const Primitive& primitive) {
  Group group = primitive.epilogue;
  if (primitive.op != ops::Op::matmul) {
    const auto reorder = [](Dims& dims) { dims = {dims[0], dims[2], dims[3], dims[1]}; };
    reorder(group.space);
    for (Access& access : group.accesses) reorder(access.strides);
  }
  // The result has no place in memory: it must not keep axes apart.
  for (const Instruction& in : group.code) {
    if (in.kind == Instruction::Kind::index) group.accesses[static_cast<std::size_t>(in.access)].slot = -1;
    if (in.kind == Instruction::Kind::store) {
      group.accesses[0].strides = group.accesses[static_cast<std::size_t>(in.access)].strides;
    }
  }
  compile::merge_axes(group);
  return group;
}

/// How a kernel tells its visitor about an element.
struct Place {
  std::string_view values;     // the type of the kernel's own values
  std::string_view arguments;  // of visit, before the result
  std::string_view state;      // members that visit reads
  std::string item;            // the element's number in the order of ordered_epilogue
};

Place place_in(const Primitive& primitive, std::string_view item) {
  if (ops::row(primitive.op).family == ops::Family::window) {
    return {"PoolValues", "thread const Pixel& pixel", "",
            fmt::format("(({0}(pixel.image) * {0}(values->product.small_sizes[2]) + {0}(pixel.y)) * "
                        "{0}(values->product.small_sizes[3]) + {0}(pixel.x)) * {0}(values->product.small_sizes[1]) + "
                        "{0}(pixel.channel)",
                        item)};
  }
  // Pixels come before groups of channels, everything else after batches.
  const bool pixels = primitive.op == ops::Op::convolution || primitive.op == ops::Op::convolution_input;
  const std::string row = pixels ? fmt::format("{0}(row) * {0}(values->product.batches) + {0}(batch)", item)
                                 : fmt::format("{0}(batch) * {0}(values->product.rows) + {0}(row)", item);
  return {"ContractionValues", "uint row, uint column",
          "  uint batch;\n  void start(uint which, uint) { batch = which; }\n",
          fmt::format("({}) * {}(values->product.columns) + {}(column)", row, item, item)};
}

}  // namespace

std::string why_no_epilogue(const Primitive& primitive) {
  const Group& group = primitive.epilogue;
  if (group.code.empty()) return "";
  if (group.kind != Group::Kind::elementwise || group.space != primitive.output.sizes) {
    return "an epilogue over another space";
  }
  if (group.accesses.size() + other_bindings > max_buffers) return "an epilogue with too many buffers";
  return why_not_emitted(group);
}

VisitorText epilogue_visitor(const Primitive& primitive, std::size_t first) {
  const Group group = ordered_epilogue(primitive);
  KernelText kernel("epilogue", 32);
  for (std::size_t i = 0; i < first; ++i) kernel.bind("char", {});
  const Walk walk{group.space.rank() - 1, 1, needs_wide_index(group)};
  const Schedule schedule = make_schedule(group, false);
  GroupText text(group, schedule, walk, kernel, Part::all);
  text.define_indices(0, group.space.rank(), "item");
  text.define_offsets(0, 0, false);
  text.define_offsets(0, group.space.rank(), true);
  text.run_full(schedule.phases[0], [] {});

  VisitorText visitor;
  std::string parameters;
  std::string members;
  std::string arguments;
  for (std::size_t i = first; i < kernel.bindings(); ++i) {
    const std::string pointer =
        fmt::format("device {}{}* a{}", kernel.regions()[i].writes ? "" : "const ", kernel.arguments()[i].type, i);
    parameters += pointer + ", ";
    members += fmt::format("  {};\n", pointer);
    arguments += fmt::format("a{}, ", i);
    visitor.types.push_back(kernel.arguments()[i].type);
    visitor.pointers.push_back(fmt::format("a{}", i));
    visitor.regions.push_back(kernel.regions()[i]);
  }
  const std::string_view item = text.item_type();
  const std::string_view sum = sum_type(primitive.inputs[0].access.dtype);
  const Place place = place_in(primitive, item);
  visitor.declarations = fmt::format(
      R"(struct Values_@ {{ {values} product; {members}}};
inline void epilogue_@({sum} sum, {type} item, {parameters}constant Values_@& values) {{
{body}}}
struct Visitor_@ {{
{pointers}  constant Values_@* values;
{state}  void visit({place}, {sum} sum) const {{ epilogue_@(sum, {item}, {arguments}*values); }}
}};
)",
      fmt::arg("values", place.values), fmt::arg("members", kernel.values().members()), fmt::arg("sum", sum),
      fmt::arg("type", item), fmt::arg("parameters", parameters), fmt::arg("body", kernel.body()),
      fmt::arg("pointers", members), fmt::arg("state", place.state), fmt::arg("place", place.arguments),
      fmt::arg("item", place.item), fmt::arg("arguments", arguments));
  visitor.type = "Visitor_@";
  visitor.values_type = "Values_@";
  visitor.product = "values.product";
  visitor.files = kernel.files();
  visitor.values = kernel.values().values();
  return visitor;
}

void add_visitor(Piece& piece, const VisitorText& visitor) {
  std::string set_up = fmt::format("  {} visitor;\n  visitor.values = &values;\n", visitor.type);
  for (std::size_t i = 0; i < visitor.types.size(); ++i) {
    piece.arguments.push_back({visitor.types[i], visitor.pointers[i], visitor.regions[i].writes});
    set_up += fmt::format("  visitor.{0} = {0};\n", visitor.pointers[i]);
  }
  piece.body = set_up + piece.body;
  piece.declarations = visitor.declarations;
  piece.values_type = visitor.values_type;
  piece.values_are_wide = true;
  piece.files.insert(piece.files.begin(), visitor.files.begin(), visitor.files.end());
}

}  // namespace russet::gpu
