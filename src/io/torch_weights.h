#pragma once
// The state dict in a file that torch.save wrote.
#include <russet/io/state_dict.h>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pickle.h"
#include "zip_archive.h"

namespace russet::io {

using NamedTensors = std::vector<std::pair<std::string, const pickle::StoredTensor*>>;

/// The tensors of the state dict in what was pickled. Throws FileError, which lists the keys, if there is none.
NamedTensors find_state_dict(const pickle::Value& saved);

/// An open file of torch.save's. Every function throws FileError.
class TorchFile {
 public:
  /// Checks that each tensor lies in its storage. `name` is what errors call the file.
  TorchFile(std::shared_ptr<const MappedFile> map, std::string_view name);

  const NamedTensors& entries() const { return entries_; }
  /// All tensors. Each storage is read once; its tensors are views of it.
  StateDict tensors(Device device) const;

 private:
  void require_little_endian() const;
  void check_entries() const;
  std::string path_of(const pickle::Storage& storage) const;

  ZipArchive archive_;
  std::string folder_;  // in which all entries of the archive lie, with its slash
  std::vector<std::byte> pickle_;
  pickle::Objects objects_;
  NamedTensors entries_;
};

}  // namespace russet::io
