#include "device/gpu/templates/epilogue.h"

#include <algorithm>
#include <set>

#include "compile/emit.h"
#include "device/gpu/emitter/emit.h"
#include "device/gpu/emitter/group_text.h"
#include "device/gpu/templates/prologue.h"
#include "device/gpu/templates/row_sums.h"
#include "device/gpu/templates/text.h"

namespace russet::gpu {
namespace {

using compile::Access;
using compile::Extent;
using compile::Group;
using compile::Instruction;
using compile::Primitive;

/// The access by which the output is stored; -1 if there is none.
int output_access(const Group& group) {
  for (const Instruction& in : group.code) {
    if (in.kind == Instruction::Kind::store && in.extent == Extent::full) return in.access;
  }
  return -1;
}

/// At most how many places in memory the code touches over the whole space, or along with what the reductions give.
std::size_t count_accesses(const Group& group, Extent extent) {
  std::set<int> accesses;
  for (const Instruction& in : group.code) {
    if (in.access >= 0 && (in.extent == extent || in.kind == Instruction::Kind::load)) accesses.insert(in.access);
  }
  return accesses.size();
}

Dims channels_last(const Dims& dims) { return {dims[0], dims[2], dims[3], dims[1]}; }

/// Whether a column group's axes are what a kernel can add up: those of the output, in the order in which a kernel
/// counts elements, of which the last one is kept.
bool sums_columns(const Primitive& primitive) {
  const Group& group = primitive.epilogue;
  const int access = output_access(group);
  const bool matrix = primitive.op == ops::Op::matmul;
  const Shape sizes = matrix ? primitive.output.sizes : Shape(channels_last(primitive.output.sizes));
  const Strides& own = primitive.output.access.strides;
  return access >= 0 && group.space == sizes && group.split == sizes.rank() - 1 &&
         group.accesses[static_cast<std::size_t>(access)].strides == (matrix ? own : Strides(channels_last(own)));
}

/// The epilogue over the axes in the order in which a kernel counts elements: channels after pixels or taps.
Group ordered_epilogue(const Primitive& primitive) {
  Group group = primitive.epilogue;
  if (primitive.op != ops::Op::matmul && group.kind == Group::Kind::elementwise) {
    group.space = channels_last(group.space);
    for (Access& access : group.accesses) access.strides = channels_last(access.strides);
  }
  // The contraction's result is not in memory, so its strides must not prevent axes from being merged.
  for (const Instruction& in : group.code) {
    if (in.kind == Instruction::Kind::index) group.accesses[static_cast<std::size_t>(in.access)].slot = -1;
  }
  group.accesses[0].strides = group.accesses[static_cast<std::size_t>(output_access(group))].strides;
  compile::merge_axes(group);
  return group;
}

/// How a kernel tells its visitor about an element.
struct VisitedElement {
  std::string_view values;     // the type of the kernel's own values
  std::string_view arguments;  // of visit, before the result
  std::string_view state;      // members that visit reads; {}: what else happens at the start
  std::string item;            // the element's number in the order of ordered_epilogue
  std::string line = {};       // of a contraction, the number of the element's row among those of all batches
};

VisitedElement visited_element(const Primitive& primitive, std::string_view item) {
  if (ops::row(primitive.op).family == ops::Family::window) {
    return {"PoolValues", "thread const Pixel& pixel", "",
            fmt::format("(({0}(pixel.image) * {0}(values->product.{1}_sizes[2]) + {0}(pixel.y)) * "
                        "{0}(values->product.{1}_sizes[3]) + {0}(pixel.x)) * {0}(values->product.{1}_sizes[1]) + "
                        "{0}(pixel.channel)",
                        item, primitive.op == ops::Op::sum_unpool ? "large" : "small")};
  }
  // Pixels come before groups of channels, everything else after batches.
  const bool pixels = primitive.op == ops::Op::convolution || primitive.op == ops::Op::convolution_input;
  const std::string line = pixels ? fmt::format("{0}(row) * {0}(values->product.batches) + {0}(batch)", item)
                                  : fmt::format("{0}(batch) * {0}(values->product.rows) + {0}(row)", item);
  return {"ContractionValues", "uint row, uint column",
          "  uint batch = 0u;\n  void start(uint which, uint) {{\n    batch = which;\n{}  }}\n",
          fmt::format("({}) * {}(values->product.columns) + {}(column)", line, item, item), line};
}

}  // namespace

std::string why_no_epilogue(const Primitive& primitive) {
  const Group& group = primitive.epilogue;
  if (group.code.empty()) return "";
  std::size_t parts = 0;
  if (group.kind == Group::Kind::elementwise) {
    if (group.space != primitive.output.sizes) return "an epilogue over another space";
  } else {
    if (ops::row(primitive.op).family == ops::Family::window) return "sums of a pool's results";
    if (!sums_columns(primitive)) return "sums that run along other axes than the rows";
    for (const Reduction& reduction : reductions_of(group, make_phases(group, false).list[0].reductions)) {
      if (reduction.has_position()) return "positions among the results";
      parts += reduction.parts().size();
    }
  }
  // Instructions that read the sums run in the second launch.
  const std::size_t first = input_bindings(primitive) + count_accesses(group, Extent::full) + parts;
  const std::size_t second = parts + count_accesses(group, Extent::reduced);
  if (std::max(first, second) > max_buffers) return "an epilogue with too many buffers";
  return why_not_emitted(group);
}

std::size_t EpilogueSums::parts_bytes() const { return Partials(reductions, count()).bytes(); }

std::optional<EpilogueSums> epilogue_sums(const Primitive& primitive, std::int64_t parts, std::int64_t columns) {
  if (primitive.epilogue.code.empty() || primitive.epilogue.kind == Group::Kind::elementwise) return std::nullopt;
  const Group group = ordered_epilogue(primitive);
  return EpilogueSums{reductions_of(group, make_phases(group, false).list[0].reductions), parts, columns};
}

Call epilogue_results(const Primitive& primitive, const EpilogueSums& sums, const GpuContext& context) {
  return column_results(ordered_epilogue(primitive), sums.parts, context);
}

namespace {

/// The visitor's sums of a column: `visit` adds up a few rows, and `fold` adds those to the sums of the part.
struct Accumulators {
  std::string members, start, parameters, arguments, methods;
};

constexpr std::string_view part_suffix = "_part";

/// What all lanes of a column know, in their order, goes to the sums of the part, of which each of them has the same
/// bits.
std::string fold_text(const EpilogueSums& sums) {
  KernelText text("fold", 32);
  text.line("for (uint lane = lane_id % width; lane < 32u; lane += width) {");
  for (const Reduction& reduction : sums.reductions) {
    std::vector<std::string> others;
    for (const Reduction::Part& part : reduction.parts()) {
      others.push_back(reduction.variable(part, "_other"));
      text.line("const {} {} = lane_at({}, lane);", part.type, others.back(), reduction.variable(part));
    }
    reduction.merge(text, others, part_suffix);
  }
  text.line("}");
  for (const Reduction& reduction : sums.reductions) {
    for (const Reduction::Part& part : reduction.parts())
      text.line("{} = {};", reduction.variable(part), part.identity);
  }
  return text.body();
}

Accumulators accumulators_of(const EpilogueSums& sums, const Partials& partials) {
  Accumulators text;
  for (const Reduction& reduction : sums.reductions) {
    for (const Reduction::Part& part : reduction.parts()) {
      const std::string name = reduction.variable(part);
      for (const std::string& variable : {name, reduction.variable(part, part_suffix)}) {
        text.members += fmt::format("  {} {};\n", part.type, variable);
        text.start += fmt::format("    {} = {};\n", variable, part.identity);
      }
      text.parameters += fmt::format("thread {}& {}, ", part.type, name);
      text.arguments += name + ", ";
    }
  }
  KernelText store("store", 32);
  partials.store(store, "index", part_suffix);
  text.methods = fmt::format(
      "  void fold(uint width, uint lane_id) {{\n{}  }}\n"
      "  void finish(uint part, uint column) const {{\n"
      "    const ulong index = ulong(part) * ulong(values->product.columns) + ulong(column);\n{}  }}\n",
      fold_text(sums), store.body());
  return text;
}

/// The visitor that a text of its own declares, with what that binds from `first` on.
VisitorText visitor_of(const KernelText& kernel, std::size_t first) {
  VisitorText visitor;
  visitor.take(kernel, first);
  visitor.type = "Visitor_@";
  visitor.values_type = "Values_@";
  visitor.product = "values.product";
  return visitor;
}

}  // namespace

VisitorText epilogue_visitor(const Primitive& primitive, std::size_t first, const EpilogueSums* sums) {
  const Group group = ordered_epilogue(primitive);
  KernelText kernel = spliced_kernel("epilogue", first);
  const Walk walk{group.space.rank() - 1, 1, needs_wide_index(group)};
  const Phases phases = make_phases(group, false);
  GroupText text(group, phases, walk, kernel, sums != nullptr ? GroupPart::elements : GroupPart::all);
  text.leave_rounding_to_stores();
  text.places().define_bases();
  text.places().define(0, group.space.rank(), "item", true);
  text.run_full(phases.list[0], [&] {
    if (sums == nullptr) return;
    for (const Reduction& reduction : sums->reductions) {
      reduction.add(kernel, reduction.element(text.value(text.at(reduction.position()).inputs[0])), "0u");
    }
  });
  const std::size_t operands = kernel.bindings();
  Accumulators accumulators;
  if (sums != nullptr) {
    Partials partials(sums->reductions, sums->count());
    partials.bind(kernel, true);
    kernel.use("reduce.metal");
    accumulators = accumulators_of(*sums, partials);
  }

  VisitorText visitor = visitor_of(kernel, first);
  const PointerText pointers = pointer_text(kernel, first, operands);
  const std::string members = pointer_text(kernel, first, kernel.bindings()).members;
  const std::string_view item = text.walk().item_type();
  const std::string_view sum = sum_type(primitive.inputs[0].access.dtype);
  const VisitedElement place = visited_element(primitive, item);
  visitor.declarations = fmt::format(
      R"(struct Values_@ {{ {values} product; {members}}};
inline void epilogue_@({sum} sum, {type} item, {parameters}constant Values_@& values) {{
{body}}}
struct Visitor_@ {{
  enum : uint {{ sums_columns = {sums} }};
{pointers}  constant Values_@* values;
{state}  void visit({place}, {sum} sum){constant} {{ epilogue_@(sum, {item}, {arguments}*values); }}
{methods}}};
)",
      fmt::arg("values", place.values), fmt::arg("members", kernel.values().members()), fmt::arg("sum", sum),
      fmt::arg("type", item), fmt::arg("parameters", pointers.parameters + accumulators.parameters),
      fmt::arg("body", kernel.body()), fmt::arg("sums", sums != nullptr ? 1 : 0),
      fmt::arg("pointers", members + accumulators.members),
      fmt::arg("state", fmt::format(fmt::runtime(place.state), accumulators.start)), fmt::arg("place", place.arguments),
      fmt::arg("constant", sums != nullptr ? "" : " const"), fmt::arg("item", place.item),
      fmt::arg("arguments", pointers.arguments + accumulators.arguments), fmt::arg("methods", accumulators.methods));
  return visitor;
}

