#pragma once
// What an operator takes besides tensors. Part of a plan's key; numbers that change from step to step are run-time
// arguments instead (Node::argument).
#include <russet/scalar.h>
#include <russet/shape.h>
#include <array>
#include <bit>
#include <cstdint>
#include <variant>

namespace russet::ops {

/// Reductions: bit i set means axis i is reduced. argmax and argmin reduce one axis or all.
/// ordering: the one axis.
struct Axes {
  std::uint32_t mask = 0;
  bool descending = false;  // argsort only
  std::int64_t first = 0;   // argsort only: the result has so many places of the order; 0: all
  constexpr bool contains(int axis) const { return (mask >> axis) & 1U; }
  bool operator==(const Axes&) const = default;
};

/// strided: element (i, j, ...) of the result is element offset + i * strides[0] + ... of the input read in row-major
/// order. overwrite: where the elements of the second input go in the first. A dynamic offset is the node's argument
/// and `offset` is 0.
struct View {
  Strides strides;
  std::int64_t offset = 0;
  bool dynamic = false;
  bool operator==(const View&) const = default;
};

/// Convolution and pooling over the last two axes of [batch, channels, height, width].
/// For pooling `kernel` is the window; for convolution it is read off the weight.
struct Window {
  std::array<std::int32_t, 2> kernel{1, 1};
  std::array<std::int32_t, 2> stride{1, 1};
  std::array<std::int32_t, 2> padding{0, 0};
  std::array<std::int32_t, 2> padding_after{0, 0};
  std::array<std::int32_t, 2> dilation{1, 1};
  std::int32_t groups = 1;
  bool operator==(const Window&) const = default;
};

/// constant: the number, as a double or an int64 by the node's type.
struct Number {
  double real = 0;
  std::int64_t integer = 0;
  bool operator==(const Number& other) const {
    return std::bit_cast<std::int64_t>(real) == std::bit_cast<std::int64_t>(other.real) && integer == other.integer;
  }
};

/// take and put: how index tensors name elements of an array. They are the last inputs, and broadcast to `lead`, the
/// sizes of the index; for each place in it one element (or sub-array) of the array is meant.
struct Indexing {
  static constexpr std::int16_t by_tensor = -1;

  /// Sizes of the index. What is taken or put has them, then those of the array's axes that are not named.
  Shape lead;
  /// How many of the array's first axes are named.
  std::int16_t axes = 1;
  /// For each of them, where its position comes from: the next index tensor, or the axis of the index that runs along.
  std::array<std::int16_t, max_rank> sources{by_tensor};
  bool accumulates = false;  // put: values add up rather than replace (the last one wins)
  bool from_end = false;     // negative numbers count from the end of their axis
  bool checked = false;      // every index is known to name something: those who record check what they can see
  bool operator==(const Indexing&) const = default;

  constexpr bool is_by_tensor(int axis) const { return sources[static_cast<std::size_t>(axis)] == by_tensor; }
  constexpr int tensors() const {
    int count = 0;
    for (int axis = 0; axis < axes; ++axis) count += is_by_tensor(axis) ? 1 : 0;
    return count;
  }
};

/// random: the key of the generator, and the position of the first number, which is not 0 where the numbers are a part
/// of more.
struct Seed {
  std::uint64_t value = 0;
  std::int64_t first = 0;
  bool operator==(const Seed&) const = default;
};

/// attention and its gradients. Scores are scale * query key^T.
struct Attention {
  double scale = 1;
  double dropout = 0;   // the share of probabilities that are dropped; if not 0, random numbers are an input
  bool causal = false;  // row i sees columns 0..i
  bool masked = false;  // a mask is an input
  /// Of the random numbers, where a step draws them itself (compile::Primitive).
  std::uint64_t seed = 0;
  bool operator==(const Attention&) const = default;
};

/// linalg: what is wanted of the matrices.
struct Linalg {
  bool vectors = true;      // eigh, svd: not the values alone
  bool invertible = false;  // lu: a singular matrix is an error
  bool upper = false;       // solve_triangular: the matrix is the upper triangle of the first input, else the lower
  bool unit = false;        // solve_triangular: its diagonal counts as ones
  bool operator==(const Linalg&) const = default;
};

using Attributes = std::variant<std::monostate, Axes, View, Window, Number, Indexing, Seed, Attention, Linalg>;

}  // namespace russet::ops
