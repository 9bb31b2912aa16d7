#include "device/gpu/cuda/planning/convolutions.h"

#include <algorithm>
#include <array>

#include "compile/layouts.h"
#include "device/gpu/cuda/planning/questions.h"
#include "device/gpu/templates/contraction.h"
#include "device/gpu/templates/templates.h"
#include "device/gpu/templates/text.h"

namespace russet::cuda {
namespace {

/// Operations a second that cuDNN reaches in float32, about, on an H100 or H200: 10 to 35 TFLOP/s, 4 to 10 for images
/// of few channels, and 1 to 6 for the gradients of either of these and of a convolution that strides.
double float32_rate(const compile::Primitive& convolution) {
  constexpr std::int64_t few_channels = 16;
  const auto& stride = gpu::attribute<ops::Window>(convolution).stride;
  const bool strides = stride[0] > 1 || stride[1] > 1;
  const bool is_gradient = convolution.op != ops::Op::convolution;
  const int image = convolution.op == ops::Op::convolution_input ? -1 : 0;
  const bool has_few = compile::operand_of(convolution, image).sizes[1] < few_channels;
  if (is_gradient) return strides || has_few ? 4e12 : 25e12;
  return has_few ? 8e12 : 25e12;
}

/// Whether images and results are of one pixel, as those of squeeze-and-excitation are.
bool has_single_pixels(const compile::Primitive& convolution) {
  return std::ranges::all_of(std::array{-1, 0, 1}, [&](int operand) {
    const Shape& sizes = compile::operand_of(convolution, operand).sizes;
    return compile::is_weight(convolution, operand) || sizes[2] * sizes[3] == 1;
  });
}

/// Convolutions in 16 bits whose results are so small that a product takes less than cuDNN: of 128 images of 32 x 32
/// with 64 channels, at every second pixel, to 128 channels 65 us on an H100, 45 of the pixels alone, where a product
/// takes 5.
bool is_small(const compile::Primitive& convolution) {
  constexpr std::int64_t most_elements = 1 << 22;
  return convolution.op == ops::Op::convolution && size_of(convolution.inputs[0].access.dtype) == 2 &&
         numel(convolution.output.sizes) <= most_elements;
}

std::string why_no_convolution(const compile::Primitive& primitive) {
  if (std::string reason = why_not_asked(primitive); !reason.empty()) return reason;
  if (primitive.op == ops::Op::matmul) return "it is no convolution";
  if (gpu::is_depthwise(primitive)) return "our own depthwise kernels are faster";
  if (gpu::is_stem(primitive)) return "our own kernels for images of few channels are faster";
  const bool is_float32 = primitive.inputs[0].access.dtype == DType::float32;
  if (gpu::is_pointwise(primitive) && (is_float32 || has_single_pixels(primitive) || is_small(primitive))) {
    return "a product is faster";
  }
  return "";
}

}  // namespace

gpu::Verdict Convolutions::judge(const compile::Primitive& whole, const gpu::GpuContext& context) const {
  const std::optional<LibraryEpilogue> epilogue = library_epilogue(whole);
  compile::Primitive bare;
  if (epilogue) bare = without_epilogue(whole);
  const compile::Primitive& primitive = epilogue ? bare : whole;
  if (std::string reason = why_no_convolution(primitive); !reason.empty()) return gpu::decline(reason);
  if (!epilogue && gpu::is_stationary_product(primitive)) return gpu::decline(narrow_product);
  if (!epilogue && gpu::prefers_warpgroup_product(primitive, context.properties)) return gpu::decline(own_product);
  // 128 images of 56 x 56, from 64 channels to 256: 230 us by cuDNN on an H100, 120 as a product.
  if (epilogue && epilogue->tail.residual && gpu::is_pointwise(primitive)) {
    return gpu::decline("a product adds the residual faster");
  }
  if (gpu::prefers_split_product(primitive, context.properties, float32_rate(primitive))) {
    return gpu::decline(faster_product);
  }
  for (const int operand : {0, 1, -1}) {
    const compile::Operand& one = compile::operand_of(primitive, operand);
    if (!compile::has_strides(one, compile::channels_last(one.sizes))) return gpu::decline("channels lie apart");
  }
  std::vector<gpu::Region> regions = regions_of(primitive);
  if (epilogue) regions.insert(regions.end(), epilogue->regions.begin(), epilogue->regions.end());
  const ConvolutionQuestion question{primitive, epilogue ? epilogue->tail : LibraryTail{}, alignment_of(regions)};
  return answer(question, std::move(regions), context);
}

/// In 16 bits alone: float32 is mostly our own product's.
bool Convolutions::adds_biases(const compile::Primitive& convolution) const {
  return convolution.op == ops::Op::convolution && size_of(convolution.inputs[0].access.dtype) == 2 &&
         (why_no_convolution(convolution).empty() || (gpu::is_pointwise(convolution) && is_small(convolution)));
}

/// Of windows that are too large for our own kernel of such images: in bfloat16 on an H200 cuDNN took 329 us over
/// blocks for resnet50's first convolution (7 x 7 by 2) where it took 887 as it is, and copies 0.1 ms.
bool Convolutions::prefers_space_to_depth(const compile::Primitive& convolution) const {
  constexpr std::int64_t smallest_window = 25;  // pixels
  const int weight_operand = convolution.op == ops::Op::convolution_weight ? -1 : 1;
  const Shape& weight = compile::operand_of(convolution, weight_operand).sizes;
  const auto& stride = gpu::attribute<ops::Window>(convolution).stride;
  return why_no_convolution(convolution).empty() && weight[2] * weight[3] >= smallest_window && stride[0] > 1 &&
         stride[1] > 1 && size_of(convolution.inputs[0].access.dtype) < 4;
}

bool Convolutions::prefers_subsampling(const compile::Primitive& convolution) const {
  return is_small(convolution) && why_no_convolution(convolution).empty();
}

std::optional<Strides> Convolutions::required_strides(const compile::Primitive& contraction, int operand,
                                                      const gpu::Properties& /*properties*/) const {
  if (!why_no_convolution(contraction).empty()) return std::nullopt;
  return compile::channels_last(compile::operand_of(contraction, operand).sizes);
}

}  // namespace russet::cuda