namespace {

/// Whether every access along the channels, the last axis, has pairs of floating numbers, or the same for all channels.
bool lies_in_pairs(const Group& group) {
  const int inner = group.space.rank() - 1;
  return vector_width(group, inner, 2) == 2 && std::ranges::all_of(group.accesses, [&](const Access& access) {
           return access.slot < 0 || access.strides[inner] == 0 || is_floating(access.dtype);
         });
}

/// What is the same for all pixels is read once a strip.
void write_strip(GroupText& text, const Phase& phase, int count) {
  KernelText& kernel = text.kernel();
  const bool has_channels = text.walk().inner == 1;
  text.load_uniforms();
  if (has_channels) {
    text.places().define(1, 2, "(channel / 2u)", false);
    text.load_common(phase, 0, 1);
  } else {
    text.places().define_bases();
  }
  kernel.line("#pragma unroll");
  kernel.line("for (int j = 0; j < {}; ++j) {{", count);
  kernel.line("if (j >= live) continue;");
  kernel.line("const float sum[2] = {sums[j].x, sums[j].y};");
  const std::string row = fmt::format("{}(row + uint(j))", text.walk().item_type());
  text.places().define(0, 1, has_channels ? row : fmt::format("(({} * values.product.batches + channel) / 2u)", row),
                       true);
  text.run_full(phase, [] {});
  kernel.line("}");
}

}  // namespace

