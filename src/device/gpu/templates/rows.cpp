// Launches of rows by index.
#include "device/gpu/templates/sort.h"
#include "device/gpu/templates/templates.h"

namespace russet::gpu {
namespace {

using compile::Operand;
using compile::Primitive;
using ops::Op;

/// An array's rows, an index, and rows that go along with the index.
struct Rows {
  const Operand& array;
  const Operand& along;
  const Operand& base;
  int lead;  // axes of the index
  DType index_type;
  Region index_region;
  AxisList index;
  std::int64_t count, row_size = 1, rows;

  Rows(const Operand& array, const Operand& indices, const Operand& along, const Operand& base)
      : array(array),
        along(along),
        base(base),
        lead(indices.sizes.rank()),
        index_type(indices.access.dtype),
        index_region(place(indices, false).region),
        index(axes_of(indices, 0, lead, place(indices, false).first)),
        count(numel(indices.sizes)),
        rows(array.sizes[0]) {
    for (int axis = 1; axis < array.sizes.rank(); ++axis) row_size *= array.sizes[axis];
  }

  /// IndexValues of indexing.metal.
  Values values() const {
    Values values;
    axes_of(array, 1, array.sizes.rank(), place(array, false).first).add_to(values);
    axes_of(along, 0, lead, place(along, false).first).add_to(values);
    index.add_to(values);
    axes_of(along, lead, along.sizes.rank()).add_to(values);
    axes_of(base, 1, base.sizes.rank(), place(base, false).first).add_to(values);
    values.add(array.access.strides[0]);
    values.add(base.access.strides[0]);
    values.add(static_cast<std::uint64_t>(count));
    values.add(static_cast<std::uint64_t>(row_size));
    values.add(static_cast<std::uint64_t>(rows));
    return values;
  }
};

class Writer {
 public:
  Writer(const Primitive& primitive, const Context& context) : primitive_(primitive), context_(context) {}

  KernelPtr take() const {
    const Operand& x = primitive_.inputs[0];
    const Operand& output = primitive_.output;
    const Rows rows(x, primitive_.inputs[1], output, x);
    const std::string bits(bits_type(output.access.dtype));
    const std::string index(element_type(rows.index_type));
    std::vector<Call> calls;
    calls.push_back(call("take", rows, {place(x, false).region, rows.index_region, place(output, true).region},
                         {{bits, "x"}, {index, "index"}, {bits, "result", true}},
                         fmt::format("take_rows<{}, {}, {}>(x, index, result, stray, values, position)", bits, index,
                                     fits_uint(rows.count * rows.row_size) ? "uint" : "ulong"),
                         rows.count * rows.row_size, true));
    return std::make_unique<GpuKernel>(context_, "rows", std::move(calls));
  }

  KernelPtr put() const {
    const Operand& output = primitive_.output;
    const Operand& x = primitive_.inputs[2];
    Rows rows(output, primitive_.inputs[1], x, primitive_.inputs[0]);
    std::vector<Call> calls;
    if (primitive_.inputs[0].access != output.access) calls.push_back(copy(rows));
    // Scratch memory: the order of the index, the index in one line if it is none, and what sorting takes.
    const Region order = scratch_region(0, static_cast<std::size_t>(rows.count) * sizeof(std::uint32_t), true);
    std::size_t scratch = (order.bytes + 63) / 64 * 64;
    if (rows.index.sizes.rank() > 1) scratch = copy_index(calls, rows, scratch);
    const SortLines lines = order_of(rows, order);
    if (rows.count > 0) add_sort(calls, lines, scratch, context_);
    const bool adds = attribute<ops::Accumulate>(primitive_).value;
    // Elements that only move are bits.
    const std::string type(adds ? element_type(output.access.dtype) : bits_type(output.access.dtype));
    const std::string index_type(element_type(rows.index_type));
    calls.push_back(call(
        "put", rows,
        {scratch_region(0, order.bytes, false), rows.index_region, place(x, false).region, place(output, true).region},
        {{"uint", "order"}, {index_type, "index"}, {type, "x"}, {type, "result", true}},
        fmt::format("put_rows<{}, {}, {}>(order, index, x, result, stray, values, position)", type, index_type, adds),
        rows.count * rows.row_size, true));
    return std::make_unique<GpuKernel>(context_, "rows in the order of the index", std::move(calls),
                                       scratch + sort_scratch_bytes(lines));
  }

