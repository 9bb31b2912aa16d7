#pragma once
// Tensor: a handle on a storage cell, a geometry and an autograd record. Copies of a handle alias.
#include <russet/device.h>
#include <russet/dtype.h>
#include <russet/error.h>
#include <russet/functional/options.h>
#include <russet/functional/overloads.h>
#include <russet/hooks.h>
#include <russet/ref.h>
#include <russet/scalar.h>
#include <russet/shape.h>
#include <cstring>
#include <functional>
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

/// One entry of an index: an integer, a slice, a new dimension, an ellipsis, or a mask or integer tensor.
using Index = std::variant<std::int64_t, Slice, NewAxis, Ellipsis, Tensor>;

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
  /// Zeros that lie in memory at once, as opposed to zeros(), a value that is still to be computed.
  static Tensor cleared(const Shape& shape, const TensorOptions& options);

  bool defined() const { return static_cast<bool>(state_); }
  const Shape& sizes() const;
  std::int64_t size(std::int64_t dim) const;
  const Strides& strides() const;
  std::int64_t stride(std::int64_t dim) const;
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
  /// As to_bytes, but no copy of all is made: `take` is called with one piece after the other, each of at most
  /// `most_bytes`. A tensor that is not contiguous is made so first. Throws ValueError if `most_bytes` is 0.
  void visit_bytes(std::size_t most_bytes, const std::function<void(std::span<const std::byte>)>& take) const;
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
  /// Runs `hook` with the gradient of this tensor in every backward pass that computes it, once all of it has arrived,
  /// in order of registration. What it returns replaces the gradient, unless that is nothing or an undefined tensor.
  /// Throws AutogradError if no gradient is required. A value that the hook reads is computed at once.
  template <class Hook>
  HookHandle register_hook(Hook hook) const {
    return add_hook(returning<Tensor, const Tensor&>(std::move(hook)));
  }
  /// Runs `hook` with this leaf whenever backward() has added to its grad(). Throws AutogradError if it is no leaf.
  HookHandle register_post_accumulate_grad_hook(std::function<void(const Tensor& leaf)> hook) const;

  Tensor to(DType dtype) const;
  /// The same elements on another device. A contiguous tensor above a page (16 KiB) moves between cpu and mps without
  /// being copied: both see the same memory until one of them writes, which then gets memory of its own.
  Tensor to(Device device) const;
  /// Elements of a range along a dimension, as a view.
  Tensor slice(std::int64_t dim, Slice range) const;
  Tensor operator[](std::int64_t index) const { return select(0, index); }

  // The functions that are methods, too. In-place forms end in an underscore: every alias sees what they write; the
  // result's type must be castable to this type (TypeError).
#include <russet/functional/methods.inc>

  /// Makes this handle look at `other`'s storage (parameters on loading, moving a module between devices).
  void set_data(const Tensor& other) const;

  const Ref<graph::TensorState>& state() const { return state_; }

 private:
  void require_single_element() const;
  HookHandle add_hook(std::function<Tensor(const Tensor& gradient)> hook) const;
  Ref<graph::TensorState> state_;
};

/// Says that the storage lives across steps and is seldom written (parameters and buffers of modules): what an
/// evaluation computes from such tensors alone is kept.
void mark_persistent(const Tensor& tensor);

/// A short rendering of the values, as PyTorch prints them.
std::string to_string(const Tensor& tensor);

}  // namespace russet
