#include "run/text_data.h"

#include <fmt/format.h>
#include <russet/error.h>

namespace russet::app {
namespace {

constexpr std::string_view kind = "trec:";
/// Batches whose lengths are alike share a plan, and products of such sizes run faster.
constexpr std::int64_t length_multiple = 8;

data::DatasetPtr read_questions(const std::filesystem::path& path, const text::Tokenizer& tokenizer,
                                const TextForm& form) {
  text::TrecOptions options;
  options.encode.max_length = form.max_length;
  if (form.max_length % length_multiple == 0) options.pad_to_multiple_of = length_multiple;
  return std::make_shared<const data::TokenDataset>(text::trec_dataset(text::read_trec(path), tokenizer, options));
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

data::Parts open_trec(const Arguments& arguments, const text::Tokenizer& tokenizer, const TextForm& form) {
  data::Parts parts;
  parts.train = read_questions(arguments.text("data").substr(kind.size()), tokenizer, form);
  if (arguments.has("test")) parts.test = read_questions(arguments.text("test"), tokenizer, form);
  return parts;
}

std::vector<std::int64_t> ids_of(const std::string& text, const text::Tokenizer& tokenizer, const TextForm& form) {
  return tokenizer.encode(text, {.max_length = form.max_length}).ids;
}

}  // namespace russet::app
