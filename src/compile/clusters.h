#pragma once
// Questions that fusion asks about values and clusters.
#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "compile/program.h"
#include "graph/strided.h"

namespace russet::compile {

/// Computed element by element from values of the same index, or from nothing (sources, random numbers).
bool is_pointwise(const Value& value);
bool is_reduction(const Value& value);
/// May be a member of a group.
bool is_fusable(const Value& value);
/// Reads another value through a view; computes nothing.
bool is_view(const Value& value);
/// A number, or an index or random source: computed where it is read, never stored for others.
bool is_free(const Value& value);

/// Whether a cluster computes the value; views and free values usually have none.
bool is_owned(const Program& program, ValueId id);
/// The value in memory behind a chain of views: `id` itself if it is none, or a view that is stored itself.
ValueId base_of(const Program& program, ValueId id);

/// Where the elements of a view of `base` lie in its memory; `id` may be a view of a view. Nothing if that is not
/// affine.
std::optional<graph::Geometry> resolve_on(const Program& program, ValueId id, ValueId base);
/// Whether a view of a value in memory shows consecutive memory in its order: it is that memory, in another shape.
bool is_alias(const Program& program, const Value& view);

/// Whether the cluster computes a value for backward again (Value::again).
bool computes_again(const Program& program, const Cluster& cluster);

/// The member of a primitive's cluster that reads what all its members read.
ValueId first_of(const Program& program, const Cluster& cluster);

/// Whether an attention may draw this input, random numbers, itself.
bool draws(const Program& program, const Value& value, std::size_t input);

/// Whether a primitive reads its input through this view, rather than from a copy.
bool reads_through_view(const Value& primitive, int input, const Value& view);

/// `shape` with leading axes of size 1 up to `rank`.
Shape padded(const Shape& shape, int rank);
/// How the elements of a value of `shape` relate to a space with reduced axes: all of it, constant along the reduced
/// axes, one element only, or none of these.
enum class Fit : std::uint8_t { full, reduced, uniform, none };
Fit fit(const Shape& shape, const Cluster& cluster);

/// Who reads each value.
class Readers {
 public:
  enum class Views : std::uint8_t {
    read,            // a view is a reader like any other
    looked_through,  // its readers read what lies in memory behind it
  };
  Readers(const Program& program, Views views);
  /// Ascending, each once. Outputs are no readers.
  std::span<const ValueId> of(ValueId id) const;
  bool is_output(ValueId id) const { return is_output_[static_cast<std::size_t>(id)]; }
  /// What alone reads a value that is no output, or -1.
  ValueId only_reader(ValueId id) const;
  /// Whether an output, or a value that `is_inside` says no of, reads the value. `inside`: of how many it says yes.
  template <class IsInside>
  bool read_outside(ValueId id, std::size_t inside, const IsInside& is_inside) const {
    const std::span<const ValueId> all = of(id);
    return is_output_[static_cast<std::size_t>(id)] || all.size() > inside ||
           !std::all_of(all.begin(), all.end(), is_inside);
  }

 private:
  std::vector<std::size_t> first_, end_;  // of each value's readers
  std::vector<ValueId> readers_;
  std::vector<bool> is_output_;
};

/// Whether the cluster computes the value.
bool is_member(const Cluster& cluster, ValueId id);

/// Removes members that no store depends on.
void drop_unused(const Program& program, Cluster& cluster);

/// Strides in memory of the first value that a member reads over the whole space, or else of the first view that has
/// strides there; nothing if there is neither.
std::optional<Strides> leading_strides(const Program& program, const Cluster& cluster);
/// Whether the group runs along the inner axes of memory (row) or the outer ones (column); elementwise without
/// reductions.
Group::Kind kind_of(const Program& program, const Cluster& cluster);
/// What a group loads: the values, and views of them, that its members read besides each other and free values;
/// ascending.
std::vector<ValueId> reads_of(const Program& program, const Cluster& cluster);
/// The places in memory that it loads from: what its members read, where a member that is a view stands for itself, for
/// several views of one value are several places.
std::vector<ValueId> loads_of(const Program& program, const Cluster& cluster);
/// Whether the device computes the value itself, rather than leave it to another one.
bool is_computed_by(const Program& program, const Value& value, const Target& target);
/// Whether the code of the group is one that devices can run: no full value after a reduction in a column group or in
/// a row too long, no more accesses than the target takes, nothing beside what the device leaves to another or what
/// may fail. `readers`: views are readers.
bool is_runnable(const Program& program, const Readers& readers, const Cluster& cluster, const Target& target);

}  // namespace russet::compile
