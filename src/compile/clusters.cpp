#include "compile/clusters.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "compile/failure.h"
#include "ops/attention.h"
#include "ops/table.h"

namespace russet::compile {

using ops::Family;
using ops::Op;

bool is_reduction(const Value& value) { return ops::row(value.op).family == Family::reduction; }
bool is_view(const Value& value) { return value.op == Op::strided; }

bool is_free(const Value& value) { return value.op == Op::scalar || value.op == Op::constant || value.op == Op::iota; }

bool is_pointwise(const Value& value) {
  const Family family = ops::row(value.op).family;
  return family == Family::elementwise || family == Family::random || is_free(value);
}

bool is_fusable(const Value& value) { return is_pointwise(value) || is_reduction(value); }

bool is_owned(const Program& program, ValueId id) {
  return !program.owner.empty() && program.owner[static_cast<std::size_t>(id)] >= 0;
}

ValueId base_of(const Program& program, ValueId id) {
  while (is_view(value_at(program, id)) && !is_owned(program, id)) id = value_at(program, id).inputs[0];
  return id;
}

std::optional<graph::Geometry> resolve_on(const Program& program, ValueId id, ValueId base) {
  const Value& value = value_at(program, id);
  const auto& view = std::get<ops::View>(value.attributes);
  const Value& source = value_at(program, value.inputs[0]);
  if (value.inputs[0] == base) {
    auto lies = graph::resolve_view(view, value.shape, source.shape, source.strides);
    if (lies) lies->offset += source.offset;
    return lies;
  }
  if (!is_view(source) || view.dynamic || std::get<ops::View>(source.attributes).dynamic) return std::nullopt;
  const std::optional<graph::Geometry> inner = resolve_on(program, value.inputs[0], base);
  if (!inner) return std::nullopt;
  // Strides of axes with one element are arbitrary; the row-major ones make every view of consecutive memory affine.
  const bool consecutive = graph::is_row_major(source.shape, inner->strides);
  const Strides strides = consecutive ? contiguous_strides(source.shape) : inner->strides;
  std::optional<graph::Geometry> whole = graph::resolve_view(view, value.shape, source.shape, strides);
  if (whole) whole->offset += inner->offset;
  return whole;
}

bool is_alias(const Program& program, const Value& view) {
  const Value& base = value_at(program, view.inputs[0]);
  const auto& attributes = std::get<ops::View>(view.attributes);
  if (is_view(base) || is_free(base) || attributes.dynamic) return false;
  const auto affine = graph::resolve_view(attributes, view.shape, base.shape, base.strides);
  return affine && graph::is_row_major(view.shape, affine->strides);
}

bool computes_again(const Program& program, const Cluster& cluster) {
  return std::any_of(cluster.members.begin(), cluster.members.end(),
                     [&](ValueId member) { return value_at(program, member).again; });
}

ValueId first_of(const Program& program, const Cluster& cluster) {
  for (const ValueId member : cluster.members) {
    const Op op = value_at(program, member).op;
    if (op == Op::attention || op == Op::attention_key_gradient) return member;
  }
  return cluster.members.front();
}

bool draws(const Program& program, const Value& value, std::size_t input) {
  if (ops::row(value.op).family != Family::attention || value.inputs[input] < 0) return false;
  const int place = ops::attention_inputs(value.op, std::get<ops::Attention>(value.attributes)).uniform;
  const Value& drawn = value_at(program, value.inputs[input]);
  return place == static_cast<int>(input) && drawn.op == Op::uniform &&
         std::get<ops::Seed>(drawn.attributes).first == 0;
}

bool reads_through_view(const Value& primitive, int input, const Value& view) {
  const ops::View& attributes = std::get<ops::View>(view.attributes);
  if (graph::is_row_major(view.shape, attributes.strides)) return true;
  if (primitive.op == Op::matmul) {
    // Rows or columns must be dense, as BLAS wants them; no axis may be broadcast but the batch.
    const int rank = view.shape.rank();
    const std::int64_t row = attributes.strides[rank - 2];
    const std::int64_t column = attributes.strides[rank - 1];
    return (column == 1 && row >= view.shape[rank - 1]) || (row == 1 && column >= view.shape[rank - 2]);
  }
  // Its kernels take any strides.
  if (ops::row(primitive.op).family == Family::attention) return true;
  return primitive.op == Op::overwrite && input == 1;
}

Shape padded(const Shape& shape, int rank) {
  Shape result = Shape::filled(rank - shape.rank(), 1);
  for (const std::int64_t size : shape) result.push_back(size);
  return result;
}

Fit fit(const Shape& shape, const Cluster& cluster) {
  if (shape.rank() > cluster.space.rank()) return Fit::none;
  const Shape own = padded(shape, cluster.space.rank());
  if (own == cluster.space) return Fit::full;
  Shape reduced = cluster.space;
  for (int axis = 0; axis < reduced.rank(); ++axis) {
    if ((cluster.reduced >> axis) & 1U) reduced[axis] = 1;
  }
  if (own == reduced) return Fit::reduced;
  return numel(shape) == 1 ? Fit::uniform : Fit::none;
}

Readers::Readers(const Program& program, Views views) : first_(program.values.size() + 1, 0) {
  const auto for_each_read = [&](auto&& visit) {
    for (std::size_t id = 0; id < program.values.size(); ++id) {
      const Value& value = program.values[id];
      const bool through = views == Views::looked_through;
      if (through && is_view(value) && !is_owned(program, static_cast<ValueId>(id))) continue;
      for (const ValueId input : value.inputs) {
        if (input >= 0) visit(static_cast<std::size_t>(through ? base_of(program, input) : input), id);
      }
    }
  };
  for_each_read([&](std::size_t read, std::size_t) { ++first_[read + 1]; });
  std::partial_sum(first_.begin(), first_.end(), first_.begin());
  readers_.resize(first_.back());
  std::vector<std::size_t> end(first_.begin(), first_.end() - 1);
  for_each_read([&](std::size_t read, std::size_t reader) {
    const auto id = static_cast<ValueId>(reader);
    if (end[read] == first_[read] || readers_[end[read] - 1] != id) readers_[end[read]++] = id;
  });
  end_ = std::move(end);
  is_output_.assign(program.values.size(), false);
  for (const Output& output : program.outputs) is_output_[static_cast<std::size_t>(output.value)] = true;
}

std::span<const ValueId> Readers::of(ValueId id) const {
  const auto at = static_cast<std::size_t>(id);
  return std::span(readers_).subspan(first_[at], end_[at] - first_[at]);
}

ValueId Readers::only_reader(ValueId id) const {
  const std::span<const ValueId> all = of(id);
  return all.size() == 1 && !is_output(id) ? all.front() : -1;
}

bool is_member(const Cluster& cluster, ValueId id) {
  return std::binary_search(cluster.members.begin(), cluster.members.end(), id);
}

void drop_unused(const Program& program, Cluster& cluster) {
  std::set<ValueId> needed(cluster.stores.begin(), cluster.stores.end());
  for (std::size_t i = cluster.members.size(); i-- > 0;) {
    if (!needed.count(cluster.members[i])) continue;
    for (const ValueId input : value_at(program, cluster.members[i]).inputs) {
      if (input >= 0) needed.insert(input);
    }
  }
  std::erase_if(cluster.members, [&](ValueId member) { return !needed.count(member); });
}

std::optional<Strides> leading_strides(const Program& program, const Cluster& cluster) {
  std::optional<Strides> through_view;
  for (const ValueId member : cluster.members) {
    for (const ValueId input : value_at(program, member).inputs) {
      if (input < 0) continue;
      const Value& source = value_at(program, input);
      if (source.shape != cluster.space) continue;
      if (!is_view(source)) return source.strides;
      const ValueId base = base_of(program, input);
      if (through_view || base == input || is_free(value_at(program, base))) continue;
      if (const auto lies = resolve_on(program, input, base)) through_view = lies->strides;
    }
  }
  return through_view;
}

Group::Kind kind_of(const Program& program, const Cluster& cluster) {
  if (cluster.reduced == 0) return Group::Kind::elementwise;
  const Strides strides = leading_strides(program, cluster).value_or(contiguous_strides(cluster.space));
  int innermost = -1;
  for (int axis = 0; axis < cluster.space.rank(); ++axis) {
    if (cluster.space[axis] == 1) continue;
    if (innermost < 0 || strides[axis] <= strides[innermost]) innermost = axis;
  }
  const bool row = innermost < 0 || ((cluster.reduced >> innermost) & 1U);
  return row ? Group::Kind::row : Group::Kind::column;
}

namespace {

/// `place`: what stands for an input of a member.
template <class Place>
std::vector<ValueId> collect_reads(const Program& program, const Cluster& cluster, const Place& place) {
  std::vector<ValueId> read;
  for (const ValueId member : cluster.members) {
    for (const ValueId input : value_at(program, member).inputs) {
      if (input < 0 || is_member(cluster, input) || is_free(value_at(program, input))) continue;
      read.push_back(place(member, input));
    }
  }
  std::sort(read.begin(), read.end());
  read.erase(std::unique(read.begin(), read.end()), read.end());
  return read;
}

}  // namespace

std::vector<ValueId> reads_of(const Program& program, const Cluster& cluster) {
  return collect_reads(program, cluster, [](ValueId, ValueId input) { return input; });
}

std::vector<ValueId> loads_of(const Program& program, const Cluster& cluster) {
  return collect_reads(program, cluster, [&](ValueId member, ValueId input) {
    return is_view(value_at(program, member)) ? member : input;
  });
}

namespace {

/// At most how many places in memory the group's code reads and writes: values and views of them.
int count_accesses(const Program& program, const Readers& readers, const Cluster& cluster, int enough) {
  const int loads = static_cast<int>(loads_of(program, cluster).size());
  // Every member may be stored, unless that is too many: then it matters who reads them.
  const int members = static_cast<int>(cluster.members.size());
  if (loads + members <= enough) return loads + members;
  const auto is_inside = [&](ValueId reader) { return is_member(cluster, reader); };
  const auto is_stored = [&](ValueId member) {
    return readers.read_outside(member, cluster.members.size(), is_inside);
  };
  return loads + static_cast<int>(std::count_if(cluster.members.begin(), cluster.members.end(), is_stored));
}

}  // namespace

bool is_computed_by(const Program& program, const Value& value, const Target& target) {
  return target.computes(value.dtype) && std::all_of(value.inputs.begin(), value.inputs.end(), [&](ValueId input) {
           return input < 0 || target.computes(value_at(program, input).dtype);
         });
}

bool is_runnable(const Program& program, const Readers& readers, const Cluster& cluster, const Target& target) {
  std::int64_t row = 1;
  for (int axis = 0; axis < cluster.space.rank(); ++axis) {
    if ((cluster.reduced >> axis) & 1U) row *= cluster.space[axis];
  }
  const auto fails = [&](ValueId member) { return may_fail(program, value_at(program, member), target); };
  if (cluster.members.size() > 1 && std::any_of(cluster.members.begin(), cluster.members.end(), fails)) return false;
  const bool two_sweeps =
      cluster.reduced == 0 || (kind_of(program, cluster) == Group::Kind::row && row <= target.longest_row());
  const auto reductions = std::count_if(cluster.members.begin(), cluster.members.end(),
                                        [&](ValueId member) { return is_reduction(value_at(program, member)); });
  // What a device says leaves room for the partial results of four reductions; further ones need memory of their own,
  // up to two places each.
  const int most = target.max_accesses() - 2 * std::max(static_cast<int>(reductions) - 4, 0);
  if (count_accesses(program, readers, cluster, most) > most) return false;
  const auto is_computed = [&](ValueId member) { return is_computed_by(program, value_at(program, member), target); };
  const bool all = is_computed(cluster.members.front());
  if (std::any_of(cluster.members.begin(), cluster.members.end(), [&](ValueId id) { return is_computed(id) != all; })) {
    return false;
  }
  std::vector<ValueId> after;  // members that depend on a reduction of this group; ascending
  for (const ValueId member : cluster.members) {
    const Value& value = value_at(program, member);
    bool follows = false;
    for (const ValueId input : value.inputs) {
      if (input < 0) continue;
      follows |= std::binary_search(after.begin(), after.end(), input);
      // A view of a member would have to be read from memory that this group has not written yet.
      const ValueId base = base_of(program, input);
      const bool through_view = base != input || is_view(value);
      if (through_view && std::binary_search(cluster.members.begin(), cluster.members.end(), base)) return false;
    }
    if (is_reduction(value)) {
      after.push_back(member);
      if (follows && !two_sweeps) return false;
    } else if (follows) {
      after.push_back(member);
      if (fit(value.shape, cluster) == Fit::full && !two_sweeps) return false;
    }
  }
  return true;
}

}  // namespace russet::compile
