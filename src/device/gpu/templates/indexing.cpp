// Launches of elements by index.
#include <algorithm>

#include "device/gpu/emitter/emit.h"
#include "device/gpu/templates/sort.h"
#include "device/gpu/templates/templates.h"
#include "graph/strided.h"

namespace russet::gpu {
namespace {

using compile::Operand;
using compile::Primitive;
using ops::Op;

/// threads_of_piece of indexing.metal.
std::int64_t threads_of_piece(std::int64_t piece_size) {
  constexpr std::int64_t elements_at_once = 4;
  return divide_up(piece_size, elements_at_once);
}

/// An index tensor and the axis of the array whose positions it gives.
struct IndexTensor {
  DType type;
  Region region;
  StridedAxes entries;  // from an entry to the tensor's element
  std::int64_t size = 0, step = 0;

  /// IndexedAxis of indexing.metal.
  void add_to(Values& values) const {
    entries.add_to(values);
    values.add(size);
    values.add(step);
  }
  std::string name(std::size_t number) const { return fmt::format("index{}", number); }
};

/// Computes the offset that an index entry refers to: the sum, over the indexed axes of an array of `sizes`, of index
/// times step.
struct Index {
  StridedAxes along;  // what an entry's own place adds
  std::vector<IndexTensor> tensors;
  std::int64_t count = 1;  // entries
  bool from_end = false;

  Index(const Primitive& primitive, std::size_t first, const Shape& sizes, const Strides& steps) {
    const auto& indexing = attribute<ops::Indexing>(primitive);
    const Shape& lead = indexing.lead;
    count = numel(lead);
    from_end = indexing.from_end;
    Strides along_steps = Strides::filled(lead.rank(), 0);
    for (int axis = 0; axis < indexing.axes; ++axis) {
      if (!indexing.is_by_tensor(axis)) {
        along_steps[indexing.sources[static_cast<std::size_t>(axis)]] += steps[axis];
        continue;
      }
      const Operand& operand = primitive.inputs[first++];
      const Placed placed = place(operand, false);
      IndexTensor tensor{operand.access.dtype, placed.region, {}, sizes[axis], steps[axis]};
      const Strides strides = graph::broadcast_strides(operand.sizes, operand.access.strides, lead);
      for (int i = 0; i < lead.rank(); ++i) tensor.entries.add_axis(lead[i], strides[i]);
      tensor.entries.start = placed.first;
      tensors.push_back(std::move(tensor));
    }
    const bool adds_nothing = std::ranges::all_of(along_steps, [](std::int64_t step) { return step == 0; });
    for (int i = 0; i < lead.rank() && !adds_nothing; ++i) along.add_axis(lead[i], along_steps[i]);
  }

  /// Statements that add the offset of entry `entry` to `sum`, and set `inside` to whether all of its indices are
  /// valid.
  std::string sum_text(std::string_view entry) const {
    std::string text = fmt::format("  long sum = locate(values.fixed.along, {});\n  bool inside = true;\n", entry);
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      text += fmt::format("  inside = add_position(sum, {}, values.axes[{}], {}, {}) && inside;\n", tensors[i].name(i),
                          i, entry, from_end);
    }
    return text;
  }
};

Strides leading(const Operand& operand, int axes) {
  Strides steps;
  for (int axis = 0; axis < axes; ++axis) steps.push_back(operand.access.strides[axis]);
  return steps;
}
Shape leading_sizes(const Operand& operand, int axes) {
  Shape sizes;
  for (int axis = 0; axis < axes; ++axis) sizes.push_back(operand.sizes[axis]);
  return sizes;
}

class Writer {
 public:
  Writer(const Primitive& primitive, const GpuContext& context)
      : primitive_(primitive),
        context_(context),
        axes_(attribute<ops::Indexing>(primitive).axes),
        lead_(attribute<ops::Indexing>(primitive).lead.rank()) {}

