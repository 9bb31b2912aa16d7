#pragma once
// What the readers of tokenizer.json, vocab.txt and vocab.json share.
#include "text/json_node.h"
#include "text/tokenizer_parts.h"

namespace russet::text {

/// The largest file that is read: some ten times that of the largest vocabularies in use.
inline constexpr std::uint64_t max_tokenizer_bytes = std::uint64_t{256} << 20;

inline std::string_view text_of(std::span<const std::byte> file) {
  return {reinterpret_cast<const char*>(file.data()), file.size()};
}

/// Reads {"token": id, ...}.
void read_vocabulary(const JsonNode& node, Vocabulary& vocabulary);

/// Collects the merges of a byte-level BPE.
class MergeReader {
 public:
  explicit MergeReader(const Vocabulary& vocabulary) : vocabulary_(vocabulary) {}
  /// Returns what is wrong with the merge, or nothing.
  std::string add(const std::string& left, const std::string& right);
  /// The same, from "left right".
  std::string add(std::string_view line);
  Merges take() { return std::move(merges_); }

 private:
  const Vocabulary& vocabulary_;
  Merges merges_;
  std::int32_t rank_ = 0;
};

}  // namespace russet::text
