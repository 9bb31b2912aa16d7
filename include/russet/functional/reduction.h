#pragma once
// Reductions over no axes (all of them), one or many. Reduced axes go away unless `keepdim`.
#include <russet/tensor.h>
#include <concepts>
#include <limits>
#include <optional>
#include <utility>

namespace russet {

/// Axes of a reduction: a number or a list; an empty list means all.
class AxisList {
 public:
  AxisList() = default;
  template <std::integral T>
  requires(!std::same_as<T, bool>) AxisList(T axis) : axes_{static_cast<std::int64_t>(axis)} {}
  AxisList(std::initializer_list<std::int64_t> axes) : axes_(axes) {}
  AxisList(const Dims& axes) : axes_(axes) {}
  const Dims& dims() const { return axes_; }
  /// Bit i is set for axis i of `rank`. Throws IndexError out of range, ValueError for an axis named twice.
  std::uint32_t mask(int rank) const;

 private:
  Dims axes_;
};

/// Values, and where along the axis they were found (int64).
struct ValuesIndices {
  Tensor values;
  Tensor indices;
};

/// Sums; booleans and integers become int64. `dtype`: the type to convert to before.
Tensor sum(const Tensor& x, const AxisList& axes = {}, bool keepdim = false, std::optional<DType> dtype = {});
/// Throws TypeError for integers (pass a floating `dtype`).
Tensor mean(const Tensor& x, const AxisList& axes = {}, bool keepdim = false, std::optional<DType> dtype = {});
/// Products; booleans and integers become int64.
Tensor prod(const Tensor& x, const AxisList& axes = {}, bool keepdim = false, std::optional<DType> dtype = {});
/// Sums that skip NaN.
Tensor nansum(const Tensor& x, const AxisList& axes = {}, bool keepdim = false);

/// The largest and the smallest elements; NaN wins. Equal ones share the gradient evenly. Throws ShapeError for an
/// axis of size 0.
Tensor amax(const Tensor& x, const AxisList& axes = {}, bool keepdim = false);
Tensor amin(const Tensor& x, const AxisList& axes = {}, bool keepdim = false);
Tensor max(const Tensor& x);
Tensor min(const Tensor& x);
/// With indices along one axis; the gradient goes to the element found.
ValuesIndices max(const Tensor& x, std::int64_t axis, bool keepdim = false);
ValuesIndices min(const Tensor& x, std::int64_t axis, bool keepdim = false);
Tensor max(const Tensor& x, const Tensor& y);
Tensor min(const Tensor& x, const Tensor& y);
/// The first position of the largest or smallest element along `axis`, or among all in row-major order (int64).
Tensor argmax(const Tensor& x, std::optional<std::int64_t> axis = {}, bool keepdim = false);
Tensor argmin(const Tensor& x, std::optional<std::int64_t> axis = {}, bool keepdim = false);

/// Boolean results (uint8 for uint8, as in PyTorch): whether any element, or every one, is not zero.
Tensor any(const Tensor& x, const AxisList& axes = {}, bool keepdim = false);
Tensor all(const Tensor& x, const AxisList& axes = {}, bool keepdim = false);
/// The number of elements that are not zero (int64).
Tensor count_nonzero(const Tensor& x, const AxisList& axes = {});

/// The mean squared distance from the mean, with `correction` subtracted from the count. Floating types only.
Tensor var(const Tensor& x, const AxisList& axes = {}, bool keepdim = false, double correction = 1);
/// The square root of var (PyTorch's `std`).
Tensor stddev(const Tensor& x, const AxisList& axes = {}, bool keepdim = false, double correction = 1);
/// {var, mean}.
std::pair<Tensor, Tensor> var_mean(const Tensor& x, const AxisList& axes = {}, bool keepdim = false,
                                   double correction = 1);
/// (sum |x|^p)^(1/p). p = 0 counts what is not zero; infinity and -infinity give the largest and smallest |x|.
Tensor norm(const Tensor& x, double p = 2, const AxisList& axes = {}, bool keepdim = false);
/// log(sum(exp(x))) without overflow.
Tensor logsumexp(const Tensor& x, const AxisList& axes = {}, bool keepdim = false);
/// exp(x) / sum(exp(x)) along `axis`, without overflow. Integers become float32; `dtype`: converted to before.
Tensor softmax(const Tensor& x, std::int64_t axis, std::optional<DType> dtype = {});
/// log(softmax(x)), accurate where softmax underflows.
Tensor log_softmax(const Tensor& x, std::int64_t axis, std::optional<DType> dtype = {});

/// Running sums along `axis`; booleans and integers become int64.
Tensor cumsum(const Tensor& x, std::int64_t axis, std::optional<DType> dtype = {});
/// Running products along `axis`.
Tensor cumprod(const Tensor& x, std::int64_t axis, std::optional<DType> dtype = {});
/// The middle element in order, the lower of two (of all elements; or with indices along `axis`).
Tensor median(const Tensor& x);
ValuesIndices median(const Tensor& x, std::int64_t axis, bool keepdim = false);

}  // namespace russet
