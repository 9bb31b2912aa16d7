#include "compile/emit.h"

#include <fmt/format.h>
#include <russet/error.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

#include "graph/strided.h"
#include "ops/table.h"

namespace russet::compile {
namespace {

using ops::Op;
using Kind = Instruction::Kind;

Strides reordered(const Strides& strides, const std::vector<int>& order) {
  Strides result;
  for (const int axis : order) result.push_back(strides[axis]);
  return result;
}

class Emitter {
 public:
  /// `walked`: the loops run in this value's memory order; -1: in that of the first value stored, else of the first
  /// read.
  Emitter(const Program& program, const Cluster& cluster, const std::vector<std::int32_t>& slot_of, ValueId walked = -1)
      : program_(program), cluster_(cluster), slot_of_(slot_of), walked_(walked) {
    group_.kind = kind_of(program, cluster);
    order_axes();
  }

  /// Reads `contraction` as access 0, which has no place in memory.
  Group run_epilogue(ValueId contraction) {
    order_.clear();
    group_.space = {};
    for (const bool kept : {false, true}) {
      for (int axis = 0; axis < cluster_.space.rank(); ++axis) {
        const bool reduced = (cluster_.reduced >> axis) & 1U;
        if (cluster_.reduced != 0 ? reduced == kept : kept) continue;
        order_.push_back(axis);
        group_.space.push_back(cluster_.space[axis]);
      }
      if (!kept) group_.split = group_.space.rank();
    }
    const Value& v = value(contraction);
    Instruction load{Kind::load};
    load.dtype = v.dtype;
    load.access = add_access(spread({-1, v.dtype, 0, -1, v.strides}, v.shape));
    done_.emplace(std::pair(contraction, Extent::full), add(load));
    for (const ValueId stored : cluster_.stores) store(stored);
    return std::move(group_);
  }

  Group run() {
    for (const ValueId stored : cluster_.stores) store(stored);
    merge_axes(group_);
    return std::move(group_);
  }

  /// The last instruction stores the element: to memory if the cluster stores the value, else to no slot (-1).
  Group run_prologue(ValueId element) {
    bool in_memory = false;
    for (const ValueId stored : cluster_.stores) {
      in_memory |= stored == element;
      if (stored != element) store(stored);
    }
    store(element);
    merge_axes(group_);
    if (!in_memory) group_.accesses[static_cast<std::size_t>(group_.code.back().access)].slot = -1;
    return std::move(group_);
  }

 private:
  const Value& value(ValueId id) const { return value_at(program_, id); }
  bool is_member(ValueId id) const { return std::binary_search(cluster_.members.begin(), cluster_.members.end(), id); }

  void order_axes() {
    const int rank = cluster_.space.rank();
    std::vector<int> first;
    std::vector<int> second;
    const Strides leading = walking_strides();
    bool keep_order = false;
    for (const ValueId member : cluster_.members) {
      keep_order |= value(member).op == Op::argmax || value(member).op == Op::argmin;
    }
    for (int axis = 0; axis < rank; ++axis) {
      const bool reduced = (cluster_.reduced >> axis) & 1U;
      const bool in_first = group_.kind == Group::Kind::elementwise || (group_.kind == Group::Kind::row) != reduced;
      (in_first ? first : second).push_back(axis);
    }
    const auto outer = [&](int a, int b) { return leading[a] > leading[b]; };
    if (!keep_order) {
      std::stable_sort(first.begin(), first.end(), outer);
      std::stable_sort(second.begin(), second.end(), outer);
    }
    group_.split = static_cast<int>(first.size());
    order_ = first;
    order_.insert(order_.end(), second.begin(), second.end());
    for (const int axis : order_) group_.space.push_back(cluster_.space[axis]);
  }

  Strides walking_strides() const {
    if (walked_ >= 0) return value(walked_).strides;
    for (const ValueId stored : cluster_.stores) {
      if (value(stored).shape == cluster_.space) return value(stored).strides;
    }
    return leading_strides(program_, cluster_).value_or(contiguous_strides(cluster_.space));
  }

  Extent extent_of(ValueId id) const {
    if (cluster_.reduced == 0) return Extent::full;
    switch (fit(value(id).shape, cluster_)) {
      case Fit::reduced:
      case Fit::uniform: return Extent::reduced;
      default: return Extent::full;
    }
  }

