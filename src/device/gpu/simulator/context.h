#pragma once
// Switching between stacks of one thread: what a fiber is made of. A few instructions, which keep the registers that
// calls preserve.
#include <cstddef>

namespace russet::simulator {

/// A suspended execution: an address on its own stack.
using Context = void*;

/// A context that begins with entry(), which must not return, on the stack that ends at `top` (16-byte aligned).
Context make_context(std::byte* top, void (*entry)());

/// Suspends the caller into `from` and resumes `to`.
void switch_context(Context* from, Context to);

}  // namespace russet::simulator
