#pragma once
// How good an encoder's features are, without a classifier: by the classes of the nearest neighbours (Wu et al. 2018,
// "Unsupervised Feature Learning via Non-Parametric Instance Discrimination").
#include <russet/data/loader.h>
#include <russet/models/registry.h>
#include <functional>

namespace russet::train {

struct NeighbourOptions {
  std::int64_t neighbours = 200;
  double temperature = 0.1;
};

/// What `bank`, features [n, width] of images whose classes `labels` are ([n], integers below `classes`), says of
/// `queries`, [q, width]: each of a query's nearest neighbours by cosine similarity votes for its class with
/// exp(similarity / temperature). Returns the sums of votes, [q, classes]. A bank smaller than that is taken whole.
Tensor neighbour_votes(const Tensor& queries, const Tensor& bank, const Tensor& labels, std::int64_t classes,
                       const NeighbourOptions& options = {});

struct NeighbourEvaluation {
  NeighbourOptions neighbours{};
  /// Of the encoder's matrix work: float32, or what Autocast takes.
  DType precision = DType::float32;
  /// Called after each batch of either loader with the number of batches done.
  std::function<void(std::int64_t)> progress{};
};

/// The share of `test` whose class has most of the votes of `bank`, by the features of a model that has them
/// (models::ModelSpec::features): one epoch of each loader, in evaluation mode and outside the tape; the model's mode
/// is put back. Throws ValueError for a model without features.
double neighbour_accuracy(models::Model& model, data::DataLoader& bank, data::DataLoader& test,
                          const NeighbourEvaluation& options = {});

}  // namespace russet::train
