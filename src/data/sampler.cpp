#include <fmt/format.h>
#include <russet/data/random.h>
#include <russet/data/sampler.h>
#include <russet/error.h>

#include <algorithm>
#include <numeric>

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

}  // namespace russet::data