  std::unique_ptr<GpuKernel> take() const {
    const Operand& x = primitive_.inputs[0];
    const Operand& result = primitive_.output;
    const Index index(primitive_, 1, leading_sizes(x, axes_), leading(x, axes_));
    const std::int64_t piece_size = piece_size_of(x);
    Values values;
    StridedAxes along = index.along;
    along.start = place(x, false).first;
    along.add_to(values);
    axes_of(result, 0, lead_, place(result, true).first).add_to(values);
    axes_of(x, axes_, x.sizes.rank()).add_to(values);
    axes_of(result, lead_, result.sizes.rank()).add_to(values);
    values.add(static_cast<std::uint64_t>(index.count));
    values.add(static_cast<std::uint64_t>(piece_size));
    const std::string bits(bits_type(result.access.dtype));
    Piece piece = piece_of("take");
    std::vector<Region> regions{place(x, false).region, place(result, true).region};
    piece.arguments = {{bits, "x"}, {bits, "result", true}};
    add_index(piece, regions, values, index, "TakeValues");
    const std::string_view number = fits_uint(index.count * piece_size) ? "uint" : "ulong";
    piece.body = fmt::format(
        "  const {0} position = {0}(ulong(group_id.x) * 256u + thread_id);\n"
        "  const {0} threads = threads_of_piece<{0}>(values.fixed.piece_size);\n"
        "  if (position >= {0}(values.fixed.count) * threads) return;\n"
        "  const {0} entry = position / threads;\n{1}"
        "  take_elements(x, result, values.fixed, sum, inside, entry, position - entry * threads, threads);\n",
        number, index.sum_text("entry"));
    std::vector<Call> calls;
    calls.push_back(make_call(std::move(piece), {groups_for(index.count * threads_of_piece(piece_size)), 1, 1},
                              std::move(regions), std::move(values), context_));
    return std::make_unique<GpuKernel>(context_, "pieces", std::move(calls));
  }

  std::unique_ptr<GpuKernel> put() const {
    const Operand& result = primitive_.output;
    const Shape places = leading_sizes(result, axes_);
    const Index index(primitive_, 2, places, contiguous_strides(places));
    std::vector<Call> calls;
    if (primitive_.inputs[0].access != result.access) calls.push_back(copy_call());
    // Scratch memory: the order of the keys, the keys if no index tensor serves as such, and what sorting takes.
    const Region order = scratch_region(0, static_cast<std::size_t>(index.count) * sizeof(std::uint32_t), true);
    std::size_t scratch = (order.bytes + 63) / 64 * 64;
    Keys keys = keys_in(index);
    if (keys.region.slot == Region::scratch) {
      keys.region.offset = static_cast<std::int64_t>(scratch);
      scratch += (keys.region.bytes + 63) / 64 * 64;
      calls.push_back(key_call(index, keys));
    }
    const SortLines lines = order_of(keys, index.count, order);
    if (index.count > 0) add_sort(calls, lines, scratch, context_);
    calls.push_back(put_call(index.count, keys, order));
    return std::make_unique<GpuKernel>(context_, "pieces in the order of the index", std::move(calls),
                                       scratch + sort_scratch_bytes(lines));
  }

 private:
  /// Numbers of places, one an entry, along one line.
  struct Keys {
    DType type = DType::int64;
    Region region;
    std::int64_t start = 0, stride = 1;
  };

  std::int64_t piece_size_of(const Operand& array) const {
    std::int64_t size = 1;
    for (int axis = axes_; axis < array.sizes.rank(); ++axis) size *= array.sizes[axis];
    return size;
  }

  Piece piece_of(std::string_view stem) const {
    Piece piece;
    piece.stem = std::string(stem);
    piece.threads = 256;
    piece.files = {"indexing.metal"};
    piece.values_are_wide = true;
    piece.shares = attribute<ops::Indexing>(primitive_).checked;  // else it waits for its index
    return piece;
  }

  /// Lets a piece read index tensors: arguments, regions, and values behind those of `fixed`.
  static void add_index(Piece& piece, std::vector<Region>& regions, Values& values, const Index& index,
                        std::string_view fixed) {
    for (std::size_t i = 0; i < index.tensors.size(); ++i) {
      const IndexTensor& tensor = index.tensors[i];
      piece.arguments.push_back({std::string(element_type(tensor.type)), tensor.name(i)});
      regions.push_back(tensor.region);
      tensor.add_to(values);
    }
    piece.declarations =
        fmt::format("struct Values_@ {{\n  {} fixed;\n  IndexedAxis axes[{}];\n}};\n", fixed, index.tensors.size());
    piece.values_type = "Values_@";
  }

  /// An index that names places of one axis, along one line, is its own keys.
  static Keys keys_in(const Index& index) {
    const IndexTensor& only = index.tensors.front();
    const bool serves = index.tensors.size() == 1 && index.along.sizes.empty() && only.entries.sizes.rank() <= 1 &&
                        !index.from_end && only.step == 1;
    if (serves) {
      return {only.type, only.region, only.entries.start,
              only.entries.strides.empty() ? 1 : only.entries.strides.back()};
    }
    return {DType::int64, scratch_region(0, static_cast<std::size_t>(index.count) * sizeof(std::int64_t), true)};
  }