std::optional<VisitorText> strip_epilogue_visitor(const Primitive& primitive, std::size_t first, std::int64_t channels,
                                                  int count) {
  const Group group = ordered_epilogue(primitive);
  const int rank = group.space.rank();
  if (rank > 2 || (rank == 2 && group.space[1] != channels) || !lies_in_pairs(group)) return std::nullopt;
  KernelText kernel = spliced_kernel("epilogue", first);
  const Phases phases = make_phases(group, false);
  GroupText text(group, phases, {rank - 1, 2, needs_wide_index(group)}, kernel, GroupPart::all);
  text.leave_rounding_to_stores();
  write_strip(text, phases.list[0], count);
  const PointerText pointers = pointer_text(kernel, first, kernel.bindings());
  VisitorText visitor = visitor_of(kernel, first);
  visitor.declarations = fmt::format(
      R"(struct Values_@ {{ ContractionValues product; {members}}};
inline void strip_@(uint channel, uint row, int live, thread const float2* sums, {parameters}constant Values_@& values) {{
{body}}}
struct Visitor_@ {{
{pointers}  constant Values_@* values;
  void visit_strip(uint channel, uint row, int live, thread const float2* sums) const {{
    strip_@(channel, row, live, sums, {arguments}*values);
  }}
}};
)",
      fmt::arg("members", kernel.values().members()), fmt::arg("parameters", pointers.parameters),
      fmt::arg("body", kernel.body()), fmt::arg("pointers", pointers.members),
      fmt::arg("arguments", pointers.arguments));
  return visitor;
}

