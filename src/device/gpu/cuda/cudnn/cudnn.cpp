#include "device/gpu/cuda/cudnn/cudnn.h"

#include <fmt/format.h>

#include "compile/layouts.h"
#include "device/gpu/cuda/questions.h"
#include "device/gpu/cuda/vendor_libraries.h"
#include "device/gpu/templates/templates.h"
#include "device/gpu/templates/text.h"

namespace russet::cuda {
namespace {

using compile::Primitive;
using gpu::Region;

/// All that an answer depends on.
std::string question_of(const Primitive& convolution, std::uint32_t alignment) {
  const auto& window = gpu::attribute<ops::Window>(convolution);
  return fmt::format("{}, stride {} {}, padding {} {} {} {}, dilation {} {}, {} groups, aligned to {}",
                     compile::describe(convolution), window.stride[0], window.stride[1], window.padding[0],
                     window.padding[1], window.padding_after[0], window.padding_after[1], window.dilation[0],
                     window.dilation[1], window.groups, alignment);
}

std::string why_no_convolution(const Primitive& primitive) {
  if (std::string reason = why_not_asked(primitive); !reason.empty()) return reason;
  if (primitive.op == ops::Op::matmul) return "it is no convolution";
  if (gpu::is_depthwise(primitive)) return "our own depthwise kernels are faster";
  const bool is_float32 = primitive.inputs[0].access.dtype == DType::float32;
  if (is_float32 && is_pointwise(primitive)) return "a product is faster";
  return "";
}

}  // namespace

Cudnn::Cudnn(const Context& context) : context_(context) {
  context_.enter();
  check(cudnn().create(&handle_), "starting cuDNN");
  check(cudnn().create(&running_), "starting cuDNN");
}

gpu::Verdict Cudnn::judge(const Primitive& primitive, const gpu::GpuContext& context) const {
  if (std::string reason = why_no_convolution(primitive); !reason.empty()) return gpu::decline(reason);
  for (const int operand : {0, 1, -1}) {
    const compile::Operand& one = compile::operand_of(primitive, operand);
    if (!compile::has_strides(one, compile::channels_last(one.sizes))) return gpu::decline("channels lie apart");
  }
  std::vector<Region> regions = regions_of(primitive);
  const std::uint32_t alignment = alignment_of(regions);
  const Answer<ConvolutionCall> answer = answers_.find(question_of(primitive, alignment), [&] {
    context_.enter();
    return std::make_shared<const ConvolutionCall>(handle_, running_, primitive, alignment);
  });
  return verdict_of(answer, *this, std::move(regions), context);
}

std::optional<Strides> Cudnn::required_strides(const Primitive& contraction, int operand) const {
  if (!why_no_convolution(contraction).empty()) return std::nullopt;
  return compile::channels_last(compile::operand_of(contraction, operand).sizes);
}

std::unique_ptr<const gpu::VendorLibrary> make_cudnn(const Context& context) {
  return std::make_unique<Cudnn>(context);
}

}  // namespace russet::cuda
