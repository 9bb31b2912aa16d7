// What torch.save writes since PyTorch 1.6: a zip archive of data.pkl, byteorder and data/KEY for each storage, all in
// one folder.
#include <fmt/format.h>
#include <russet/error.h>

#include "torch_container.h"
#include "zip_archive.h"

namespace russet::io {
namespace {

class TorchZip final : public TorchContainer {
 public:
  TorchZip(const std::shared_ptr<const MappedFile>& map, std::string_view name);

  std::uint64_t size_of(const pickle::Storage& storage) const override { return archive_.size_of(path_of(storage)); }
  std::span<const std::byte> read(const pickle::Storage& storage, std::vector<std::byte>& memory) const override {
    archive_.read(path_of(storage), memory);
    return memory;
  }

 private:
  [[noreturn]] void fail(std::string_view reason) const { throw FileError(fmt::format("{}: {}", name_, reason)); }
  void require_little_endian() const;
  std::string path_of(const pickle::Storage& storage) const { return fmt::format("{}data/{}", folder_, storage.key); }

  ZipArchive archive_;
  std::string folder_;  // with its slash
  std::vector<std::byte> pickle_;
};

TorchZip::TorchZip(const std::shared_ptr<const MappedFile>& map, std::string_view name)
    : TorchContainer(map, name), archive_(map, name), folder_(archive_.find("data.pkl")) {
  if (folder_.empty()) fail("a zip archive, but none of torch.save's: it has no data.pkl");
  const std::string data = folder_;
  folder_.resize(folder_.size() - std::string_view("data.pkl").size());
  if (archive_.contains(folder_ + "constants.pkl")) {
    fail("a TorchScript archive: load it with torch.jit.load and save its state_dict() with torch.save");
  }
  require_little_endian();
  if (archive_.size_of(data) > max_pickle_bytes) {
    fail(fmt::format("its data.pkl has {} bytes, more than {}", archive_.size_of(data), max_pickle_bytes));
  }
  archive_.read(data, pickle_);
  try {
    saved_ = pickle::unpickle(pickle_, objects_);
  } catch (const FileError& error) {
    fail(error.what());
  }
}

void TorchZip::require_little_endian() const {
  const std::string path = folder_ + "byteorder";
  if (!archive_.contains(path)) return;  // before PyTorch 2.1
  std::vector<std::byte> order;
  archive_.read(path, order);
  const std::string_view word(reinterpret_cast<const char*>(order.data()), order.size());
  if (word == "little") return;
  fail(fmt::format("its byte order is \"{}\", and russet reads little-endian files alone", pickle::shown(word)));
}

}  // namespace

std::unique_ptr<const TorchContainer> open_torch_zip(const std::shared_ptr<const MappedFile>& map,
                                                     std::string_view name) {
  return std::make_unique<const TorchZip>(map, name);
}

}  // namespace russet::io
