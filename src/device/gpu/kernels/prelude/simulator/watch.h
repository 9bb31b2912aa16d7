#pragma once
// What the simulator (simulator/kernel_text.h) adds to the text of checked kernels. "Pair pair;" becomes
// "RUSSET_BARE Pair russet_own_pair; RUSSET_OWN(pair);", since nothing has written it yet, and RUSSET_STEP stands
// before the condition of each loop.
#include "scalars.h"

#ifdef RUSSET_CHECKED
extern "C" {
/// Begins the life of a variable that nothing has written, and gives its address back: the compiler takes what lies
/// there for anybody's memory, accesses to which are checked.
__attribute__((visibility("hidden"))) void* russet_begin_own(void* variable, ulong bytes);
__attribute__((visibility("hidden"))) void russet_end_own(const void* variable, ulong bytes);
__attribute__((visibility("hidden"))) void russet_step();
}

namespace russet_simulator {

template <class T>
struct Own {
  T& variable;
  /// A struct whose members have initial values has been written.
  [[gnu::always_inline]] explicit Own(T& declared)
      : variable(__is_trivially_constructible(T) ? *static_cast<T*>(russet_begin_own(&declared, sizeof(T)))
                                                 : declared) {}
  [[gnu::always_inline]] ~Own() { russet_end_own(&variable, sizeof(T)); }
};

}  // namespace russet_simulator

#define RUSSET_OWN(name)                                                                          \
  const russet_simulator::Own<decltype(russet_own_##name)> russet_life_##name(russet_own_##name); \
  [[maybe_unused]] auto& name = russet_life_##name.variable
// What is watched needs no pattern to stand for a value.
#define RUSSET_BARE [[clang::uninitialized]]
#define RUSSET_STEP russet_step(),
#endif
