#pragma once
// In-place writes of a computed result.
#include <russet/tensor.h>

namespace russet::functional {

/// Writes `result` into `target` and returns it. Throws, naming `function`, TypeError if PyTorch does not cast the
/// result's type to the target's, ShapeError if the result is larger than the target.
const Tensor& write(const char* function, const Tensor& target, const Tensor& result);

}  // namespace russet::functional
