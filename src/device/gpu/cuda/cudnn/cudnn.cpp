#include "device/gpu/cuda/cudnn/cudnn.h"

#include <fmt/format.h>

#include "compile/layouts.h"
#include "device/gpu/cuda/proposals.h"
#include "device/gpu/cuda/vendor_libraries.h"
#include "device/gpu/templates/text.h"

namespace russet::cuda {
namespace {

using compile::Primitive;

/// All that an answer depends on.
std::string text_of(const ConvolutionQuestion& question) {
  const Primitive& convolution = question.convolution;
  const auto& window = gpu::attribute<ops::Window>(convolution);
  return fmt::format("{}, stride {} {}, padding {} {} {} {}, dilation {} {}, {} groups, aligned to {}{}{}{}",
                     compile::describe(convolution), window.stride[0], window.stride[1], window.padding[0],
                     window.padding[1], window.padding_after[0], window.padding_after[1], window.dilation[0],
                     window.dilation[1], window.groups, question.alignment, question.tail.bias ? ", bias" : "",
                     question.tail.residual ? ", residual" : "", question.tail.relu ? ", relu" : "");
}

/// A small convolution of images to images, in 16 bits.
Primitive any_convolution() {
  const auto operand = [](std::int32_t slot, const Shape& sizes) {
    return compile::Operand{{slot, DType::bfloat16, 0, -1, compile::channels_last(sizes)}, sizes};
  };
  Primitive convolution;
  convolution.op = ops::Op::convolution;
  convolution.attributes = ops::Window{.kernel = {3, 3}, .padding = {1, 1}, .padding_after = {1, 1}};
  convolution.inputs = {operand(0, {1, 64, 8, 8}), operand(1, {64, 64, 3, 3})};
  convolution.output = operand(2, {1, 64, 8, 8});
  return convolution;
}

}  // namespace

Cudnn::Cudnn(const Context& context) : context_(context), warm_up_(context) {
  context_.enter();
  check(cudnn().create(&handle_), "starting cuDNN");
  check(cudnn().create(&running_), "starting cuDNN");
  load_engines();
}

/// cuDNN loads the libraries of its engines and of its heuristics with the first plan.
void Cudnn::load_engines() const {
  try {
    const ConvolutionCall call(handle_, running_, {any_convolution(), {}, 16}, 0);
  } catch (const DeviceError&) {
    // Questions will be answered with the reason.
    return;
  }
}

gpu::Verdict Cudnn::answer(const ConvolutionQuestion& question, std::vector<gpu::Region> regions,
                           const gpu::GpuContext& context) const {
  const std::string text = text_of(question);
  const Answer<ConvolutionCall> answer = answers_.find(text, [&] {
    context_.enter();
    auto call = choose(context_, {name(), version(), context_.capability()}, text, regions, [&](std::size_t proposal) {
      return std::make_shared<const ConvolutionCall>(handle_, running_, question, proposal);
    });
    warm_up_.add(call);
    return call;
  });
  return verdict_of(answer, *this, std::move(regions), context);
}

std::unique_ptr<const gpu::VendorLibrary> make_cudnn(const Context& context) {
  return std::make_unique<Cudnn>(context);
}

}  // namespace russet::cuda
