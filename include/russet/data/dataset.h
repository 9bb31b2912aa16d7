#pragma once
// Dataset: samples by index, each an input and a target, written straight into the memory of a batch.
#include <russet/data/random.h>
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

/// Type and shape of one sample's input or target.
struct Field {
  DType dtype = DType::float32;
  Shape shape;
  std::size_t bytes() const { return static_cast<std::size_t>(numel(shape)) * size_of(dtype); }
  bool operator==(const Field&) const = default;
};

class Dataset;
using DatasetPtr = std::shared_ptr<const Dataset>;

class Dataset {
 public:
  virtual ~Dataset() = default;

  virtual std::int64_t size() const = 0;
  virtual Field input() const = 0;
  virtual Field target() const = 0;
  /// Writes sample `index` to memory of exactly input().bytes() and target().bytes(). `random` is what augmentation
  /// draws from. Called by several threads at once.
  virtual void get(std::int64_t index, std::span<std::byte> input, std::span<std::byte> target,
                   Random& random) const = 0;
  /// The number of classes that integer targets count, or 0.
  virtual std::int64_t classes() const { return 0; }
  /// The names of the classes, or nothing.
  virtual std::vector<std::string> class_names() const { return {}; }
  /// The same samples with other transforms. Throws ValueError if they are no images.
  virtual DatasetPtr with(Transforms transforms) const;
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
