// Any input is read or refused by a FileError; it never crashes, hangs or takes memory that it has no claim to.
#include <russet/error.h>
#include <russet/io/image.h>
#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace {

std::size_t number_at(const std::vector<std::uint8_t>& file, std::size_t place) {
  return std::size_t{file[place]} << 24 | std::size_t{file[place + 1]} << 16 | std::size_t{file[place + 2]} << 8 |
         file[place + 3];
}

/// Makes the checksum of every chunk right, else hardly an input would get past the first.
void repair_checksums(std::vector<std::uint8_t>& file) {
  for (std::size_t chunk = 8; chunk + 12 <= file.size();) {
    const std::size_t length = number_at(file, chunk);
    if (length > file.size() - chunk - 12) return;
    const auto sum = static_cast<std::uint32_t>(crc32(0, &file[chunk + 4], static_cast<unsigned>(length + 4)));
    for (std::size_t i = 0; i < 4; ++i) file[chunk + 8 + length + i] = static_cast<std::uint8_t>(sum >> (24 - 8 * i));
    chunk += length + 12;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::vector<std::uint8_t> repaired(data, data + size);
  repair_checksums(repaired);
  const auto file = std::as_bytes(std::span(repaired));
  try {
    thread_local russet::io::Image image;
    for (const int channels : {3, 1}) {
      russet::io::decode_png(file, "input", channels, image, {.max_pixels = 1 << 20});
      if (image.pixels.size() != static_cast<std::size_t>(image.height * image.width * channels)) __builtin_trap();
    }
  } catch (const russet::FileError&) {
  }
  return 0;
}
