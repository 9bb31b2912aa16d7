// Reads vocab.txt, and vocab.json with merges.txt: the vocabularies alone, whose tokenizers have the usual parts.
#include <fmt/format.h>
#include <russet/error.h>
#include <russet/io/file.h>

#include "text/lines.h"
#include "text/read_models.h"
#include "text/utf8.h"

namespace russet::text {
namespace {

using Parts = Tokenizer::Parts;

std::string_view without_spaces_at_end(std::string_view line) {
  while (!line.empty()) {
    std::size_t at = line.size() - 1;
    while (at > 0 && (line[at] & 0xC0) == 0x80) --at;
    std::size_t next = at;
    if (!is_space(next_character(line, next))) break;
    line = line.substr(0, at);
  }
  return line;
}

void read_lines(std::string_view text, std::string_view name, Vocabulary& vocabulary) {
  for_each_line(text, [&](std::string_view line, std::size_t number) {
    if (valid_length(line) != line.size()) throw FileError(fmt::format("{}: line {} is no UTF-8", name, number));
    const std::string token(without_spaces_at_end(line));
    if (token.empty()) return;  // nothing has its id
    if (vocabulary.add(token, static_cast<TokenId>(number - 1)) == Vocabulary::Added::yes) return;
    throw FileError(fmt::format("{}: line {}: the token \"{}\" is there twice, first in line {}", name, number, token,
                                vocabulary.find(token) + 1));
  });
}

}  // namespace

Tokenizer Tokenizer::from_vocab_txt(std::span<const std::byte> file, std::string_view name,
                                    const BertOptions& options) {
  auto parts = std::make_shared<Parts>();
  read_lines(text_of(file), name, parts->vocabulary);
  const auto require = [&](const char* token) {
    const TokenId id = parts->vocabulary.find(token);
    if (id == no_token) throw FileError(fmt::format("{}: there is no {}: no vocabulary of BERT's?", name, token));
    return id;
  };
  const BertNormalizerOptions normalizer{.handle_chinese_chars = options.handle_chinese_chars,
                                         .strip_accents = options.strip_accents.value_or(options.lowercase),
                                         .lowercase = options.lowercase};
  parts->encoder = make_bert_encoder(normalizer, WordPiece(parts->vocabulary, {.unknown = require("[UNK]")}));
  parts->post_processor = bert_processing(require("[CLS]"), require("[SEP]"));
  parts->decoder = {.kind = Decoder::Kind::word_piece};
  for (const char* const token : {"[UNK]", "[SEP]", "[CLS]", "[PAD]", "[MASK]"}) {
    if (parts->vocabulary.find(token) != no_token) parts->add({.content = token, .special = true});
  }
  return Tokenizer(std::move(parts));
}

Tokenizer Tokenizer::from_vocab_and_merges(std::span<const std::byte> vocab, std::string_view vocab_name,
                                           std::span<const std::byte> merges, std::string_view merges_name) {
  auto parts = std::make_shared<Parts>();
  const nlohmann::json json = parse_json(vocab, vocab_name);
  read_vocabulary(JsonNode(json, vocab_name), parts->vocabulary);
  MergeReader reader(parts->vocabulary);
  for_each_line(text_of(merges), [&](std::string_view line, std::size_t number) {
    if (line.starts_with("#version")) return;
    const std::string wrong = reader.add(line);
    if (!wrong.empty()) throw FileError(fmt::format("{}: line {}: {}", merges_name, number, wrong));
  });
  parts->encoder = make_byte_level_encoder({}, Bpe(parts->vocabulary, reader.take(), {}));
  parts->decoder = {.kind = Decoder::Kind::byte_level};
  return Tokenizer(std::move(parts));
}

Tokenizer Tokenizer::from_file(const std::filesystem::path& path, const BertOptions& options) {
  const std::string name = path.string();
  const std::vector<std::byte> file = io::read_file(path, max_tokenizer_bytes);
  if (path.extension() == ".txt") return from_vocab_txt(file, name, options);
  if (path.extension() != ".json") {
    throw FileError(fmt::format("{}: tokenizer.json, vocab.txt or vocab.json is expected", name));
  }
  if (options != BertOptions{}) {
    throw ValueError(fmt::format("{}: lower case, accents and the like can be chosen for vocab.txt alone", name));
  }
  const std::filesystem::path merges_path = path.parent_path() / "merges.txt";
  if (path.filename() != "vocab.json") return from_json(file, name);
  const std::vector<std::byte> merges = io::read_file(merges_path, max_tokenizer_bytes);
  return from_vocab_and_merges(file, name, merges, merges_path.string());
}

}  // namespace russet::text