  Call key_call(const Index& index, const Keys& keys) const {
    Values values;
    index.along.add_to(values);
    values.add(static_cast<std::uint64_t>(index.count));
    Piece piece = piece_of("index_keys");
    std::vector<Region> regions{keys.region};
    piece.arguments = {{"long", "keys", true}};
    add_index(piece, regions, values, index, "KeyValues");
    piece.body = fmt::format(
        "  const ulong entry = ulong(group_id.x) * 256u + thread_id;\n"
        "  if (entry >= values.fixed.count) return;\n{}  keys[entry] = inside ? sum : -1l;\n",
        index.sum_text("entry"));
    return make_call(std::move(piece), {groups_for(index.count), 1, 1}, std::move(regions), std::move(values),
                     context_);
  }

  static SortLines order_of(const Keys& keys, std::int64_t count, const Region& order) {
    SortLines lines;
    lines.type = keys.type;
    lines.from = keys.region;
    lines.from.writes = false;
    lines.to = order;
    lines.to_scratch = true;
    lines.length = count;
    lines.stride = keys.stride;
    lines.lines.start = keys.start;
    return lines;
  }

  /// PutValues of indexing.metal.
  Values put_values(std::int64_t count, const Keys& keys) const {
    const Operand& result = primitive_.output;
    const Operand& base = primitive_.inputs[0];
    const Operand& x = primitive_.inputs[1];
    Values values;
    axes_of(result, 0, axes_, place(result, true).first).add_to(values);
    axes_of(result, axes_, result.sizes.rank()).add_to(values);
    axes_of(base, 0, axes_, place(base, false).first).add_to(values);
    axes_of(base, axes_, base.sizes.rank()).add_to(values);
    axes_of(x, 0, lead_, place(x, false).first).add_to(values);
    axes_of(x, lead_, x.sizes.rank()).add_to(values);
    StridedAxes line;
    line.start = keys.start;
    line.add_axis(count, keys.stride);
    line.add_to(values);
    values.add(static_cast<std::uint64_t>(count));
    values.add(static_cast<std::uint64_t>(piece_size_of(result)));
    values.add(static_cast<std::uint64_t>(numel(leading_sizes(result, axes_))));
    return values;
  }

  Call copy_call() const {
    const Operand& result = primitive_.output;
    const std::string type(bits_type(result.access.dtype));
    const std::int64_t count = numel(result.sizes);
    Piece piece = piece_of("copy_pieces");
    piece.values_type = "PutValues";
    piece.arguments = {{type, "base"}, {type, "result", true}};
    piece.body = fmt::format("  copy_pieces<{}, {}>(base, result, values, ulong(group_id.x) * 256u + thread_id);\n",
                             type, fits_uint(count) ? "uint" : "ulong");
    return make_call(std::move(piece), {groups_for(count), 1, 1},
                     {place(primitive_.inputs[0], false).region, place(result, true).region}, put_values(0, {}),
                     context_);
  }

  Call put_call(std::int64_t count, const Keys& keys, Region order) const {
    const Operand& result = primitive_.output;
    const bool adds = attribute<ops::Indexing>(primitive_).accumulates;
    // Elements that only move are bits.
    const std::string type(adds ? element_type(result.access.dtype) : bits_type(result.access.dtype));
    const std::string key_type(element_type(keys.type));
    Piece piece = piece_of("put");
    piece.values_type = "PutValues";
    piece.arguments = {{"uint", "order"}, {key_type, "keys"}, {type, "x"}, {type, "result", true}};
    piece.body =
        fmt::format("  put_pieces<{}, {}, {}>(order, keys, x, result, values, ulong(group_id.x) * 256u + thread_id);\n",
                    type, key_type, adds);
    Region key_region = keys.region;
    order.writes = key_region.writes = false;
    return make_call(std::move(piece), {groups_for(count * threads_of_piece(piece_size_of(result))), 1, 1},
                     {order, key_region, place(primitive_.inputs[1], false).region, place(result, true).region},
                     put_values(count, keys), context_);
  }

  const Primitive& primitive_;
  const GpuContext& context_;
  int axes_;  // of the array that are named
  int lead_;  // axes of the index
};

}  // namespace

Verdict judge_indexing(const Primitive& primitive, const GpuContext& context) {
  if (std::string reason = why_no_type(primitive); !reason.empty()) return decline(reason);
  const auto& indexing = attribute<ops::Indexing>(primitive);
  if (primitive.op == Op::put && numel(indexing.lead) >= std::int64_t{1} << 30) {
    return decline("an index beyond 2^30 entries");
  }
  return accept([&primitive, &context]() -> KernelPtr {
    const Writer writer(primitive, context);
    std::unique_ptr<GpuKernel> kernel = primitive.op == Op::take ? writer.take() : writer.put();
    if (!attribute<ops::Indexing>(primitive).checked) kernel->check_indices_of(primitive);
    return kernel;
  });
}

}  // namespace russet::gpu
