#include "compile/passes/united_group.h"

#include <algorithm>
#include <set>

#include "compile/emit.h"

namespace russet::compile::passes {
namespace {

using Kind = Instruction::Kind;

/// How many elements lie behind one step along each axis of [first, last), ascending, and how many there are in all.
std::set<std::int64_t> products_of(const Shape& space, int first, int last) {
  std::set<std::int64_t> products{1};
  std::int64_t product = 1;
  for (int axis = last - 1; axis >= first; --axis) products.insert(product *= space[axis]);
  return products;
}

/// Axes of which those of both groups, before the split or from it on, are made by merging neighbours; nothing if there
/// are none such.
std::optional<Shape> common_axes(const Group& a, const Group& b, bool before_split) {
  const auto products = [&](const Group& group) {
    return before_split ? products_of(group.space, 0, group.split)
                        : products_of(group.space, group.split, group.space.rank());
  };
  std::set<std::int64_t> all = products(a);
  const std::set<std::int64_t> more = products(b);
  if (*all.rbegin() != *more.rbegin()) return std::nullopt;
  all.insert(more.begin(), more.end());
  Shape axes;
  std::int64_t outer = 0;
  for (auto inner = all.rbegin(); inner != all.rend(); outer = *inner++) {
    if (outer == 0) continue;
    if (outer % *inner != 0) return std::nullopt;
    axes.push_back(outer / *inner);
  }
  return axes;
}

/// The group over `axes`, which its own are made of.
Group spread_over(Group group, const Shape& axes, int split) {
  std::vector<Strides> strides(group.accesses.size());
  int own = 0;
  std::int64_t left = 0;  // elements of the own axis behind one step along the axis before
  for (const std::int64_t size : axes) {
    while (left <= 1) left = group.space[own++];
    left /= size;
    for (std::size_t i = 0; i < strides.size(); ++i) {
      strides[i].push_back(group.accesses[i].strides[own - 1] * left);
    }
  }
  for (std::size_t i = 0; i < strides.size(); ++i) group.accesses[i].strides = strides[i];
  group.space = axes;
  group.split = split;
  return group;
}

bool is_uniform(const Instruction& in) { return in.kind == Kind::constant || in.kind == Kind::scalar; }

/// Puts instructions of groups behind one another.
class Union {
 public:
  Union(Shape space, int split) : whole_{Group::Kind::row, std::move(space), split, {}, {}} {}

  /// False if the group needs what is not at hand yet.
  bool add(const Group& group) {
    group_ = &group;
    places_.clear();
    for (const Instruction& own : group.code) {
      const std::optional<std::int16_t> place = take(own);
      if (!place) return false;
      places_.push_back(*place);
    }
    return true;
  }

  Group finish() {
    merge_axes(whole_);
    return std::move(whole_);
  }

 private:
  /// Where the instruction's value is, which may be that of another one.
  std::optional<std::int16_t> take(Instruction in) {
    if (group_->kind == Group::Kind::column && in.extent == Extent::reduced) in.extent = Extent::column;
    for (std::int16_t& input : in.inputs) {
      if (input >= 0) input = places_[static_cast<std::size_t>(input)];
    }
    if (!reads_what_is_known(in)) return std::nullopt;
    const Access* const access = in.access < 0 ? nullptr : &group_->accesses[static_cast<std::size_t>(in.access)];
    if (in.kind == Kind::load) {
      for (const Instruction& store : whole_.code) {
        if (store.kind != Kind::store || at(store).slot != access->slot) continue;
        if (at(store) != *access || store.extent == Extent::column) return std::nullopt;
        return store.inputs[0];
      }
    }
    if (access != nullptr) in.access = place_of(*access);
    if (in.kind != Kind::store) {
      const auto same = std::ranges::find(whole_.code, in);
      if (same != whole_.code.end()) return static_cast<std::int16_t>(same - whole_.code.begin());
    }
    whole_.code.push_back(in);
    return static_cast<std::int16_t>(whole_.code.size() - 1);
  }

  /// Column sums are known when all elements are done.
  bool reads_what_is_known(const Instruction& in) const {
    return in.extent == Extent::column || std::ranges::all_of(in.inputs, [&](std::int16_t input) {
             if (input < 0) return true;
             const Instruction& read = whole_.code[static_cast<std::size_t>(input)];
             return is_uniform(read) || read.extent != Extent::column;
           });
  }

  const Access& at(const Instruction& in) const { return whole_.accesses[static_cast<std::size_t>(in.access)]; }

  std::int16_t place_of(const Access& access) {
    const auto found = std::ranges::find(whole_.accesses, access);
    if (found != whole_.accesses.end()) return static_cast<std::int16_t>(found - whole_.accesses.begin());
    whole_.accesses.push_back(access);
    return static_cast<std::int16_t>(whole_.accesses.size() - 1);
  }

  Group whole_;
  const Group* group_ = nullptr;      // the one that is being added
  std::vector<std::int16_t> places_;  // of its instructions' values
};

std::set<std::int32_t> slots_of(const Group& group, bool written) {
  std::set<std::int32_t> slots;
  for (const Instruction& in : group.code) {
    if (in.access < 0 || in.kind == Kind::index || (written && in.kind != Kind::store)) continue;
    slots.insert(group.accesses[static_cast<std::size_t>(in.access)].slot);
  }
  return slots;
}

/// Whether the second overwrites what the first touches: other elements may still need it.
bool overwrites(const Group& first, const Group& second) {
  const std::set<std::int32_t> touched = slots_of(first, false);
  return std::ranges::any_of(slots_of(second, true), [&](std::int32_t slot) { return touched.contains(slot); });
}

}  // namespace

std::optional<Group> united_group(const Group& first, const Group& second) {
  const bool row_first = first.kind == Group::Kind::row && second.kind == Group::Kind::column;
  const bool column_first = first.kind == Group::Kind::column && second.kind == Group::Kind::row;
  if ((!row_first && !column_first) || overwrites(first, second)) return std::nullopt;
  if (numel(first.space) == 0 || numel(second.space) == 0) return std::nullopt;
  const std::optional<Shape> kept = common_axes(first, second, true);
  const std::optional<Shape> reduced = common_axes(first, second, false);
  if (!kept || !reduced) return std::nullopt;
  Shape axes = *kept;
  for (const std::int64_t size : *reduced) axes.push_back(size);
  const int split = kept->rank();
  Union both(axes, split);
  if (!both.add(spread_over(first, axes, split)) || !both.add(spread_over(second, axes, split))) return std::nullopt;
  return both.finish();
}

}  // namespace russet::compile::passes
