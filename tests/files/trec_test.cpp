#include <gtest/gtest.h>
#include <russet/data/loader.h>
#include <russet/error.h>
#include <russet/text/masked_words.h>
#include <russet/text/trec.h>

#include <cstdlib>

#include "files/damage.h"

namespace russet::files {
namespace {

std::vector<text::TrecQuestion> parse(std::string_view file) { return text::parse_trec(bytes_of(file), "t.label"); }

std::string error_of(std::string_view file) {
  return file_error([&] { parse(file); });
}

TEST(Trec, QuestionsAndClasses) {
  const auto questions = parse("DESC:manner How did serfdom develop ?\r\nNUM:date When ?\nENTY:cremat  Two spaces");
  ASSERT_EQ(questions.size(), 3);
  EXPECT_EQ(questions[0].text, "How did serfdom develop ?");
  EXPECT_EQ(text::trec_coarse_classes()[static_cast<std::size_t>(questions[0].coarse)], "DESC");
  EXPECT_EQ(text::trec_fine_classes()[static_cast<std::size_t>(questions[1].fine)], "NUM:date");
  EXPECT_EQ(questions[2].text, " Two spaces");
  EXPECT_EQ(text::trec_coarse_classes().size(), 6);
  EXPECT_EQ(text::trec_fine_classes().size(), 50);
}

TEST(Trec, EachFineClassIsOfACoarseOne) {
  for (const std::string_view name : text::trec_fine_classes()) {
    const auto question = parse(std::string(name) + " Why ?").at(0);
    EXPECT_EQ(text::trec_coarse_classes()[static_cast<std::size_t>(question.coarse)], name.substr(0, name.find(':')));
  }
}

TEST(Trec, ADamagedLineIsNamed) {
  const std::string good = "NUM:date When ?\n";
  EXPECT_EQ(error_of(""), "t.label: there is no question");
  EXPECT_EQ(error_of(good + "\n" + good), "t.label: line 2: \"\" is none of TREC's classes (such as NUM:date)");
  EXPECT_EQ(error_of(good + good + "NUM:dates When ?"),
            "t.label: line 3: \"NUM:dates\" is none of TREC's classes (such as NUM:date)");
  EXPECT_EQ(error_of("NUM When ?"), "t.label: line 1: \"NUM\" is none of TREC's classes (such as NUM:date)");
  EXPECT_EQ(error_of(good + "NUM:date\n"), "t.label: line 2: there is no question behind its class");
  EXPECT_EQ(error_of(good + "NUM:date  \n"), "t.label: line 2: there is no question behind its class");
  EXPECT_LT(error_of(std::string(100'000, 'x')).size(), 200);
}

TEST(Trec, BytesThatAreNoUtf8AreKept) { EXPECT_EQ(parse("ENTY:other What is\xF0 ?").at(0).text, "What is\xF0 ?"); }

text::Tokenizer small_tokenizer() {
  return text::Tokenizer::from_vocab_txt(bytes_of("[UNK]\n[CLS]\n[SEP]\n[PAD]\nwhat\nis\n?\nwhen\n"), "vocab.txt");
}

TEST(MaskedWords, LinesWithoutTextAreLeftOut) {
  EXPECT_EQ(text::parse_lines(bytes_of("one\r\n\n \t\n two\n"), "t"), (std::vector<std::string>{"one", " two"}));
  EXPECT_EQ(file_error([] { text::parse_lines(bytes_of("\n \n"), "t.txt"); }), "t.txt: there is no text");
  EXPECT_EQ(file_error([] { text::parse_lines({}, "t.txt"); }), "t.txt: there is no text");
}

TEST(MaskedWords, TextsOfKnownWordsAreTaken) {
  const auto tokenizer =
      text::Tokenizer::from_vocab_txt(bytes_of("[UNK]\n[CLS]\n[SEP]\n[PAD]\n[MASK]\nwhat\nis\n"), "vocab.txt");
  const std::vector<std::string> texts{"what is it", "nothing known", "[MASK] is", "is"};
  const auto set = text::masked_words_dataset(texts, tokenizer, {.encode = {.max_length = 4}});
  EXPECT_EQ(set.size(), 3);
  EXPECT_EQ(set.lengths(), (std::vector<std::int64_t>{4, 4, 3}));
  EXPECT_THROW(text::masked_words_dataset({texts.data() + 1, 1}, tokenizer), ValueError);
  EXPECT_THROW(text::masked_words_dataset(texts, small_tokenizer()), ValueError);
}

using Row = std::vector<std::int64_t>;

/// The batch of all samples.
data::Batch batch_of(const data::TokenDataset& set) {
  data::DataLoader loader(set, {.batch = set.size()});
  return *loader.next();
}

constexpr std::string_view questions = "DESC:def What is what ?\nNUM:date When ?\nENTY:other \x01\n";

TEST(TrecDataset, QuestionsAreIdsInPaddedBatches) {
  const data::TokenDataset set = text::trec_dataset(parse(questions), small_tokenizer());
  EXPECT_EQ(set.classes(), 6);
  EXPECT_EQ(set.class_names().at(2), "DESC");
  EXPECT_EQ(set.lengths(), (Row{6, 4, 2}));
  const data::Batch batch = batch_of(set);
  EXPECT_EQ(batch.input.sizes(), (Shape{3, 6}));
  EXPECT_EQ(batch.input.to_vector<std::int64_t>(), (Row{1, 4, 5, 4, 6, 2, 1, 7, 6, 2, 3, 3, 1, 2, 3, 3, 3, 3}));
  EXPECT_EQ(batch.fields.at("attention_mask").to_vector<std::int64_t>(),
            (Row{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 1, 1, 0, 0, 0, 0}));
  EXPECT_EQ(batch.target.to_vector<std::int64_t>(), (Row{2, 5, 1}));
}

TEST(TrecDataset, FineClassesAndShorterTexts) {
  const data::TokenDataset set = text::trec_dataset(
      parse(questions), small_tokenizer(), {.fine = true, .encode = {.max_length = 4}, .pad_to_multiple_of = 5});
  EXPECT_EQ(set.classes(), 50);
  const data::Batch batch = batch_of(set);
  EXPECT_EQ(batch.input.to_vector<std::int64_t>(), (Row{1, 4, 5, 2, 3, 1, 7, 6, 2, 3, 1, 2, 3, 3, 3}));
  EXPECT_EQ(batch.target.to_vector<std::int64_t>(), (Row{24, 39, 13}));
}

TEST(TrecDataset, AQuestionWithoutIdsIsRefused) {
  EXPECT_NO_THROW(
      text::trec_dataset(parse("NUM:date When ?"), small_tokenizer(), {.encode = {.add_special_tokens = false}}));
  EXPECT_THROW(text::trec_dataset(parse(questions), small_tokenizer(), {.encode = {.add_special_tokens = false}}),
               ValueError);
  EXPECT_THROW(text::trec_dataset(parse(questions), small_tokenizer(), {.encode = {.max_length = 1}}), ValueError);
}

TEST(Trec, RealFile) {
  const char* const folder = std::getenv("RUSSET_DATA");
  if (folder == nullptr) GTEST_SKIP() << "RUSSET_DATA is not set: it names a folder with TREC's train_5500.label";
  const std::filesystem::path path = std::filesystem::path(folder) / "train_5500.label";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << folder << " has no train_5500.label";
  const auto questions = text::read_trec(path);
  EXPECT_EQ(questions.size(), 5452);
  std::vector<int> counts(6);
  for (const auto& question : questions) ++counts[static_cast<std::size_t>(question.coarse)];
  // As Li and Roth count them: ABBR, ENTY, DESC, HUM, LOC, NUM.
  EXPECT_EQ(counts, (std::vector<int>{86, 1250, 1162, 1223, 835, 896}));
}

}  // namespace
}  // namespace russet::files
