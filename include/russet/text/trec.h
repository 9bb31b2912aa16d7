#pragma once
// TREC's question classification (Li and Roth, 2002): a question a line, behind its class: "NUM:date When was ... ?".
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

}  // namespace russet::text
