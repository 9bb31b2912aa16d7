#include <fmt/format.h>
#include <russet/io/weights.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "torch_weights.h"

namespace russet::io {
namespace {

using Bytes = std::span<const std::byte>;
using nlohmann::json;

/// An index names every tensor once; those of the largest models have some megabytes.
constexpr std::size_t max_index_bytes = std::size_t{32} << 20;

bool starts_with(Bytes bytes, std::string_view text) {
  return bytes.size() >= text.size() && std::equal(text.begin(), text.end(), bytes.begin(),
                                                   [](char a, std::byte b) { return static_cast<std::byte>(a) == b; });
}

enum class Format : std::uint8_t { safetensors, torch_zip, torch_stream, index };

/// As the first bytes tell. Of no known format: safetensors, whose reader says what is wrong.
Format format_of(Bytes bytes) {
  if (starts_with(bytes, "PK\3\4")) return Format::torch_zip;
  // The length of the header in 8 bytes, of which no file needs the last, and the header, JSON.
  if (bytes.size() > 8 && bytes[7] == std::byte{0} && bytes[8] == std::byte{'{'}) return Format::safetensors;
  // A pickle of protocol 2 to 5.
  if (bytes.size() > 1 && bytes[0] == std::byte{0x80} && bytes[1] < std::byte{6}) return Format::torch_stream;
  const auto first = std::find_if(bytes.begin(), bytes.end(), [](std::byte byte) { return byte > std::byte{' '}; });
  return first != bytes.end() && *first == std::byte{'{'} ? Format::index : Format::safetensors;
}

[[noreturn]] void fail(std::string_view name, std::string_view reason) {
  throw FileError(fmt::format("{}: {}", name, reason));
}

/// The file of each tensor, in alphabetical order of the tensors.
std::vector<std::pair<std::string, std::string>> weight_map_of(Bytes bytes, std::string_view name) {
  if (bytes.size() > max_index_bytes) fail(name, fmt::format("an index of {} bytes is too long", bytes.size()));
  const auto* const text = reinterpret_cast<const char*>(bytes.data());
  const json index = json::parse(text, text + bytes.size(), nullptr, false);
  const auto map = index.is_object() ? index.find("weight_map") : index.end();
  if (map == index.end() || !map->is_object()) {
    fail(name, "it is no file of weights: JSON, but not an index with a weight_map");
  }
  std::vector<std::pair<std::string, std::string>> files;
  for (const auto& [tensor, file] : map->items()) {
    const std::string shard = file.is_string() ? file.get<std::string>() : "";
    // An index that comes from elsewhere must not open files of other folders.
    if (shard.empty() || std::filesystem::path(shard).filename() != shard || shard == "." || shard == "..") {
      fail(name, fmt::format("the file of tensor \"{}\" is not the name of a file beside it", pickle::shown(tensor)));
    }
    files.emplace_back(tensor, shard);
  }
  return files;
}

}  // namespace

WeightsFile::WeightsFile(const std::filesystem::path& path, Part part) : name_(path.string()) {
  const auto map = std::make_shared<const MappedFile>(path);
  switch (format_of(map->bytes())) {
    case Format::safetensors: open_safetensors(path); break;
    case Format::torch_zip: open_torch(open_torch_zip(map, name_)); break;
    case Format::torch_stream: open_torch(open_torch_stream(map, name_)); break;
    case Format::index:
      if (part == Part::shard) fail(name_, "it is an index, where an index has the name of a file of weights");
      open_index(path, map->bytes());
  }
}

void WeightsFile::add(WeightsEntry entry) {
  places_.emplace(entry.name, entries_.size());
  entries_.push_back(std::move(entry));
}

void WeightsFile::open_safetensors(const std::filesystem::path& path) {
  auto file = std::make_shared<const SafetensorsFile>(path);
  for (const SafetensorsEntry& entry : file->entries()) add({entry.name, entry.dtype, entry.shape});
  metadata_ = file->metadata();
  read_ = [file](Device device) { return file->tensors(device); };
}

void WeightsFile::open_torch(std::unique_ptr<const TorchContainer> container) {
  auto file = std::make_shared<const TorchFile>(std::move(container));
  for (const auto& [name, tensor] : file->entries()) add({name, tensor->dtype, tensor->sizes});
  read_ = [file](Device device) { return file->tensors(device); };
}

void WeightsFile::open_index(const std::filesystem::path& path, Bytes bytes) {
  std::map<std::string, WeightsFile> shards;
  auto files = weight_map_of(bytes, name_);
  for (const auto& [name, file] : files) {
    auto shard = shards.find(file);
    if (shard == shards.end()) {
      shard = shards.emplace(file, WeightsFile(path.parent_path() / file, Part::shard)).first;
    }
    const WeightsEntry* const entry = shard->second.find(name);
    if (entry == nullptr)
      fail(name_, fmt::format("tensor \"{}\" is not in {}, where it should be", pickle::shown(name), file));
    add(*entry);
  }
  read_ = [files = std::move(files), shards = std::move(shards)](Device device) {
    std::map<std::string, StateDict> read;  // by file: another one may hold a tensor of the same name
    for (const auto& [file, shard] : shards) read.emplace(file, shard.tensors(device));
    StateDict all;
    for (const auto& [name, file] : files) all.insert(name, read.at(file).at(name));
    return all;
  };
}

const WeightsEntry* WeightsFile::find(const std::string& name) const {
  const auto found = places_.find(name);
  return found == places_.end() ? nullptr : &entries_[found->second];
}

}  // namespace russet::io
