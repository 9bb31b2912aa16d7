#pragma once
// From a group to launches of emitted kernels. The text depends on the group's structure alone: instructions, types,
// number of axes, which accesses are contiguous or broadcast along the innermost one, width of vectors, and how a row
// is divided among threads (a power of two); sizes, strides, offsets and numbers are values.
#include "compile/group.h"
#include "device/gpu/gpu_kernel.h"

namespace russet::gpu {

struct EmittedCalls {
  std::vector<Call> calls;
  std::size_t scratch_bytes = 0;
};

/// Why the group cannot be a kernel (a type that GPUs lack, more accesses than a kernel has buffers); empty if it can.
std::string why_not_emitted(const compile::Group& group);

/// Whether a row group is to add up columns (see compile::Extent::column), which it must have some of, rather than
/// leave that to a column group.
bool should_add_up_columns(const compile::Group& group, const GpuContext& context);

/// Whether a thread has all four elements of each byte of packed masks that the group stores.
bool stores_whole_bytes(const compile::Group& group);

/// The launches that run a group. Its axes must be merged already (compile::merge_axes).
EmittedCalls emit(const compile::Group& group, const GpuContext& context);

// Of each kind of group.
EmittedCalls emit_elementwise(const compile::Group& group, const GpuContext& context);
EmittedCalls emit_row(const compile::Group& group, const GpuContext& context);
/// Of a row group that adds up columns, which should_add_up_columns() said yes of but for the numbers of rows and
/// columns.
EmittedCalls emit_rows_and_columns(const compile::Group& group, const GpuContext& context);
EmittedCalls emit_column(const compile::Group& group, const GpuContext& context);

/// The second launch of a column group, or of a row group that adds up columns, whose rows were reduced to `parts`
/// elsewhere, laid out as Partials lays them out.
Call column_results(const compile::Group& group, std::int64_t parts, const GpuContext& context);

constexpr std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace russet::gpu
