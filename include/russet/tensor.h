#pragma once
// Tensor: a handle on a storage cell, a geometry and an autograd record. Copies of a handle alias.
#include <russet/device.h>
#include <russet/dtype.h>
#include <russet/error.h>
#include <russet/ref.h>
#include <russet/scalar.h>
#include <russet/shape.h>
#include <cstring>
#include <initializer_list>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace russet {

namespace graph {
struct TensorState;
}

class Tensor;

[[noreturn]] void throw_no_host_memory(std::size_t bytes);

/// `count` elements in the host's memory. Throws OutOfMemoryError if there is none for them.
template <class T>
std::vector<T> host_vector(std::size_t count) {
  try {
    return std::vector<T>(count);
  } catch (const std::bad_alloc&) {
    throw_no_host_memory(count * sizeof(T));
  }
}

/// Type and device of a new tensor.
struct TensorOptions {
  DType dtype = DType::float32;
  Device device{};
  bool requires_grad = false;
};

/// Python's slice: elements start, start + step, ... below stop. Negative numbers count from the end.
struct Slice {
  std::optional<std::int64_t> start{};
  std::optional<std::int64_t> stop{};
  std::int64_t step = 1;
};
/// A new axis of size 1 in an index.
struct NewAxis {};
/// All axes that the other indices leave over.
struct Ellipsis {};

class Tensor {
 public:
  /// An undefined tensor: only defined() and assignment work on it.
  Tensor() = default;
  explicit Tensor(Ref<graph::TensorState> state) : state_(std::move(state)) {}

  /// Copies `values` (numel(shape) of them) into a new tensor.
  template <class T>
  static Tensor from(std::span<const T> values, const Shape& shape, Device device = {}, bool requires_grad = false) {
    return from_bytes(std::as_bytes(values), shape, {dtype_of<T>(), device, requires_grad});
  }
  template <class T>
  static Tensor from(const std::vector<T>& values, const Shape& shape, Device device = {}, bool requires_grad = false) {
    return from(std::span<const T>(values), shape, device, requires_grad);
  }
  template <class T>
  static Tensor from(std::initializer_list<T> values, const Shape& shape, Device device = {},
                     bool requires_grad = false) {
    return from(std::span<const T>(values.begin(), values.size()), shape, device, requires_grad);
  }
  /// Copies raw elements in row-major order. Throws ShapeError if their number does not match.
  static Tensor from_bytes(std::span<const std::byte> bytes, const Shape& shape, const TensorOptions& options);

  bool defined() const { return static_cast<bool>(state_); }
  const Shape& sizes() const;
  std::int64_t size(std::int64_t axis) const;
  const Strides& strides() const;
  std::int64_t stride(std::int64_t axis) const;
  std::int64_t storage_offset() const;
  int dim() const { return sizes().rank(); }
  std::int64_t numel() const { return russet::numel(sizes()); }
  DType dtype() const;
  Device device() const;
  bool is_contiguous() const;
  /// Whether both handles look at the same storage cell.
  bool shares_storage(const Tensor& other) const;
  /// Grows with every in-place write to the storage, through any handle; a write that failed has not happened.
  std::uint64_t version() const;
  /// Whether the value is recorded and not computed yet.
  bool is_pending() const;

  // Reading. These wait for the value.
  /// All elements in row-major order, converted to T. Throws OutOfMemoryError if the host has no memory for them.
  template <class T>
  std::vector<T> to_vector() const {
    const std::vector<std::byte> bytes = to_bytes();
    auto values = host_vector<T>(static_cast<std::size_t>(numel()));
    visit_dtype(dtype(), [&]<class Element>() {
      for (std::size_t i = 0; i < values.size(); ++i) {
        Element element;
        std::memcpy(&element, bytes.data() + i * sizeof(Element), sizeof(Element));
        values[i] = convert_element<T>(element);
      }
    });
    return values;
  }
  /// All elements in row-major order, as they are stored. Throws OutOfMemoryError as to_vector does.
  std::vector<std::byte> to_bytes() const;
  /// As to_bytes, into memory of exactly numel() * size_of(dtype()) bytes.
  void copy_to(std::span<std::byte> bytes) const;
  /// The only element. Throws ShapeError if there is not exactly one.
  template <class T = double>
  T item() const {
    require_single_element();
    return to_vector<T>().front();
  }
  /// The address of the first element, in the memory of a contiguous tensor on a CPU device. Pins the storage: it is
  /// never moved or overwritten behind the caller's back, and later operators that touch it complete at once.
  void* data() const;

