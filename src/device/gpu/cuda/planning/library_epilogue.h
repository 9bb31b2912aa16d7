#pragma once
// The epilogues that libraries run at no cost: a bias is added, to a convolution a residual before it, then negative
// numbers become 0. cuDNN compiles engines for anything else, a bias of another type among it, when they are asked for,
// 0.2 to 0.8 s each; cuBLASLt's GELU is another function.
#include <optional>
#include <vector>

#include "device/gpu/gpu_kernel.h"

namespace russet::cuda {

/// What comes after a contraction: nothing, or a bias and what else there is.
struct LibraryTail {
  bool bias = false, residual = false, relu = false;
};

struct LibraryEpilogue {
  LibraryTail tail;
  std::vector<gpu::Region> regions;  // of the bias, and of the residual if there is one
};

/// Nothing if the convolution, or the product, has another epilogue, or none. The bias has an element a channel, or a
/// column, and all have the result's type; the residual lies as the result does.
std::optional<LibraryEpilogue> library_epilogue(const compile::Primitive& contraction);

}  // namespace russet::cuda
