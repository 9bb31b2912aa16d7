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

/// put: whether values add up (`index_put` with accumulate) or replace.
struct Accumulate {
  bool value = false;
  bool operator==(const Accumulate&) const = default;
};

/// random: the key of the generator.
struct Seed {
  std::uint64_t value = 0;
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

using Attributes = std::variant<std::monostate, Axes, View, Window, Number, Accumulate, Seed, Attention>;

}  // namespace russet::ops
