#pragma once
// Samplers: the order of an epoch.
#include <russet/error.h>
#include <cstdint>
#include <vector>

namespace russet::data {

class Sampler {
 public:
  virtual ~Sampler() = default;
  /// The indices of an epoch in their order; the same for the same epoch, always.
  virtual std::vector<std::int64_t> order(std::int64_t epoch) const = 0;
  /// How many indices an epoch has.
  virtual std::int64_t size() const = 0;
};

/// 0, 1, 2, ...
class SequentialSampler final : public Sampler {
 public:
  explicit SequentialSampler(std::int64_t size) : size_(size) {}
  std::vector<std::int64_t> order(std::int64_t epoch) const override;
  std::int64_t size() const override { return size_; }

 private:
  std::int64_t size_;
};

/// A permutation that depends on (seed, epoch) only.
class RandomSampler final : public Sampler {
 public:
  RandomSampler(std::int64_t size, std::uint64_t seed) : size_(size), seed_(seed) {}
  std::vector<std::int64_t> order(std::int64_t epoch) const override;
  std::int64_t size() const override { return size_; }

 private:
  std::int64_t size_;
  std::uint64_t seed_;
};

/// Batches of samples of similar length: a permutation, of which 50 batches at a time are sorted by length, and whose
/// batches then change places; one that is not full comes last. Depends on (seed, epoch) only. For loaders of the same
/// batch size.
class LengthGroupedSampler final : public Sampler {
 public:
  /// Throws ValueError for a batch below 1.
  LengthGroupedSampler(std::vector<std::int64_t> lengths, std::int64_t batch, std::uint64_t seed);
  std::vector<std::int64_t> order(std::int64_t epoch) const override;
  std::int64_t size() const override { return static_cast<std::int64_t>(lengths_.size()); }

 private:
  std::vector<std::int64_t> lengths_;
  std::int64_t batch_;
  std::uint64_t seed_;
};

struct DistributedOptions {
  std::int64_t replicas = 1;
  std::int64_t rank = 0;  // below replicas
  bool shuffle = true;
  std::uint64_t seed = 0;
  /// Leaves out what does not divide evenly; else samples from the beginning of the order make it even.
  bool drop_last = false;
};

/// PyTorch's DistributedSampler: of one order for all, which depends on (seed, epoch) only, places rank, rank +
/// replicas, rank + 2 replicas, ...: as many for each rank.
class DistributedSampler final : public Sampler {
 public:
  /// Throws ValueError unless 0 <= rank < replicas.
  DistributedSampler(std::int64_t size, const DistributedOptions& options);
  std::vector<std::int64_t> order(std::int64_t epoch) const override;
  std::int64_t size() const override;

 private:
  std::int64_t size_;
  DistributedOptions options_;
};

/// PyTorch's WeightedRandomSampler: `count` samples, each drawn in proportion to its weight, with or without
/// replacement. Depends on (seed, epoch) only.
class WeightedRandomSampler final : public Sampler {
 public:
  /// Throws ValueError for weights that are negative or not finite, for a count below 1, and where there are fewer
  /// weights above 0 than samples to draw without replacement (with it: none).
  WeightedRandomSampler(std::vector<double> weights, std::int64_t count, bool replacement = true,
                        std::uint64_t seed = 0);
  std::vector<std::int64_t> order(std::int64_t epoch) const override;
  std::int64_t size() const override { return count_; }

 private:
  std::vector<double> weights_;
  std::int64_t count_;
  bool replacement_;
  std::uint64_t seed_;
};

}  // namespace russet::data
