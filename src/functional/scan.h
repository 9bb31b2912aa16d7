#pragma once
// Running combinations that no primitive computes.
#include <russet/functional/comparison.h>
#include <russet/functional/movement.h>

#include <cstdint>
#include <vector>

#include "functional/build.h"

namespace russet::functional {

/// The running combination of tensors of one shape along `axis`, in a logarithmic number of passes: after the pass of
/// `step` each element stands for the 2 * step elements that end with it. combine(before, after) is associative.
template <class Combine>
std::vector<Tensor> scanned(std::vector<Tensor> state, int axis, Combine&& combine) {
  const std::int64_t size = state.front().size(axis);
  for (std::int64_t step = 1; step < size; step *= 2) {
    std::vector<Tensor> before;
    std::vector<Tensor> after;
    for (const Tensor& tensor : state) {
      before.push_back(tensor.narrow(axis, 0, size - step));
      after.push_back(tensor.narrow(axis, step, size - step));
    }
    const std::vector<Tensor> combined = combine(before, after);
    for (std::size_t i = 0; i < state.size(); ++i) {
      state[i] = cat({state[i].narrow(axis, 0, step), combined[i]}, axis);
    }
  }
  return state;
}

/// 0, ..., x.size(axis) - 1 along an axis, in x's shape.
inline Tensor places_along(const Tensor& x, int axis) {
  return iota_along(axis, x.dim(), x.size(axis), x.device()).expand(x.sizes());
}

/// Whether each element along an axis differs from the one before it, for all but the first.
inline Tensor differs_from_before(const Tensor& x, int axis) {
  const std::int64_t last = x.size(axis) - 1;
  return ne(x.narrow(axis, 1, last), x.narrow(axis, 0, last));
}

}  // namespace russet::functional
