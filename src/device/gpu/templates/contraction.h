#pragma once
// A contraction as kernels/contraction.metal sees it: a sum of products over indices that stand for one axis or three.
#include <array>
#include <string>
#include <vector>

#include "device/gpu/gpu_kernel.h"

namespace russet::gpu {

/// `Axis` of contraction.metal. A flat one is also one of three levels, the innermost of which is as long as can be.
struct ContractionAxis {
  static constexpr std::int64_t any_size = (std::int64_t{1} << 31) - 1;
  std::array<std::int64_t, 3> strides{};
  std::array<std::int64_t, 2> sizes{1, any_size};
  std::array<std::int64_t, 2> y_strides{}, x_strides{};
  std::int64_t y_start = 0, x_start = 0;
  bool splits = false;
};

enum class WindowSide : std::uint8_t { none, left, right };

struct Contraction {
  int left_input = 0, right_input = 1;
  ContractionAxis left_line, left_step, right_line, right_step, row, column;
  std::int64_t rows = 1, columns = 1, depth = 1;
  /// Where the first elements lie from the right input's and the result's own, in elements.
  std::int64_t right_first = 0, result_first = 0;
  /// Batch axes, neighbours merged: sizes and strides in left, right and result.
  Shape batch;
  Strides left_batch, right_batch, result_batch;
  bool in_pairs = false;             // kernels read two neighbouring channels at a time, the first an even one
  bool channels_last_batch = false;  // neighbouring batches lie side by side (groups of channels)
  WindowSide window = WindowSide::none;
  std::int64_t y_stride = 0, x_stride = 0, height = 0, width = 0;
  std::array<std::int64_t, 2> divisors{1, 1};

  std::int64_t batches() const { return numel(batch); }
};

/// matmul, convolution, convolution_input, convolution_weight, with everything flat that can be.
Contraction describe_contraction(const compile::Primitive& primitive);
/// A convolution, or one of its gradients, whose pixels and taps keep their axes: only those of the result may be flat.
Contraction describe_windows(const compile::Primitive& primitive);
/// The gradient of the input of a convolution that goes in strides as contractions without gaps, one for the pixels of
/// each remainder by the strides: only some taps come to them, or none. Nothing for other contractions, and where
/// pixels or taps lie apart otherwise.
std::vector<Contraction> describe_remainders(const compile::Primitive& primitive);

/// Whether a convolution, or a gradient of one, is a product of matrices where channels lie side by side.
bool is_pointwise(const compile::Primitive& convolution);
/// Of a factor: whether neighbours lie along its depth, else along its lines.
bool is_along_depth(const ContractionAxis& step);
/// Whether a factor's vectors of `width` neighbours, along the depth or along the lines, are aligned and whole.
bool is_in_vectors(const compile::Primitive& primitive, const Contraction& c, bool left, std::int64_t width);

}  // namespace russet::gpu
