#pragma once
// The epilogue that cuDNN's engines for convolutions run at no cost: a residual and a bias are added, in this order,
// then negative numbers become 0. Engines for anything else, a bias of another type among it, are compiled when they
// are asked for, 0.2 to 0.8 s each.
#include <optional>
#include <vector>

#include "device/gpu/gpu_kernel.h"

namespace russet::cuda {

/// What comes after a convolution: nothing, or a bias and what else there is.
struct ConvolutionTail {
  bool bias = false, residual = false, relu = false;
};

struct ConvolutionEpilogue {
  ConvolutionTail tail;
  std::vector<gpu::Region> regions;  // of the bias, and of the residual if there is one
};

/// Nothing if the convolution has another epilogue, or none. The bias has an element a channel, and both have the
/// result's type; the residual lies as the result does.
std::optional<ConvolutionEpilogue> convolution_epilogue(const compile::Primitive& convolution);

}  // namespace russet::cuda
