#pragma once
// The safetensors format: 8 bytes little-endian length, a JSON header, the tensors' bytes without gaps.
// https://github.com/huggingface/safetensors#format
#include <russet/io/file.h>
#include <russet/io/state_dict.h>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace russet::io {

using Metadata = std::map<std::string, std::string>;

struct SafetensorsEntry {
  std::string name;
  DType dtype = DType::float32;
  Shape shape;
  std::uint64_t begin = 0;  // in bytes, from the start of the data
  std::uint64_t end = 0;
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  // in the order of the header
  Metadata metadata;
  std::uint64_t data_begin = 0;  // in bytes, from the start of the file
};

/// Reads and checks the header of a whole file in memory: length, JSON, types, shapes, and that the tensors fill the
/// data exactly, without gap or overlap. `name` is what errors call the file. Throws FileError.
SafetensorsHeader parse_safetensors(std::span<const std::byte> file, std::string_view name);

/// An open file, mapped into memory; tensors are read when they are asked for.
class SafetensorsFile {
 public:
  /// Throws FileError.
  explicit SafetensorsFile(const std::filesystem::path& path);

  const std::vector<SafetensorsEntry>& entries() const { return header_.entries; }
  const Metadata& metadata() const { return header_.metadata; }
  /// The entry of that name, or nullptr.
  const SafetensorsEntry* find(std::string_view name) const;
  /// As find, but throws FileError.
  const SafetensorsEntry& at(std::string_view name) const;
  /// The bytes of a tensor, in the mapping, which lives as long as map().
  std::span<const std::byte> bytes(const SafetensorsEntry& entry) const;
  Tensor tensor(const SafetensorsEntry& entry, Device device = {}) const;
  StateDict tensors(Device device = {}) const;
  const std::shared_ptr<const MappedFile>& map() const { return map_; }
  const std::string& name() const { return name_; }

 private:
  std::string name_;
  std::shared_ptr<const MappedFile> map_;
  SafetensorsHeader header_;
};

/// All tensors of a file, in its order. Throws FileError.
StateDict load_safetensors(const std::filesystem::path& path, Device device = {});

/// Writes a file atomically, its header in the order of `tensors`. Wide types come first in the data, so that every
/// tensor is aligned to its element. Throws FileError.
void save_safetensors(const std::filesystem::path& path, const StateDict& tensors, const Metadata& metadata = {});

}  // namespace russet::io
