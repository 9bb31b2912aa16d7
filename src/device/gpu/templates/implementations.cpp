// The templates of each operator.
#include "device/gpu/gpu_kernel.h"

namespace russet::gpu {

std::span<const Implementation> implementations(ops::Op /*op*/) { return {}; }

}  // namespace russet::gpu
