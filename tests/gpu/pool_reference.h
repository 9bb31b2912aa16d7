#pragma once
// Where a pool's maxima are, and what its gradient adds up there, window by window: plain loops.
#include <russet/shape.h>

#include <vector>

#include "ops/attributes.h"

namespace russet::gputest {

/// Of each window of `large` the number of the first maximum's tap, row by row, NaN counting as largest; 255 where a
/// window holds padding alone.
std::vector<double> positions_of_maxima(const ops::Window& window, const Shape& large, const Shape& small,
                                        const std::vector<double>& values);
/// Adds each value to the element of `large` that its window's tap is.
std::vector<double> spread(const ops::Window& window, const Shape& large, const Shape& small,
                           const std::vector<double>& positions, const std::vector<double>& values);

}  // namespace russet::gputest
