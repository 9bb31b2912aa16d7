#pragma once
// New tensors.
#include <russet/tensor.h>
#include <optional>

namespace russet {

/// Options of a new tensor whose type and device follow from the other arguments unless they are given.
struct InferredOptions {
  std::optional<DType> dtype{};
  std::optional<Device> device{};
  bool requires_grad = false;
};

/// Memory without defined values.
Tensor empty(const Shape& sizes, const TensorOptions& options = {});
Tensor zeros(const Shape& sizes, const TensorOptions& options = {});
Tensor ones(const Shape& sizes, const TensorOptions& options = {});
/// Every element is `value`; its type is bool, int64 or float32 by the number's kind unless given. Throws ValueError if
/// the type cannot hold it: integers drop a fraction, and unsigned ones take -1 for their largest number.
Tensor full(const Shape& sizes, Scalar value, const InferredOptions& options = {});
/// A tensor of no axes (PyTorch's `torch.tensor(number)`).
Tensor scalar_tensor(Scalar value, const InferredOptions& options = {});

/// As the functions above, with the sizes, and unless given the type and device, of `x`.
Tensor empty_like(const Tensor& x, const InferredOptions& options = {});
Tensor zeros_like(const Tensor& x, const InferredOptions& options = {});
Tensor ones_like(const Tensor& x, const InferredOptions& options = {});
Tensor full_like(const Tensor& x, Scalar value, const InferredOptions& options = {});

/// start, start + step, ... below `end` (above, for a negative step): [ceil((end - start) / step)] elements, int64 if
/// all three are integers, else float32. Throws ValueError for a step of zero or of the wrong sign, and for
/// more elements than int64 counts.
Tensor arange(Scalar end, const InferredOptions& options = {});
Tensor arange(Scalar start, Scalar end, const InferredOptions& options = {});
Tensor arange(Scalar start, Scalar end, Scalar step, const InferredOptions& options = {});
/// `steps` numbers from `start` to `end`, both included, evenly spaced.
Tensor linspace(Scalar start, Scalar end, std::int64_t steps, const TensorOptions& options = {});
/// base to the power of linspace(start, end, steps).
Tensor logspace(Scalar start, Scalar end, std::int64_t steps, double base = 10, const TensorOptions& options = {});
/// Ones on the diagonal of [rows, columns], zeros elsewhere. `columns` is `rows` if not given.
Tensor eye(std::int64_t rows, std::optional<std::int64_t> columns = {}, const TensorOptions& options = {});
/// Rows and columns of the places on and below (tril), on and above (triu) a diagonal: [2, count], int64.
Tensor tril_indices(std::int64_t rows, std::int64_t columns, std::int64_t offset = 0, Device device = {});
Tensor triu_indices(std::int64_t rows, std::int64_t columns, std::int64_t offset = 0, Device device = {});

}  // namespace russet
