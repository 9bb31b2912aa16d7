#include "data/batch_buffer.h"

namespace russet::data {
namespace {

class StackedBuffer final : public BatchBuffer {
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
  void finish(std::int64_t /*rows*/) override {}

  Batch batch(std::int64_t rows, Device device) const override {
    const auto tensor = [&](const FieldValues& column) {
      Shape shape = column.field.shape;
      shape.insert(0, rows);
      const std::size_t bytes = static_cast<std::size_t>(rows) * column.field.bytes();
      return Tensor::from_bytes(std::span(column.bytes).first(bytes), shape, {column.field.dtype, device, false});
    };
    return {tensor(input_), tensor(target_)};
  }

 private:
  const Dataset& dataset_;
  FieldValues input_;  // the field is one sample's, the bytes are all samples'
  FieldValues target_;
};

class CollatedBuffer final : public BatchBuffer {
 public:
  CollatedBuffer(const Dataset& dataset, Collate collate, std::int64_t rows)
      : dataset_(dataset), collate_(std::move(collate)), samples_(static_cast<std::size_t>(rows)) {}

  void write(std::int64_t row, std::int64_t index, Random& random) override {
    samples_[static_cast<std::size_t>(row)] = dataset_.sample(index, random);
  }
  void finish(std::int64_t rows) override {
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

}  // namespace

std::unique_ptr<BatchBuffer> make_batch_buffer(const Dataset& dataset, const Collate& collate, std::int64_t rows) {
  if (collate) return std::make_unique<CollatedBuffer>(dataset, collate, rows);
  return std::make_unique<StackedBuffer>(dataset, rows);
}

}  // namespace russet::data
