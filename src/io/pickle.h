#pragma once
// Python's pickle format, as far as torch.save writes it: numbers, texts, containers, and calls of the functions that
// a table lists (torch_globals.cpp). Nothing is imported or executed.
// https://github.com/python/cpython/blob/main/Lib/pickletools.py describes the opcodes.
#include <russet/dtype.h>
#include <russet/shape.h>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace russet::io::pickle {

struct Sequence;
struct Dict;
struct Global;
struct Storage;
struct StoredTensor;

/// What weights have no use for: bytes, devices, integers beyond 64 bits.
struct Opaque {};

/// Texts lie in the pickle's bytes. Containers, storages and tensors belong to Objects, so values may share them, nest
/// as deep as the file says and hold each other, and are freed without recursion.
using Value = std::variant<std::monostate, bool, std::int64_t, double, std::string_view, Opaque, Sequence*, Dict*,
                           const Global*, const Storage*, const StoredTensor*>;

/// A list, a tuple or a set.
struct Sequence {
  std::vector<Value> items;
};

struct Dict {
  std::vector<std::pair<Value, Value>> items;

  /// The value of a text key, or nullptr.
  const Value* find(std::string_view key) const {
    for (const auto& [name, value] : items) {
      if (const auto* text = std::get_if<std::string_view>(&name); text != nullptr && *text == key) return &value;
    }
    return nullptr;
  }
};

/// Memory that tensors are views of.
struct Storage {
  std::string_view key;
  std::optional<DType> dtype;  // none: bytes of any type
  std::int64_t size = 0;       // in elements
};

/// A tensor as the pickle describes it; nothing of it is checked against its storage yet.
struct StoredTensor {
  const Storage* storage = nullptr;
  DType dtype = DType::float32;
  std::int64_t offset = 0;  // in elements
  Shape sizes;
  Strides strides;
};

/// Owns what the values of a pickle point to.
class Objects {
 public:
  Objects() = default;
  Objects(const Objects&) = delete;
  Objects& operator=(const Objects&) = delete;

  Sequence* add(Sequence sequence) { return &sequences_.emplace_back(std::move(sequence)); }
  Dict* add(Dict dict) { return &dicts_.emplace_back(std::move(dict)); }
  const Storage* add(Storage storage) { return &storages_.emplace_back(storage); }
  const StoredTensor* add(StoredTensor tensor) { return &tensors_.emplace_back(tensor); }
  /// Every storage, as often as it was named.
  const std::deque<Storage>& storages() const { return storages_; }

 private:
  std::deque<Sequence> sequences_;
  std::deque<Dict> dicts_;
  std::deque<Storage> storages_;
  std::deque<StoredTensor> tensors_;
};

/// Something that a pickle may name: a function to call, a type of storage, or a data type.
struct Global {
  std::string_view name;  // "collections.OrderedDict"
  Value (*call)(Objects& objects, std::span<const Value> arguments) = nullptr;
  std::optional<DType> dtype{};
};

/// The global of that name. Throws FileError, which names it, for one that the table does not list.
const Global* find_global(std::string_view module, std::string_view name);
/// The storage that a persistent id of torch.save stands for. Throws FileError.
const Storage* find_storage(Objects& objects, const Value& id);

/// The value that the bytes begin with; they must live as long as it. `size`: how many they are. Throws FileError,
/// which says what is wrong and where, but not in which file.
Value unpickle(std::span<const std::byte> bytes, Objects& objects, std::size_t* size = nullptr);

/// As errors name the kind of a value: "None", "a list or tuple", "a tensor".
std::string_view kind_of(const Value& value);
/// A text of the file as errors show it: its first characters, none of which moves the cursor.
std::string shown(std::string_view text);

}  // namespace russet::io::pickle
