// Any file of weights is read or refused by a FileError; its tensors have no more bytes than it.
#include <russet/error.h>
#include <russet/io/weights.h>
#include <stdlib.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

namespace {

/// A folder of its own: an index names files beside it.
std::filesystem::path make_folder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "russet-fuzz-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) __builtin_trap();
  return pattern;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::filesystem::path path = make_folder() / "input";
  std::filesystem::remove(path);  // ext4 would wait for the disk where a file's content is replaced
  std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  try {
    const russet::io::WeightsFile file(path);
    for (const auto& [name, tensor] : file.tensors()) {
      if (static_cast<std::uint64_t>(tensor.numel()) * russet::size_of(tensor.dtype()) > size) __builtin_trap();
    }
  } catch (const russet::FileError&) {
  }
  return 0;
}