  /// The extent at which a reader takes a value. What follows a reduction reads one element for all that were reduced,
  /// also of a value that is broadcast along other axes. In a column group, what full instructions read is computed at
  /// full extent: nothing reduced exists before the end.
  Extent extent_of(ValueId id, Extent reader) const {
    if (reader == Extent::reduced || group_.kind == Group::Kind::column) return reader;
    return extent_of(id);
  }

  Access spread(Access access, const Shape& shape) const {
    access.strides = reordered(graph::broadcast_strides(shape, access.strides, cluster_.space), order_);
    return access;
  }

  std::int16_t add(Instruction instruction) {
    group_.code.push_back(instruction);
    return static_cast<std::int16_t>(group_.code.size() - 1);
  }

  std::int16_t add_access(Access access) {
    const auto found = std::find(group_.accesses.begin(), group_.accesses.end(), access);
    if (found != group_.accesses.end()) return static_cast<std::int16_t>(found - group_.accesses.begin());
    group_.accesses.push_back(access);
    return static_cast<std::int16_t>(group_.accesses.size() - 1);
  }

  /// The instruction that holds a value, at the extent that its reader runs at.
  std::int16_t read(ValueId id, Extent reader) {
    const Extent extent = extent_of(id, reader);
    const auto key = std::pair(id, extent);
    const auto found = done_.find(key);
    if (found != done_.end()) return found->second;
    const std::int16_t result = is_member(id) || is_free(value(id)) ? compute(id, extent) : load(id, extent);
    done_.emplace(key, result);
    return result;
  }

  /// A value that another cluster stores is loaded, even where computing it again were cheap: the device was asked
  /// whether it takes this code before slots were known, so the code must not depend on them.
  std::int16_t load(ValueId id, Extent extent) {
    Instruction load{Kind::load};
    load.dtype = value(id).dtype;
    load.extent = extent;
    load.access = add_access(spread(access_of(program_, id, slot_of_), value(id).shape));
    return add(load);
  }

  /// The position of an element, counted from `first`.
  std::int16_t index(const Value& v, Extent extent, std::int64_t first = 0) {
    Instruction index{Kind::index};
    index.dtype = DType::int64;
    index.extent = extent;
    Access access;
    access.offset = first;
    access.dtype = DType::int64;
    access.strides = contiguous_strides(v.shape);
    index.access = add_access(spread(access, v.shape));
    return add(index);
  }

  std::int16_t compute(ValueId id, Extent extent) {
    const Value& v = value(id);
    if (is_view(v)) return copy_of_view(id, extent);
    if (v.op == Op::iota) return converted(index(v, extent), DType::int64, v.dtype, extent);
    Instruction in;
    in.op = v.op;
    in.dtype = v.dtype;
    in.extent = extent;
    in.argument = v.argument;
    if (v.op == Op::scalar) {
      in.kind = Kind::scalar;
      in.op = Op::leaf;
    } else if (v.op == Op::constant || v.op == Op::empty) {
      in.kind = Kind::constant;
      in.op = Op::leaf;
      if (const auto* number = std::get_if<ops::Number>(&v.attributes)) in.number = *number;
    } else if (ops::row(v.op).family == ops::Family::random) {
      in.kind = Kind::random;
      const auto& seed = std::get<ops::Seed>(v.attributes);
      in.seed = seed.value;
      in.inputs[0] = index(v, extent, seed.first);
    } else if (is_reduction(v)) {
      return reduce(v, in);
    } else {
      for (std::size_t i = 0; i < 3 && v.inputs[i] >= 0; ++i) in.inputs[i] = read(v.inputs[i], extent);
    }
    return add(in);
  }

  std::int16_t reduce(const Value& v, Instruction in) {
    in.kind = Kind::reduce;
    in.extent = Extent::reduced;
    const DType from = value(v.inputs[0]).dtype;
    const std::int16_t input = read(v.inputs[0], Extent::full);
    const bool position = v.op == Op::argmax || v.op == Op::argmin;
    in.inputs[0] = position ? input : converted(input, from, v.dtype, Extent::full);
    return add(in);
  }

  std::int16_t converted(std::int16_t input, DType from, DType to, Extent extent) {
    if (from == to) return input;
    Instruction cast;
    cast.op = Op::cast;
    cast.dtype = to;
    cast.extent = extent;
    cast.inputs[0] = input;
    return add(cast);
  }

