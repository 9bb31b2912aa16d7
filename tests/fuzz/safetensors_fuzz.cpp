// Any input is read or refused by a FileError; it never crashes, hangs or takes memory that it has no claim to.
#include <russet/error.h>
#include <russet/io/safetensors.h>

#include <cstddef>
#include <cstdint>
#include <span>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto file = std::as_bytes(std::span(data, size));
  try {
    const auto header = russet::io::parse_safetensors(file, "input");
    for (const auto& entry : header.entries) {
      // What a reader would touch lies inside the file.
      if (header.data_begin + entry.end > size) __builtin_trap();
      if (static_cast<std::uint64_t>(russet::numel(entry.shape)) * russet::size_of(entry.dtype) !=
          entry.end - entry.begin) {
        __builtin_trap();
      }
    }
  } catch (const russet::FileError&) {
  }
  return 0;
}
