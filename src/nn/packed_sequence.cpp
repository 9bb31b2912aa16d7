// Packing and padding: each is one lookup of rows, whose places are worked out on the host.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <russet/functional.h>
#include <russet/nn/packed_sequence.h>

#include <algorithm>
#include <numeric>

namespace russet::nn {
namespace {

using Numbers = std::vector<std::int64_t>;

Tensor rows_at(const Tensor& rows, const Numbers& places) {
  return index_select(rows, 0, Tensor::from(places, {static_cast<std::int64_t>(places.size())}, rows.device()));
}

/// The sizes of one element of a sequence, behind `front`.
Shape with_front(const Shape& front, const Shape& sizes, int skipped) {
  Shape result = front;
  for (int axis = skipped; axis < sizes.rank(); ++axis) result.push_back(sizes[axis]);
  return result;
}

Numbers inverse(const Numbers& order) {
  Numbers result(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    result[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
  }
  return result;
}

void check(const Tensor& input, const Numbers& lengths, bool batch_first, bool enforce_sorted) {
  if (input.dim() < 2) {
    throw ShapeError(
        fmt::format("pack_padded_sequence: takes two dimensions or more, not {}", to_string(input.sizes())));
  }
  const std::int64_t batch = input.size(batch_first ? 0 : 1);
  const std::int64_t longest = input.size(batch_first ? 1 : 0);
  if (batch == 0 || longest == 0) throw ShapeError("pack_padded_sequence: the input is empty");
  if (static_cast<std::int64_t>(lengths.size()) != batch) {
    throw ShapeError(fmt::format("pack_padded_sequence: {} lengths for a batch of {}", lengths.size(), batch));
  }
  for (const std::int64_t length : lengths) {
    if (length >= 1 && length <= longest) continue;
    throw ValueError(
        fmt::format("pack_padded_sequence: a length of {}; lengths are from 1 to the input's {}", length, longest));
  }
  if (enforce_sorted && !std::is_sorted(lengths.rbegin(), lengths.rend())) {
    throw ValueError(fmt::format(
        "pack_padded_sequence: the lengths [{}] rise. Sort the batch by falling length, or pass enforce_sorted = false",
        fmt::join(lengths, ", ")));
  }
}

}  // namespace

Numbers PackedSequence::lengths() const {
  const std::size_t count = batch_sizes.empty() ? 0 : static_cast<std::size_t>(batch_sizes.front());
  Numbers lengths(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t sorted = unsorted_indices.empty() ? i : static_cast<std::size_t>(unsorted_indices[i]);
    lengths[i] = std::count_if(batch_sizes.begin(), batch_sizes.end(),
                               [&](std::int64_t size) { return static_cast<std::size_t>(size) > sorted; });
  }
  return lengths;
}

PackedSequence pack_padded_sequence(const Tensor& input, const Numbers& lengths, bool batch_first,
                                    bool enforce_sorted) {
  check(input, lengths, batch_first, enforce_sorted);
  Numbers order(lengths.size());
  std::iota(order.begin(), order.end(), 0);
  const auto length_of = [&](std::int64_t sequence) { return lengths[static_cast<std::size_t>(sequence)]; };
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int64_t a, std::int64_t b) { return length_of(a) > length_of(b); });
  PackedSequence packed;
  Numbers places;
  const std::int64_t step_stride = batch_first ? 1 : input.size(1);
  const std::int64_t sequence_stride = batch_first ? input.size(1) : 1;
  for (std::int64_t step = 0; step < length_of(order.front()); ++step) {
    std::int64_t size = 0;
    for (const std::int64_t sequence : order) {
      if (length_of(sequence) <= step) break;
      places.push_back(step * step_stride + sequence * sequence_stride);
      ++size;
    }
    packed.batch_sizes.push_back(size);
  }
  packed.data = rows_at(input.flatten(0, 1), places);
  if (!enforce_sorted) {
    packed.unsorted_indices = inverse(order);
    packed.sorted_indices = std::move(order);
  }
  return packed;
}

PackedSequence pack_padded_sequence(const Tensor& input, const Tensor& lengths, bool batch_first, bool enforce_sorted) {
  if (lengths.dim() != 1) {
    throw ShapeError(fmt::format("pack_padded_sequence: the lengths are a vector, not {}", to_string(lengths.sizes())));
  }
  return pack_padded_sequence(input, lengths.to_vector<std::int64_t>(), batch_first, enforce_sorted);
}

PaddedSequence pad_packed_sequence(const PackedSequence& sequence, const PadPackedOptions& options) {
  const Numbers lengths = sequence.lengths();
  const auto batch = static_cast<std::int64_t>(lengths.size());
  const auto longest = static_cast<std::int64_t>(sequence.batch_sizes.size());
  const std::int64_t total = options.total_length.value_or(longest);
  if (total < longest) {
    throw ValueError(
        fmt::format("pad_packed_sequence: total_length {} is less than the longest sequence's {}", total, longest));
  }
  const Tensor& data = sequence.data;
  // Element `sequence` of time step `step` among the rows of data; the row behind the last is padding.
  Numbers starts(static_cast<std::size_t>(longest));
  std::exclusive_scan(sequence.batch_sizes.begin(), sequence.batch_sizes.end(), starts.begin(), std::int64_t{0});
  const auto place = [&](std::int64_t step, std::size_t i) {
    if (step >= lengths[i]) return data.size(0);
    const auto row = sequence.unsorted_indices.empty() ? static_cast<std::int64_t>(i) : sequence.unsorted_indices[i];
    return starts[static_cast<std::size_t>(step)] + row;
  };
  Numbers places;
  const std::int64_t outer = options.batch_first ? batch : total;
  const std::int64_t inner = options.batch_first ? total : batch;
  for (std::int64_t i = 0; i < outer; ++i) {
    for (std::int64_t j = 0; j < inner; ++j) {
      places.push_back(options.batch_first ? place(j, static_cast<std::size_t>(i))
                                           : place(i, static_cast<std::size_t>(j)));
    }
  }
  const Tensor padding =
      full(with_front({1}, data.sizes(), 1), options.padding_value, {.dtype = data.dtype(), .device = data.device()});
  const Tensor rows = rows_at(cat({data, padding}), places);
  return {rows.reshape(with_front({outer, inner}, data.sizes(), 1)), lengths};
}

Tensor pad_sequence(const std::vector<Tensor>& sequences, bool batch_first, double padding_value) {
  if (sequences.empty()) throw ValueError("pad_sequence: there are no sequences");
  std::int64_t longest = 0;
  for (const Tensor& sequence : sequences) {
    if (sequence.dim() < 1) throw ShapeError("pad_sequence: a sequence has one dimension or more");
    longest = std::max(longest, sequence.size(0));
  }
  std::vector<Tensor> padded;
  for (const Tensor& sequence : sequences) {
    const Tensor padding = full(with_front({longest - sequence.size(0)}, sequence.sizes(), 1), padding_value,
                                {.dtype = sequence.dtype(), .device = sequence.device()});
    padded.push_back(cat({sequence, padding}));
  }
  return stack(padded, batch_first ? 0 : 1);
}

PackedSequence pack_sequence(const std::vector<Tensor>& sequences, bool enforce_sorted) {
  Numbers lengths;
  for (const Tensor& sequence : sequences) lengths.push_back(sequence.dim() < 1 ? 0 : sequence.size(0));
  return pack_padded_sequence(pad_sequence(sequences), lengths, false, enforce_sorted);
}

}  // namespace russet::nn