  /// A view of a value that is computed where it is read, in memory or not: positions come through the view as well.
  std::optional<std::int16_t> view_of_free(ValueId id, Extent extent) {
    const Value& v = value(id);
    if (!is_view(v)) return {};
    const ValueId base = base_of(program_, v.inputs[0]);
    if (!is_free(value(base))) return {};
    if (value(base).op != Op::iota) return read(base, extent);
    const Shape& shape = value(base).shape;
    const auto affine =
        graph::resolve_view(std::get<ops::View>(v.attributes), v.shape, shape, contiguous_strides(shape));
    if (!affine || base != v.inputs[0]) throw InternalError(fmt::format("emit: view %{} does not resolve", id));
    Instruction index{Kind::index};
    index.dtype = DType::int64;
    index.extent = extent;
    index.access = add_access(spread({-1, DType::int64, affine->offset, v.argument, affine->strides}, v.shape));
    return converted(add(index), DType::int64, v.dtype, extent);
  }

  /// A view that is stored: a load through it.
  std::int16_t copy_of_view(ValueId id, Extent extent) {
    if (const auto made = view_of_free(id, extent)) return *made;
    const Value& v = value(id);
    const ValueId base = base_of(program_, v.inputs[0]);
    const auto affine = resolve_on(program_, id, base);
    if (!affine) throw InternalError(fmt::format("emit: view %{} does not resolve", id));
    Instruction load{Kind::load};
    load.dtype = v.dtype;
    load.extent = extent;
    load.access = add_access(spread(
        {slot_of_[static_cast<std::size_t>(base)], v.dtype, affine->offset, v.argument, affine->strides}, v.shape));
    return add(load);
  }

  void store(ValueId id) {
    const Value& v = value(id);
    Instruction store{Kind::store};
    store.dtype = v.dtype;
    store.extent = extent_of(id);
    store.inputs[0] = read(id, store.extent);
    store.access = add_access(spread(access_of(program_, id, slot_of_), v.shape));
    add(store);
  }

