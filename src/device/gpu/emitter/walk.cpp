#include "device/gpu/emitter/walk.h"

#include <algorithm>

namespace russet::gpu {

using compile::Access;
using compile::Group;

namespace {

/// Elements between the first and the last that the access reaches.
std::int64_t reach(const Access& access, const Shape& space) {
  std::int64_t total = 0;
  for (int axis = 0; axis < space.rank(); ++axis) total += std::abs(access.strides[axis]) * (space[axis] - 1);
  return total;
}

}  // namespace

bool is_aligned(const Access& access, int inner, int width) {
  if (access.strides[inner] != 1 || access.offset_argument >= 0 || size_of(access.dtype) > 4) return false;
  if (access.offset % width != 0) return false;
  for (int axis = 0; axis < access.strides.rank(); ++axis) {
    if (axis != inner && access.strides[axis] % width != 0) return false;
  }
  return true;
}

bool needs_wide_index(const Group& group) {
  constexpr std::int64_t limit = std::int64_t{1} << 31;
  if (numel(group.space) >= limit) return true;
  return std::any_of(group.accesses.begin(), group.accesses.end(),
                     [&](const Access& access) { return access.slot >= 0 && reach(access, group.space) >= limit; });
}

int vector_width(const Group& group, int inner, int widest) {
  if (inner < 0 || group.space[inner] % widest != 0) return 1;
  bool any = false;
  for (const Access& access : group.accesses) {
    if (access.slot < 0 || access.strides[inner] == 0) continue;
    if (!is_aligned(access, inner, widest)) return 1;
    any = true;
  }
  return any ? widest : 1;
}

}  // namespace russet::gpu
