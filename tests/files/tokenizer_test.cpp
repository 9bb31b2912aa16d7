// Damaged and foreign tokenizer files: one clear error each.
#include <gtest/gtest.h>
#include <russet/text/tokenizer.h>

#include <nlohmann/json.hpp>

#include "files/damage.h"

namespace russet::files {
namespace {

using nlohmann::json;
using text::Tokenizer;

json added(int id, const char* content) {
  return {{"id", id},        {"content", content},  {"single_word", false}, {"lstrip", false},
          {"rstrip", false}, {"normalized", false}, {"special", true}};
}

json word_piece_file() {
  return {{"version", "1.0"},
          {"added_tokens", {added(0, "[UNK]"), added(3, "[NEW]")}},
          {"normalizer",
           {{"type", "BertNormalizer"},
            {"clean_text", true},
            {"handle_chinese_chars", true},
            {"strip_accents", nullptr},
            {"lowercase", true}}},
          {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
          {"post_processor", {{"type", "BertProcessing"}, {"sep", {"b", 2}}, {"cls", {"a", 1}}}},
          {"decoder", {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}}},
          {"model",
           {{"type", "WordPiece"},
            {"unk_token", "[UNK]"},
            {"continuing_subword_prefix", "##"},
            {"max_input_chars_per_word", 100},
            {"vocab", {{"[UNK]", 0}, {"a", 1}, {"b", 2}}}}}};
}

json bpe_file() {
  return {{"added_tokens", json::array()},
          {"normalizer", nullptr},
          {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}}},
          {"model", {{"type", "BPE"}, {"vocab", {{"a", 0}, {"b", 1}, {"ab", 2}}}, {"merges", {"a b"}}}}};
}

std::vector<std::int64_t> ids_of(const json& file, std::string_view text) {
  return Tokenizer::from_json(bytes_of(file.dump()), "t.json").encode(text).ids;
}

/// The error for the file with the value at `place` replaced, or taken away where `value` is discarded.
std::string error_with(json file, const std::string& place, const json& value) {
  const json::json_pointer pointer(place);
  if (value.is_discarded()) {
    file.at(pointer.parent_pointer()).erase(pointer.back());
  } else {
    file[pointer] = value;
  }
  return file_error([&] { Tokenizer::from_json(bytes_of(file.dump()), "t.json"); });
}

const json taken_away(json::value_t::discarded);

TEST(TokenizerJson, GoodFilesAreRead) {
  EXPECT_EQ(ids_of(word_piece_file(), "A x [NEW]b"), (std::vector<std::int64_t>{1, 1, 0, 3, 2, 2}));
  EXPECT_EQ(ids_of(bpe_file(), "abba"), (std::vector<std::int64_t>{2, 1, 0}));
  json pairs = bpe_file();
  pairs["model"]["merges"] = json::parse(R"([["a", "b"]])");
  pairs["model"].erase("type");
  EXPECT_EQ(ids_of(pairs, "abba"), (std::vector<std::int64_t>{2, 1, 0}));
}

TEST(TokenizerJson, EachMissingKeyIsNamed) {
  for (const char* place : {"/model", "/model/vocab", "/model/unk_token", "/model/continuing_subword_prefix",
                            "/model/max_input_chars_per_word", "/normalizer/lowercase", "/decoder/prefix",
                            "/post_processor/cls", "/added_tokens/0/content", "/added_tokens/1/id"}) {
    const std::string key = json::json_pointer(place).back();
    EXPECT_NE(error_with(word_piece_file(), place, taken_away).find("there is no \"" + key + "\""), std::string::npos)
        << place;
  }
  EXPECT_EQ(error_with(bpe_file(), "/model/vocab", taken_away), "t.json: model: there is no \"vocab\"");
  EXPECT_EQ(error_with(bpe_file(), "/model/merges", taken_away), "t.json: model: there is no \"merges\"");
}

struct Damage {
  const char* place;
  json value;
  const char* message;
};

