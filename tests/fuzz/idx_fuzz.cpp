// Any input is read or refused by a FileError; it never crashes, hangs or takes memory that it has no claim to.
#include <russet/error.h>
#include <russet/io/idx.h>

#include <cstddef>
#include <cstdint>
#include <span>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto file = std::as_bytes(std::span(data, size));
  try {
    const auto array = russet::io::parse_idx(file, "input", std::uint64_t{16} << 20);
    if (array.bytes.size() != static_cast<std::size_t>(russet::numel(array.shape)) * russet::size_of(array.dtype)) {
      __builtin_trap();
    }
  } catch (const russet::FileError&) {
  }
  return 0;
}
