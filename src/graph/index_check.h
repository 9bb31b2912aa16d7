#pragma once
// Looking at indices while they are recorded: what the host can see of them is checked at the caller's line.
#include <optional>
#include <span>

#include "graph/geometry.h"
#include "graph/node.h"

namespace russet::graph {

/// An element of an integer value that does not lie within bounds, and its place in row-major order.
struct Stray {
  std::int64_t value;
  std::int64_t place;
};
/// The first element of an array of integers that neither lies in [low, high) nor is `except`.
std::optional<Stray> find_stray(const std::byte* memory, DType dtype, const Geometry& geometry, std::int64_t low,
                                std::int64_t high, std::optional<std::int64_t> except = {});

/// Bounds of some elements of an integer value: all lie in [low, high), or are `except`.
struct ElementRange {
  Geometry geometry;  // in the value's row-major order
  std::int64_t low, high;
  std::optional<std::int64_t> except;
};

/// What can be told of the elements of an integer value without computing anything: from the operators that it is made
/// by, or from memory (Executor::peek).
struct RangeCheck {
  bool is_known = false;         // whether all elements are known to lie within
  std::optional<Stray> stray{};  // the first that does not
};
/// Whether all elements lie in [low, high), or are `except`.
RangeCheck check_range(const NodeRef& value, std::int64_t low, std::int64_t high,
                       std::optional<std::int64_t> except = {});

/// Of take and put: throws IndexError for an index that the host can see to name nothing. Says whether all are known to
/// name something; where they are not, whoever runs the operator checks them.
bool check_indices(ops::Op op, std::span<const NodeRef> inputs, const ops::Indexing& indexing);

}  // namespace russet::graph
