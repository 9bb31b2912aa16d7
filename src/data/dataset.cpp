#include <fmt/format.h>
#include <russet/data/dataset.h>
#include <russet/data/sampler.h>
#include <russet/error.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace russet::data {

DatasetPtr Dataset::with(Transforms) const { throw ValueError("transforms apply to images only"); }

Subset::Subset(DatasetPtr dataset, std::vector<std::int64_t> indices) : dataset_(std::move(dataset)) {
  for (const std::int64_t index : indices) {
    if (index < 0 || index >= dataset_->size()) {
      throw IndexError(fmt::format("Subset: index {} is outside the {} samples", index, dataset_->size()));
    }
  }
  indices_ = std::make_shared<const std::vector<std::int64_t>>(std::move(indices));
}

void Subset::get(std::int64_t index, std::span<std::byte> input, std::span<std::byte> target, Random& random) const {
  dataset_->get((*indices_)[static_cast<std::size_t>(index)], input, target, random);
}

DatasetPtr Subset::with(Transforms transforms) const {
  return DatasetPtr(new Subset(dataset_->with(std::move(transforms)), indices_));
}

Split split(const DatasetPtr& dataset, double share, std::uint64_t seed) {
  if (!(share > 0 && share < 1))
    throw ValueError(fmt::format("split: the share must be between 0 and 1, not {}", share));
  const std::int64_t size = dataset->size();
  if (size < 2) throw ValueError(fmt::format("split: {} samples cannot be split", size));
  std::vector<std::int64_t> order(static_cast<std::size_t>(size));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  Random(seed, Random::Purpose::split).shuffle(order);
  const auto held = std::clamp<std::int64_t>(std::llround(share * static_cast<double>(size)), 1, size - 1);
  std::vector<std::int64_t> held_out(order.begin(), order.begin() + held);
  std::vector<std::int64_t> kept(order.begin() + held, order.end());
  std::sort(held_out.begin(), held_out.end());
  std::sort(kept.begin(), kept.end());
  return {std::make_shared<const Subset>(dataset, std::move(kept)),
          std::make_shared<const Subset>(dataset, std::move(held_out))};
}

std::vector<std::int64_t> SequentialSampler::order(std::int64_t) const {
  std::vector<std::int64_t> indices(static_cast<std::size_t>(size_));
  std::iota(indices.begin(), indices.end(), std::int64_t{0});
  return indices;
}

std::vector<std::int64_t> RandomSampler::order(std::int64_t epoch) const {
  std::vector<std::int64_t> indices = SequentialSampler(size_).order(epoch);
  Random(seed_, Random::Purpose::order, static_cast<std::uint64_t>(epoch)).shuffle(indices);
  return indices;
}

}  // namespace russet::data
