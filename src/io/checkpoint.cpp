#include <fmt/format.h>
#include <russet/io/checkpoint.h>
#include <zlib.h>

#include <nlohmann/json.hpp>

#include "safetensors_write.h"

namespace russet::io {
namespace {

constexpr std::string_view format = "russet checkpoint 1";

/// crc32 of `bytes` appended to what `sum` covers (zlib counts in 32 bits).
std::uint32_t add_to_checksum(std::uint32_t sum, std::span<const std::byte> bytes) {
  return static_cast<std::uint32_t>(::crc32_z(sum, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

std::string checksum_text(std::uint32_t sum) { return fmt::format("crc32:{:08x}", sum); }

}  // namespace

void save_checkpoint(const std::filesystem::path& path, const Checkpoint& checkpoint) {
  if (!nlohmann::json::accept(checkpoint.state)) throw ValueError("save_checkpoint: the state is no JSON text");
  // The checksum is known when the data is written: the header is first written with a placeholder of its length.
  const auto header_with = [&](std::uint32_t checksum) {
    return lay_out_safetensors(
        checkpoint.tensors,
        {{"format", std::string(format)}, {"state", checkpoint.state}, {"checksum", checksum_text(checksum)}});
  };
  const SafetensorsLayout layout = header_with(0);
  write_file_atomically(path, [&](FileWriter& writer) {
    writer.write(layout.header);
    std::uint32_t checksum = 0;
    visit_data(layout, checkpoint.tensors, [&](std::span<const std::byte> piece) {
      checksum = add_to_checksum(checksum, piece);
      writer.write(piece);
    });
    const std::string header = header_with(checksum).header;
    writer.rewrite(0, std::as_bytes(std::span(header)));
  });
}

Checkpoint load_checkpoint(const std::filesystem::path& path, Device device) {
  const SafetensorsFile file(path);
  const auto text_of = [&](const char* key) -> const std::string& {
    const auto found = file.metadata().find(key);
    if (found == file.metadata().end()) throw FileError(fmt::format("{}: it is no checkpoint of russet", file.name()));
    return found->second;
  };
  if (text_of("format") != format) {
    throw FileError(fmt::format("{}: its format is \"{}\", not \"{}\"", file.name(), text_of("format"), format));
  }
  const auto data = file.map()->bytes().subspan(file.map()->bytes().size() - [&] {
    std::uint64_t bytes = 0;
    for (const SafetensorsEntry& entry : file.entries()) bytes += entry.end - entry.begin;
    return bytes;
  }());
  if (text_of("checksum") != checksum_text(add_to_checksum(0, data))) {
    throw FileError(fmt::format("{}: it is damaged: the checksum of its tensors does not match", file.name()));
  }
  if (!nlohmann::json::accept(text_of("state"))) {
    throw FileError(fmt::format("{}: it is damaged: its state is no JSON text", file.name()));
  }
  return {file.tensors(device), text_of("state")};
}

}  // namespace russet::io
