#include <gtest/gtest.h>
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
