#pragma once
// The interpreter's kernels, one file a family.
#include "device/reference/call.h"

namespace russet::reference {

void run_source(const Call& call);
void run_random(const Call& call);
void run_elementwise(const Call& call);
void run_reduction(const Call& call);
void run_contraction(const Call& call);
void run_movement(const Call& call);
void run_indexing(const Call& call);
void run_window(const Call& call);
void run_ordering(const Call& call);
void run_attention(const Call& call);

}  // namespace russet::reference
