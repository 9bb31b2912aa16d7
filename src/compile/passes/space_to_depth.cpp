// Space to depth: a convolution that strides over an image of few channels, as the first one of a network does, becomes
// one without a stride over blocks of the image's pixels, which have their pixels' channels, where the device prefers
// that; so does the gradient for its weight. Of 7 x 7 by 2 over 3 channels, for one:
//   y = convolution(x [n, 3, 224, 224], w [64, 3, 7, 7], stride 2, padding 3)
//     ->  y = convolution(blocks(x) [n, 16, 115, 115], blocks(w) [64, 16, 4, 4])
//   w' = convolution_weight(x, g)  ->  w' = blocks^-1(convolution_weight(blocks(x), g))
// Zeros make up for what image and weight lack: padding, the rest of the last block, and channels to a multiple of 8,
// of float32 4. Without a stride a block is a pixel, which gets channels.
#include "compile/emit.h"
#include "compile/passes/passes.h"
#include "compile/rewriter.h"
#include "ops/table.h"

namespace russet::compile::passes {
namespace {

using ops::Op;

constexpr std::int64_t most_channels = 4;
/// What tensor cores take at once, and what vectors of float32 have.
std::int64_t channel_unit(DType dtype) { return size_of(dtype) < 4 ? 8 : 4; }

/// Along one axis of the image.
struct PlaneSize {
  std::int64_t size, kernel, stride, padding, result;

  std::int64_t kernel_blocks() const { return (kernel + stride - 1) / stride; }
  std::int64_t blocks() const { return result + kernel_blocks() - 1; }
  /// The pixels that windows see.
  std::int64_t seen() const { return std::min(size, blocks() * stride - padding); }
};

struct Strided {
  std::int64_t images, channels, features;
  std::int64_t unit;  // of channels of a block
  PlaneSize down, across;

  std::int64_t block() const { return down.stride * across.stride; }
  /// Of a pixel, zeros included.
  std::int64_t all_channels() const {
    std::int64_t count = channels;
    while (count * block() % unit != 0) ++count;
    return count;
  }
};

/// Nothing if the convolution has many channels, as many as it needs and no stride, gaps between windows or between
/// their pixels, or groups.
std::optional<Strided> strided_of(const Program& program, const Value& value) {
  if (value.op != Op::convolution && value.op != Op::convolution_weight) return std::nullopt;
  const Shape& image = value_at(program, value.inputs[0]).shape;
  const Shape& second = value_at(program, value.inputs[1]).shape;
  const Shape& weight = value.op == Op::convolution ? second : value.shape;
  const Shape& result = value.op == Op::convolution ? value.shape : second;
  const auto& window = std::get<ops::Window>(value.attributes);
  const auto extent = [&](std::size_t axis) {
    const int at = static_cast<int>(axis) + 2;
    return PlaneSize{image[at], weight[at], window.stride[axis], window.padding[axis], result[at]};
  };
  const std::int64_t unit = channel_unit(value_at(program, value.inputs[0]).dtype);
  const Strided strided{image[0], image[1], weight[0], unit, extent(0), extent(1)};
  for (const PlaneSize& one : {strided.down, strided.across}) {
    if (one.kernel <= one.stride || one.seen() < 1) return std::nullopt;
  }
  if (strided.block() == 1 && strided.all_channels() == strided.channels) return std::nullopt;
  const bool is_plain = window.groups == 1 && window.dilation == std::array<std::int32_t, 2>{1, 1};
  if (!is_plain || strided.channels > most_channels || numel(image) == 0 || numel(result) == 0) return std::nullopt;
  return strided;
}

class Blocks {
 public:
  Blocks(Rewriter& rewriter, const Value& value, const Strided& strided)
      : rewriter_(rewriter), value_(value), strided_(strided) {}

