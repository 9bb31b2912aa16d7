#pragma once
// Dataset: samples by index. Those of one shape are an input and a target, written straight into the memory of a batch;
// those that differ have named fields, and a function makes batches of them.
#include <russet/data/random.h>
#include <russet/data/sample.h>
#include <russet/data/transforms.h>
#include <russet/dtype.h>
#include <russet/shape.h>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace russet::data {

class Dataset;
using DatasetPtr = std::shared_ptr<const Dataset>;

class Dataset {
 public:
  virtual ~Dataset() = default;

  virtual std::int64_t size() const = 0;
  /// Of the largest sample, where they differ.
  virtual Field input() const = 0;
  virtual Field target() const = 0;
  /// Writes sample `index` to memory of exactly input().bytes() and target().bytes(). `random` is what augmentation
  /// draws from. Called by several threads at once.
  virtual void get(std::int64_t index, std::span<std::byte> input, std::span<std::byte> target,
                   Random& random) const = 0;
  /// The same by names: `input` and `target`, unless a set says otherwise.
  virtual Sample sample(std::int64_t index, Random& random) const;
  /// Makes batches of sample(); none: inputs and targets are stacked, without a copy.
  virtual Collate collate() const { return nullptr; }
  /// The length of each sample, by which batches of similar ones are made; empty where all are alike.
  virtual std::vector<std::int64_t> lengths() const { return {}; }
  /// The number of classes that integer targets count, or 0.
  virtual std::int64_t classes() const { return 0; }
  /// The names of the classes, or nothing.
  virtual std::vector<std::string> class_names() const { return {}; }
  /// The same samples with other transforms. Throws ValueError if they are no images.
  virtual DatasetPtr with(Transforms transforms) const;
};

/// Samples of named fields, of which some may differ in shape from sample to sample: a set says size() and sample().
class FieldDataset : public Dataset {
 public:
  Sample sample(std::int64_t index, Random& random) const override = 0;
  /// stack_samples, unless a set or the loader says otherwise.
  Collate collate() const override { return stack_samples; }
  /// The fields `input` and `target` of sample 0. Throws ValueError if it has no such field.
  Field input() const override;
  Field target() const override;
  /// The fields `input` and `target`. Throws ShapeError where they do not fill the memory.
  void get(std::int64_t index, std::span<std::byte> input, std::span<std::byte> target, Random& random) const override;
};

/// The chosen samples of another set.
class Subset final : public Dataset {
 public:
  /// Throws IndexError for an index outside `dataset`.
  Subset(DatasetPtr dataset, std::vector<std::int64_t> indices);

  std::int64_t size() const override { return static_cast<std::int64_t>(indices_->size()); }
  Field input() const override { return dataset_->input(); }
  Field target() const override { return dataset_->target(); }
  void get(std::int64_t index, std::span<std::byte> input, std::span<std::byte> target, Random& random) const override;
  Sample sample(std::int64_t index, Random& random) const override;
  Collate collate() const override { return dataset_->collate(); }
  std::vector<std::int64_t> lengths() const override;
  std::int64_t classes() const override { return dataset_->classes(); }
  std::vector<std::string> class_names() const override { return dataset_->class_names(); }
  DatasetPtr with(Transforms transforms) const override;
  const std::vector<std::int64_t>& indices() const { return *indices_; }

 private:
  using Indices = std::shared_ptr<const std::vector<std::int64_t>>;
  Subset(DatasetPtr dataset, Indices indices) : dataset_(std::move(dataset)), indices_(std::move(indices)) {}
  DatasetPtr dataset_;
  Indices indices_;
};

struct Split {
  DatasetPtr kept;
  DatasetPtr held_out;
};

/// Holds out `share` of the samples (rounded, at least one), chosen by `seed`. Throws ValueError unless 0 < share < 1
/// and both parts get a sample.
Split split(const DatasetPtr& dataset, double share, std::uint64_t seed);

}  // namespace russet::data
