#pragma once
// Sequences of several lengths in one tensor, with the names of torch.nn.utils.rnn.
#include <russet/tensor.h>
#include <cstdint>
#include <optional>
#include <vector>

namespace russet::nn {

/// Sequences without their padding, sorted by falling length: the first elements of all, then the second ones, ...
struct PackedSequence {
  Tensor data;  // [sum of the lengths, ...]
  /// For each time step, the number of sequences that reach it.
  std::vector<std::int64_t> batch_sizes;
  /// The sequences' places in the batch, by falling length, and the reverse; empty if the batch came sorted.
  std::vector<std::int64_t> sorted_indices{};
  std::vector<std::int64_t> unsorted_indices{};

  /// The length of each sequence, in the order of the batch.
  std::vector<std::int64_t> lengths() const;
};

/// input: [l, n, ...], or [n, l, ...] with batch_first; what lies behind a sequence's length is left out. Throws
/// ValueError for lengths below 1 or, with enforce_sorted, lengths that rise.
PackedSequence pack_padded_sequence(const Tensor& input, const std::vector<std::int64_t>& lengths,
                                    bool batch_first = false, bool enforce_sorted = true);
/// As above; reads `lengths`, a vector of integers.
PackedSequence pack_padded_sequence(const Tensor& input, const Tensor& lengths, bool batch_first = false,
                                    bool enforce_sorted = true);

struct PaddedSequence {
  Tensor output;
  std::vector<std::int64_t> lengths;
};
struct PadPackedOptions {
  bool batch_first = false;
  double padding_value = 0;
  /// The length of the result, that of the longest sequence if not given.
  std::optional<std::int64_t> total_length{};
};
/// The inverse of pack_padded_sequence, in the order of the batch.
PaddedSequence pad_packed_sequence(const PackedSequence& sequence, const PadPackedOptions& options = {});

/// Sequences [l_i, ...] side by side: [longest, n, ...], or [n, longest, ...] with batch_first.
Tensor pad_sequence(const std::vector<Tensor>& sequences, bool batch_first = false, double padding_value = 0);
/// pack_padded_sequence of pad_sequence.
PackedSequence pack_sequence(const std::vector<Tensor>& sequences, bool enforce_sorted = true);

}  // namespace russet::nn
