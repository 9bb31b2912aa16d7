#include "run/text_data.h"

#include <fmt/format.h>
#include <russet/error.h>

namespace russet::app {
namespace {

constexpr std::string_view questions = "trec:";
constexpr std::string_view lines = "text:";
/// Batches whose lengths are alike share a plan, and products of such sizes run faster.
constexpr std::int64_t length_multiple = 8;

std::int64_t multiple_of(const TextForm& form) { return form.max_length % length_multiple == 0 ? length_multiple : 1; }

data::DatasetPtr read_questions(const std::filesystem::path& path, const text::Tokenizer& tokenizer,
                                const TextForm& form) {
  text::TrecOptions options;
  options.encode.max_length = form.max_length;
  options.pad_to_multiple_of = multiple_of(form);
  return std::make_shared<const data::TokenDataset>(text::trec_dataset(text::read_trec(path), tokenizer, options));
}

data::DatasetPtr read_texts(const std::filesystem::path& path, bool are_questions, const text::Tokenizer& tokenizer,
                            const TextForm& form) {
  std::vector<std::string> texts;
  if (are_questions) {
    for (text::TrecQuestion& question : text::read_trec(path)) texts.push_back(std::move(question.text));
  } else {
    texts = text::read_lines(path);
  }
  text::MaskedWordsOptions options;
  options.encode.max_length = form.max_length;
  options.pad_to_multiple_of = multiple_of(form);
  return std::make_shared<const data::MaskedTokenDataset>(text::masked_words_dataset(texts, tokenizer, options));
}

}  // namespace

TextForm text_form_of(const Arguments& arguments, const TextForm& known) {
  TextForm form = known;
  if (arguments.has("max-length")) form.max_length = arguments.integer("max-length");
  if (arguments.has("lowercase") && !arguments.flag("lowercase")) form.lowercase = false;
  return form;
}

text::Tokenizer open_tokenizer(const Arguments& arguments, const Card& card) {
  const std::string path = arguments.text("vocab");
  if (path.empty()) throw ValueError("text needs --vocab: tokenizer.json, vocab.txt, or vocab.json beside merges.txt");
  text::Tokenizer tokenizer = text::Tokenizer::from_file(path, {.lowercase = card.text.value_or(TextForm{}).lowercase});
  const models::ModelSpec& spec = models::find_model(card.model);
  const std::int64_t known = spec.inputs(card.model_options()).front().limit;
  if (tokenizer.vocab_size() > known) {
    throw ValueError(
        fmt::format("{}: {} ids, but {} has embeddings for {}", path, tokenizer.vocab_size(), card.model, known));
  }
  return tokenizer;
}

bool is_text(const Arguments& arguments) {
  const std::string data = arguments.text("data");
  return data.starts_with(questions) || data.starts_with(lines);
}

data::Parts open_text(const Arguments& arguments, const text::Tokenizer& tokenizer, const Card& card) {
  const std::string data = arguments.text("data");
  const bool are_questions = data.starts_with(questions);
  const bool masked = models::find_model(card.model).answers_tokens;
  if (!masked && !are_questions) {
    throw ValueError(fmt::format("{}: its lines have no classes, which {} learns (bert_base_mlm learns masked words)",
                                 data, card.model));
  }
  const auto read = [&](const std::string& path) {
    return masked ? read_texts(path, are_questions, tokenizer, *card.text)
                  : read_questions(path, tokenizer, *card.text);
  };
  data::Parts parts;
  parts.train = read(data.substr(data.find(':') + 1));
  if (arguments.has("test")) parts.test = read(arguments.text("test"));
  return parts;
}

std::vector<std::int64_t> ids_of(const std::string& text, const text::Tokenizer& tokenizer, const TextForm& form) {
  return tokenizer.encode(text, {.max_length = form.max_length}).ids;
}

}  // namespace russet::app
