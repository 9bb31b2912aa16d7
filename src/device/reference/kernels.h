#pragma once
// The interpreter's kernels, one file a family.
#include "device/reference/primitive_run.h"

namespace russet::reference {

void run_source(const PrimitiveRun& primitive);
void run_random(const PrimitiveRun& primitive);
void run_elementwise(const PrimitiveRun& primitive);
void run_reduction(const PrimitiveRun& primitive);
void run_contraction(const PrimitiveRun& primitive);
void run_movement(const PrimitiveRun& primitive);
void run_indexing(const PrimitiveRun& primitive);
void run_window(const PrimitiveRun& primitive);
void run_ordering(const PrimitiveRun& primitive);
void run_attention(const PrimitiveRun& primitive);
void run_linalg(const PrimitiveRun& primitive);

}  // namespace russet::reference
