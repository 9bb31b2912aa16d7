// What torch.save wrote before PyTorch 1.6, and writes with _use_new_zipfile_serialization=False. Five pickles: a magic
// number, the version of the format, what the writer's machine is, the value, and the keys of the storages; then each
// storage behind its number of elements.
#include <fmt/format.h>
#include <russet/error.h>

#include <algorithm>
#include <iterator>
#include <unordered_map>

#include "torch_container.h"

namespace russet::io {
namespace {

using Bytes = std::span<const std::byte>;
using pickle::Value;

constexpr std::uint8_t magic_number[] = {0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19};
constexpr std::int64_t known_version = 1001;

class TorchStream final : public TorchContainer {
 public:
  TorchStream(const std::shared_ptr<const MappedFile>& map, std::string_view name);

  std::uint64_t size_of(const pickle::Storage& storage) const override { return find(storage).size(); }
  Bytes read(const pickle::Storage& storage, std::vector<std::byte>&) const override { return find(storage); }

 private:
  Bytes find(const pickle::Storage& storage) const;
  Value next_value();
  void read_header();
  void read_storages();
  Bytes take(std::uint64_t count);
  std::uint64_t take_number();

  Bytes rest_;
  std::unordered_map<std::string_view, Bytes> storages_;  // by key
};

TorchStream::TorchStream(const std::shared_ptr<const MappedFile>& map, std::string_view name)
    : TorchContainer(map, name), rest_(map_->bytes()) {
  try {
    read_header();
    saved_ = next_value();
    read_storages();
  } catch (const FileError& error) {
    throw FileError(fmt::format("{}: {}", name_, error.what()));
  }
}

Value TorchStream::next_value() {
  std::size_t size = 0;
  const Value value =
      pickle::unpickle(rest_.first(std::min<std::uint64_t>(rest_.size(), max_pickle_bytes)), objects_, &size);
  take(size);
  return value;
}

void TorchStream::read_header() {
  const Bytes start = rest_;
  next_value();
  const Bytes first = start.first(start.size() - rest_.size());
  const auto magic = std::as_bytes(std::span(magic_number));
  if (std::search(first.begin(), first.end(), magic.begin(), magic.end()) == first.end()) {
    throw FileError("a pickle, but not one of torch.save's: its magic number is missing");
  }
  const Value version = next_value();
  const auto* const number = std::get_if<std::int64_t>(&version);
  if (number == nullptr || *number != known_version) throw FileError("its format is of an unknown version");
  const Value machine = next_value();
  const auto* const facts = std::get_if<pickle::Dict*>(&machine);
  const Value* const little = facts == nullptr ? nullptr : (*facts)->find("little_endian");
  if (little == nullptr || !std::holds_alternative<bool>(*little)) throw FileError("its byte order is missing");
  if (!std::get<bool>(*little)) throw FileError("it is big-endian, and russet reads little-endian files alone");
}

void TorchStream::read_storages() {
  std::unordered_map<std::string_view, std::size_t> element_sizes;  // by key, as the value names the storages first
  for (const pickle::Storage& storage : objects_.storages()) {
    element_sizes.try_emplace(storage.key, storage.dtype ? russet::size_of(*storage.dtype) : 1);
  }
  const Value keys = next_value();
  const auto* const list = std::get_if<pickle::Sequence*>(&keys);
  if (list == nullptr) throw FileError(fmt::format("the keys of its storages are {}", pickle::kind_of(keys)));
  for (const Value& item : (*list)->items) {
    const auto* const key = std::get_if<std::string_view>(&item);
    const auto found = key == nullptr ? element_sizes.end() : element_sizes.find(*key);
    if (found == element_sizes.end()) throw FileError("it has a storage that the saved value does not name");
    const std::uint64_t count = take_number();
    if (count > rest_.size() / found->second) throw FileError("it is truncated: a storage ends behind the file");
    storages_.emplace(*key, take(count * found->second));
  }
}

Bytes TorchStream::find(const pickle::Storage& storage) const {
  const auto found = storages_.find(storage.key);
  if (found != storages_.end()) return found->second;
  throw FileError(fmt::format("{}: there is no storage \"{}\"", name_, pickle::shown(storage.key)));
}

Bytes TorchStream::take(std::uint64_t count) {
  if (count > rest_.size()) throw FileError("it is truncated");
  const Bytes taken = rest_.first(count);
  rest_ = rest_.subspan(count);
  return taken;
}

/// Little-endian.
std::uint64_t TorchStream::take_number() {
  std::uint64_t number = 0;
  int shift = 0;
  for (const std::byte byte : take(sizeof(number))) {
    number |= std::to_integer<std::uint64_t>(byte) << shift;
    shift += 8;
  }
  return number;
}

}  // namespace

std::unique_ptr<const TorchContainer> open_torch_stream(const std::shared_ptr<const MappedFile>& map,
                                                        std::string_view name) {
  return std::make_unique<const TorchStream>(map, name);
}

}  // namespace russet::io
