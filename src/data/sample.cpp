#include <fmt/format.h>
#include <russet/data/sample.h>

#include <algorithm>
#include <cstring>
#include <tuple>

namespace russet::data {
namespace {

/// Throws ValueError unless all samples have the same fields, and those that are to be padded.
void check_names(std::span<const Sample> samples, const PadOptions& options) {
  const Sample& first = samples.front();
  for (const Sample& sample : samples) {
    const auto& [more, fewer] = sample.size() < first.size() ? std::tie(first, sample) : std::tie(sample, first);
    for (const auto& [name, values] : more) {
      if (!fewer.contains(name)) throw ValueError(fmt::format("collate: not all samples have a field \"{}\"", name));
    }
  }
  for (const auto& [name, padding] : options.fields) {
    if (!first.contains(name)) throw ValueError(fmt::format("collate: there is no field \"{}\" to pad", name));
    if (first.contains(padding.mask)) {
      throw ValueError(fmt::format("collate: samples have a field \"{}\", so it cannot be the mask", padding.mask));
    }
  }
}

/// The values of one field, of all samples; all of one type and, but for the first axis where it is padded, one shape.
std::vector<const FieldValues*> column_of(std::span<const Sample> samples, const std::string& name, bool padded) {
  std::vector<const FieldValues*> column;
  column.reserve(samples.size());
  for (const Sample& sample : samples) {
    const FieldValues& values = sample.find(name)->second;
    values.check(name);
    if (padded && values.field.shape.rank() == 0) {
      throw ShapeError(fmt::format("collate: the field \"{}\" is a scalar: there is nothing to pad", name));
    }
    column.push_back(&values);
    const Field& first = column.front()->field;
    if (values.field.dtype != first.dtype) {
      throw TypeError(fmt::format("collate: the field \"{}\" is {} in one sample and {} in another", name,
                                  name_of(first.dtype), name_of(values.field.dtype)));
    }
    Shape expected = first.shape;
    if (padded && values.field.shape.rank() == expected.rank()) expected[0] = values.field.shape[0];
    if (values.field.shape != expected) {
      throw ShapeError(fmt::format("collate: the field \"{}\" is {} in one sample and {} in another{}", name,
                                   to_string(first.shape), to_string(values.field.shape),
                                   padded ? "" : ": pad it (data::pad_samples)"));
    }
  }
  return column;
}

FieldValues stacked(const std::vector<const FieldValues*>& column) {
  FieldValues result{column.front()->field, {}};
  result.field.shape.insert(0, static_cast<std::int64_t>(column.size()));
  result.bytes.reserve(result.field.bytes());
  for (const FieldValues* values : column) {
    result.bytes.insert(result.bytes.end(), values->bytes.begin(), values->bytes.end());
  }
  return result;
}

std::int64_t longest_of(const std::vector<const FieldValues*>& column) {
  std::int64_t longest = 0;
  for (const FieldValues* values : column) longest = std::max(longest, values->field.shape[0]);
  return longest;
}

FieldValues padded(const std::vector<const FieldValues*>& column, std::int64_t length, double value) {
  FieldValues result{column.front()->field, {}};
  result.field.shape[0] = length;
  const std::size_t row_bytes = result.field.bytes();
  result.field.shape.insert(0, static_cast<std::int64_t>(column.size()));
  result.bytes.resize(row_bytes * column.size());
  visit_dtype(result.field.dtype, [&]<class T>() {
    const auto element = convert_element<T>(value);
    for (std::size_t at = 0; at < result.bytes.size(); at += sizeof(T)) {
      std::memcpy(result.bytes.data() + at, &element, sizeof(T));
    }
  });
  for (std::size_t row = 0; row < column.size(); ++row) {
    const std::vector<std::byte>& bytes = column[row]->bytes;
    std::copy(bytes.begin(), bytes.end(), result.bytes.begin() + static_cast<std::ptrdiff_t>(row * row_bytes));
  }
  return result;
}

FieldValues mask_of(const std::vector<const FieldValues*>& column, std::int64_t length) {
  std::vector<std::int64_t> mask;
  mask.reserve(column.size() * static_cast<std::size_t>(length));
  for (const FieldValues* values : column) {
    mask.insert(mask.end(), static_cast<std::size_t>(values->field.shape[0]), 1);
    mask.insert(mask.end(), static_cast<std::size_t>(length - values->field.shape[0]), 0);
  }
  return FieldValues::from(mask, {static_cast<std::int64_t>(column.size()), length});
}

Sample pad(std::span<const Sample> samples, const PadOptions& options) {
  check_names(samples, options);
  Sample batch;
  for (const auto& [name, first] : samples.front()) {
    const auto padding = options.fields.find(name);
    const bool pads = padding != options.fields.end();
    const std::vector<const FieldValues*> column = column_of(samples, name, pads);
    if (!pads) {
      batch.insert_or_assign(name, stacked(column));
      continue;
    }
    const std::int64_t length = padded_length(longest_of(column), options.multiple_of);
    batch.insert_or_assign(name, padded(column, length, padding->second.value));
    if (!padding->second.mask.empty()) batch.insert_or_assign(padding->second.mask, mask_of(column, length));
  }
  return batch;
}

}  // namespace

void FieldValues::check(std::string_view name) const {
  if (bytes.size() == field.bytes()) return;
  throw ShapeError(fmt::format("collate: the field \"{}\" is {} {}, but has {} bytes", name, name_of(field.dtype),
                               to_string(field.shape), bytes.size()));
}

void FieldValues::refuse_count(std::size_t count, const Shape& shape) {
  throw ShapeError(fmt::format("FieldValues: {} values do not fill {}", count, to_string(shape)));
}

Sample stack_samples(std::span<const Sample> samples) { return pad(samples, {}); }

Collate pad_samples(PadOptions options) {
  if (options.multiple_of < 1) {
    throw ValueError(fmt::format("pad_samples: lengths cannot be multiples of {}", options.multiple_of));
  }
  return [options = std::move(options)](std::span<const Sample> samples) { return pad(samples, options); };
}

}  // namespace russet::data
