#include <russet/autocast.h>
#include <russet/autograd.h>
#include <russet/data/masked_tokens.h>
#include <russet/functional.h>
#include <russet/train/evaluate.h>

#include <algorithm>
#include <vector>

namespace russet::train {
namespace {

/// Sums of one batch; they are read when many have come together, so that no batch is waited for.
struct Sums {
  Tensor loss;
  Tensor correct{};
  Tensor terms{};  // where it depends on the targets
  std::int64_t known_terms = 0;
};
constexpr std::size_t batches_together = 32;

class Totals {
 public:
  void add(Sums sums) {
    pending_.push_back(std::move(sums));
    if (pending_.size() == batches_together) read();
  }
  void read() {
    for (const Sums& sums : pending_) {
      loss_ += sums.loss.item();
      terms_ += sums.terms.defined() ? sums.terms.item<std::int64_t>() : sums.known_terms;
      if (sums.correct.defined()) correct_ += sums.correct.item<std::int64_t>();
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

Sums sums_of(models::Model& model, const data::Batch& batch, Objective objective) {
  const Tensor output = forward(model, batch);
  Sums sums;
  sums.loss = loss_of(objective, output, batch.target, {.reduction = Reduction::sum});
  if (has_accuracy(objective)) sums.correct = sum(eq(argmax(output, -1), batch.target));
  if (objective == Objective::masked_tokens) {
    sums.terms = sum(ne(batch.target, data::unmasked));
  } else {
    sums.known_terms = sums.correct.defined() ? batch.target.size(0) : batch.target.numel();
  }
  return sums;
}

}  // namespace

Evaluation evaluate(models::Model& model, data::DataLoader& loader, const EvaluateOptions& options) {
  const bool was_training = model.is_training();
  model.eval();
  const NoGrad no_grad;
  Totals totals;
  std::int64_t batches = 0;
  for (const auto& batch : loader) {
    {
      const Autocast scope = autocast_to(options.precision);
      totals.add(sums_of(model, batch, options.objective));
    }
    if (options.progress) options.progress(++batches);
  }
  totals.read();
  if (was_training) model.train();
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
