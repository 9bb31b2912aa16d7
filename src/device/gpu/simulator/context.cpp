#include "context.h"

#include <cstdint>

#if defined(__x86_64__)

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

#elif defined(__aarch64__)

asm(R"(
.text
.globl russet_switch_context
.hidden russet_switch_context
.type russet_switch_context,%function
russet_switch_context:
  sub sp, sp, #176
  stp x19, x20, [sp]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #176
  br x30
.size russet_switch_context,.-russet_switch_context
)");

extern "C" void russet_switch_context(void** from, void* to);

namespace russet::simulator {

Context make_context(std::byte* top, void (*entry)()) {
  auto* words = reinterpret_cast<std::uintptr_t*>(top) - 22;
  for (int i = 0; i < 22; ++i) words[i] = 0;
  words[11] = reinterpret_cast<std::uintptr_t>(entry);  // x30
  return words;
}

void switch_context(Context* from, Context to) { russet_switch_context(from, to); }

}  // namespace russet::simulator

#else
#error "the simulated GPU runs on x86-64 and aarch64"
#endif
