#include "context.h"

#include <cstdint>

// The return address is taken by a jump: a `ret` would be predicted by the stack of calls, which is another fiber's.
asm(R"(
.text
.globl russet_switch_context
.hidden russet_switch_context
.type russet_switch_context,@function
russet_switch_context:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  popq %rdx
  jmpq *%rdx
.size russet_switch_context,.-russet_switch_context
)");

extern "C" void russet_switch_context(void** from, void* to);

namespace russet::simulator {

Context make_context(std::byte* top, void (*entry)()) {
  // Six registers, the entry, and the address that it would return to, so that it is aligned as after a call.
  auto* words = reinterpret_cast<std::uintptr_t*>(top) - 8;
  for (int i = 0; i < 8; ++i) words[i] = 0;
  words[6] = reinterpret_cast<std::uintptr_t>(entry);
  return words;
}

void switch_context(Context* from, Context to) { russet_switch_context(from, to); }

}  // namespace russet::simulator