  const Program& program_;
  const Cluster& cluster_;
  const std::vector<std::int32_t>& slot_of_;
  ValueId walked_;
  Group group_;
  std::vector<int> order_;
  std::map<std::pair<ValueId, Extent>, std::int16_t> done_;
};

}  // namespace

void merge_axes(Group& group) {
  const auto stride = [&](std::size_t access, int axis) { return group.accesses[access].strides[axis]; };
  const auto merged =
      graph::merged_axes(group.space, group.accesses.size(), stride, [&](int axis) { return axis == group.split; });
  const auto before_split = [&](const graph::MergedAxis& axis) { return axis.last < group.split; };
  group.split = static_cast<int>(std::count_if(merged.begin(), merged.end(), before_split));
  Shape space;
  for (const graph::MergedAxis& axis : merged) space.push_back(axis.size);
  group.space = space;
  for (Access& access : group.accesses) {
    Strides strides;
    for (const graph::MergedAxis& axis : merged) strides.push_back(access.strides[axis.last]);
    access.strides = strides;
  }
}

Access access_of(const Program& program, ValueId id, const std::vector<std::int32_t>& slot_of) {
  const Value& value = value_at(program, id);
  const ValueId base = base_of(program, id);
  if (base == id) return {slot_of[static_cast<std::size_t>(id)], value.dtype, value.offset, -1, value.strides};
  const auto affine = resolve_on(program, id, base);
  if (!affine) throw InternalError(fmt::format("emit: view %{} does not resolve", id));
  return {slot_of[static_cast<std::size_t>(base)], value.dtype, affine->offset, value.argument, affine->strides};
}

std::vector<std::int32_t> numbers_as_slots(const Program& program) {
  std::vector<std::int32_t> slots(program.values.size());
  std::iota(slots.begin(), slots.end(), 0);
  return slots;
}

Group emit_group(const Program& program, const Cluster& cluster, const std::vector<std::int32_t>& slot_of) {
  return Emitter(program, cluster, slot_of).run();
}

Group emit_epilogue_group(const Program& program, const Cluster& cluster, ValueId contraction,
                          const std::vector<std::int32_t>& slot_of) {
  return Emitter(program, cluster, slot_of).run_epilogue(contraction);
}

ValueId epilogue_output(const Program& program, ValueId contraction, const Cluster& cluster) {
  for (const ValueId stored : cluster.stores) {
    if (value_at(program, stored).shape == value_at(program, contraction).shape) return stored;
  }
  throw InternalError(fmt::format("emit: the epilogue of %{} stores no output", contraction));
}

Group emit_prologue_group(const Program& program, const Cluster& cluster, ValueId value,
                          const std::vector<std::int32_t>& slot_of) {
  return Emitter(program, cluster, slot_of, value).run_prologue(value);
}

Attached attached_to(const Program& program, const Cluster& cluster) {
  const auto at = [&](std::int32_t id) { return id < 0 ? nullptr : &program.clusters[static_cast<std::size_t>(id)]; };
  Attached attached{at(cluster.epilogue), {at(cluster.prologues[0]), at(cluster.prologues[1])}, {}};
  if (cluster.kind != Cluster::Kind::primitive) return attached;
  for (const ValueId member : cluster.members) {
    if (member != first_of(program, cluster)) attached.companions.push_back(member);
  }
  return attached;
}

Primitive primitive_of(const Program& program, const Value& value) {
  Primitive primitive;
  primitive.op = value.op;
  primitive.attributes = value.attributes;
  for (std::size_t i = 0; i < ops::max_inputs && value.inputs[i] >= 0; ++i) {
    const Value& input = value_at(program, value.inputs[i]);
    Strides strides = input.strides;
    if (is_view(input)) {
      // What is not affine is copied first.
      const auto affine = resolve_on(program, value.inputs[i], base_of(program, value.inputs[i]));
      strides = affine ? affine->strides : contiguous_strides(input.shape);
    }
    primitive.inputs.push_back({{value.inputs[i], input.dtype, 0, -1, strides}, input.shape});
  }
  primitive.output = {{-1, value.dtype, value.offset, -1, value.strides}, value.shape};
  return primitive;
}

Primitive emit_primitive(const Program& program, ValueId id, const Attached& attached,
                         const std::vector<std::int32_t>& slot_of) {
  const Value& value = value_at(program, id);
  const bool elementwise = ops::row(value.op).family == ops::Family::elementwise;
  Primitive step;
  step.op = value.op;
  step.attributes = value.attributes;
  step.argument = value.argument;
  for (std::size_t i = 0; i < ops::max_inputs && value.inputs[i] >= 0; ++i) {
    const Value& input = value_at(program, value.inputs[i]);
    Operand operand{access_of(program, value.inputs[i], slot_of), input.shape};
    if (elementwise) {
      operand.access.strides = graph::broadcast_strides(input.shape, operand.access.strides, value.shape);
      operand.sizes = value.shape;
    }
    if (i < attached.prologues.size() && attached.prologues[i] != nullptr) {
      const ValueId base = base_of(program, value.inputs[i]);
      step.prologues[i] = emit_prologue_group(program, *attached.prologues[i], base, slot_of);
      operand.access.slot = -1;
    }
    if (operand.access.slot < 0 && draws(program, value, i)) {
      std::get<ops::Attention>(step.attributes).seed = std::get<ops::Seed>(input.attributes).value;
      operand.access.offset_argument = input.argument;
    }
    step.inputs.push_back(operand);
  }
  ValueId result = id;
  if (attached.epilogue != nullptr) {
    result = epilogue_output(program, id, *attached.epilogue);
    step.epilogue = emit_epilogue_group(program, *attached.epilogue, id, slot_of);
  }
  const auto whole = [&](ValueId stored) -> Operand {
    const Value& out = value_at(program, stored);
    return {{slot_of[static_cast<std::size_t>(stored)], out.dtype, out.offset, -1, out.strides}, out.shape};
  };
  step.output = whole(result);
  for (const ValueId companion : attached.companions) {
    step.companions.push_back({value_at(program, companion).op, whole(companion)});
  }
  return step;
}

Group emit_copy(const Shape& sizes, const Access& source, const Access& target) {
  Group group;
  group.space = sizes;
  group.split = sizes.rank();
  group.accesses = {source, target};
  Instruction load{Kind::load};
  load.dtype = source.dtype;
  load.access = 0;
  Instruction store{Kind::store};
  store.dtype = target.dtype;
  store.access = 1;
  store.inputs[0] = 0;
  group.code = {load, store};
  merge_axes(group);
  return group;
}

}  // namespace russet::compile