TEST(TokenizerJson, EachDamageIsSaid) {
  const Damage damages[] = {
      {"/version", "2.0", "t.json: version: russet reads version 1.0"},
      {"/model/type", "Unigram", "t.json: model: russet has WordPiece and BPE, not Unigram"},
      {"/model/vocab", 7, "t.json: model.vocab: an object is expected here"},
      {"/model/vocab", json::object(), "t.json: model.vocab: it is empty"},
      {"/model/vocab/a", -1, "t.json: model.vocab.a: a whole number from 0 to 2147483646 is expected here"},
      {"/model/vocab/a", 4e9, "t.json: model.vocab.a: a whole number from 0 to 2147483646 is expected here"},
      {"/model/vocab/a", 2, "t.json: model.vocab: \"a\" and \"b\" have the same id 2"},
      {"/model/unk_token", "[?]", "t.json: model.unk_token: \"[?]\" is not in the vocabulary"},
      {"/model/max_input_chars_per_word", "many",
       "t.json: model.max_input_chars_per_word: a whole number from 0 to 2147483647 is expected here"},
      {"/normalizer/type", "NFC",
       "t.json: normalizer: russet has BertNormalizer before WordPiece and nothing before BPE, not NFC"},
      {"/normalizer/lowercase", 1, "t.json: normalizer.lowercase: true or false is expected here"},
      {"/pre_tokenizer/type", "Whitespace",
       "t.json: pre_tokenizer: russet has BertPreTokenizer before WordPiece, not Whitespace"},
      {"/decoder/type", "CTC", "t.json: decoder: russet has WordPiece and ByteLevel, not CTC"},
      {"/post_processor/cls", {"a"}, "t.json: post_processor.cls: it has 1 entries; 2 are expected"},
      {"/added_tokens", 1, "t.json: added_tokens: a list is expected here"},
      {"/added_tokens/1/id", 9, "t.json: added_tokens.1: \"[NEW]\" has the id 3 by its place, and 9 by its entry"},
      {"/added_tokens/1/content", "[UNK]", "t.json: added_tokens.1: another added token looks for \"[UNK]\", too"},
  };
  for (const Damage& damage : damages)
    EXPECT_EQ(error_with(word_piece_file(), damage.place, damage.value), damage.message);
}

TEST(TokenizerJson, MergesMustBeOfTheVocabulary) {
  const auto merges_error = [](const json& merges) { return error_with(bpe_file(), "/model/merges", merges); };
  EXPECT_EQ(merges_error({"a b", "a x"}), "t.json: model.merges.1: \"x\" is not in the vocabulary");
  EXPECT_EQ(merges_error({"x a"}), "t.json: model.merges.0: \"x\" is not in the vocabulary");
  EXPECT_EQ(merges_error({"b a"}), "t.json: model.merges.0: \"ba\" is not in the vocabulary");
  EXPECT_EQ(merges_error({"ab"}), "t.json: model.merges.0: two tokens are expected, with a space between them");
  EXPECT_EQ(merges_error({"a b b"}), "t.json: model.merges.0: two tokens are expected, with a space between them");
  EXPECT_EQ(merges_error(json::parse(R"([["a"]])")), "t.json: model.merges.0: it has 1 entries; 2 are expected");
}

TEST(TokenizerJson, OtherBpeIsRefused) {
  const auto says = [](const char* place, const json& value, const char* message) {
    EXPECT_EQ(error_with(bpe_file(), place, value), message);
  };
  says("/model/end_of_word_suffix", "</w>",
       "t.json: model.end_of_word_suffix: russet has byte-level BPE, which has none");
  says("/model/byte_fallback", true, "t.json: model.byte_fallback: russet has byte-level BPE alone");
  says("/model/dropout", 0.1, "t.json: model.dropout: russet does not drop merges");
  says("/model/unk_token", "<unk>", "t.json: model.unk_token: \"<unk>\" is not in the vocabulary");
  says("/normalizer", {{"type", "NFC"}}, "t.json: normalizer: russet has none before BPE, not NFC");
  says("/pre_tokenizer", nullptr, "t.json: pre_tokenizer: russet has ByteLevel before BPE, not null");
}

std::string text_error(std::string_view text) {
  return file_error([&] { Tokenizer::from_json(bytes_of(text), "t.json"); });
}