namespace {

/// Of the lines `line`, `line` + step ... as many as are `live`. Where the columns are an axis, what all lines read
/// there is read once, into `columns`. `add_up`: is called where the elements of a line are known.
class RowsText {
 public:
  RowsText(GroupText& text, const Phase& phase, std::int64_t columns)
      : text_(text), phase_(phase), has_columns_(text.group().space.rank() == 2 && text.group().space[1] == columns) {}

  std::string members() const { return has_columns_ ? text_.common_members(phase_, 0, 1) : ""; }
  /// The body of what reads the columns.
  std::string columns() {
    if (has_columns_) {
      define_columns();
      text_.load_common_into("columns", phase_, 0, 1);
    }
    return kernel().take_body();
  }
  template <class AddUp>
  std::string rows(int count, const AddUp& add_up) {
    text_.load_uniforms();
    if (has_columns_) {
      define_columns();
      text_.take_common_from("columns", phase_, 0, 1);
    } else {
      text_.places().define_bases();
    }
    text_.declare_ahead(phase_, count);
    for_each_row(count, [&] {
      define_places("(ahead < live ? ahead : 0u)");
      text_.load_ahead(phase_);
    });
    for_each_row(count, [&] {
      kernel().line("if (ahead < live) {");
      define_places("ahead");
      kernel().line(text_.walk().width == 1
                        ? "const float sum = sums[ahead];"
                        : "const float sum[4] = {sums[ahead * 4u], sums[ahead * 4u + 1u], sums[ahead * 4u + 2u], "
                          "sums[ahead * 4u + 3u]};");
      text_.run_full(phase_, add_up);
      kernel().line("}");
    });
    text_.end_ahead();
    return kernel().take_body();
  }

 private:
  KernelText& kernel() { return text_.kernel(); }
  void define_columns() { text_.places().define(1, 2, fmt::format("(column / {}u)", text_.walk().width), false); }
  void define_places(std::string_view number) {
    kernel().line("const {} own_line = line + {} * step;", text_.walk().item_type(), number);
    if (has_columns_) return text_.places().define(0, 1, "own_line", true);
    kernel().line("const {0} item = (own_line * {0}(values.product.columns) + {0}(column)) / {1}u;",
                  text_.walk().item_type(), text_.walk().width);
    text_.places().define(0, text_.group().space.rank(), "item", true);
  }
  template <class Write>
  void for_each_row(int count, const Write& write) {
    kernel().line("#pragma unroll");
    kernel().line("for (uint ahead = 0u; ahead < {}u; ++ahead) {{", count);
    write();
    kernel().line("}");
  }

