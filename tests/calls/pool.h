#pragma once
// Pool: inputs that several calls take. Calls that are recorded together over the same tensors become few kernels.
#include <russet/tensor.h>

#include <map>
#include <string>

namespace russet::test {

class Pool {
 public:
  /// The tensor that was made under this description, or `make()`. What a call has written since is made anew.
  template <class Make>
  Tensor take(const std::string& description, Make&& make) {
    Entry& entry = entries_[description];
    if (!entry.tensor.defined() || entry.tensor.version() != entry.version) {
      entry.tensor = make();
      entry.version = entry.tensor.version();
    }
    return entry.tensor;
  }

 private:
  struct Entry {
    Tensor tensor;
    std::uint64_t version = 0;
  };
  std::map<std::string, Entry> entries_;
};

/// pool's, if there is one.
template <class Make>
Tensor take(Pool* pool, const std::string& description, Make&& make) {
  return pool == nullptr ? make() : pool->take(description, make);
}

}  // namespace russet::test
