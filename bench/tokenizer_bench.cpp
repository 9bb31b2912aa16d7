// Tokens a second, in one thread: tokenizer_bench VOCAB TEXT prints the tokens of TEXT's lines and the seconds of
// the processor that they take. scripts/golden/text.py runs it beside Hugging Face's. Without arguments: words of its
// own.
#include <fmt/format.h>
#include <russet/text.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <exception>
#include <fstream>

namespace {

using russet::text::Tokenizer;

constexpr std::string_view own_vocabulary = "[UNK]\n[CLS]\n[SEP]\nwhat\nis\na\nto\n##ken\n##s\n?\n";

Tokenizer own_tokenizer() { return Tokenizer::from_vocab_txt(std::as_bytes(std::span(own_vocabulary)), "vocab.txt"); }

std::vector<std::string> lines_of(const char* path) {
  std::vector<std::string> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

void measure(const Tokenizer& tokenizer, const std::vector<std::string>& lines) {
  std::size_t tokens = 0;
  double seconds = 1e9;
  for (int round = 0; round < 5; ++round) {
    const std::clock_t start = std::clock();
    tokens = 0;
    for (const std::string& line : lines) tokens += tokenizer.encode(line).ids.size();
    seconds = std::min(seconds, static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
  }
  fmt::print("{} {}\n", tokens, seconds);
}

}  // namespace

int main(int count, char** arguments) {
  try {
    const bool given = count == 3;
    measure(given ? Tokenizer::from_file(arguments[1]) : own_tokenizer(),
            given ? lines_of(arguments[2]) : std::vector<std::string>(100'000, "What is a token?"));
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
  return 0;
}
