#pragma once
// Barriers (Metal Shading Language Specification 6.9). Functions that threads execute together are convergent: the
// compiler must not move them to where fewer threads arrive.
#include "abi.h"
#include "scalars.h"

namespace metal {

enum class mem_flags : uint { mem_none = 0, mem_device = 1, mem_threadgroup = 2 };
inline mem_flags operator|(mem_flags a, mem_flags b) {
  return static_cast<mem_flags>(static_cast<uint>(a) | static_cast<uint>(b));
}

}  // namespace metal

extern "C" {
__attribute__((convergent, nomerge, visibility("hidden"))) void russet_barrier(uint spaces);
__attribute__((convergent, nomerge, visibility("hidden"))) void russet_simdgroup_barrier(uint spaces);
/// Waits for all lanes; the last one calls `combine`, which makes every lane's result of every lane's operand.
__attribute__((convergent, nomerge, visibility("hidden"))) void russet_simdgroup_function(
    void (*combine)(const russet_simulator::Lanes&), const void* in, void* out);
}

namespace metal {

[[gnu::always_inline]] inline void threadgroup_barrier(mem_flags flags) { russet_barrier(static_cast<uint>(flags)); }
[[gnu::always_inline]] inline void simdgroup_barrier(mem_flags flags) {
  russet_simdgroup_barrier(static_cast<uint>(flags));
}

}  // namespace metal
