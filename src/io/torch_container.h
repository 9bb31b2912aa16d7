#pragma once
// The two formats of torch.save behind one interface: a pickled value, and storages, the memory that its tensors are
// views of.
#include <russet/io/file.h>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pickle.h"

namespace russet::io {

/// An open file that torch.save wrote. Every function throws FileError.
class TorchContainer {
 public:
  virtual ~TorchContainer() = default;
  TorchContainer(const TorchContainer&) = delete;
  TorchContainer& operator=(const TorchContainer&) = delete;

  const pickle::Value& saved() const { return saved_; }
  /// In bytes.
  virtual std::uint64_t size_of(const pickle::Storage& storage) const = 0;
  /// The content of a storage, as long as `memory` is left alone.
  virtual std::span<const std::byte> read(const pickle::Storage& storage, std::vector<std::byte>& memory) const = 0;

  const std::string& name() const { return name_; }
  /// Of the whole file.
  std::uint64_t bytes() const { return map_->bytes().size(); }

 protected:
  TorchContainer(std::shared_ptr<const MappedFile> map, std::string_view name) : map_(std::move(map)), name_(name) {}

  /// Far more than the names of any model take; values take up to a hundred times the bytes that describe them.
  static constexpr std::uint64_t max_pickle_bytes = std::uint64_t{32} << 20;

  std::shared_ptr<const MappedFile> map_;
  std::string name_;  // in errors
  pickle::Objects objects_;
  pickle::Value saved_;
};

/// A zip archive, as PyTorch writes since 1.6.
std::unique_ptr<const TorchContainer> open_torch_zip(const std::shared_ptr<const MappedFile>& map,
                                                     std::string_view name);
/// Pickles and storages one after the other, as PyTorch wrote before.
std::unique_ptr<const TorchContainer> open_torch_stream(const std::shared_ptr<const MappedFile>& map,
                                                        std::string_view name);

}  // namespace russet::io
