#include <fmt/format.h>
#include <russet/error.h>
#include <russet/io/file.h>
#include <russet/text/masked_words.h>

#include <algorithm>
#include <string_view>

#include "text/lines.h"

namespace russet::text {

std::vector<std::string> parse_lines(std::span<const std::byte> file, std::string_view name) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  std::vector<std::string> lines;
  for_each_line(text, [&](std::string_view line, std::size_t) {
    if (line.find_first_not_of(" \t") != std::string_view::npos) lines.emplace_back(line);
  });
  if (lines.empty()) throw FileError(fmt::format("{}: there is no text", name));
  return lines;
}

std::vector<std::string> read_lines(const std::filesystem::path& path) {
  constexpr std::uint64_t max_bytes = std::uint64_t{1} << 32;
  return parse_lines(io::read_file(path, max_bytes), path.string());
}

data::MaskedTokenDataset masked_words_dataset(std::span<const std::string> texts, const Tokenizer& tokenizer,
                                              const MaskedWordsOptions& options) {
  const std::optional<std::int64_t> mask = tokenizer.token_to_id("[MASK]");
  if (!mask) throw ValueError("the vocabulary has no [MASK], by which words are masked");
  data::MaskingOptions masking{.mask_id = *mask,
                               .vocab_size = tokenizer.vocab_size(),
                               .pad_id = tokenizer.pad_id().value_or(0),
                               .pad_to_multiple_of = options.pad_to_multiple_of};
  for (const char* token : {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}) {
    if (const auto id = tokenizer.token_to_id(token)) masking.special_ids.push_back(*id);
  }
  const auto is_special = [&](std::int64_t id) {
    return std::find(masking.special_ids.begin(), masking.special_ids.end(), id) != masking.special_ids.end();
  };
  std::vector<std::vector<std::int64_t>> ids;
  for (const std::string& text : texts) {
    std::vector<std::int64_t> tokens = tokenizer.encode(text, options.encode).ids;
    if (!std::all_of(tokens.begin(), tokens.end(), is_special)) ids.push_back(std::move(tokens));
  }
  if (ids.empty()) throw ValueError("no text has a word that the vocabulary knows");
  return {std::move(ids), std::move(masking)};
}

}  // namespace russet::text
