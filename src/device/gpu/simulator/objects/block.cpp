#include "device/gpu/simulator/objects/block.h"

#include <cstring>
#include <exception>
#include <new>

namespace russet::objects {
namespace {

constexpr std::int32_t has_helpers = 1 << 25;
constexpr std::int32_t is_global = 1 << 28;

}  // namespace

Block* copy_block(const Block* block) {
  if ((block->flags & is_global) != 0) return const_cast<Block*>(block);
  auto* const copy = static_cast<Block*>(::operator new(block->descriptor->size));
  std::memcpy(static_cast<void*>(copy), block, block->descriptor->size);
  if ((block->flags & has_helpers) != 0) block->descriptor->copy(copy, block);
  return copy;
}

void release_block(Block* block) {
  if ((block->flags & is_global) != 0) return;
  if ((block->flags & has_helpers) != 0) block->descriptor->dispose(block);
  ::operator delete(block);
}

}  // namespace russet::objects

extern "C" {

void* _NSConcreteGlobalBlock[32];
void* _NSConcreteStackBlock[32];

// For captured blocks and __block variables, which russet's driver does not use; metal-cpp's own wrappers of
// std::function would.
void _Block_object_assign(void* /*target*/, const void* /*object*/, int /*flags*/) { std::terminate(); }
void _Block_object_dispose(const void* /*object*/, int /*flags*/) { std::terminate(); }
}
