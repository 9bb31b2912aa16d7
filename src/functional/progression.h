#pragma once
// Evenly spaced numbers with the digits of float64 where there is no float64.
#include <russet/tensor.h>

namespace russet::functional {

/// Two float32 tensors that stand for their sum, which has more digits than one tensor could hold.
struct TwoParts {
  Tensor head, rest;
};

/// first + i * step at the positions i (int64, of any shape, between -2^31 and 2^31). Neither these nor `first` and
/// `step` are beyond `bound` in magnitude, which is finite. At least as exact as float64: counted in int64, in units of
/// 2^-61 of the bound, with what is left of `first` and `step` below a unit. Where two terms cancel to less than 2^-51
/// of the bound, the sum is 0.
TwoParts progression(double first, double step, const Tensor& positions, double bound);

}  // namespace russet::functional
