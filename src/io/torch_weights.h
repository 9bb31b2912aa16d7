#pragma once
// The state dict in a file that torch.save wrote.
#include <russet/io/state_dict.h>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "torch_container.h"

namespace russet::io {

using NamedTensors = std::vector<std::pair<std::string, const pickle::StoredTensor*>>;

/// The tensors of the state dict in what was pickled. Throws FileError, which lists the keys, if there is none.
NamedTensors find_state_dict(const pickle::Value& saved);

/// The state dict of an open file. Every function throws FileError.
class TorchFile {
 public:
  /// Checks that each tensor lies in its storage.
  explicit TorchFile(std::unique_ptr<const TorchContainer> container);

  const NamedTensors& entries() const { return entries_; }
  /// All tensors. Each storage is read once; its tensors are views of it.
  StateDict tensors(Device device) const;

 private:
  void check_entries() const;

  std::unique_ptr<const TorchContainer> container_;
  NamedTensors entries_;
};

}  // namespace russet::io
