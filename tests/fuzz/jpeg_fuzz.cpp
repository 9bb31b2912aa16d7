// Any input is read or refused by a FileError; it never crashes, hangs or takes memory that it has no claim to.
#include <russet/error.h>
#include <russet/io/image.h>

#include <cstddef>
#include <cstdint>
#include <span>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto file = std::as_bytes(std::span(data, size));
  try {
    thread_local russet::io::Image image;
    for (const int channels : {3, 1}) {
      const int reduction = channels == 3 ? 1 : 1 << (size % 4);
      const auto choose = [&](std::int64_t, std::int64_t) { return reduction; };
      russet::io::decode_reduced(file, "input", channels, choose, image, {.max_pixels = 1 << 20});
      if (image.pixels.size() != static_cast<std::size_t>(image.height * image.width * channels)) __builtin_trap();
    }
  } catch (const russet::FileError&) {
  }
  return 0;
}
