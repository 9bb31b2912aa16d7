#pragma once
// Walk: how a kernel goes over the index space of a group, and what memory has to be like for that.
#include <string_view>

#include "compile/group.h"

namespace russet::gpu {

/// How the index space is walked: `width` neighbours along axis `inner` at a time. With a width of 1 the text says
/// nothing of how memory lies: sizes, strides (of broadcasts, too) and, beyond one, the number of axes are values, so
/// that all layouts share it.
struct Walk {
  int inner = -1;  // -1: the space has one point
  int width = 1;
  bool wide = false;  // positions need 64 bits

  /// Of positions in memory, and of items.
  std::string_view index_type() const { return wide ? "long" : "int"; }
  std::string_view item_type() const { return wide ? "ulong" : "uint"; }
};

/// Whether vectors of `width` neighbours along an axis are aligned, wherever one begins at a multiple of it.
bool is_aligned(const compile::Access& access, int inner, int width);
/// Whether positions in every access, and in the space, fit 31 bits.
bool needs_wide_index(const compile::Group& group);
/// The width in which a group can be walked along an axis: `widest` (4, or 2) where whatever varies along it is
/// contiguous and aligned, else 1.
int vector_width(const compile::Group& group, int inner, int widest = 4);

}  // namespace russet::gpu
