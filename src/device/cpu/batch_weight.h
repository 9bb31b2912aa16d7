#pragma once
// Weight gradients with vectors along the batch.
#include "device/cpu/implementation.h"

namespace russet::cpu {

/// float32, any layout; at least batch_lanes() images.
KernelPtr make_batch_weight(const compile::Primitive& primitive);

}  // namespace russet::cpu
