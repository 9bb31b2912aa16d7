#pragma once
// Workspace: how a kernel divides its scratch memory, decided when the kernel is made.
#include "compile/step.h"
#include "device/cpu/group/loops.h"

namespace russet::cpu {

/// An array in scratch memory, or several of one size, such as one for each worker.
template <class T>
struct Scratch {
  std::size_t offset = 0, step = 0;

  T* at(const compile::Bindings& bindings, std::int64_t number = 0) const {
    return reinterpret_cast<T*>(bindings.scratch + offset + static_cast<std::size_t>(number) * step);
  }
};

class Workspace {
  /// What a processor may fetch behind the lines that it writes. Arrays of different workers lie that far apart:
  /// without it, two threads took each other's lines away, and LeNet-5's first convolution 15 % longer.
  static constexpr std::size_t prefetched_bytes = 256;

 public:
  /// `arrays` arrays of `count` elements each.
  template <class T>
  Scratch<T> add(std::int64_t count, std::int64_t arrays = 1) {
    // The loops of groups may write up to the end of an aligned piece.
    constexpr std::size_t unit = tiles::tile_alignment;
    const std::size_t gap = arrays > 1 ? prefetched_bytes : 0;
    const std::size_t step = (static_cast<std::size_t>(count) * sizeof(T) + unit - 1) / unit * unit + gap;
    const Scratch<T> scratch{bytes_, step};
    bytes_ += step * static_cast<std::size_t>(arrays);
    return scratch;
  }
  std::size_t bytes() const { return bytes_; }

 private:
  std::size_t bytes_ = 0;
};

}  // namespace russet::cpu
