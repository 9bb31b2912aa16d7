#include <fmt/format.h>
#include <russet/data/dataset.h>
#include <russet/error.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace russet::data {

DatasetPtr Dataset::with(Transforms) const { throw ValueError("transforms apply to images only"); }

Sample Dataset::sample(std::int64_t index, Random& random) const {
  const auto empty = [](const Field& field) { return FieldValues{field, std::vector<std::byte>(field.bytes())}; };
  FieldValues input = empty(this->input());
  FieldValues target = empty(this->target());
  get(index, input.bytes, target.bytes, random);
  Sample sample;
  sample.emplace("input", std::move(input));
  sample.emplace("target", std::move(target));
  return sample;
}

namespace {

const FieldValues& field_of(const Sample& sample, const char* name) {
  const auto found = sample.find(name);
  if (found == sample.end()) throw ValueError(fmt::format("the data set's samples have no field \"{}\"", name));
  return found->second;
}

void copy_field(const FieldValues& values, std::span<std::byte> memory, const char* name) {
  if (values.bytes.size() != memory.size()) {
    throw ShapeError(
        fmt::format("the field \"{}\" of a sample is {}, which is not as large as other samples': a "
                    "collate function makes batches of such samples",
                    name, to_string(values.field.shape)));
  }
  std::copy(values.bytes.begin(), values.bytes.end(), memory.begin());
}

/// Of the first sample.
Field field_of(const Dataset& dataset, const char* name) {
  Random random(0, Random::Purpose::augmentation);
  return field_of(dataset.sample(0, random), name).field;
}

}  // namespace

Field FieldDataset::input() const { return field_of(*this, "input"); }
Field FieldDataset::target() const { return field_of(*this, "target"); }

void FieldDataset::get(std::int64_t index, std::span<std::byte> input, std::span<std::byte> target,
                       Random& random) const {
  const Sample sample = this->sample(index, random);
  copy_field(field_of(sample, "input"), input, "input");
  copy_field(field_of(sample, "target"), target, "target");
}

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

Sample Subset::sample(std::int64_t index, Random& random) const {
  return dataset_->sample((*indices_)[static_cast<std::size_t>(index)], random);
}

std::vector<std::int64_t> Subset::lengths() const {
  const std::vector<std::int64_t> all = dataset_->lengths();
  std::vector<std::int64_t> lengths;
  if (all.empty()) return lengths;
  for (const std::int64_t index : *indices_) lengths.push_back(all[static_cast<std::size_t>(index)]);
  return lengths;
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

}  // namespace russet::data
