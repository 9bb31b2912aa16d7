#pragma once
// Sorting, searching and counting. NaN counts as larger than every number. Equal elements keep their order.
#include <russet/functional/reduction.h>
#include <russet/tensor.h>
#include <optional>

namespace russet {

/// Positions that sort x along `axis` (int64).
Tensor argsort(const Tensor& x, std::int64_t axis = -1, bool descending = false);
ValuesIndices sort(const Tensor& x, std::int64_t axis = -1, bool descending = false);
/// The k largest (or smallest) elements along `axis`, in order. Throws ValueError if there are fewer.
ValuesIndices topk(const Tensor& x, std::int64_t k, std::int64_t axis = -1, bool largest = true);
/// The k-th smallest element along `axis`; k counts from 1.
ValuesIndices kthvalue(const Tensor& x, std::int64_t k, std::int64_t axis = -1, bool keepdim = false);
/// Where `values` would be inserted into the sorted last axis of `sorted`, before (or, `right`, after) equal elements.
/// int64. sorted: a vector, or the shape of values but for the last axis.
Tensor searchsorted(const Tensor& sorted, const Tensor& values, bool right = false);
/// searchsorted(boundaries, x, right).
Tensor bucketize(const Tensor& x, const Tensor& boundaries, bool right = false);

/// The distinct values in ascending order. Waits for x.
Tensor unique(const Tensor& x);
/// values; inverse: the position of each element of x among them; counts.
struct UniqueResult {
  Tensor values;
  Tensor inverse;
  Tensor counts;
};
UniqueResult unique_with_counts(const Tensor& x);
/// How often each number from 0 on occurs in a vector of integers (int64), or the sum of its weights. Waits for x.
Tensor bincount(const Tensor& x, const Tensor& weights = {}, std::int64_t minlength = 0);

}  // namespace russet
