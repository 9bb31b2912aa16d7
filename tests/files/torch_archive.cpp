#include "files/torch_archive.h"

#include <zip.h>

#include <stdexcept>

namespace russet::files {
namespace {

std::string little_endian(std::uint64_t number, int width) {
  std::string bytes;
  for (int i = 0; i < width; ++i) bytes += static_cast<char>(number >> (8 * i));
  return bytes;
}

void require(bool done) {
  if (!done) throw std::runtime_error("libzip cannot write the archive of the test");
}

}  // namespace

std::string pickled(std::string_view text) { return "X" + little_endian(text.size(), 4) + std::string(text); }

std::string pickled(std::int64_t number) { return "\x8a\x08" + little_endian(static_cast<std::uint64_t>(number), 8); }

std::string pickled(const std::vector<std::int64_t>& numbers) {
  std::string bytes = "(";
  for (const std::int64_t number : numbers) bytes += pickled(number);
  return bytes + "t";
}

std::string pickled(const PickledTensor& tensor) {
  const std::string storage = "(" + pickled(std::string_view("storage")) + "c" + tensor.storage + "\n" +
                              pickled(std::string_view(tensor.key)) + pickled(std::string_view("cpu")) +
                              pickled(tensor.count) + "tQ";
  return "ctorch._utils\n_rebuild_tensor_v2\n(" + storage + pickled(tensor.offset) + pickled(tensor.sizes) +
         pickled(tensor.strides) + "\x89" + "ccollections\nOrderedDict\n)RtR";
}

std::string pickled_dict(const std::vector<std::pair<std::string, PickledTensor>>& tensors) {
  std::string bytes = std::string(pickle_start) + "}(";
  for (const auto& [name, tensor] : tensors) bytes += pickled(std::string_view(name)) + pickled(tensor);
  return bytes + "u.";
}

Bytes zip_archive(const std::vector<std::pair<std::string, Bytes>>& entries) {
  zip_source_t* const memory = zip_source_buffer_create(nullptr, 0, 0, nullptr);
  require(memory != nullptr);
  zip_source_keep(memory);  // beyond zip_close
  zip_t* const archive = zip_open_from_source(memory, ZIP_CREATE | ZIP_TRUNCATE, nullptr);
  require(archive != nullptr);
  for (const auto& [name, content] : entries) {
    zip_source_t* const source = zip_source_buffer(archive, content.data(), content.size(), 0);
    const zip_int64_t place = zip_file_add(archive, name.c_str(), source, ZIP_FL_ENC_UTF_8);
    require(place >= 0);
    zip_set_file_compression(archive, static_cast<zip_uint64_t>(place), ZIP_CM_STORE, 0);
    zip_file_set_mtime(archive, static_cast<zip_uint64_t>(place), 0, 0);
  }
  require(zip_close(archive) == 0 && zip_source_open(memory) == 0);
  zip_stat_t stat;
  require(zip_source_stat(memory, &stat) == 0);
  Bytes file(stat.size);
  require(zip_source_read(memory, file.data(), file.size()) == static_cast<zip_int64_t>(file.size()));
  zip_source_close(memory);
  zip_source_free(memory);
  return file;
}

Bytes torch_archive(const std::string& pickle, const std::map<std::string, Bytes>& storages) {
  std::vector<std::pair<std::string, Bytes>> entries{{"archive/data.pkl", bytes_of(pickle)},
                                                     {"archive/byteorder", bytes_of("little")}};
  for (const auto& [key, content] : storages) entries.emplace_back("archive/data/" + key, content);
  return zip_archive(entries);
}

std::string stream_header(std::int64_t version, bool little_endian) {
  const std::string start(pickle_start);
  return start + "\x8a\x0al\xfc\x9c\x46\xf9 j\xa8P\x19." + start + pickled(version) + "." + start + "}" +
         pickled(std::string_view("little_endian")) + (little_endian ? "\x88" : "\x89") + "s.";
}

Bytes torch_stream(const std::string& pickle, const std::map<std::string, Bytes>& storages, const std::string& header) {
  std::string keys = std::string(pickle_start) + "](";
  std::string contents;
  for (const auto& [key, content] : storages) {
    keys += pickled(std::string_view(key));
    contents += little_endian(content.size() / sizeof(float), 8);
    contents.append(reinterpret_cast<const char*>(content.data()), content.size());
  }
  return bytes_of(header + pickle + keys + "e." + contents);
}

}  // namespace russet::files