TEST(TokenizerJson, WhatIsNoJsonIsSaid) {
  EXPECT_EQ(text_error(""), "t.json: it is no JSON from byte 1 on");
  EXPECT_EQ(text_error("[1, 2"), "t.json: it is no JSON from byte 6 on");
  EXPECT_EQ(text_error("[1]"), "t.json: an object is expected here");
  EXPECT_EQ(text_error("{\"a\": 1e999}"), "t.json: it has a number that is too large");
  EXPECT_EQ(text_error("{\"a\": \"\x80\"}"), "t.json: it is no JSON from byte 8 on");
  EXPECT_EQ(text_error(R"({"model": {"vocab": {"a": 0, "b": 1, "a": 2}}})"), "t.json: the key \"a\" is there twice");
  EXPECT_EQ(text_error(std::string(1'000'000, '[')), "t.json: it is nested deeper than 16 levels");
}

TEST(TokenizerJson, AnyDamageIsSurvived) {
  for (const json& file : {word_piece_file(), bpe_file()}) {
    const Bytes bytes = bytes_of(file.dump());
    const Parser parse = [](std::span<const std::byte> damaged) {
      Tokenizer::from_json(damaged, "t.json").encode("ab");
    };
    expect_truncations_refused(bytes, parse);
    EXPECT_GT(expect_flips_survived(bytes, parse, 1000), 500);
  }
}

std::string vocab_error(std::string_view vocab) {
  return file_error([&] { Tokenizer::from_vocab_txt(bytes_of(vocab), "vocab.txt"); });
}

TEST(VocabTxt, DamageIsSaid) {
  EXPECT_EQ(vocab_error(""), "vocab.txt: there is no [UNK]: no vocabulary of BERT's?");
  EXPECT_EQ(vocab_error("[UNK]\n[CLS]\n"), "vocab.txt: there is no [SEP]: no vocabulary of BERT's?");
  EXPECT_EQ(vocab_error("[UNK]\n[CLS]\na\n[SEP]\na \n"),
            "vocab.txt: line 5: the token \"a\" is there twice, first in line 3");
  EXPECT_EQ(vocab_error("[UNK]\n\xC3\n"), "vocab.txt: line 2 is no UTF-8");
}

TEST(VocabTxt, EmptyLinesKeepTheirIds) {
  const Tokenizer tokenizer = Tokenizer::from_vocab_txt(bytes_of("[UNK]\r\n\n[CLS]\n\u3000\n[SEP]\na"), "vocab.txt");
  EXPECT_EQ(tokenizer.encode("a").ids, (std::vector<std::int64_t>{2, 5, 4}));
  EXPECT_EQ(tokenizer.id_to_token(1), std::nullopt);
}

TEST(VocabJson, MergesAreReadBesideIt) {
  const TemporaryFolder folder;
  write(folder / "vocab.json", bytes_of(R"({"a": 0, "b": 1, "ab": 2})"));
  EXPECT_NE(file_error([&] { Tokenizer::from_file(folder / "vocab.json"); }).find("merges.txt: cannot open"),
            std::string::npos);
  write(folder / "merges.txt", bytes_of("#version: 0.2\na b\n"));
  EXPECT_EQ(Tokenizer::from_file(folder / "vocab.json").encode("abb").ids, (std::vector<std::int64_t>{2, 1}));
  EXPECT_THROW(Tokenizer::from_file(folder / "vocab.json", {.lowercase = false}), ValueError);
  write(folder / "merges.txt", bytes_of("#version: 0.2\na b\na\n"));
  EXPECT_NE(file_error([&] {
              Tokenizer::from_file(folder / "vocab.json");
            }).find("merges.txt: line 3: two tokens are expected, with a space between them"),
            std::string::npos);
}

TEST(TokenizerFile, OtherFilesAreRefused) {
  const TemporaryFolder folder;
  EXPECT_NE(file_error([&] { Tokenizer::from_file(folder / "nowhere.json"); }).find("cannot open"), std::string::npos);
  write(folder / "spiece.model", bytes_of("x"));
  EXPECT_NE(file_error([&] {
              Tokenizer::from_file(folder / "spiece.model");
            }).find("tokenizer.json, vocab.txt or vocab.json is expected"),
            std::string::npos);
  // A file that is too large is not read: it has a size, and nothing in it.
  write(folder / "huge.json", bytes_of(""));
  std::filesystem::resize_file(folder / "huge.json", std::uintmax_t{1} << 40);
  EXPECT_NE(
      file_error([&] { Tokenizer::from_file(folder / "huge.json"); }).find("more than the 268435456 that are read"),
      std::string::npos);
}

}  // namespace
}  // namespace russet::files
