#pragma once
// Sampling images at places between their pixels, for functions that compute the places.
#include <russet/functional/options.h>
#include <russet/tensor.h>

#include <vector>

namespace russet::functional {

/// Images [n, c, ...] at `places`: for each axis behind the channels, in order, a tensor [n, 1, ...output] of pixels
/// (0: the centre of the first). Both in one type, float32 or float64. `align_corners` decides where reflection
/// mirrors.
Tensor sampled(const Tensor& images, std::vector<Tensor> places, const GridSampleOptions& options);

}  // namespace russet::functional
