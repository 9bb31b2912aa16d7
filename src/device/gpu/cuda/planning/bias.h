#pragma once
// The epilogue that libraries run as fast as none: a bias that is added to each row of a product.
#include <optional>

#include "device/gpu/gpu_kernel.h"

namespace russet::cuda {

/// Where the bias lies that the product's epilogue adds, an element a column, of the result's type; nothing
/// if the epilogue is another one.
std::optional<gpu::Region> bias_of(const compile::Primitive& product);

}  // namespace russet::cuda
