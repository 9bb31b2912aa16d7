#include "data/batch_buffer.h"

#include <fmt/format.h>
#include <russet/error.h>
#include <russet/staging.h>

#include <cmath>
#include <span>
#include <utility>
#include <vector>

#include "data/mixing.h"

namespace russet::data {
namespace {

/// A field of all samples of a batch, which becomes a tensor of the device.
class Column {
 public:
  Column(Field field, std::int64_t rows, Device device)
      : field_(std::move(field)), buffer_(device, static_cast<std::size_t>(rows) * field_.bytes()) {}

  const Field& field() const { return field_; }
  std::span<std::byte> row(std::int64_t row) const {
    return buffer_.bytes().subspan(static_cast<std::size_t>(row) * field_.bytes(), field_.bytes());
  }
  template <class T>
  std::span<T> values(std::int64_t rows) const {
    return {reinterpret_cast<T*>(buffer_.bytes().data()), static_cast<std::size_t>(rows * numel(field_.shape))};
  }
  Tensor tensor(std::int64_t rows) const {
    Shape shape = field_.shape;
    shape.insert(0, rows);
    return buffer_.to_tensor(shape, field_.dtype);
  }
  void renew() { buffer_.renew(); }

 private:
  Field field_;
  StagingBuffer buffer_;
};

/// If there is no memory for one of them, both can be asked for again.
Batch batch_of(Column& input, Column& target, std::int64_t rows) {
  Batch batch{input.tensor(rows), target.tensor(rows)};
  input.renew();
  target.renew();
  return batch;
}

class StackedBuffer final : public BatchBuffer {
 public:
  StackedBuffer(const Dataset& dataset, std::int64_t rows, Device device)
      : dataset_(dataset), input_(dataset.input(), rows, device), target_(dataset.target(), rows, device) {}

  void write(std::int64_t row, std::int64_t index, Random& random) override {
    dataset_.get(index, input_.row(row), target_.row(row), random);
  }
  void finish(std::int64_t /*rows*/, Random& /*random*/) override {}
  Batch batch(std::int64_t rows) override { return batch_of(input_, target_, rows); }

 private:
  const Dataset& dataset_;
  Column input_;
  Column target_;
};

/// Stacked, then mixed: targets become shares of classes.
class MixedBuffer final : public BatchBuffer {
 public:
  MixedBuffer(const Dataset& dataset, const Mixing& mixing, std::int64_t rows, Device device)
      : dataset_(dataset),
        mixing_(mixing),
        classes_(mixing.classes == 0 ? dataset.classes() : mixing.classes),
        labels_(static_cast<std::size_t>(rows)),
        input_(dataset.input(), rows, device),
        shares_({DType::float32, {classes_}}, rows, device) {}

  void write(std::int64_t row, std::int64_t index, Random& random) override {
    const std::span<std::int64_t> label = std::span(labels_).subspan(static_cast<std::size_t>(row), 1);
    dataset_.get(index, input_.row(row), std::as_writable_bytes(label), random);
  }
  void finish(std::int64_t rows, Random& random) override {
    const Shape& sample = input_.field().shape;
    const Mixture mixture = draw_mixture(mixing_, sample, random);
    mix_inputs(input_.values<float>(rows), sample, mixture);
    const std::span labels = std::span<const std::int64_t>(labels_).first(static_cast<std::size_t>(rows));
    mix_targets(labels, classes_, mixture, shares_.values<float>(rows));
  }
  Batch batch(std::int64_t rows) override { return batch_of(input_, shares_, rows); }

 private:
  const Dataset& dataset_;
  Mixing mixing_;
  std::int64_t classes_;
  std::vector<std::int64_t> labels_;
  Column input_;
  Column shares_;
};

class CollatedBuffer final : public BatchBuffer {
 public:
  CollatedBuffer(const Dataset& dataset, Collate collate, std::int64_t rows, Device device)
      : dataset_(dataset), collate_(std::move(collate)), device_(device), samples_(static_cast<std::size_t>(rows)) {}

  void write(std::int64_t row, std::int64_t index, Random& random) override {
    samples_[static_cast<std::size_t>(row)] = dataset_.sample(index, random);
  }
  void finish(std::int64_t rows, Random& /*random*/) override {
    collated_ = collate_(std::span<const Sample>(samples_).first(static_cast<std::size_t>(rows)));
    for (const auto& [name, values] : collated_) values.check(name);
  }

  Batch batch(std::int64_t /*rows*/) override {
    Batch batch;
    for (const auto& [name, values] : collated_) {
      Tensor tensor = Tensor::from_bytes(values.bytes, values.field.shape, {values.field.dtype, device_, false});
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
  Device device_;
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
  if (options.mixing) return std::make_unique<MixedBuffer>(dataset, options.mixing, rows, options.device);
  if (options.collate) return std::make_unique<CollatedBuffer>(dataset, options.collate, rows, options.device);
  return std::make_unique<StackedBuffer>(dataset, rows, options.device);
}

}  // namespace russet::data
