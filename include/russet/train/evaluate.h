#pragma once
// How good a model is on a data set.
#include <russet/train/task.h>
#include <functional>
#include <optional>

namespace russet::train {

struct Evaluation {
  double loss = 0;                   // the mean over all samples
  std::optional<double> accuracy{};  // from 0 to 1; nothing for regression
  std::int64_t samples = 0;
};

/// One epoch of `loader`, in evaluation mode and outside the tape; the model's mode is put back. `progress` is called
/// after each batch with the number of batches done.
Evaluation evaluate(models::Model& model, data::DataLoader& loader, const Card& card, bool lower_precision,
                    const std::function<void(std::int64_t)>& progress = {});

}  // namespace russet::train
