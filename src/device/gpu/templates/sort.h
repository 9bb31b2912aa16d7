#pragma once
// Sorting as launches, for argsort and for what needs an order of its own.
#include "device/gpu/templates/text.h"

namespace russet::gpu {

/// Lines of an array along one axis, and where the sorted positions go. `to` is the result, int64 elements, or dense
/// uint elements [line, length] in scratch memory if `to_scratch`.
struct SortLines {
  DType type = DType::float32;
  Region from;
  StridedAxes lines;
  std::int64_t stride = 0;
  Region to;
  StridedAxes result_lines;
  std::int64_t result_stride = 1;
  bool to_scratch = false;
  std::int64_t line_count = 1, length = 0;
  std::int64_t first = 0;  // how many places of the order are wanted; 0: all
  bool descending = false;
};

/// Bytes of scratch memory that the sort takes.
std::size_t sort_scratch_bytes(const SortLines& lines);
/// Adds the launches. Their scratch memory starts at `scratch`.
void add_sort(std::vector<Call>& calls, const SortLines& lines, std::size_t scratch, const GpuContext& context);

}  // namespace russet::gpu
