#pragma once
// Files of weights: safetensors, what torch.save writes (.pth, .pt, .bin), and the index of either in several files
// (model.safetensors.index.json). The content of a file decides which it is, not its name.
#include <russet/io/safetensors.h>
#include <russet/io/state_dict.h>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace russet::io {

class TorchContainer;

struct WeightsEntry {
  std::string name;
  DType dtype = DType::float32;
  Shape shape;
};

/// An open file of weights; tensors are read when they are asked for.
///
/// Of a file that torch.save wrote, tensors and containers are read and nothing is executed. Its state dict is the
/// saved dict, or what that holds under one of the usual keys: state_dict, model_state_dict, model, module, net,
/// network, weights.
class WeightsFile {
 public:
  /// Throws FileError for a file that cannot be read or is damaged, or that holds other things than tensors and
  /// containers.
  explicit WeightsFile(const std::filesystem::path& path) : WeightsFile(path, Part::whole) {}

  /// In the order of the file; of an index, in alphabetical order.
  const std::vector<WeightsEntry>& entries() const { return entries_; }
  /// The metadata of a safetensors file; other files have none.
  const Metadata& metadata() const { return metadata_; }
  /// The entry of that name, or nullptr.
  const WeightsEntry* find(const std::string& name) const;
  /// All tensors, in the order of entries(). Those that shared memory when they were saved do so again. Throws
  /// FileError.
  StateDict tensors(Device device = {}) const { return read_(device); }
  const std::string& name() const { return name_; }

 private:
  enum class Part { whole, shard };
  WeightsFile(const std::filesystem::path& path, Part part);
  void open_safetensors(const std::filesystem::path& path);
  void open_torch(std::unique_ptr<const TorchContainer> container);
  void open_index(const std::filesystem::path& path, std::span<const std::byte> bytes);
  void add(WeightsEntry entry);

  std::string name_;
  std::vector<WeightsEntry> entries_;
  std::unordered_map<std::string, std::size_t> places_;  // of entries by name
  Metadata metadata_;
  std::function<StateDict(Device)> read_;
};

}  // namespace russet::io
