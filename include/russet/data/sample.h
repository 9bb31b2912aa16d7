#pragma once
// Samples of named fields of any shape, and how they become batches.
#include <russet/dtype.h>
#include <russet/error.h>
#include <russet/shape.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace russet::data {

/// Type and shape of one sample's input or target.
struct Field {
  DType dtype = DType::float32;
  Shape shape;
  std::size_t bytes() const { return static_cast<std::size_t>(numel(shape)) * size_of(dtype); }
  bool operator==(const Field&) const = default;
};

/// A field's values, in row-major order: as many bytes as the field has.
struct FieldValues {
  Field field;
  std::vector<std::byte> bytes;

  /// Throws ShapeError, which calls the field `name`, for another number of bytes.
  void check(std::string_view name) const;

  /// Throws ShapeError if there are not as many values as the shape has.
  template <class T>
  static FieldValues from(std::span<const T> values, const Shape& shape) {
    if (static_cast<std::int64_t>(values.size()) != numel(shape)) refuse_count(values.size(), shape);
    const auto bytes = std::as_bytes(values);
    return {{dtype_of<T>(), shape}, {bytes.begin(), bytes.end()}};
  }
  template <class T>
  static FieldValues from(const std::vector<T>& values, const Shape& shape) {
    return from(std::span<const T>(values), shape);
  }
  template <class T>
  static FieldValues scalar(T value) {
    return from(std::span<const T>(&value, 1), {});
  }

 private:
  [[noreturn]] static void refuse_count(std::size_t count, const Shape& shape);
};

/// A sample, or a batch: values by the names of its fields. The loader knows two names, `input` and `target`.
using Sample = std::map<std::string, FieldValues, std::less<>>;

/// Makes a batch of samples (at least one). Called by several threads at once.
using Collate = std::function<Sample(std::span<const Sample>)>;

/// PyTorch's default_collate: each field of the batch is [samples, ...]. Throws ShapeError or TypeError, which name the
/// field, where a field's shapes or types differ, and ValueError where a sample lacks it.
Sample stack_samples(std::span<const Sample> samples);

/// How a field whose first axis differs from sample to sample is made equal.
struct Padding {
  /// What stands behind the values of a shorter sample.
  double value = 0;
  /// The name of a field of the batch that says what is padding: int64 [samples, length], 1 for values, 0 for padding.
  /// Empty: no such field.
  std::string mask{};
};

/// `length` rounded up to a multiple.
constexpr std::int64_t padded_length(std::int64_t length, std::int64_t multiple_of) {
  return (length + multiple_of - 1) / multiple_of * multiple_of;
}

struct PadOptions {
  /// The fields to pad, by name; the others are stacked.
  std::map<std::string, Padding> fields{};
  /// Lengths are rounded up to a multiple of it: each length is a plan of its own.
  std::int64_t multiple_of = 1;
};

/// A collate function that pads fields to the longest of the batch along their first axis, and stacks the rest. Throws
/// ValueError for a multiple below 1.
Collate pad_samples(PadOptions options);

}  // namespace russet::data
