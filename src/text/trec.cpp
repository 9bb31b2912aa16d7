#include <fmt/format.h>
#include <russet/error.h>
#include <russet/io/file.h>
#include <russet/text/trec.h>

#include <algorithm>
#include <iterator>

#include "text/lines.h"

namespace russet::text {
namespace {

constexpr std::string_view coarse_classes[] = {"ABBR", "ENTY", "DESC", "HUM", "LOC", "NUM"};
constexpr std::string_view fine_classes[] = {
    "ABBR:abb",    "ABBR:exp",     "ENTY:animal",   "ENTY:body",   "ENTY:color",     "ENTY:cremat", "ENTY:currency",
    "ENTY:dismed", "ENTY:event",   "ENTY:food",     "ENTY:instru", "ENTY:lang",      "ENTY:letter", "ENTY:other",
    "ENTY:plant",  "ENTY:product", "ENTY:religion", "ENTY:sport",  "ENTY:substance", "ENTY:symbol", "ENTY:techmeth",
    "ENTY:termeq", "ENTY:veh",     "ENTY:word",     "DESC:def",    "DESC:desc",      "DESC:manner", "DESC:reason",
    "HUM:gr",      "HUM:ind",      "HUM:title",     "HUM:desc",    "LOC:city",       "LOC:country", "LOC:mount",
    "LOC:other",   "LOC:state",    "NUM:code",      "NUM:count",   "NUM:date",       "NUM:dist",    "NUM:money",
    "NUM:ord",     "NUM:other",    "NUM:perc",      "NUM:period",  "NUM:speed",      "NUM:temp",    "NUM:volsize",
    "NUM:weight"};
static_assert(std::size(fine_classes) == 50);

/// The place of a class, or the number of classes.
std::int64_t place_of(std::string_view name, std::span<const std::string_view> classes) {
  return std::find(classes.begin(), classes.end(), name) - classes.begin();
}

TrecQuestion parse_line(std::string_view line, std::string_view file, std::size_t number) {
  const std::size_t space = line.find(' ');
  const std::string_view name = line.substr(0, space);
  const std::string_view text = space == std::string_view::npos ? std::string_view() : line.substr(space + 1);
  TrecQuestion question{std::string(text), place_of(name.substr(0, name.find(':')), coarse_classes),
                        place_of(name, fine_classes)};
  if (question.fine == std::ssize(fine_classes)) {
    constexpr std::size_t shown = 40;
    throw FileError(fmt::format("{}: line {}: \"{}\" is none of TREC's classes (such as NUM:date)", file, number,
                                name.substr(0, shown)));
  }
  if (text.find_first_not_of(" \t") == std::string_view::npos) {
    throw FileError(fmt::format("{}: line {}: there is no question behind its class", file, number));
  }
  return question;
}

}  // namespace

std::span<const std::string_view> trec_coarse_classes() { return coarse_classes; }
std::span<const std::string_view> trec_fine_classes() { return fine_classes; }

std::vector<TrecQuestion> parse_trec(std::span<const std::byte> file, std::string_view name) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  std::vector<TrecQuestion> questions;
  for_each_line(
      text, [&](std::string_view line, std::size_t number) { questions.push_back(parse_line(line, name, number)); });
  if (questions.empty()) throw FileError(fmt::format("{}: there is no question", name));
  return questions;
}

data::TokenDataset trec_dataset(std::span<const TrecQuestion> questions, const Tokenizer& tokenizer,
                                const TrecOptions& options) {
  const std::span<const std::string_view> classes = options.fine ? trec_fine_classes() : trec_coarse_classes();
  std::vector<std::vector<std::int64_t>> ids;
  std::vector<std::int64_t> labels;
  for (const TrecQuestion& question : questions) {
    ids.push_back(tokenizer.encode(question.text, options.encode).ids);
    labels.push_back(options.fine ? question.fine : question.coarse);
  }
  return {std::move(ids),
          std::move(labels),
          std::ssize(classes),
          {.pad_id = tokenizer.pad_id().value_or(0),
           .pad_to_multiple_of = options.pad_to_multiple_of,
           .class_names = {classes.begin(), classes.end()}}};
}

std::vector<TrecQuestion> read_trec(const std::filesystem::path& path) {
  constexpr std::uint64_t max_bytes = std::uint64_t{1} << 30;
  return parse_trec(io::read_file(path, max_bytes), path.string());
}

}  // namespace russet::text
