// Place: what an array is put together from is computed where it belongs, instead of being copied there.
//   t = group(...); y = overwrite(empty, t)           ->      t = group(...), which stores into y's memory
//   the gradients of attention(q, k, v), where q, k and v are slices of one product      ->      one array, no copies
#include <algorithm>

#include "compile/clusters.h"
#include "compile/emit.h"
#include "compile/passes/passes.h"
#include "graph/strided.h"
#include "ops/table.h"

namespace russet::compile::passes {
namespace {

using ops::Op;

/// Of an array: each is compared with those before it.
constexpr int most_compared = 64;

/// Copies of less share a launch with others; what is computed in its place shares none with what lies beside it.
constexpr std::size_t least_bytes = 8192;

class Placement {
 public:
  Placement(Program& program, const Target& target)
      : program_(program), target_(target), readers_(program, Readers::Views::looked_through) {}

  void run() {
    for (std::size_t id = 0; id < program_.values.size(); ++id) {
      const auto overwrite = static_cast<ValueId>(id);
      if (value(overwrite).op == Op::overwrite && is_owned(program_, overwrite)) consider(overwrite);
    }
  }

 private:
  const Value& value(ValueId id) const { return value_at(program_, id); }
  const ops::View& view_of(ValueId overwrite) const { return std::get<ops::View>(value(overwrite).attributes); }
  const Shape& piece_sizes(ValueId overwrite) const { return value(value(overwrite).inputs[1]).shape; }

  void consider(ValueId overwrite) {
    const ValueId piece = base_of(program_, value(overwrite).inputs[1]);
    if (!is_stored_whole(piece) || !may_be_written_early(overwrite)) return;
    const bool has_others = readers_.only_reader(piece) != overwrite;
    if (has_others && !stays_written(overwrite)) return;
    const std::optional<graph::Geometry> place = place_of(piece, overwrite);
    if (!place || (has_others && !keeps_order(value(piece), place->strides))) return;
    Value placed = value(piece);
    placed.within = overwrite;
    placed.offset = place->offset;
    placed.strides = place->strides;
    if (!takes(piece, placed)) return;
    std::swap(program_.values[static_cast<std::size_t>(piece)], placed);
    if (!is_readable(piece, overwrite)) program_.values[static_cast<std::size_t>(piece)] = std::move(placed);
  }

  /// Whether a cluster stores all elements of the value, and the value is no part of a larger array yet.
  bool is_stored_whole(ValueId id) const {
    const Value& v = value(id);
    return v.leaf < 0 && is_owned(program_, id) && !readers_.is_output(id) && v.within < 0 && v.op != Op::overwrite &&
           v.op != Op::empty && byte_size(v) >= least_bytes;
  }

  /// Whether nothing else is written where the piece belongs before its overwrite: the array holds nothing but pieces,
  /// and those that may come later do not reach there.
  bool may_be_written_early(ValueId overwrite) const {
    if (view_of(overwrite).dynamic) return false;
    ValueId reader = overwrite;
    for (int pieces = 0; pieces < most_compared; ++pieces) {
      const ValueId base = value(reader).inputs[0];
      if (value(base).op == Op::empty) return true;
      if (value(base).op != Op::overwrite || view_of(base).dynamic || readers_.only_reader(base) != reader)
        return false;
      if (!graph::are_disjoint(view_of(base), piece_sizes(base), view_of(overwrite), piece_sizes(overwrite))) {
        return false;
      }
      reader = base;
    }
    return false;
  }

  /// Whether nothing else is written where the piece lies after its overwrite, for as long as the array is in memory.
  bool stays_written(ValueId overwrite) const {
    ValueId array = overwrite;
    for (int pieces = 0; pieces < most_compared; ++pieces) {
      const std::span<const ValueId> all = readers_.of(array);
      const auto is_next = [&](ValueId id) { return value(id).op == Op::overwrite && value(id).inputs[0] == array; };
      const auto next = std::ranges::find_if(all, is_next);
      if (next == all.end()) return true;
      const bool is_disjoint =
          !view_of(*next).dynamic &&
          graph::are_disjoint(view_of(*next), piece_sizes(*next), view_of(overwrite), piece_sizes(overwrite));
      if (!is_disjoint) return false;
      array = *next;
    }
    return false;
  }

  /// Whether axes lie in the same order with other strides: groups that read the value go along its memory, and the
  /// device was asked for those before.
  static bool keeps_order(const Value& v, const Strides& strides) {
    for (int a = 0; a < v.shape.rank(); ++a) {
      for (int b = 0; b < v.shape.rank(); ++b) {
        const bool is_real = v.shape[a] != 1 && v.shape[b] != 1;
        if (is_real && v.strides[a] > v.strides[b] && strides[a] <= strides[b]) return false;
      }
    }
    return true;
  }

  /// Whether all others that read the piece can do so where it lies: groups, through views that have strides there.
  bool is_readable(ValueId piece, ValueId overwrite) const {
    const std::int32_t own = program_.owner[static_cast<std::size_t>(piece)];
    return std::ranges::all_of(readers_.of(piece), [&](ValueId reader) {
      const std::int32_t owner = program_.owner[static_cast<std::size_t>(reader)];
      if (reader == overwrite || owner == own) return true;
      if (owner < 0 || program_.clusters[static_cast<std::size_t>(owner)].kind != Cluster::Kind::group) return false;
      return std::ranges::all_of(value(reader).inputs, [&](ValueId input) {
        if (input < 0 || input == piece || base_of(program_, input) != piece) return true;
        return resolve_on(program_, input, piece).has_value();
      });
    });
  }

  /// Where the elements of the value lie in the array. Nothing unless the overwrite reads all of them in their order in
  /// memory, or if they have no strides there.
  std::optional<graph::Geometry> place_of(ValueId id, ValueId overwrite) const {
    const Value& v = value(id);
    const ValueId source = value(overwrite).inputs[1];
    const Shape& sizes = value(source).shape;
    if (numel(sizes) != numel(v.shape)) return std::nullopt;
    if (source != id) {
      const auto read = resolve_on(program_, source, id);
      if (!read || read->offset != 0 || !graph::is_row_major(sizes, read->strides)) return std::nullopt;
    } else if (!graph::is_row_major(sizes, v.strides)) {
      return std::nullopt;
    }
    // The value's elements, counted in their order in memory, are those of the array that the overwrite writes.
    const ops::View in_memory{v.strides, 0, false};
    auto place = graph::resolve_view(in_memory, v.shape, sizes, view_of(overwrite).strides);
    if (place) place->offset += view_of(overwrite).offset;
    return place;
  }

  /// Whether what computes the value stores it there.
  bool takes(ValueId id, const Value& placed) const {
    const Cluster& cluster = program_.clusters[static_cast<std::size_t>(program_.owner[static_cast<std::size_t>(id)])];
    if (cluster.kind == Cluster::Kind::group) return placed.shape == cluster.space;
    return is_member(cluster, id) && cluster.epilogue < 0 && target_.stores_into_arrays(primitive_of(program_, placed));
  }

  Program& program_;
  const Target& target_;
  Readers readers_;
};

}  // namespace

void place(Program& program, const Target& target) { Placement(program, target).run(); }

}  // namespace russet::compile::passes
