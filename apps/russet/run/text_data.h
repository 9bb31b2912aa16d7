#pragma once
// Text for models that take token ids.
#include <russet/data/parts.h>
#include <russet/text.h>

#include "options.h"
#include "run/task.h"

namespace russet::app {

/// How text becomes ids: as the weights had it, unless the arguments say otherwise.
TextForm text_form_of(const Arguments& arguments, const TextForm& known);

/// The tokenizer of --vocab. Throws ValueError if there is none or if it has ids that the card's model does not know,
/// FileError for a damaged file.
text::Tokenizer open_tokenizer(const Arguments& arguments, const Card& card);

/// Whether --data is text: trec:FILE or text:FILE.
bool is_text(const Arguments& arguments);

/// The files of --data and --test: questions with their classes, or, for a model that answers each token, texts whose
/// words are masked. Throws ValueError or FileError.
data::Parts open_text(const Arguments& arguments, const text::Tokenizer& tokenizer, const Card& card);

/// The ids of a text, as open_text's.
std::vector<std::int64_t> ids_of(const std::string& text, const text::Tokenizer& tokenizer, const TextForm& form);

}  // namespace russet::app