  // Autograd.
  bool requires_grad() const;
  Tensor& requires_grad_(bool value = true);
  bool is_leaf() const;
  /// The accumulated gradient of a leaf; undefined if there is none.
  Tensor grad() const;
  void set_grad(const Tensor& gradient) const;
  /// A handle on the same storage outside the tape.
  Tensor detach() const;
  /// Gradients of this tensor for all leaves, accumulated into their grad(). `gradient` may be left out for a tensor
  /// of one element. Throws AutogradError without a graph or when it was freed.
  void backward(const Tensor& gradient = {}, bool retain_graph = false, bool create_graph = false) const;
  /// Keeps the gradient of a tensor that is no leaf.
  void retain_grad() const;

  // Types and devices.
  Tensor to(DType dtype) const;
  /// The same elements on another device. A contiguous tensor above a page (16 KiB) moves between cpu and mps without
  /// being copied: both see the same memory until one of them writes, which then gets memory of its own.
  Tensor to(Device device) const;
  Tensor clone() const;
  Tensor contiguous() const;

  // Views: they alias this tensor.
  Tensor view(const Shape& sizes) const;
  /// A view where strides allow one, else a copy. One size may be -1.
  Tensor reshape(const Shape& sizes) const;
  Tensor flatten(std::int64_t start = 0, std::int64_t end = -1) const;
  Tensor permute(const Dims& axes) const;
  Tensor transpose(std::int64_t a, std::int64_t b) const;
  /// Transpose of a tensor with at most two axes.
  Tensor t() const;
  Tensor expand(const Shape& sizes) const;
  Tensor squeeze() const;
  Tensor squeeze(std::int64_t axis) const;
  Tensor unsqueeze(std::int64_t axis) const;
  Tensor select(std::int64_t axis, std::int64_t index) const;
  Tensor slice(std::int64_t axis, Slice range) const;
  Tensor narrow(std::int64_t axis, std::int64_t start, std::int64_t length) const;
  Tensor diagonal(std::int64_t offset = 0, std::int64_t a = 0, std::int64_t b = 1) const;
  Tensor as_strided(const Shape& sizes, const Strides& strides, std::int64_t offset) const;
  Tensor operator[](std::int64_t index) const { return select(0, index); }

  // Writes: in place, seen by every alias. The result's type must be castable to this type (TypeError).
  const Tensor& copy_(const Tensor& source) const;
  const Tensor& fill_(Scalar value) const;
  const Tensor& zero_() const;
  const Tensor& add_(const Tensor& other, Scalar alpha = 1) const;
  const Tensor& add_(Scalar other) const;
  const Tensor& sub_(const Tensor& other, Scalar alpha = 1) const;
  const Tensor& sub_(Scalar other) const;
  const Tensor& mul_(const Tensor& other) const;
  const Tensor& mul_(Scalar other) const;
  const Tensor& div_(const Tensor& other) const;
  const Tensor& div_(Scalar other) const;
  /// Makes this handle look at `other`'s storage (parameters on loading, moving a module between devices).
  void set_data(const Tensor& other) const;

  const Ref<graph::TensorState>& state() const { return state_; }

 private:
  void require_single_element() const;
  Ref<graph::TensorState> state_;
};

/// One entry of an index: an integer, a slice, a new axis, an ellipsis, or a mask or integer tensor.
using Index = std::variant<std::int64_t, Slice, NewAxis, Ellipsis, Tensor>;

/// `x[i, a:b, mask]` as PyTorch reads it: a view for integers and slices, a copy once a tensor takes part.
Tensor index(const Tensor& x, const std::vector<Index>& indices);
/// `x[i, a:b, mask] = value`.
void index_put_(const Tensor& x, const std::vector<Index>& indices, const Tensor& value);

/// Says that the storage lives across steps and is seldom written (parameters and buffers of modules): what an
/// evaluation computes from such tensors alone is kept.
void mark_persistent(const Tensor& tensor);

/// A short rendering of the values, as PyTorch prints them.
std::string to_string(const Tensor& tensor);

}  // namespace russet
