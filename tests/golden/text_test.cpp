// Tokenizers give the ids and the text that Hugging Face's give (scripts/golden/text.py).
#include <gtest/gtest.h>
#include <russet/text.h>

#include "calls/golden.h"

namespace golden {
namespace {

using russet::text::EncodeOptions;
using russet::text::Encoding;
using russet::text::Tokenizer;
using russet::text::TruncationSide;
using russet::text::TruncationStrategy;
using Ids = std::vector<std::int64_t>;

const Json& record() {
  static const Json json = read_json("text.json.gz");
  return json;
}

Tokenizer tokenizer_of(const Json& entry, const std::string& name) {
  const std::string file = entry.at("file").dump();
  return Tokenizer::from_json(std::as_bytes(std::span(file)), name);
}

/// The record has bytes as the characters of the same numbers, for not all lines are UTF-8.
std::string bytes_of(const std::string& characters) {
  std::string bytes;
  for (std::size_t i = 0; i < characters.size(); ++i) {
    const auto byte = static_cast<unsigned char>(characters[i]);
    bytes += byte < 0x80 ? characters[i] : static_cast<char>((byte & 0x03) << 6 | (characters[++i] & 0x3F));
  }
  return bytes;
}

TEST(Tokenizers, IdsAndTextAreHuggingFaces) {
  std::vector<std::string> lines;
  for (const Json& line : record().at("lines")) lines.push_back(bytes_of(line));
  for (const auto& [name, entry] : record().at("tokenizers").items()) {
    const Tokenizer tokenizer = tokenizer_of(entry, name);
    const Json& cases = entry.at("cases");
    ASSERT_EQ(cases.size() + 1, lines.size());
    for (std::size_t i = 0; i < cases.size(); ++i) {
      const Encoding single = tokenizer.encode(lines[i]);
      const Encoding pair = tokenizer.encode(lines[i], lines[i + 1]);
      EXPECT_EQ(single.ids, cases[i].at("ids").get<Ids>()) << name << ", line " << i;
      EXPECT_EQ(pair.ids, cases[i].at("pair_ids").get<Ids>()) << name << ", line " << i;
      EXPECT_EQ(pair.type_ids, cases[i].at("pair_types").get<Ids>()) << name << ", line " << i;
      EXPECT_EQ(tokenizer.decode(single.ids), cases[i].at("text").get<std::string>()) << name << ", line " << i;
      EXPECT_EQ(tokenizer.decode(single.ids, false), cases[i].at("special").get<std::string>()) << name << ", " << i;
    }
  }
}

TEST(Tokenizers, TruncationIsHuggingFaces) {
  for (const auto& [name, entry] : record().at("tokenizers").items()) {
    const Tokenizer tokenizer = tokenizer_of(entry, name);
    for (const Json& row : entry.at("truncated")) {
      EncodeOptions options{.max_length = row[0].get<std::int64_t>()};
      if (row[1] == "only_first") options.truncation = TruncationStrategy::only_first;
      if (row[2] == "left") options.truncation_side = TruncationSide::left;
      EXPECT_EQ(tokenizer.encode(record().at("truncated_text").get<std::string>(), options).ids, row[3].get<Ids>())
          << name << " " << row;
      if (row[4].is_null()) continue;
      EXPECT_EQ(tokenizer.encode("one two three four five six", "seven eight nine", options).ids, row[4].get<Ids>())
          << name << " " << row;
    }
  }
}

}  // namespace
}  // namespace golden
