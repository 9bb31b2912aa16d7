#include "data/batch_buffer.h"

#include <fmt/format.h>
#include <russet/error.h>

#include <cmath>

#include "data/mixing.h"

namespace russet::data {
namespace {

class StackedBuffer : public BatchBuffer {
 public:
  StackedBuffer(const Dataset& dataset, std::int64_t rows)
      : dataset_(dataset), input_{dataset.input(), {}}, target_{dataset.target(), {}} {
    const auto count = static_cast<std::size_t>(rows);
    input_.bytes.resize(count * input_.field.bytes());
    target_.bytes.resize(count * target_.field.bytes());
  }

  void write(std::int64_t row, std::int64_t index, Random& random) override {
    const auto part = [row](FieldValues& column) {
      const std::size_t bytes = column.field.bytes();
      return std::span(column.bytes).subspan(static_cast<std::size_t>(row) * bytes, bytes);
    };
    dataset_.get(index, part(input_), part(target_), random);
  }
  void finish(std::int64_t /*rows*/, Random& /*random*/) override {}

  Batch batch(std::int64_t rows, Device device) const override {
    return {tensor(input_, rows, device), tensor(target_, rows, device)};
  }

 protected:
  /// A field of one sample, with the bytes of all.
  const FieldValues& target() const { return target_; }
  FieldValues& input() { return input_; }
  const FieldValues& input() const { return input_; }

  static Tensor tensor(const FieldValues& column, std::int64_t rows, Device device) {
    Shape shape = column.field.shape;
    shape.insert(0, rows);
    const std::size_t bytes = static_cast<std::size_t>(rows) * column.field.bytes();
    return Tensor::from_bytes(std::span(column.bytes).first(bytes), shape, {column.field.dtype, device, false});
  }

 private:
  const Dataset& dataset_;
  FieldValues input_;
  FieldValues target_;
};

/// Stacked, then mixed: targets become shares of classes.
class MixedBuffer final : public StackedBuffer {
 public:
  MixedBuffer(const Dataset& dataset, const Mixing& mixing, std::int64_t rows)
      : StackedBuffer(dataset, rows), mixing_(mixing) {
    if (mixing_.classes == 0) mixing_.classes = dataset.classes();
    shares_.field = {DType::float32, {mixing_.classes}};
    shares_.bytes.resize(static_cast<std::size_t>(rows) * shares_.field.bytes());
  }

  void finish(std::int64_t rows, Random& random) override {
    const Shape& sample = input().field.shape;
    const Mixture mixture = draw_mixture(mixing_, sample, random);
    const auto count = static_cast<std::size_t>(rows);
    auto* const values = reinterpret_cast<float*>(input().bytes.data());
    mix_inputs({values, count * static_cast<std::size_t>(numel(sample))}, sample, mixture);
    const auto* const labels = reinterpret_cast<const std::int64_t*>(target().bytes.data());
    auto* const shares = reinterpret_cast<float*>(shares_.bytes.data());
    mix_targets({labels, count}, mixing_.classes, mixture, {shares, count * static_cast<std::size_t>(mixing_.classes)});
  }

  Batch batch(std::int64_t rows, Device device) const override {
    return {tensor(input(), rows, device), tensor(shares_, rows, device)};
  }

 private:
  Mixing mixing_;
  FieldValues shares_;
};

class CollatedBuffer final : public BatchBuffer {
 public:
  CollatedBuffer(const Dataset& dataset, Collate collate, std::int64_t rows)
      : dataset_(dataset), collate_(std::move(collate)), samples_(static_cast<std::size_t>(rows)) {}

  void write(std::int64_t row, std::int64_t index, Random& random) override {
    samples_[static_cast<std::size_t>(row)] = dataset_.sample(index, random);
  }
  void finish(std::int64_t rows, Random& /*random*/) override {
    collated_ = collate_(std::span<const Sample>(samples_).first(static_cast<std::size_t>(rows)));
    for (const auto& [name, values] : collated_) values.check(name);
  }

  Batch batch(std::int64_t /*rows*/, Device device) const override {
    Batch batch;
    for (const auto& [name, values] : collated_) {
      Tensor tensor = Tensor::from_bytes(values.bytes, values.field.shape, {values.field.dtype, device, false});
      if (name == "input") {
        batch.input = std::move(tensor);
      } else if (name == "target") {
        batch.target = std::move(tensor);
      } else {
        batch.fields.emplace(name, std::move(tensor));
      }
    }
    return batch;
  }

 private:
  const Dataset& dataset_;
  Collate collate_;
  std::vector<Sample> samples_;
  Sample collated_;
};

/// Throws ValueError unless the samples can be mixed.
void check_mixing(const Dataset& dataset, const LoaderOptions& options) {
  const Mixing& mixing = options.mixing;
  if (!(mixing.mixup_alpha >= 0 && mixing.cutmix_alpha >= 0 &&
        std::isfinite(mixing.mixup_alpha + mixing.cutmix_alpha))) {
    throw ValueError(fmt::format("mixing: alpha must not be negative: MixUp's is {}, CutMix's {}", mixing.mixup_alpha,
                                 mixing.cutmix_alpha));
  }
  if (!mixing) return;
  if (options.collate) throw ValueError("mixing: samples with fields of their own, which differ, are not mixed");
  const Field input = dataset.input();
  if (input.dtype != DType::float32) {
    throw ValueError(
        fmt::format("mixing: inputs must be float32, not {}: put ToFloat among the transforms", name_of(input.dtype)));
  }
  const std::int64_t known = dataset.classes();
  if (dataset.target() != Field{DType::int64, {}} || known < 1 || (mixing.classes != 0 && mixing.classes < known)) {
    throw ValueError(fmt::format("mixing: each sample must have a class; the data set has {}, {} are given", known,
                                 mixing.classes == 0 ? known : mixing.classes));
  }
  const Shape& sample = input.shape;
  const bool pixels = sample.rank() >= 2 && sample[sample.rank() - 2] > 0 && sample[sample.rank() - 1] > 0;
  if (mixing.cutmix_alpha > 0 && !pixels) {
    throw ValueError(fmt::format("mixing: CutMix takes images, not samples of shape {}", to_string(sample)));
  }
}

}  // namespace

std::unique_ptr<BatchBuffer> make_batch_buffer(const Dataset& dataset, const LoaderOptions& options,
                                               std::int64_t rows) {
  check_mixing(dataset, options);
  if (options.mixing) return std::make_unique<MixedBuffer>(dataset, options.mixing, rows);
  if (options.collate) return std::make_unique<CollatedBuffer>(dataset, options.collate, rows);
  return std::make_unique<StackedBuffer>(dataset, rows);
}

}  // namespace russet::data
