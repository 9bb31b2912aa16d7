// Losses with weights, which are buffers and so follow the module to its device.
#include <fmt/format.h>
#include <russet/nn/loss.h>

namespace russet::nn {

Tensor Loss::operator()(const Tensor& input, const Tensor& target) {
  const Tensor inputs[] = {input, target};
  return Module::operator()(inputs);
}

Tensor Loss::forward_all(std::span<const Tensor> inputs) {
  if (inputs.size() == 2) return compare(inputs[0], inputs[1]);
  throw ValueError(fmt::format("a loss takes an input and a target, not {} tensors", inputs.size()));
}

CrossEntropyLoss::CrossEntropyLoss(const CrossEntropyOptions& options)
    : options_(options), weight_(register_buffer("weight", options.weight)) {
  options_.weight = {};
}

Tensor CrossEntropyLoss::compare(const Tensor& input, const Tensor& target) {
  CrossEntropyOptions options = options_;
  options.weight = weight_;
  return cross_entropy(input, target, options);
}

NLLLoss::NLLLoss(const NllLossOptions& options)
    : options_(options), weight_(register_buffer("weight", options.weight)) {
  options_.weight = {};
}

Tensor NLLLoss::compare(const Tensor& input, const Tensor& target) {
  NllLossOptions options = options_;
  options.weight = weight_;
  return nll_loss(input, target, options);
}

Tensor CTCLoss::operator()(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                           const Tensor& target_lengths) {
  const Tensor inputs[] = {log_probs, targets, input_lengths, target_lengths};
  return Module::operator()(inputs);
}

Tensor CTCLoss::forward_all(std::span<const Tensor> inputs) {
  if (inputs.size() != 4) throw ValueError(fmt::format("CTCLoss: takes four tensors, not {}", inputs.size()));
  return ctc_loss(inputs[0], inputs[1], inputs[2], inputs[3], options_.blank, options_.reduction,
                  options_.zero_infinity);
}

BCELoss::BCELoss(const Tensor& weight, Reduction reduction)
    : weight_(register_buffer("weight", weight)), reduction_(reduction) {}

Tensor BCELoss::compare(const Tensor& input, const Tensor& target) {
  return binary_cross_entropy(input, target, weight_, reduction_);
}

BCEWithLogitsLoss::BCEWithLogitsLoss(const BCEWithLogitsOptions& options)
    : weight_(register_buffer("weight", options.weight)),
      pos_weight_(register_buffer("pos_weight", options.pos_weight)),
      reduction_(options.reduction) {}

Tensor BCEWithLogitsLoss::compare(const Tensor& input, const Tensor& target) {
  return binary_cross_entropy_with_logits(input, target, weight_, reduction_, pos_weight_);
}

}  // namespace russet::nn