 private:
  Call copy(const Rows& rows) const {
    const std::string type(bits_type(rows.array.access.dtype));
    return call("copy_rows", rows, {place(rows.base, false).region, place(rows.array, true).region},
                {{type, "base"}, {type, "result", true}},
                fmt::format("copy_rows<{}, {}>(base, result, values, position)", type,
                            fits_uint(rows.rows * rows.row_size) ? "uint" : "ulong"),
                rows.rows * rows.row_size);
  }

  /// The index in one line at `scratch`. Returns where scratch memory goes on.
  std::size_t copy_index(std::vector<Call>& calls, Rows& rows, std::size_t scratch) const {
    const Region line = scratch_region(scratch, static_cast<std::size_t>(rows.count) * sizeof(std::int64_t), true);
    calls.push_back(call("copy_index", rows, {rows.index_region, line},
                         {{std::string(element_type(rows.index_type)), "index"}, {"long", "result", true}},
                         "copy_index(index, result, values, position)", rows.count));
    rows.index_region = line;
    rows.index_region.writes = false;
    rows.index_type = DType::int64;
    rows.index = {};
    rows.index.add_axis(rows.count, 1);
    return scratch + (line.bytes + 63) / 64 * 64;
  }

  /// Sorts the index, which is one line.
  static SortLines order_of(const Rows& rows, const Region& order) {
    SortLines lines;
    lines.type = rows.index_type;
    lines.from = rows.index_region;
    lines.to = order;
    lines.to_scratch = true;
    lines.length = rows.count;
    lines.stride = rows.index.strides.empty() ? 1 : rows.index.strides.back();
    lines.lines.start = rows.index.start;
    return lines;
  }

  Call call(std::string_view stem, const Rows& rows, std::vector<Region> regions,
            std::vector<Piece::Argument> arguments, const std::string& body, std::int64_t threads,
            bool checks = false) const {
    Piece piece;
    piece.stem = std::string(stem);
    piece.threads = 256;
    piece.files = {"indexing.metal"};
    piece.arguments = std::move(arguments);
    if (checks) {
      piece.arguments.push_back({"atomic_uint", "stray", true});
      regions.push_back({Region::check, 0, sizeof(std::uint32_t), true});
    }
    piece.values_type = "IndexValues";
    piece.values_are_wide = true;
    piece.body = fmt::format("  const ulong position = ulong(group_id.x) * 256u + thread_id;\n  {};\n", body);
    Call made = make_call(std::move(piece), {groups_for(threads), 1, 1}, std::move(regions), rows.values(), context_);
    if (checks) {
      made.check = std::make_shared<const IndexCheck>(
          IndexCheck{std::string(ops::row(primitive_.op).name), rows.count, rows.rows});
    }
    return made;
  }

  const Primitive& primitive_;
  const Context& context_;
};

}  // namespace

Verdict judge_rows(const Primitive& primitive, const Context& context) {
  if (std::string reason = why_no_type(primitive); !reason.empty()) return decline(reason);
  const Operand& index = primitive.inputs[1];
  if (primitive.op == Op::take) {
    return accept([&primitive, &context] { return Writer(primitive, context).take(); });
  }
  if (numel(index.sizes) >= std::int64_t{1} << 30) return decline("an index beyond 2^30 entries");
  return accept([&primitive, &context] { return Writer(primitive, context).put(); });
}

}  // namespace russet::gpu
