// Any input is read or refused by a FileError; classes are of the lists.
#include <russet/error.h>
#include <russet/text/trec.h>

#include <cstddef>
#include <cstdint>
#include <span>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    for (const auto& question : russet::text::parse_trec(std::as_bytes(std::span(data, size)), "input")) {
      if (question.text.empty() || question.coarse < 0 || question.coarse > 5) __builtin_trap();
      if (question.fine < 0 || question.fine > 49) __builtin_trap();
    }
  } catch (const russet::FileError&) {
  }
  return 0;
}
