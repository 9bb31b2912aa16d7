// Any tokenizer.json or vocab.txt is read or refused by a FileError; one that is read takes any text, in bounded time.
#include <russet/error.h>
#include <russet/text/tokenizer.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace {

void use(const russet::text::Tokenizer& tokenizer, std::string_view text) {
  const auto ids = tokenizer.encode(text).ids;
  if (ids.size() > 4 * text.size() + 64 && ids.size() > 100'000) __builtin_trap();
  tokenizer.decode(ids);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto file = std::as_bytes(std::span(data, size));
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    if (text.starts_with('{')) {
      use(russet::text::Tokenizer::from_json(file, "input"), text);
    } else {
      use(russet::text::Tokenizer::from_vocab_txt(file, "input"), text);
    }
  } catch (const russet::FileError&) {
  }
  return 0;
}
