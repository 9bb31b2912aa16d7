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

}  // namespace russet::data
