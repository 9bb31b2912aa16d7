#pragma once
// What templates need to write their entry points, and their arguments.
#include <fmt/format.h>
#include <russet/error.h>

#include "device/gpu/gpu_kernel.h"
#include "ops/table.h"

namespace russet::gpu {

/// The dialect's name of an element type. float64 has none: judge with why_no_type first.
std::string_view element_type(DType type);
/// The type that has as many bytes, for elements that only move.
std::string_view bits_type(DType type);
/// The type in which sums are kept: "float" or "ulong". Comparisons: "float" or "long".
std::string_view sum_type(DType type);
std::string_view key_type(DType type);

/// Why no kernel takes the step: float64. Empty if that is not so.
std::string why_no_type(const compile::Primitive& primitive);

/// The attributes of a step; every step of the operator has them.
template <class Attribute>
const Attribute& attribute(const compile::Primitive& primitive) {
  if (const auto* found = std::get_if<Attribute>(&primitive.attributes)) return *found;
  throw InternalError(compile::describe(primitive) + ": the step lacks its attributes");
}

/// Axes of a strided array, neighbours merged where the strides allow it: `Axes` of element.metal.
struct StridedAxes {
  Shape sizes;
  Strides strides;
  std::int64_t start = 0;

  /// The next inner axis; axes of one element are left out.
  void add_axis(std::int64_t size, std::int64_t stride);
  void add_to(Values& values) const;
};
/// Axes first to last - 1 of an operand.
StridedAxes axes_of(const compile::Operand& operand, int first, int last, std::int64_t start = 0);

/// The lines of an operator that goes along one axis (argsort, cumsum).
struct OrderedLines {
  StridedAxes from, to;  // without the axis
  std::int64_t stride = 0, result_stride = 0, count = 1, length = 1;
};
OrderedLines ordered_lines(const compile::Primitive& primitive);

/// Threadgroups of 256 for `threads` threads. Throws TypeError beyond 2^32 threadgroups.
std::uint32_t groups_for(std::int64_t threads);
/// A number of threadgroups that fits a grid. Throws TypeError if it does not.
std::uint32_t grid_size(std::int64_t groups);

/// Whether positions among so many elements fit 32 bits with some to spare.
inline bool fits_uint(std::int64_t count) { return count < (std::int64_t{1} << 32) - 4096; }

/// Adds an AxisSize of math.metal; 1 for nothing.
void add_axis_size(Values& values, std::int64_t size);

/// Declares `self`, the thread as kernels know it (TileThread of tile.metal).
inline constexpr std::string_view own_thread =
    "  TileThread self;\n  self.thread_id = thread_id;\n  self.lane_id = lane_id;\n"
    "  self.simdgroup_id = simdgroup_id;\n";

/// A region of scratch memory.
inline Region scratch_region(std::size_t offset, std::size_t bytes, bool writes) {
  return {Region::scratch, static_cast<std::int64_t>(offset), bytes, writes};
}

}  // namespace russet::gpu
