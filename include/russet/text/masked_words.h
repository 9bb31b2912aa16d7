#pragma once
// Text for models that learn masked words: a text a line, such as a sentence.
#include <russet/data/masked_tokens.h>
#include <russet/text/tokenizer.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace russet::text {

/// The lines of a file, without those that are empty or blank. Throws FileError if none is left.
std::vector<std::string> parse_lines(std::span<const std::byte> file, std::string_view name);
std::vector<std::string> read_lines(const std::filesystem::path& path);

struct MaskedWordsOptions {
  EncodeOptions encode{};
  /// Lengths of batches are rounded up to a multiple of it.
  std::int64_t pad_to_multiple_of = 1;
};

/// The texts as ids, to be masked as BERT's are; [PAD], [UNK], [CLS], [SEP] and [MASK] never are. Texts of such tokens
/// alone are left out. Throws ValueError for a tokenizer without [MASK], and if no text is left.
data::MaskedTokenDataset masked_words_dataset(std::span<const std::string> texts, const Tokenizer& tokenizer,
                                              const MaskedWordsOptions& options = {});

}  // namespace russet::text