  /// `value`'s inputs are new values.
  ValueId write() {
    const bool is_forward = value_.op == Op::convolution;
    ops::Window window;
    window.kernel = {static_cast<std::int32_t>(strided_.down.kernel_blocks()),
                     static_cast<std::int32_t>(strided_.across.kernel_blocks())};
    Value convolution = value_;
    convolution.attributes = window;
    convolution.inputs[0] = of_image(value_.inputs[0]);
    if (is_forward) {
      convolution.inputs[1] = of_weight(value_.inputs[1]);
      return rewriter_.add(std::move(convolution));
    }
    convolution.shape = {strided_.features, strided_.all_channels() * strided_.block(), window.kernel[0],
                         window.kernel[1]};
    convolution.strides = contiguous_strides(convolution.shape);
    return weight_of(rewriter_.add(std::move(convolution)));
  }

 private:
  ValueId of_image(ValueId image) {
    const PlaneSize& down = strided_.down;
    const PlaneSize& across = strided_.across;
    const Shape seen{strided_.images, strided_.channels, down.seen(), across.seen()};
    return blocks(padded(image, seen, down.blocks(), across.blocks(), down.padding, across.padding), down.blocks(),
                  across.blocks());
  }

  ValueId of_weight(ValueId weight) {
    const std::int64_t height = strided_.down.kernel_blocks();
    const std::int64_t width = strided_.across.kernel_blocks();
    return blocks(padded(weight, rewriter_.at(weight).shape, height, width, 0, 0), height, width);
  }

  /// The part of `seen` sizes of an array, among zeros: so many blocks down and across, the part so far from the edge.
  ValueId padded(ValueId array, const Shape& seen, std::int64_t height, std::int64_t width, std::int64_t top,
                 std::int64_t left) {
    const Shape sizes{seen[0], strided_.all_channels(), height * strided_.down.stride, width * strided_.across.stride};
    const DType dtype = rewriter_.at(array).dtype;
    const ValueId zeros = rewriter_.make(value_, Op::constant, {}, ops::Number{}, {dtype, sizes});
    const ValueId part = rewriter_.view(value_, array, seen, contiguous_strides(rewriter_.at(array).shape));
    const Strides strides = contiguous_strides(sizes);
    return rewriter_.make(value_, Op::overwrite, {zeros, part}, ops::View{strides, top * strides[2] + left, false});
  }

  /// From [n, c, height * stride, width * stride] to [n, stride * stride * c, height, width].
  ValueId blocks(ValueId array, std::int64_t height, std::int64_t width) {
    const std::int64_t count = rewriter_.at(array).shape[0];
    const Shape as{count, strided_.all_channels(), height, strided_.down.stride, width, strided_.across.stride};
    const ValueId apart = rewriter_.permute(value_, array, as, {0, 3, 5, 1, 2, 4});
    return rewriter_.reshape(value_, apart, {count, strided_.block() * strided_.all_channels(), height, width});
  }

  /// The way back from a weight's blocks, to the elements that the weight has.
  ValueId weight_of(ValueId blocks) {
    const std::int64_t height = strided_.down.kernel_blocks();
    const std::int64_t width = strided_.across.kernel_blocks();
    const Shape as{
        strided_.features, strided_.down.stride, strided_.across.stride, strided_.all_channels(), height, width};
    const ValueId apart = rewriter_.permute(value_, blocks, as, {0, 3, 4, 1, 5, 2});
    const Shape whole{strided_.features, strided_.all_channels(), height * strided_.down.stride,
                      width * strided_.across.stride};
    return rewriter_.view(value_, rewriter_.reshape(value_, apart, whole), value_.shape, contiguous_strides(whole));
  }

  Rewriter& rewriter_;
  const Value& value_;
  const Strided& strided_;
};

}  // namespace

void space_to_depth(Program& program, const Target& target) {
  const auto find = [&](const Value& value) -> std::optional<Strided> {
    const std::optional<Strided> strided = strided_of(program, value);
    return strided && target.prefers_space_to_depth(primitive_of(program, value)) ? strided : std::nullopt;
  };
  const auto write = [](Rewriter& rewriter, const Value& value, const Strided& strided) {
    return Blocks(rewriter, value, strided).write();
  };
  rewrite_found(program, find, write);
}

}  // namespace russet::compile::passes
