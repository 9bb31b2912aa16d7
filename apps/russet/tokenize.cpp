// russet tokenize: a line of text in, a line of ids out.
#include <russet/text.h>

#include <cstdio>
#include <iostream>
#include <iterator>

#include "command.h"

namespace russet::app {
namespace {

text::EncodeOptions encode_options(const Arguments& arguments) {
  text::EncodeOptions options;
  options.add_special_tokens = arguments.flag("special-tokens");
  if (arguments.has("max-length")) options.max_length = arguments.integer("max-length");
  return options;
}

void print_ids(const std::vector<std::int64_t>& ids, std::string& line) {
  line.clear();
  for (const std::int64_t id : ids) fmt::format_to(std::back_inserter(line), "{} ", id);
  if (!line.empty()) line.pop_back();
  line += '\n';
  std::fwrite(line.data(), 1, line.size(), stdout);
}

}  // namespace

void run_tokenize(const Arguments& arguments) {
  const text::BertOptions bert{.lowercase = arguments.flag("lowercase")};
  const text::Tokenizer tokenizer = text::Tokenizer::from_file(arguments.text("vocab"), bert);
  const text::EncodeOptions options = encode_options(arguments);
  std::ios::sync_with_stdio(false);
  std::string line;
  std::string ids;
  while (std::getline(std::cin, line)) print_ids(tokenizer.encode(line, options).ids, ids);
}

}  // namespace russet::app
