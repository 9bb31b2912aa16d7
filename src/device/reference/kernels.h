#pragma once
// The interpreter's kernels, one file a family.
#include "device/reference/primitive_run.h"

namespace russet::reference {

void run_source(const PrimitiveRun& call);
void run_random(const PrimitiveRun& call);
void run_elementwise(const PrimitiveRun& call);
void run_reduction(const PrimitiveRun& call);
void run_contraction(const PrimitiveRun& call);
void run_movement(const PrimitiveRun& call);
void run_indexing(const PrimitiveRun& call);
void run_window(const PrimitiveRun& call);
void run_ordering(const PrimitiveRun& call);
void run_attention(const PrimitiveRun& call);

}  // namespace russet::reference
