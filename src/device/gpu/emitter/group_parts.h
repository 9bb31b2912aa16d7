#pragma once
// Parts of groups, as groups of their own, for kernels that run one part.
#include "compile/group.h"

namespace russet::gpu {

/// Whether a row group adds up columns, too.
bool adds_up_columns(const compile::Group& group);

/// A row group without what follows its column sums.
compile::Group rows_of(const compile::Group& row_group);

/// The part of a group after its column sums, those of a column group or of a row group, as a column group in which the
/// sums' inputs are placeholders. Groups that differ only in how those inputs are computed then share a kernel. Before:
///     v0 = load x; v1 = load y; v2 = v0 * v1              After:
///     r3 = sum v2; r4 = exp r3; store z, r4                   v0 = ...; r1 = sum v0; r2 = exp r1; store z, r2
compile::Group column_results_of(const compile::Group& group);

}  // namespace russet::gpu
