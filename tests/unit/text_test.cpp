// Each step from bytes to ids, against what Unicode and Hugging Face's documentation say of it. golden/text_test.cpp
// has whole tokenizers.
#include <gtest/gtest.h>
#include <russet/error.h>
#include <russet/text.h>

#include <thread>

#include "text/added_tokens.h"
#include "text/bert_normalizer.h"
#include "text/bpe.h"
#include "text/byte_level.h"
#include "text/decoder.h"
#include "text/post_processor.h"
#include "text/word_cache.h"
#include "text/word_piece.h"

namespace russet::text {
namespace {

using Words = std::vector<std::string>;

std::string replaced(std::string_view text) {
  std::string buffer;
  return std::string(with_replacements(text, buffer));
}

TEST(Utf8, ReplacesTheLongestBeginningOfACharacter) {
  const std::string mark = "\xEF\xBF\xBD";
  EXPECT_EQ(replaced("na\xC3\xAFve \xE6\x9D\xB1 \xF0\x9F\x98\x80"), "na\xC3\xAFve \xE6\x9D\xB1 \xF0\x9F\x98\x80");
  // The examples of Unicode 15, tables 3-8, 3-9 and 3-11.
  EXPECT_EQ(replaced("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41"),
            mark + mark + mark + mark + mark + mark + mark + mark + "A");
  EXPECT_EQ(replaced("\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41"),
            mark + mark + mark + mark + mark + mark + mark + mark + "A");
  EXPECT_EQ(replaced("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41"), mark + mark + mark + mark + "A");
  EXPECT_EQ(replaced("a\xF4\x90\x80\x80"), "a" + mark + mark + mark + mark);
  EXPECT_EQ(replaced("a\xE2\x82"), "a" + mark);
}

TEST(Utf8, WritesWhatItReads) {
  for (const char32_t character : {U'a', U'\u0080', U'\u07FF', U'\u0800', U'\uFFFD', U'\U00010000', U'\U0010FFFF'}) {
    std::string text;
    append_utf8(text, character);
    std::u32string back;
    append_characters(text, back);
    EXPECT_EQ(back, std::u32string(1, character));
  }
}

std::u32string after(void (*step)(std::u32string&), std::u32string text) {
  step(text);
  return text;
}

TEST(BertNormalizer, CleanTextRemovesControlsAndLevelsSpaces) {
  EXPECT_EQ(after(clean_text, U"a\tb\nc\rd\u00A0e\u3000f"), U"a b c d e f");
  EXPECT_EQ(after(clean_text, std::u32string(U"a\0b\u0007c\u007Fd\uFFFDe", 9)), U"abcde");
  EXPECT_EQ(after(clean_text, U"a\u200Bb\u200Dc\uFEFFd\u00ADe\uE000f"), U"abcdef");
  // White space by its property, and removed: its category is Cc.
  EXPECT_EQ(after(clean_text, U"a\u000Bb\u0085c"), U"abc");
}

TEST(BertNormalizer, ChineseCharactersStandAlone) {
  EXPECT_EQ(after(space_chinese_chars, U"a\u6771\u4EACb"), U"a \u6771  \u4EAC b");
  EXPECT_EQ(after(space_chinese_chars, U"\u3042\uAC00\u30AB"), U"\u3042\uAC00\u30AB");  // kana and hangul do not
  EXPECT_EQ(after(space_chinese_chars, U"\U0002A6DF\U0002A6E0"), U" \U0002A6DF \U0002A6E0");
}

TEST(BertNormalizer, StripAccentsDecomposesAndDropsMarks) {
  EXPECT_EQ(after(strip_accents, U"\u00E9\u00D6\u1EA4\u0041\u030A"), U"eOAA");
  EXPECT_EQ(after(strip_accents, U"\u00F8\u0142"), U"\u00F8\u0142");  // no decomposition
  EXPECT_EQ(after(strip_accents, U"\uAC01"), U"\u1100\u1161\u11A8");  // hangul falls into letters
  EXPECT_EQ(after(strip_accents, U"\u037E"), U";");
  EXPECT_EQ(after(strip_accents, U"\u0915\u0903"), U"\u0915\u0903");  // a spacing mark stays
}

TEST(BertNormalizer, DecompositionOrdersMarks) {
  // Classes 202, 220, 230: whatever their order was; marks of one class keep theirs.
  EXPECT_EQ(after(decompose, U"a\u0301\u0323\u0327"), U"a\u0327\u0323\u0301");
  EXPECT_EQ(after(decompose, U"a\u0301\u0300b\u0323"), U"a\u0301\u0300b\u0323");
  EXPECT_EQ(after(decompose, U"\u1E69"), U"s\u0323\u0307");
  EXPECT_EQ(after(decompose, U"\u0344\u0323"), U"\u0323\u0308\u0301");
}

TEST(BertNormalizer, LowercaseGoesCharacterByCharacter) {
  EXPECT_EQ(after(lowercase, U"AZ\u00C9\u0416\u03A3"), U"az\u00E9\u0436\u03C3");
  EXPECT_EQ(after(lowercase, U"\u0130"), U"i\u0307");
  EXPECT_EQ(after(lowercase, U"\u1E9E\u00DF"), U"\u00DF\u00DF");
  EXPECT_EQ(after(lowercase, U"\uA7CB\U00016EA0"), U"\u0264\U00016EBB");  // of Unicode 16 and 17
}

Words bert_words(std::u32string_view text) {
  Words words;
  for_each_bert_word(text, CharacterTable::get(), [&](std::string_view word) { words.emplace_back(word); });
  return words;
}

TEST(BertPreTokenizer, SplitsAtSpacesAndIsolatesPunctuation) {
  EXPECT_EQ(bert_words(U"Hey friend!     How are you?!?"),
            (Words{"Hey", "friend", "!", "How", "are", "you", "?", "!", "?"}));
  EXPECT_EQ(bert_words(U"$5+x\u2014y\u3002"), (Words{"$", "5", "+", "x", "\u2014", "y", "\u3002"}));
  EXPECT_EQ(bert_words(U" \t "), Words{});
}

Words pieces(std::string_view text) {
  const ByteLevelSplitter splitter;
  Words words;
  while (!text.empty()) {
    const std::size_t length = splitter.piece_length(text);
    words.emplace_back(text.substr(0, length));
    text.remove_prefix(length);
  }
  return words;
}

TEST(ByteLevel, SplitsAsThePatternDoes) {
  EXPECT_EQ(pieces("Hello my friend, how is your day going?"),
            (Words{"Hello", " my", " friend", ",", " how", " is", " your", " day", " going", "?"}));
  EXPECT_EQ(pieces("I'll they've don't 'sx 'S"),
            (Words{"I", "'ll", " they", "'ve", " don", "'t", " '", "sx", " '", "S"}));
  EXPECT_EQ(pieces("a   b \n c  "), (Words{"a", "  ", " b", " \n", " c", "  "}));
  EXPECT_EQ(pieces("a\n\nb\u3000\u3000c"), (Words{"a", "\n", "\n", "b", "\u3000", "\u3000", "c"}));
  EXPECT_EQ(pieces("x1y\u00BD\u4E00!\u20AC"), (Words{"x", "1", "y", "\u00BD", "\u4E00", "!\u20AC"}));
  EXPECT_EQ(pieces("''s ''"), (Words{"''", "s", " ''"}));
}

Vocabulary vocabulary_of(const Words& tokens) {
  Vocabulary vocabulary;
  for (const std::string& token : tokens) vocabulary.add(token, static_cast<TokenId>(vocabulary.size()));
  return vocabulary;
}

Ids word_piece(const Words& tokens, std::string_view word, std::int64_t max_chars = 100) {
  const Vocabulary vocabulary = vocabulary_of(tokens);
  Ids ids;
  WordPiece(vocabulary, {.unknown = 0, .max_input_chars_per_word = max_chars}).tokenize(word, ids);
  return ids;
}

TEST(WordPiece, TakesTheLongestToken) {
  const Words tokens{"[UNK]", "un", "##aff", "##able", "##a", "##affa", "u", "\u00E9", "##\u00E9"};
  EXPECT_EQ(word_piece(tokens, "unaffable"), (Ids{0}));  // ##affa leaves bble: no way back
  EXPECT_EQ(word_piece(tokens, "unaff"), (Ids{1, 2}));
  EXPECT_EQ(word_piece(tokens, "unaable"), (Ids{1, 4, 3}));
  EXPECT_EQ(word_piece(tokens, "uz"), (Ids{0}));
  EXPECT_EQ(word_piece(tokens, "\u00E9\u00E9\u00E9", 3), (Ids{7, 8, 8}));
  EXPECT_EQ(word_piece(tokens, "\u00E9\u00E9\u00E9\u00E9", 3), (Ids{0}));
}

TEST(WordPiece, FindsTokensOfAnyLength) {
  for (const std::size_t length : {31, 32, 33, 64, 65, 100}) {
    const Words tokens{"[UNK]", std::string(length, 'a'), "a", "##a"};
    EXPECT_EQ(word_piece(tokens, std::string(length, 'a')), Ids{1}) << length;
    EXPECT_EQ(word_piece(tokens, std::string(length + 1, 'a'), 101), (Ids{1, 3})) << length;
  }
}

TEST(Bpe, MergesTheLowestRankFirst) {
  const Vocabulary vocabulary = vocabulary_of({"a", "b", "c", "ab", "bc", "abc", "aa"});
  const auto tokenize = [&](std::string_view word, const BpeOptions& options = {}) {
    Merges merges{
        {merge_key(1, 2), {0, 4}}, {merge_key(0, 1), {1, 3}}, {merge_key(0, 4), {2, 5}}, {merge_key(0, 0), {3, 6}}};
    Ids ids;
    Bpe(vocabulary, std::move(merges), options).tokenize(word, ids);
    return ids;
  };
  EXPECT_EQ(tokenize("abc"), Ids{5});
  EXPECT_EQ(tokenize("abab"), (Ids{3, 3}));
  EXPECT_EQ(tokenize("aaa"), (Ids{6, 0}));
  EXPECT_EQ(tokenize("axxb"), Ids{3});  // x has no token: dropped
  EXPECT_EQ(tokenize("axxb", {.unknown = 2}), (Ids{0, 2, 2, 1}));
  EXPECT_EQ(tokenize("axxb", {.unknown = 2, .fuse_unknown = true}), (Ids{0, 2, 1}));
}

Words split(const std::vector<AddedToken>& tokens, std::string_view text) {
  AddedTokenMatcher matcher;
  for (const AddedToken& token : tokens) matcher.add(token, token.content);
  Words parts;
  for (const TextPart& part : matcher.split(text)) {
    parts.push_back((part.added == no_token ? "" : std::to_string(part.added) + ":") + std::string(part.text));
  }
  return parts;
}

TEST(AddedTokens, AreFoundFromTheLeftTheLongestFirst) {
  const std::vector<AddedToken> tokens{
      {.id = 1, .content = "[M]"}, {.id = 2, .content = "[M][M]"}, {.id = 3, .content = "M]x"}};
  EXPECT_EQ(split(tokens, "a[M]b"), (Words{"a", "1:[M]", "b"}));
  EXPECT_EQ(split(tokens, "[M][M][M]x"), (Words{"2:[M][M]", "1:[M]", "x"}));
  EXPECT_EQ(split(tokens, "[m] [M"), (Words{"[m] [M"}));
  EXPECT_EQ(split(tokens, ""), Words{});
}

TEST(AddedTokens, TakeSpacesAndMindWords) {
  const AddedToken left{.id = 1, .content = "<l>", .lstrip = true};
  const AddedToken right{.id = 2, .content = "<r>", .rstrip = true};
  const AddedToken word{.id = 3, .content = "yes", .single_word = true};
  EXPECT_EQ(split({left, right}, "a \u3000<l> b <r> \u00A0c"),
            (Words{"a", "1: \u3000<l>", " b ", "2:<r> \u00A0", "c"}));
  EXPECT_EQ(split({left, right}, "<r>  <l>"), (Words{"2:<r>  ", "1:<l>"}));
  EXPECT_EQ(split({word}, "yes yesyes \u00E9yes yes\u0301 yes_ (yes)"),
            (Words{"3:yes", " yesyes \u00E9yes yes\u0301 yes_ (", "3:yes", ")"}));
}

Encoding processed(const Ids& first, Ids second, const EncodeOptions& options) {
  return post_process(bert_processing(101, 102), first, second.empty() ? nullptr : &second, options);
}

TEST(PostProcessor, PutsSpecialTokensAroundSequences) {
  const Encoding single = processed({1, 2}, {}, {});
  EXPECT_EQ(single.ids, (std::vector<std::int64_t>{101, 1, 2, 102}));
  const Encoding pair = processed({1, 2}, {3}, {});
  EXPECT_EQ(pair.ids, (std::vector<std::int64_t>{101, 1, 2, 102, 3, 102}));
  EXPECT_EQ(pair.type_ids, (std::vector<std::int64_t>{0, 0, 0, 0, 1, 1}));
  EXPECT_EQ(pair.attention_mask, std::vector<std::int64_t>(6, 1));
  EXPECT_EQ(processed({1, 2}, {3}, {.add_special_tokens = false}).ids, (std::vector<std::int64_t>{1, 2, 3}));
}

TEST(PostProcessor, CutsToTheLengthThatIsAskedFor) {
  const Ids first{1, 2, 3, 4, 5};
  const Ids second{6, 7, 8};
  const auto ids = [&](const EncodeOptions& options, bool pair = true) {
    return processed(first, pair ? second : Ids{}, options).ids;
  };
  using Row = std::vector<std::int64_t>;
  EXPECT_EQ(ids({.max_length = 4}, false), (Row{101, 1, 2, 102}));
  EXPECT_EQ(ids({.max_length = 4, .truncation_side = TruncationSide::left}, false), (Row{101, 4, 5, 102}));
  EXPECT_EQ(ids({.max_length = 9}), (Row{101, 1, 2, 3, 102, 6, 7, 8, 102}));
  EXPECT_EQ(ids({.max_length = 8}), (Row{101, 1, 2, 3, 102, 6, 7, 102}));
  EXPECT_EQ(ids({.max_length = 9, .truncation = TruncationStrategy::only_second}),
            (Row{101, 1, 2, 3, 4, 5, 102, 6, 102}));
  EXPECT_EQ(ids({.max_length = 3}), (Row{101, 102, 102}));
  EXPECT_THROW(ids({.max_length = 2}), ValueError);
  EXPECT_THROW(ids({.max_length = 6, .truncation = TruncationStrategy::only_second}), ValueError);
  EXPECT_THROW(ids({.max_length = 4, .truncation = TruncationStrategy::only_second}, false), ValueError);
}

TEST(Decoder, JoinsTokens) {
  const Decoder word_piece{.kind = Decoder::Kind::word_piece};
  EXPECT_EQ(decode(word_piece, {"##ing", "read", "##s", ",", "don", "'", "t", "?"}), "##ing reads, don ' t?");
  EXPECT_EQ(decode({.kind = Decoder::Kind::word_piece, .cleanup = false}, {"read", "##s", "?"}), "reads ?");
  EXPECT_EQ(decode({.kind = Decoder::Kind::byte_level}, {"Hello", "\u0120my", "\u00C3", "\u00A9", "\u4E00"}),
            "Hello my\u00E9\u4E00");
  EXPECT_EQ(decode({.kind = Decoder::Kind::byte_level}, {"a", "\u00C3"}), "a\uFFFD");
  EXPECT_EQ(decode({}, {"a", "b"}), "a b");
}

TEST(WordCache, AnswersTheSameWhenItIsFull) {
  WordCache cache;
  const auto tokenize = [](std::string_view word, Ids& ids) {
    for (std::size_t i = 0; i < word.size() % 3; ++i) ids.push_back(std::stoi(std::string(word)));
  };
  for (int round = 0; round < 2; ++round) {
    for (int number = 0; number < 100'000; ++number) {
      const std::string word = std::to_string(number % 70'000);
      Ids found{7};
      Ids expected{7};
      cache.append(word, found, tokenize);
      tokenize(word, expected);
      ASSERT_EQ(found, expected) << word;
    }
  }
}

constexpr std::string_view small_vocabulary =
    "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nwhat\nis\na\nto\n##ken\n##s\n?\ncafe\n";

Tokenizer small_tokenizer(const BertOptions& options = {}) {
  return Tokenizer::from_vocab_txt(std::as_bytes(std::span(small_vocabulary)), "vocab.txt", options);
}

TEST(Tokenizer, TextToIdsAndBack) {
  const Tokenizer tokenizer = small_tokenizer();
  EXPECT_EQ(tokenizer.vocab_size(), 13);
  EXPECT_EQ(tokenizer.token_to_id("[MASK]"), 4);
  EXPECT_EQ(tokenizer.token_to_id("cat"), std::nullopt);
  EXPECT_EQ(tokenizer.pad_id(), 0);
  EXPECT_EQ(tokenizer.id_to_token(9), "##ken");
  EXPECT_EQ(tokenizer.id_to_token(-1), std::nullopt);
  const Encoding encoding = tokenizer.encode("What IS a [MASK] tokens? Caf\u00E9 \x80");
  EXPECT_EQ(encoding.ids, (std::vector<std::int64_t>{2, 5, 6, 7, 4, 8, 9, 10, 11, 12, 3}));
  EXPECT_EQ(tokenizer.decode(encoding.ids), "what is a tokens? cafe");
  EXPECT_EQ(tokenizer.decode(encoding.ids, false), "[CLS] what is a [MASK] tokens? cafe [SEP]");
  EXPECT_EQ(small_tokenizer({.lowercase = false}).encode("What is").ids, (std::vector<std::int64_t>{2, 1, 6, 3}));
  EXPECT_EQ(tokenizer.encode("").ids, (std::vector<std::int64_t>{2, 3}));
}

TEST(Tokenizer, ThreadsShareOne) {
  const Tokenizer tokenizer = small_tokenizer();
  const auto expected = tokenizer.encode("what is a tokens?").ids;
  std::vector<int> wrong(4);
  std::vector<std::thread> threads;
  for (int& count : wrong) {
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) count += tokenizer.encode("what is a tokens?").ids != expected;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4));
}

}  // namespace
}  // namespace russet::text
