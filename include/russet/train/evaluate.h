#pragma once
// How good a model is on a data set.
#include <russet/data/loader.h>
#include <russet/models/registry.h>
#include <russet/train/objective.h>
#include <functional>
#include <optional>

namespace russet::train {

struct EvaluateOptions {
  Objective objective = Objective::cross_entropy;
  /// Of matrix work: float32, or what Autocast takes.
  DType precision = DType::float32;
  /// Called after each batch with the number of batches done.
  std::function<void(std::int64_t)> progress{};
};

struct Evaluation {
  double loss = 0;                   // the mean over all samples, or over all masked tokens
  std::optional<double> accuracy{};  // from 0 to 1; of classes, or of masked tokens
  std::int64_t samples = 0;
};

/// One epoch of `loader`, in evaluation mode and outside the tape; the model's mode is put back.
Evaluation evaluate(models::Model& model, data::DataLoader& loader, const EvaluateOptions& options = {});

/// The model's answer to its first input, which is converted to float32 unless the model takes integers.
Tensor forward(models::Model& model, const Tensor& input);
/// The same with those of the batch's other fields that the model knows by name (attention_mask, for one). Of images
/// in several views, [n, views, channels, height, width], each view is a sample of its own.
Tensor forward(models::Model& model, const data::Batch& batch);

}  // namespace russet::train
