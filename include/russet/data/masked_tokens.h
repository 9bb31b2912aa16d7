#pragma once
// Samples that are token ids, some of which are masked, to be told from the others: BERT's masked words.
#include <russet/data/dataset.h>

#include <cstdint>
#include <vector>

namespace russet::data {

/// The target of tokens that are as they were: cross_entropy's usual ignore_index.
inline constexpr std::int64_t unmasked = -100;

struct MaskingOptions {
  /// The share of a sample's tokens that is to be told: rounded, and at least one of them.
  double share = 0.15;
  /// Of these: replaced by mask_id, and replaced by any token; the rest stays as it is.
  double masked = 0.8;
  double replaced = 0.1;
  std::int64_t mask_id = 0;
  /// Tokens are below it.
  std::int64_t vocab_size = 0;
  /// What is never to be told, such as separators and padding.
  std::vector<std::int64_t> special_ids{};
  /// What shorter samples of a batch are padded with.
  std::int64_t pad_id = 0;
  /// Lengths of batches are rounded up to a multiple of it.
  std::int64_t pad_to_multiple_of = 1;
};

/// Sample i is ids[i], masked anew each time that it is read (Devlin et al. 2018, 3.1). A batch is padded to its
/// longest sample: `input`, `target` (what the token was where it is to be told, else `unmasked`) and the field
/// `attention_mask` are [rows, length], int64.
class MaskedTokenDataset final : public FieldDataset {
 public:
  /// Throws ValueError for a sample without a token that may be masked, for ids outside the vocabulary, and for shares
  /// that are none.
  MaskedTokenDataset(std::vector<std::vector<std::int64_t>> ids, MaskingOptions options);

  std::int64_t size() const override { return static_cast<std::int64_t>(ids_.size()); }
  Sample sample(std::int64_t index, Random& random) const override;
  Collate collate() const override;
  std::vector<std::int64_t> lengths() const override;
  /// Of a batch of the longest sample, as is target().
  Field input() const override;
  Field target() const override { return input(); }

 private:
  bool is_special(std::int64_t id) const;

  std::vector<std::vector<std::int64_t>> ids_;
  MaskingOptions options_;
};

}  // namespace russet::data
