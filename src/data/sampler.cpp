#include <fmt/format.h>
#include <russet/data/random.h>
#include <russet/data/sampler.h>
#include <russet/error.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace russet::data {

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

LengthGroupedSampler::LengthGroupedSampler(std::vector<std::int64_t> lengths, std::int64_t batch, std::uint64_t seed)
    : lengths_(std::move(lengths)), batch_(batch), seed_(seed) {
  if (batch < 1) throw ValueError(fmt::format("LengthGroupedSampler: the batch must be at least 1, not {}", batch));
}

std::vector<std::int64_t> LengthGroupedSampler::order(std::int64_t epoch) const {
  constexpr std::int64_t batches_together = 50;
  std::vector<std::int64_t> shuffled = SequentialSampler(size()).order(epoch);
  Random random(seed_, Random::Purpose::order, static_cast<std::uint64_t>(epoch));
  random.shuffle(shuffled);
  const auto longer = [this](std::int64_t a, std::int64_t b) {
    return lengths_[static_cast<std::size_t>(a)] > lengths_[static_cast<std::size_t>(b)];
  };
  const std::int64_t batch = std::min(batch_, std::max<std::int64_t>(size(), 1));
  const std::int64_t together = size() / batch < batches_together ? size() : batch * batches_together;
  for (std::int64_t begin = 0; begin < size(); begin += together) {
    const std::int64_t end = std::min(begin + together, size());
    std::stable_sort(shuffled.begin() + begin, shuffled.begin() + end, longer);
  }
  std::vector<std::int64_t> places = SequentialSampler(size() / batch).order(epoch);
  random.shuffle(places);
  std::vector<std::int64_t> order;
  order.reserve(shuffled.size());
  for (const std::int64_t place : places) {
    order.insert(order.end(), shuffled.begin() + place * batch, shuffled.begin() + (place + 1) * batch);
  }
  order.insert(order.end(), shuffled.begin() + std::ssize(order), shuffled.end());
  return order;
}

DistributedSampler::DistributedSampler(std::int64_t size, const DistributedOptions& options)
    : size_(size), options_(options) {
  if (options.rank < 0 || options.rank >= options.replicas) {
    throw ValueError(
        fmt::format("DistributedSampler: there is no rank {} of {} replicas", options.rank, options.replicas));
  }
}

std::int64_t DistributedSampler::size() const {
  return (options_.drop_last ? size_ : size_ + options_.replicas - 1) / options_.replicas;
}

std::vector<std::int64_t> DistributedSampler::order(std::int64_t epoch) const {
  const std::vector<std::int64_t> all =
      options_.shuffle ? RandomSampler(size_, options_.seed).order(epoch) : SequentialSampler(size_).order(epoch);
  std::vector<std::int64_t> mine;
  for (std::int64_t i = 0; i < size(); ++i) {
    mine.push_back(all[static_cast<std::size_t>((i * options_.replicas + options_.rank) % size_)]);
  }
  return mine;
}

WeightedRandomSampler::WeightedRandomSampler(std::vector<double> weights, std::int64_t count, bool replacement,
                                             std::uint64_t seed)
    : weights_(std::move(weights)), count_(count), replacement_(replacement), seed_(seed) {
  const auto usable = [](double weight) { return weight >= 0 && std::isfinite(weight); };
  if (!std::all_of(weights_.begin(), weights_.end(), usable)) {
    throw ValueError("WeightedRandomSampler: weights must be finite and not negative");
  }
  const auto drawable = std::count_if(weights_.begin(), weights_.end(), [](double weight) { return weight > 0; });
  if (count < 1 || drawable < (replacement ? 1 : count)) {
    throw ValueError(fmt::format("WeightedRandomSampler: {} samples cannot be drawn from {} weights above 0{}", count,
                                 drawable, replacement ? "" : " without replacement"));
  }
}

std::vector<std::int64_t> WeightedRandomSampler::order(std::int64_t epoch) const {
  Random random(seed_, Random::Purpose::order, static_cast<std::uint64_t>(epoch));
  std::vector<std::int64_t> drawn;
  drawn.reserve(static_cast<std::size_t>(count_));
  if (replacement_) {
    std::vector<double> sums(weights_.size());
    std::partial_sum(weights_.begin(), weights_.end(), sums.begin());
    while (std::ssize(drawn) < count_) {
      // The sum may round up to the last one, and samples of weight 0 share their sum with the one before.
      const auto place = std::upper_bound(sums.begin(), sums.end(), random.uniform() * sums.back());
      if (place != sums.end()) drawn.push_back(place - sums.begin());
    }
    return drawn;
  }
  // The smallest of exponential waiting times (Efraimidis and Spirakis 2006).
  std::vector<std::pair<double, std::int64_t>> times;
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    const double wait = -std::log(1 - random.uniform());
    if (weights_[i] > 0) times.emplace_back(wait / weights_[i], static_cast<std::int64_t>(i));
  }
  std::partial_sort(times.begin(), times.begin() + count_, times.end());
  for (std::int64_t i = 0; i < count_; ++i) drawn.push_back(times[static_cast<std::size_t>(i)].second);
  return drawn;
}

}  // namespace russet::data
