#pragma once
// Samples that are token ids with a class.
#include <russet/data/dataset.h>

#include <cstdint>
#include <string>
#include <vector>

namespace russet::data {

struct TokenOptions {
  /// What shorter samples of a batch are padded with.
  std::int64_t pad_id = 0;
  /// Lengths of batches are rounded up to a multiple of it.
  std::int64_t pad_to_multiple_of = 1;
  /// The names of the classes, if they have any.
  std::vector<std::string> class_names{};
};

/// Sample i is ids[i], of any length, and labels[i]. A batch is padded to its longest sample: `input` and the field
/// `attention_mask` (1 for tokens, 0 for padding) are [rows, length], `target` is [rows], all int64.
class TokenDataset final : public FieldDataset {
 public:
  /// Throws ValueError for a sample without ids, for a label that is not from 0 to classes - 1, and unless there are as
  /// many labels as samples.
  TokenDataset(std::vector<std::vector<std::int64_t>> ids, std::vector<std::int64_t> labels, std::int64_t classes,
               TokenOptions options = {});

  std::int64_t size() const override { return static_cast<std::int64_t>(labels_.size()); }
  Sample sample(std::int64_t index, Random& random) const override;
  Collate collate() const override;
  std::vector<std::int64_t> lengths() const override;
  /// Of a batch of the longest sample.
  Field input() const override;
  Field target() const override { return {DType::int64, {}}; }
  std::int64_t classes() const override { return classes_; }
  std::vector<std::string> class_names() const override { return options_.class_names; }

 private:
  std::vector<std::vector<std::int64_t>> ids_;
  std::vector<std::int64_t> labels_;
  std::int64_t classes_;
  TokenOptions options_;
};

}  // namespace russet::data
