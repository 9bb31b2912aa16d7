#include <russet/autocast.h>
#include <russet/autograd.h>
#include <russet/captured_function.h>
#include <russet/data/masked_tokens.h>
#include <russet/functional.h>
#include <russet/train/evaluate.h>

#include <algorithm>
#include <vector>

namespace russet::train {
namespace {

/// Sums over one batch: of losses, of right answers where there are some, of what was looked at where targets say that.
using Sums = std::vector<Tensor>;
/// Sums are read when those of so many batches have come together, so that no batch is waited for.
constexpr std::size_t batches_together = 32;

class Totals {
 public:
  /// `terms`: where the sums do not have them.
  void add(Sums sums, std::int64_t terms) {
    if (sums.size() < 3) terms_ += terms;
    pending_.push_back(std::move(sums));
    if (pending_.size() == batches_together) read();
  }
  void read() {
    for (const Sums& sums : pending_) {
      loss_ += sums[0].item();
      if (sums.size() > 1) correct_ += sums[1].item<std::int64_t>();
      if (sums.size() > 2) terms_ += sums[2].item<std::int64_t>();
    }
    pending_.clear();
  }
  double mean_loss() const { return loss_ / static_cast<double>(std::max<std::int64_t>(terms_, 1)); }
  double accuracy() const {
    return static_cast<double>(correct_) / static_cast<double>(std::max<std::int64_t>(terms_, 1));
  }

 private:
  std::vector<Sums> pending_;
  double loss_ = 0;
  std::int64_t terms_ = 0;
  std::int64_t correct_ = 0;
};

/// The first input, in the type that the model takes.
Tensor converted(const models::Model& model, const Tensor& input) {
  const DType wanted = is_integral(model.inputs().front().dtype) ? DType::int64 : DType::float32;
  return input.dtype() == wanted ? input : input.to(wanted);
}

bool has_accuracy(Objective objective) {
  return objective == Objective::cross_entropy || objective == Objective::masked_tokens;
}

/// Of a batch whose sums do not say it.
std::int64_t terms_of(const data::Batch& batch, Objective objective) {
  return has_accuracy(objective) ? batch.target.size(0) : batch.target.numel();
}

Sums sums_of(models::Model& model, const data::Batch& batch, Objective objective) {
  const Tensor output = forward(model, batch);
  Sums sums{loss_of(objective, output, batch.target, {.reduction = Reduction::sum})};
  if (has_accuracy(objective)) sums.push_back(sum(eq(argmax(output, -1), batch.target)));
  if (objective == Objective::masked_tokens) sums.push_back(sum(ne(batch.target, data::unmasked)));
  return sums;
}

}  // namespace

Evaluation evaluate(models::Model& model, data::DataLoader& loader, const EvaluateOptions& options) {
  const nn::ModeScope mode(model, false);
  const NoGrad no_grad;
  const data::Batch* current = nullptr;
  CapturedFunction sums([&](const std::vector<Tensor>&) {
    const Autocast scope = autocast_to(options.precision);
    return sums_of(model, *current, options.objective);
  });
  Totals totals;
  std::int64_t batches = 0;
  for (const auto& batch : loader) {
    current = &batch;
    totals.add(sums(batch.tensors()), terms_of(batch, options.objective));
    if (options.progress) options.progress(++batches);
  }
  totals.read();
  Evaluation result;
  result.samples = loader.samples();
  result.loss = totals.mean_loss();
  if (has_accuracy(options.objective)) result.accuracy = totals.accuracy();
  return result;
}

Tensor forward(models::Model& model, const Tensor& input) { return model.forward(converted(model, input)); }

Tensor forward(models::Model& model, const data::Batch& batch) {
  const Tensor first = converted(model, batch.input);
  // Views of an image are samples of their own.
  const bool has_views =
      model.spec().takes == models::InputKind::images && first.dim() == model.inputs().front().shape.rank() + 2;
  std::vector<Tensor> inputs{has_views ? first.flatten(0, 1) : first};
  for (std::size_t i = 1; i < model.inputs().size(); ++i) {
    const auto field = batch.fields.find(model.inputs()[i].name);
    inputs.push_back(field == batch.fields.end() ? Tensor() : field->second);
  }
  while (!inputs.back().defined()) inputs.pop_back();
  return inputs.size() == 1 ? model.forward(inputs[0]) : model.forward_all(inputs);
}

}  // namespace russet::train