  GroupText& text_;
  const Phase& phase_;
  bool has_columns_;
};

}  // namespace

RowsVisitor rows_epilogue_visitor(const Primitive& primitive, std::size_t first, std::int64_t columns,
                                  const EpilogueSums* sums) {
  const Group group = ordered_epilogue(primitive);
  KernelText kernel = spliced_kernel("epilogue", first);
  const Phases phases = make_phases(group, false);
  const int inner = group.space.rank() - 1;
  RowsVisitor rows;
  rows.width = vector_width(group, inner);
  const std::optional<RowSums> row_sums =
      sums != nullptr ? std::optional<RowSums>(std::in_place, *sums, rows.width) : std::nullopt;
  GroupText text(group, phases, {inner, rows.width, needs_wide_index(group)}, kernel,
                 sums != nullptr ? GroupPart::elements : GroupPart::all);
  text.leave_rounding_to_stores();
  RowsText rows_text(text, phases.list[0], columns);
  const std::string column_members = rows_text.members();
  const std::string column_body = rows_text.columns();
  const std::string body = rows_text.rows(4, [&] {
    if (sums == nullptr) return;
    for (const Reduction& reduction : sums->reductions) {
      row_sums->add(kernel, reduction, reduction.element(text.value(text.at(reduction.position()).inputs[0])));
    }
  });
  const std::size_t operands = kernel.bindings();
  std::string methods;
  if (sums != nullptr) {
    Partials partials(sums->reductions, sums->count());
    partials.bind(kernel, true);
    kernel.use("reduce.metal");
    methods = row_sums->methods(partials);
  }
  const PointerText pointers = pointer_text(kernel, first, operands);
  const VisitedElement place = visited_element(primitive, text.walk().item_type());
  rows.text = visitor_of(kernel, first);
  rows.text.declarations = fmt::format(
      R"(struct Values_@ {{ {values} product; {members}}};
struct Columns_@ {{
{column_members}}};
inline void columns_@(thread Columns_@& columns, uint column, {operands}constant Values_@& values) {{
{column_body}}}
inline void rows_@({item} line, {item} step, uint column, uint live, thread const float* sums, thread const Columns_@& columns, {parameters}constant Values_@& values) {{
{body}}}
struct Visitor_@ {{
  typedef Columns_@ Columns;
{pointers}  constant Values_@* values;
{state}  {item} line(uint row) const {{ return {line}; }}
  void read_columns(thread Columns& columns, uint column) const {{ columns_@(columns, column, {operand_arguments}*values); }}
  void visit_rows({place}, uint live, thread const float* sums, thread const Columns& columns){constant} {{
    rows_@(line(row), line({width}u) - line(0u), column, live, sums, columns, {arguments}*values);
{seen}  }}
{methods}}};
)",
      fmt::arg("values", place.values), fmt::arg("members", kernel.values().members()),
      fmt::arg("item", text.walk().item_type()),
      fmt::arg("parameters", pointers.parameters + (row_sums ? row_sums->parameters() : "")), fmt::arg("body", body),
      fmt::arg("column_members", column_members), fmt::arg("column_body", column_body),
      fmt::arg("operands", pointers.parameters), fmt::arg("operand_arguments", pointers.arguments),
      fmt::arg("pointers",
               pointer_text(kernel, first, kernel.bindings()).members + (row_sums ? row_sums->members() : "")),
      fmt::arg("state", fmt::format(fmt::runtime(place.state), row_sums ? row_sums->start() : "")),
      fmt::arg("place", place.arguments), fmt::arg("line", place.line), fmt::arg("width", rows.width),
      fmt::arg("constant", row_sums ? "" : " const"), fmt::arg("seen", row_sums ? "    seen += live;\n" : ""),
      fmt::arg("arguments", pointers.arguments + (row_sums ? row_sums->arguments() : "")),
      fmt::arg("methods", methods));
  return rows;
}

void add_visitor(Piece& piece, const VisitorText& visitor, std::string_view values) {
  piece.body = declare(piece, visitor, "visitor", values) + piece.body;
  piece.values_type = visitor.values_type;
  piece.values_are_wide = true;
  piece.files.insert(piece.files.begin(), visitor.files.begin(), visitor.files.end());
}

}  // namespace russet::gpu
