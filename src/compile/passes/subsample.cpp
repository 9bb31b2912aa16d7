// Subsampling: a convolution of single pixels with a stride, as those beside a ResNet's blocks are, becomes one without
// a stride over the pixels that it sees, where the device prefers that. Of a stride of two, for one:
//   y = convolution(x [n, c, 32, 32], w [f, c, 1, 1], stride 2)
//     ->  y = convolution(x[:, :, ::2, ::2] [n, c, 16, 16], w)
#include "compile/emit.h"
#include "compile/passes/passes.h"
#include "compile/rewriter.h"
#include "ops/table.h"

namespace russet::compile::passes {
namespace {

using ops::Op;

/// The pixels that are seen: their number, and where they lie.
struct Pixels {
  Shape sizes;
  Strides strides;
};

/// Nothing if windows have several pixels or a margin, if all pixels are seen, or if channels are in groups.
std::optional<Pixels> pixels_of(const Program& program, const Value& value) {
  if (value.op != Op::convolution) return std::nullopt;
  const Shape& image = value_at(program, value.inputs[0]).shape;
  const Shape& weight = value_at(program, value.inputs[1]).shape;
  const auto& window = std::get<ops::Window>(value.attributes);
  const bool has_gaps = window.stride[0] > 1 || window.stride[1] > 1;
  constexpr std::array<std::int32_t, 2> none{0, 0};
  const bool is_plain = window.groups == 1 && window.padding == none && window.padding_after == none;
  if (!has_gaps || !is_plain || weight[2] * weight[3] != 1) return std::nullopt;
  if (numel(image) == 0 || numel(value.shape) == 0) return std::nullopt;
  Strides strides = contiguous_strides(image);
  for (int axis = 0; axis < 2; ++axis) strides[axis + 2] *= window.stride[static_cast<std::size_t>(axis)];
  return Pixels{{image[0], image[1], value.shape[2], value.shape[3]}, strides};
}

}  // namespace

void subsample(Program& program, const Target& target) {
  const auto find = [&](const Value& value) -> std::optional<Pixels> {
    const std::optional<Pixels> pixels = pixels_of(program, value);
    return pixels && target.prefers_subsampling(primitive_of(program, value)) ? pixels : std::nullopt;
  };
  const auto write = [](Rewriter& rewriter, Value value, const Pixels& pixels) {
    std::get<ops::Window>(value.attributes).stride = {1, 1};
    value.inputs[0] = rewriter.view(value, value.inputs[0], pixels.sizes, pixels.strides);
    return rewriter.add(std::move(value));
  };
  rewrite_found(program, find, write);
}

}  // namespace russet::compile::passes
