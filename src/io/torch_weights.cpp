#include "torch_weights.h"

#include <fmt/format.h>
#include <russet/error.h>
#include <russet/functional.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <unordered_map>

namespace russet::io {
namespace {

using pickle::Dict;
using pickle::StoredTensor;
using pickle::Value;

/// How deep a state dict may lie under the keys.
constexpr int max_depth = 4;

/// What scripts call the state dict in their checkpoints, in the order in which they are tried.
constexpr std::string_view state_dict_keys[] = {"state_dict", "model_state_dict", "model",  "module",
                                                "net",        "network",          "weights"};

const Dict* dict_below(const Dict& dict, std::string_view key) {
  const Value* const value = dict.find(key);
  const auto* const below = value == nullptr ? nullptr : std::get_if<Dict*>(value);
  return below == nullptr ? nullptr : *below;
}

/// The dict that the keys lead to, and those keys: "model.state_dict.".
std::pair<const Dict*, std::string> follow_keys(const Dict* dict) {
  std::string path;
  for (int depth = 0; depth < max_depth; ++depth) {
    const Dict* next = nullptr;
    for (const std::string_view key : state_dict_keys) {
      next = dict_below(*dict, key);
      if (next == nullptr) continue;
      path += fmt::format("{}.", key);
      break;
    }
    if (next == nullptr) break;
    dict = next;
  }
  return {dict, path};
}

/// "model.epoch (an integer), model.config (a dict)".
std::string keys_of(const Dict& dict, std::string_view path) {
  constexpr std::size_t most = 20;
  std::string text;
  for (std::size_t i = 0; i < std::min(dict.items.size(), most); ++i) {
    const auto& [key, value] = dict.items[i];
    const auto* const name = std::get_if<std::string_view>(&key);
    text += fmt::format("{}{}{} ({})", i == 0 ? "" : ", ", path, name == nullptr ? "?" : pickle::shown(*name),
                        pickle::kind_of(value));
  }
  if (text.empty()) return "none";
  return dict.items.size() > most ? text + ", ..." : text;
}

/// The elements from the storage's first to the tensor's last; nothing if the numbers overflow.
std::optional<std::int64_t> reach_of(const StoredTensor& tensor) {
  std::int64_t reach = 0;
  bool overflows = __builtin_add_overflow(tensor.offset, 1, &reach);
  for (int axis = 0; axis < tensor.sizes.rank(); ++axis) {
    std::int64_t step = 0;
    overflows |= __builtin_mul_overflow(tensor.sizes[axis] - 1, tensor.strides[axis], &step);
    overflows |= __builtin_add_overflow(reach, step, &reach);
  }
  return overflows ? std::nullopt : std::optional(reach);
}

bool is_negative(std::int64_t number) { return number < 0; }

/// Throws FileError unless the tensor lies in a storage of that many bytes.
void require_within(const StoredTensor& tensor, std::uint64_t storage_bytes) {
  const Dims& sizes = tensor.sizes;
  const Dims& strides = tensor.strides;
  if (sizes.rank() != strides.rank() || tensor.offset < 0 || std::any_of(sizes.begin(), sizes.end(), is_negative) ||
      std::any_of(strides.begin(), strides.end(), is_negative)) {
    throw FileError(fmt::format("its sizes {}, strides {} and offset {} are those of no tensor", to_string(sizes),
                                to_string(strides), tensor.offset));
  }
  const bool is_empty = std::find(sizes.begin(), sizes.end(), 0) != sizes.end();
  const std::optional<std::int64_t> reach = is_empty ? tensor.offset : reach_of(tensor);
  const auto there = static_cast<std::int64_t>(storage_bytes / size_of(tensor.dtype));
  if (!reach || *reach > there) {
    throw FileError(fmt::format("its sizes {}, strides {} and offset {} reach beyond its storage of {} elements",
                                to_string(sizes), to_string(strides), tensor.offset, there));
  }
}

/// An expanded tensor may have more elements than its storage, but not more bytes than the file: a copy of it would
/// take memory that the file has no claim to.
void require_no_more_than(const StoredTensor& tensor, std::uint64_t file_bytes) {
  std::uint64_t bytes = size_of(tensor.dtype);
  bool is_empty = false;
  bool overflows = false;
  for (const std::int64_t size : tensor.sizes) {
    is_empty |= size == 0;
    // What the engine multiplies must fit where a size is 0, too.
    overflows |= size != 0 && __builtin_mul_overflow(bytes, static_cast<std::uint64_t>(size), &bytes);
  }
  overflows |= bytes > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (overflows || (!is_empty && bytes > file_bytes)) {
    throw FileError(fmt::format("its shape {} has more bytes than the file", to_string(tensor.sizes)));
  }
}

}  // namespace

NamedTensors find_state_dict(const Value& saved) {
  const auto* const top = std::get_if<Dict*>(&saved);
  if (top == nullptr) {
    throw FileError(fmt::format("it holds {}, not a state dict: save model.state_dict()", pickle::kind_of(saved)));
  }
  const auto& [dict, path] = follow_keys(*top);
  NamedTensors tensors;
  std::unordered_map<std::string_view, std::size_t> places;  // of a key that comes again, the last value counts
  for (const auto& [key, value] : dict->items) {
    const auto* const name = std::get_if<std::string_view>(&key);
    const auto* const tensor = std::get_if<const StoredTensor*>(&value);
    if (name == nullptr || tensor == nullptr) continue;
    const auto [place, added] = places.emplace(*name, tensors.size());
    if (added) tensors.emplace_back(*name, *tensor);
    tensors[place->second].second = *tensor;
  }
  if (tensors.empty()) throw FileError(fmt::format("it has no state dict; its keys are: {}", keys_of(*dict, path)));
  return tensors;
}

TorchFile::TorchFile(std::unique_ptr<const TorchContainer> container) : container_(std::move(container)) {
  try {
    entries_ = find_state_dict(container_->saved());
  } catch (const FileError& error) {
    throw FileError(fmt::format("{}: {}", container_->name(), error.what()));
  }
  check_entries();
}

/// Each tensor lies in its storage, and the storages together are no larger than the file: entries of a damaged archive
/// may overlap.
void TorchFile::check_entries() const {
  std::map<std::string_view, std::pair<std::uint64_t, DType>> storages;  // by key
  std::uint64_t total = 0;
  for (const auto& [name, tensor] : entries_) {
    const auto [found, added] = storages.try_emplace(tensor->storage->key, 0, tensor->dtype);
    auto& [bytes, dtype] = found->second;
    if (added) total += bytes = container_->size_of(*tensor->storage);
    try {
      if (tensor->dtype != dtype) throw FileError("its storage holds tensors of two types, which torch.save refuses");
      if (total > container_->bytes()) {
        throw FileError("with its storage, all have more bytes than the file: they overlap");
      }
      require_within(*tensor, bytes);
      require_no_more_than(*tensor, container_->bytes());
    } catch (const FileError& error) {
      throw FileError(fmt::format("{}: tensor \"{}\": {}", container_->name(), pickle::shown(name), error.what()));
    }
  }
}

StateDict TorchFile::tensors(Device device) const {
  StateDict all;
  std::map<std::string_view, Tensor> storages;  // by key
  std::vector<std::byte> memory;
  for (const auto& [name, tensor] : entries_) {
    Tensor& storage = storages[tensor->storage->key];
    if (!storage.defined()) {
      const std::span<const std::byte> content = container_->read(*tensor->storage, memory);
      const std::size_t count = content.size() / size_of(tensor->dtype);
      storage = Tensor::from_bytes(content.first(count * size_of(tensor->dtype)), {static_cast<std::int64_t>(count)},
                                   {tensor->dtype, device, false});
    }
    all.insert(name, as_strided(storage, tensor->sizes, tensor->strides, tensor->offset));
  }
  return all;
}

}  // namespace russet::io
