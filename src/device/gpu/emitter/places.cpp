#include "device/gpu/emitter/places.h"

#include <algorithm>

#include "device/gpu/emitter/divisor.h"
#include "device/gpu/emitter/expressions.h"

namespace russet::gpu {
namespace {

using compile::Access;
using compile::Group;

constexpr std::size_t index_of(int position) { return static_cast<std::size_t>(position); }

}  // namespace

Places::Places(const Group& group, const Walk& walk, KernelText& kernel, const std::vector<bool>& used)
    : group_(group), walk_(walk), kernel_(kernel), pointers_(group.accesses.size()) {
  const std::vector<bool> written = compile::written_accesses(group_);
  for (std::size_t i = 0; i < group_.accesses.size(); ++i) {
    if (used[i]) {
      share_or_add(offset_for(i, written[i]));
    } else {
      offset_of_access_.push_back(-1);
    }
  }
}

/// Binds the access, if it lies in memory.
Places::Offset Places::offset_for(std::size_t number, bool written) {
  const Access& access = group_.accesses[number];
  Offset place;
  place.strides = access.strides;
  if (access.slot >= 0) {
    const Placed placed = gpu::place(access, group_.space, written);
    pointers_[number] = kernel_.bind(stored_type(access.dtype), placed.region);
    place.first = placed.first;
    place.written = written;
    return place;
  }
  place.position = true;
  if (access.offset != 0 || access.offset_argument >= 0) {
    place.base =
        kernel_.values().add_offset(fmt::format("start{}", offsets_.size()), access.offset, access.offset_argument);
  }
  return place;
}

/// Accesses with equal strides and origin share an offset; where the strides are run-time values only results do, which
/// all lie alike as a rule.
void Places::share_or_add(Offset place) {
  const bool any_layout = walk_.width == 1;
  const auto same = std::find_if(offsets_.begin(), offsets_.end(), [&](const Offset& other) {
    return !place.position && !other.position && other.first == place.first && other.strides == place.strides &&
           (!any_layout || (place.written && other.written));
  });
  offset_of_access_.push_back(static_cast<int>(same - offsets_.begin()));
  if (same != offsets_.end()) return;
  if (!place.position && (any_layout || place.first != 0)) {
    const std::string name = fmt::format("first{}", offsets_.size());
    place.base =
        walk_.wide ? kernel_.values().add_long(name, place.first) : kernel_.values().add_int(name, place.first);
  }
  offsets_.push_back(std::move(place));
}

void Places::define_indices(int first, int last, std::string_view item) {
  std::string rest(item);
  for (int axis = last - 1; axis >= first; --axis) {
    const bool inner = axis == walk_.inner && walk_.width > 1;
    const std::string scale = inner ? fmt::format(" * {}u", walk_.width) : "";
    if (axis == first) {
      kernel_.line("const {} i{} = {}{};", walk_.item_type(), axis, rest, scale);
      return;
    }
    const auto size =
        static_cast<std::uint64_t>(std::max<std::int64_t>(group_.space[axis] / (inner ? walk_.width : 1), 1));
    const std::string quotient = fmt::format("q{}", axis);
    const std::string name = fmt::format("size{}", axis);
    const std::string member =
        walk_.wide ? kernel_.values().add_ulong(name, size) : kernel_.values().add_uint(name, size);
    if (walk_.wide) {
      kernel_.line("const ulong {} = {} / {};", quotient, rest, member);
    } else {
      const Divisor divisor(size);
      kernel_.line("const uint {} = divide({}, {}, {});", quotient, rest,
                   kernel_.values().add_uint(fmt::format("multiplier{}", axis), divisor.multiplier),
                   kernel_.values().add_uint(fmt::format("shift{}", axis), divisor.shift));
    }
    kernel_.line("const {} i{} = ({} - {} * {}){};", walk_.item_type(), axis, rest, quotient, member, scale);
    rest = quotient;
  }
}

std::string Places::stride_member(std::size_t number, int axis) {
  Offset& place = offsets_[number];
  std::string& member = place.members[index_of(axis)];
  if (member.empty()) {
    const std::string name = fmt::format("stride{}_{}", number, axis);
    member = place.position || walk_.wide ? kernel_.values().add_long(name, place.strides[axis])
                                          : kernel_.values().add_int(name, place.strides[axis]);
  }
  return member;
}

void Places::define_bases() {
  for (std::size_t i = 0; i < offsets_.size(); ++i) {
    kernel_.line("const {} b{} = {};", type_of(offsets_[i]), i, offsets_[i].base.empty() ? "0" : offsets_[i].base);
  }
}

void Places::define(int first, int last, std::string_view item, bool inner) {
  if (walk_.width > 1 && first <= walk_.inner && walk_.inner < last) {
    define_indices(first, last, item);
    define_offsets(first, last, inner);
  } else if (last - first <= 1) {
    define_line(first, last, item, inner);
  } else {
    define_axes(first, last, item, inner);
  }
}

/// Along these very axes.
void Places::define_offsets(int first, int last, bool inner) {
  for (std::size_t i = 0; i < offsets_.size(); ++i) {
    Offset& place = offsets_[i];
    const std::string_view type = type_of(place);
    std::string sum = inner ? fmt::format("b{}", i) : place.base;
    for (int axis = first; axis < last; ++axis) {
      if (place.strides[axis] == 0) continue;
      if (!sum.empty()) sum += " + ";
      // Whether memory is contiguous is part of the text; the distance between rows is a run-time value, so that plans
      // of other sizes share the kernel.
      sum += axis == walk_.inner && place.strides[axis] == 1
                 ? fmt::format("{}(i{})", type, axis)
                 : fmt::format("{}(i{}) * {}", type, axis, stride_member(i, axis));
    }
    kernel_.line("const {} {}{} = {};", type, inner ? 'o' : 'b', i, sum.empty() ? "0" : sum);
  }
}

/// Along one axis, or none.
void Places::define_line(int first, int last, std::string_view item, bool inner) {
  for (std::size_t i = 0; i < offsets_.size(); ++i) {
    const Offset& place = offsets_[i];
    const std::string_view type = type_of(place);
    const std::int64_t stride = first < last ? place.strides[first] : 0;
    const std::string name = fmt::format("{}_stride{}", inner ? "inner" : "outer", i);
    const std::string member =
        type == "long" ? kernel_.values().add_long(name, stride) : kernel_.values().add_int(name, stride);
    const std::string base = inner ? fmt::format("b{} + ", i) : place.base.empty() ? "" : place.base + " + ";
    kernel_.line("const {} {}{} = {}{}({}) * {};", type, inner ? 'o' : 'b', i, base, type, item, member);
  }
}

/// Along any number of axes: a loop over them, from the last to the first.
void Places::define_axes(int first, int last, std::string_view item, bool inner) {
  const std::string_view side = inner ? "inner" : "outer";
  const int rank = last - first;
  const auto numbers = [&](const auto& number_of) {
    std::vector<std::int64_t> list(rank <= 4 ? 4 : max_rank, 0);
    for (int axis = 0; axis < rank; ++axis) {
      list[index_of(axis)] = static_cast<std::int64_t>(number_of(first + axis));
    }
    return list;
  };
  ValueList& values = kernel_.values();
  const auto array = [&](std::string_view type, std::string_view what, const auto& number_of) {
    return values.add_array(type, fmt::format("{}_{}", side, what), numbers(number_of));
  };
  const auto size = [&](int axis) { return static_cast<std::uint64_t>(std::max<std::int64_t>(group_.space[axis], 1)); };
  const std::string sizes = array(walk_.item_type(), "sizes", size);
  const std::string rank_member = values.add_uint(fmt::format("{}_rank", side), static_cast<std::uint64_t>(rank));
  std::vector<std::string> strides;
  for (std::size_t i = 0; i < offsets_.size(); ++i) {
    const Offset& place = offsets_[i];
    const auto stride = [&](int axis) { return place.strides[axis]; };
    strides.push_back(array(type_of(place), fmt::format("strides{}", i), stride));
    const std::string base = inner ? fmt::format("b{}", i) : place.base.empty() ? "0" : place.base;
    kernel_.line("{} {}{} = {};", type_of(place), inner ? 'o' : 'b', i, base);
  }
  const auto add = [&](std::string_view index, std::string_view axis) {
    for (std::size_t i = 0; i < offsets_.size(); ++i) {
      kernel_.line("{}{} += {}({}) * {}[{}];", inner ? 'o' : 'b', i, type_of(offsets_[i]), index, strides[i], axis);
    }
  };
  kernel_.line("{} {}_rest = {};", walk_.item_type(), side, item);
  kernel_.line("for (uint axis = {} - 1u; axis > 0u; --axis) {{", rank_member);
  if (walk_.wide) {
    kernel_.line("const ulong quotient = {}_rest / {}[axis];", side, sizes);
  } else {
    kernel_.line("const uint quotient = divide({}_rest, {}[axis], {}[axis]);", side,
                 array("uint", "multipliers", [&](int axis) { return Divisor(size(axis)).multiplier; }),
                 array("uint", "shifts", [&](int axis) { return Divisor(size(axis)).shift; }));
  }
  kernel_.line("const {} index = {}_rest - quotient * {}[axis];", walk_.item_type(), side, sizes);
  add("index", "axis");
  kernel_.line("{}_rest = quotient;", side);
  kernel_.line("}");
  add(fmt::format("{}_rest", side), "0");
}

std::int64_t Places::inner_stride(int access) const {
  return walk_.inner < 0 ? 0 : group_.accesses[index_of(access)].strides[walk_.inner];
}

bool Places::is_vector(int access) const {
  return walk_.width > 1 && is_aligned(group_.accesses[index_of(access)], walk_.inner, walk_.width);
}

std::string Places::offset(int access, bool inner) const {
  return fmt::format("{}{}", inner ? 'o' : 'b', offset_of_access_[index_of(access)]);
}

const Places::Offset& Places::offset_at(int access) const {
  return offsets_[index_of(offset_of_access_[index_of(access)])];
}

const std::string& Places::pointer(int access) const { return pointers_[index_of(access)]; }

std::string Places::scattered(int access) const {
  const std::string& stride = offset_at(access).members[index_of(walk_.inner)];
  return fmt::format("{}[{} + {}(k) * {}]", pointers_[index_of(access)], offset(access, true), walk_.index_type(),
                     stride);
}

std::string Places::position(int access) const {
  if (walk_.width == 1 || inner_stride(access) == 0) return offset(access, true);
  const std::string& stride = offset_at(access).members[index_of(walk_.inner)];
  return fmt::format("{} + long(k){}", offset(access, true), stride.empty() ? "" : " * " + stride);
}

}  // namespace russet::gpu
