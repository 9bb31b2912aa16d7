#pragma once
// TREC's question classification (Li and Roth, 2002): a question a line, behind its class: "NUM:date When was ... ?".
#include <russet/data/tokens.h>
#include <russet/text/tokenizer.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace russet::text {

struct TrecQuestion {
  std::string text;
  std::int64_t coarse = 0;  // of trec_coarse_classes()
  std::int64_t fine = 0;    // of trec_fine_classes()
};

/// ABBR, ENTY, DESC, HUM, LOC, NUM: in the order of Hugging Face's data set `trec`, as are the 50 fine ones.
std::span<const std::string_view> trec_coarse_classes();
std::span<const std::string_view> trec_fine_classes();

/// The questions of a label file. Throws FileError, with the number of the line, for a line that is damaged.
/// The published files have a few bytes that are no UTF-8; a tokenizer reads them as U+FFFD.
std::vector<TrecQuestion> parse_trec(std::span<const std::byte> file, std::string_view name);
std::vector<TrecQuestion> read_trec(const std::filesystem::path& path);

struct TrecOptions {
  /// Labels are the 50 fine classes, not the 6 coarse ones.
  bool fine = false;
  EncodeOptions encode{};
  /// Lengths of batches are rounded up to a multiple of it.
  std::int64_t pad_to_multiple_of = 1;
};

/// The questions as ids, padded with the tokenizer's padding token. Throws ValueError for a question that has no id.
data::TokenDataset trec_dataset(std::span<const TrecQuestion> questions, const Tokenizer& tokenizer,
                                const TrecOptions& options = {});

}  // namespace russet::text
