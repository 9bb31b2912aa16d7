#pragma once
// Blocks: closures as clang lays them out (Block ABI of the clang documentation).
#include <cstdint>

namespace russet::objects {

struct BlockDescriptor {
  unsigned long reserved;
  unsigned long size;
  void (*copy)(void* target, const void* source);  // these two only if the block has the flag
  void (*dispose)(const void* block);
};

struct Block {
  void* isa;
  std::int32_t flags;
  std::int32_t reserved;
  void (*invoke)();
  const BlockDescriptor* descriptor;
};

/// A copy that outlives the stack frame in which the block was written.
Block* copy_block(const Block* block);
void release_block(Block* block);

/// Calls a block that takes one pointer.
inline void call_block(const Block* block, void* argument) {
  reinterpret_cast<void (*)(const Block*, void*)>(block->invoke)(block, argument);
}

}  // namespace russet::objects
