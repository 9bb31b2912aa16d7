// What clang's instrumentation calls before each access of a checked kernel.
#include "hooks.h"

#include <fmt/format.h>
#include <russet/error.h>
#include <cstring>
#include <string_view>

#include "device/gpu/simulator/executor.h"
#include "device/gpu/simulator/line.h"
#include "finding.h"
#include "space.h"

#define RUSSET_SIMULATOR_HOST
#include "device/gpu/kernels/prelude/simulator/trampolines.h"

namespace russet::simulator {
namespace {

AddressSpace* space = nullptr;  // when the first checked module has been loaded

[[gnu::noinline]] void conflict_at(const Access& access, std::size_t byte, Conflict conflict, ShadowCell old,
                                   const IntervalClock& clock) {
  Access part = access;
  part.address += byte;
  report_conflict(Executor::running(), part, conflict, old, clock);
}

[[gnu::always_inline]] inline void touch_all(ShadowCell* cells, IntervalClock& clock, const Access& access,
                                             std::uint32_t thread) {
  const Toucher who{thread, access.write, access.atomic};
  ShadowCell old;
  if (access.bytes == 1 || access.address % 2 != 0) {
    for (std::uint32_t i = 0; i < access.bytes; ++i) {
      const std::uint32_t byte = static_cast<std::uint32_t>(access.address % 2) + i;
      old = load_cell(cells[byte / 2]);
      const Conflict conflict = touch_byte(cells[byte / 2], byte % 2, clock, who);
      if (conflict != Conflict::none) return conflict_at(access, i, conflict, old, clock);
    }
    return;
  }
  for (std::uint32_t i = 0; i < access.bytes / 2; ++i) {
    const Conflict conflict = touch(cells[i], clock, who, old);
    if (conflict != Conflict::none) return conflict_at(access, i * 2, conflict, old, clock);
  }
}

/// Whether all bits are set; a write sets them. `shared`: other cores may set bits beside these.
[[gnu::always_inline]] inline bool bits_set(std::uint8_t* bits, std::uintptr_t address, std::uint32_t count, bool write,
                                            bool shared) {
  const std::uint32_t shift = static_cast<std::uint32_t>(address % 8);
  std::uint32_t mask = ((1u << count) - 1) << shift;
  bool all = true;
  for (; mask != 0; mask >>= 8, ++bits) {
    const auto part = static_cast<std::uint8_t>(mask);
    const std::uint8_t now = __atomic_load_n(bits, __ATOMIC_RELAXED);
    if ((now & part) == part) continue;
    all = false;
    if (!write) continue;
    if (shared) {
      __atomic_fetch_or(bits, part, __ATOMIC_RELAXED);
    } else {
      *bits = now | part;
    }
  }
  return all;
}

/// Whether one binding allows the whole access.
bool allowed(const Window& window, const Access& access) {
  for (const Span& span : window.spans) {
    if (access.address >= span.begin && access.address + access.bytes <= span.end && (span.writable || !access.write)) {
      return true;
    }
  }
  return false;
}

[[gnu::noinline]] void refuse(const Access& access) {
  Executor& executor = Executor::running();
  report_bounds(executor, access);
  executor.abandon();
}

[[gnu::always_inline]] inline void check_device(const Access& access) {
  const Window& window = space->window_at(access.address);
  if (access.address < window.begin || access.address + access.bytes > window.end ||
      (access.write && !window.writable) || (!window.plain && !allowed(window, access))) {
    return refuse(access);
  }
  if (window.partly && !bits_set(space->bits_of(access.address), access.address, access.bytes, access.write, true) &&
      !access.write) {
    report_uninitialised(Executor::running(), access);
  }
  if (!window.recorded) return;
  Executor& executor = Executor::running();
  IntervalClock& clock = executor.shadow().device;
  if (clock.exhausted) return;
  touch_all(&space->cell(access.address), clock, access, executor.threadgroup().current);
  if (clock.divided) {
    clock.divided = false;
    space->divided.store(true, std::memory_order_relaxed);
  }
}

[[gnu::always_inline]] inline void check_group(Executor& executor, const Access& access, std::size_t offset) {
  const auto index = static_cast<std::uint32_t>(offset / russet_simulator::group_window_bytes);
  const Threadgroup& threadgroup = executor.threadgroup();
  const std::size_t inside = offset - russet_simulator::group_array_offset(index);
  if (index >= threadgroup.group_arrays || inside + access.bytes > threadgroup.arrays[index].bytes ||
      inside > threadgroup.arrays[index].bytes) {
    return refuse(access);
  }
  GroupShadow& shadow = executor.shadow();
  if (!bits_set(shadow.bits(offset), offset, access.bytes, access.write, false) && !access.write) {
    report_uninitialised(executor, access);
  }
  if (!shadow.group.exhausted) touch_all(&shadow.cell(offset), shadow.group, access, threadgroup.current);
}

[[gnu::noinline]] void check(Access access) {
  if (space->holds(access.address)) return check_device(access);
  Executor& executor = Executor::running();
  if (executor.owns_stack(reinterpret_cast<const void*>(access.address))) {
    if (Stacks::misses(access.address, access.bytes)) refuse(access);
    if (access.write) {
      Stacks::end_unwritten(access.address, access.bytes);
    } else if (Stacks::any_unwritten(access.address, access.bytes)) {
      report_uninitialised(executor, access);
    }
    return;
  }
  const std::size_t offset = access.address - reinterpret_cast<std::uintptr_t>(executor.threadgroup().group_memory);
  if (offset < GroupShadow::memory_bytes) return check_group(executor, access, offset);
  if (access.write || !executor.in_module(access.address)) refuse(access);
}

// The common cases of check(), in few instructions: bytes that lie whole in one variable (Stacks::touch_quickly), and
// cells that nobody else has touched. Each says whether it was one; if not, check() begins again.

/// Whether all cells are common cases.
template <std::uint32_t bytes, bool write>
[[gnu::always_inline]] inline bool simple_cells(ShadowCell* first, const IntervalClock& clock, std::uint32_t thread) {
  if constexpr (bytes < 4) return false;
  const Toucher who{thread, write, false};
  const ShadowCell mine = record_of(clock, who);
  // Two at a time: those of one number are alike.
  auto* const cells = reinterpret_cast<std::uint64_t*>(first);
  constexpr std::uint64_t both = (std::uint64_t{1} << 32) + 1;
  for (std::uint32_t i = 0; i < bytes / 4; ++i) {
    const std::uint64_t old = __atomic_load_n(cells + i, __ATOMIC_RELAXED);
    const auto low = static_cast<ShadowCell>(old);
    const auto high = static_cast<ShadowCell>(old >> 32);
    ShadowCell now;
    if (low != high && (low | high) >= clock.first << cell_id_shift) return false;
    if (!touch_quickly(low, mine, clock, who, now)) return false;
    if (old != now * both) __atomic_store_n(cells + i, now * both, __ATOMIC_RELAXED);
  }
  return true;
}

/// A window that needs no further thought.
template <std::uint32_t bytes, bool write>
[[gnu::always_inline]] inline bool simple_device(std::uintptr_t address) {
  const Window& window = space->window_at(address);
  if (address < window.begin || address + bytes > window.end || !(write ? window.simple_write : window.simple_read)) {
    return false;
  }
  if (!window.recorded) return true;
  Executor& executor = Executor::running();
  const IntervalClock& clock = executor.shadow().device;
  return clock.exhausted || simple_cells<bytes, write>(&space->cell(address), clock, executor.threadgroup().current);
}

/// An array of the threadgroup, of which all that is read has been written.
template <std::uint32_t bytes, bool write>
[[gnu::always_inline]] inline bool simple_group(Executor& executor, std::size_t offset) {
  const auto index = static_cast<std::uint32_t>(offset / russet_simulator::group_window_bytes);
  const Threadgroup& threadgroup = executor.threadgroup();
  const std::size_t inside = offset - russet_simulator::group_array_offset(index);
  if (index >= threadgroup.group_arrays || inside >= threadgroup.arrays[index].bytes ||
      inside + bytes > threadgroup.arrays[index].bytes) {
    return false;
  }
  GroupShadow& shadow = executor.shadow();
  if constexpr (bytes <= 8) {
    const auto mask = static_cast<std::uint8_t>(((1u << bytes) - 1) << offset % 8);
    std::uint8_t& bits = *shadow.bits(offset);
    if ((bits & mask) != mask) {
      if (!write) return false;
      bits |= mask;
    }
  } else {
    auto& bits = *reinterpret_cast<std::uint16_t*>(shadow.bits(offset));
    if (bits != 0xffff) {
      if (!write) return false;
      bits = 0xffff;
    }
  }
  return shadow.group.exhausted || simple_cells<bytes, write>(&shadow.cell(offset), shadow.group, threadgroup.current);
}

template <std::uint32_t bytes, bool write>
[[gnu::always_inline]] inline bool simple(std::uintptr_t address) {
  if (space->holds(address)) return simple_device<bytes, write>(address);
  Executor& executor = Executor::running();
  const std::size_t offset = address - reinterpret_cast<std::uintptr_t>(executor.threadgroup().group_memory);
  return offset < GroupShadow::memory_bytes && simple_group<bytes, write>(executor, offset);
}

/// What is no common case of a stack.
template <std::uint32_t bytes, bool write, bool aligned>
[[gnu::noinline]] void look(std::uintptr_t address, const void* site) {
  const bool on_boundary = address % bytes == 0;
  if (on_boundary && simple<bytes, write>(address)) return;
  const Access access{address, bytes, write, false, site};
  if (aligned && !on_boundary) return refuse(access);
  check(access);
}

template <std::uint32_t bytes, bool write, bool aligned>
void hook(std::uintptr_t address) {
  if (address % bytes == 0 && Stacks::of_one(address, __builtin_frame_address(0)) &&
      Stacks::touch_quickly<bytes, write>(address)) {
    return;
  }
  look<bytes, write, aligned>(address, __builtin_return_address(0));
}

void check_range(const void* begin, std::size_t bytes, bool write, const void* site) {
  auto address = reinterpret_cast<std::uintptr_t>(begin);
  const Executor& executor = Executor::running();
  if (bytes > 0 && executor.owns_stack(begin) && executor.owns_stack(static_cast<const char*>(begin) + bytes - 1) &&
      !Stacks::misses(address, bytes) && (write || !Stacks::any_unwritten(address, bytes))) {
    if (write) Stacks::end_unwritten(address, bytes);
    return;
  }
  while (bytes > 0) {
    std::uint32_t part = 16;
    while (part > bytes || address % part != 0) part /= 2;
    check({address, part, write, false, site});
    address += part;
    bytes -= part;
  }
}

/// A copy of a thread's variable to another one, of which not all may have been written: true if it was one.
bool copy_on_stack(void* to, const void* from, std::size_t bytes) {
  const Executor& executor = Executor::running();
  const auto source = reinterpret_cast<std::uintptr_t>(from);
  const auto target = reinterpret_cast<std::uintptr_t>(to);
  const auto whole = [&](const void* begin, std::uintptr_t address) {
    return executor.owns_stack(begin) && executor.owns_stack(static_cast<const char*>(begin) + bytes - 1) &&
           !Stacks::misses(address, bytes);
  };
  if (bytes == 0 || !whole(from, source) || !whole(to, target)) return false;
  Stacks::copy_unwritten(target, source, bytes);
  return true;
}

void* copy_hook(void* to, const void* from, std::size_t bytes) {
  if (copy_on_stack(to, from, bytes)) return std::memmove(to, from, bytes);
  check_range(from, bytes, false, __builtin_return_address(0));
  check_range(to, bytes, true, __builtin_return_address(0));
  return std::memmove(to, from, bytes);
}
void* set_hook(void* to, int value, std::size_t bytes) {
  check_range(to, bytes, true, __builtin_return_address(0));
  return std::memset(to, value, bytes);
}

using Word = std::uint32_t;

[[gnu::always_inline]] inline void check_atomic(const volatile Word* object, bool write, const void* site) {
  check({reinterpret_cast<std::uintptr_t>(object), sizeof(Word), write, true, site});
}
Word load_hook(const volatile Word* object, int) {
  check_atomic(object, false, __builtin_return_address(0));
  return __atomic_load_n(object, __ATOMIC_RELAXED);
}
void store_hook(volatile Word* object, Word value, int) {
  check_atomic(object, true, __builtin_return_address(0));
  __atomic_store_n(object, value, __ATOMIC_RELAXED);
}
Word exchange_hook(volatile Word* object, Word value, int) {
  check_atomic(object, true, __builtin_return_address(0));
  return __atomic_exchange_n(object, value, __ATOMIC_RELAXED);
}
template <Word (*apply)(volatile Word*, Word)>
Word fetch_hook(volatile Word* object, Word value, int) {
  check_atomic(object, true, __builtin_return_address(0));
  return apply(object, value);
}
Word fetch_add(volatile Word* o, Word v) { return __atomic_fetch_add(o, v, __ATOMIC_RELAXED); }
Word fetch_sub(volatile Word* o, Word v) { return __atomic_fetch_sub(o, v, __ATOMIC_RELAXED); }
Word fetch_and(volatile Word* o, Word v) { return __atomic_fetch_and(o, v, __ATOMIC_RELAXED); }
Word fetch_or(volatile Word* o, Word v) { return __atomic_fetch_or(o, v, __ATOMIC_RELAXED); }
Word fetch_xor(volatile Word* o, Word v) { return __atomic_fetch_xor(o, v, __ATOMIC_RELAXED); }
int compare_hook(volatile Word* object, Word* expected, Word desired, int, int) {
  check_atomic(object, true, __builtin_return_address(0));
  return __atomic_compare_exchange_n(object, expected, desired, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}
Word compare_value_hook(volatile Word* object, Word expected, Word desired, int, int) {
  check_atomic(object, true, __builtin_return_address(0));
  __atomic_compare_exchange_n(object, &expected, desired, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return expected;
}

/// A function marks or frees its part of a stack: `shadow` is where the shadow lies.
template <int value>
void mark_hook(void* shadow, std::size_t bytes) {
  std::memset(shadow, value, bytes);
}
/// Two things in a kernel do not return: the trap of a check, for an access beyond an array whose length is in sight,
/// by whatever way its address was made; and a function whose loop has no end.
void trap_hook() {
  report_array(Executor::running(), __builtin_return_address(0));
  Executor::running().abandon();
}

void step_hook() { Executor::running().step(__builtin_return_address(0)); }

void* begin_own_hook(void* variable, unsigned long bytes) {
  Stacks::begin_unwritten(reinterpret_cast<std::uintptr_t>(variable), bytes);
  return variable;
}
void end_own_hook(const void* variable, unsigned long bytes) {
  Stacks::end_unwritten(reinterpret_cast<std::uintptr_t>(variable), bytes);
}

void shift_hook(void*, std::uintptr_t, std::uintptr_t) {
  report_arithmetic(Executor::running(), "a shift by the width of the number or more, or by less than 0",
                    __builtin_return_address(0));
}
void overflow_hook(void*, std::uintptr_t, std::uintptr_t) {
  report_arithmetic(Executor::running(), "a signed number that its type does not hold", __builtin_return_address(0));
}
void division_hook(void*, std::uintptr_t, std::uintptr_t divisor) {
  report_arithmetic(Executor::running(),
                    divisor == 0 ? "an integer division by zero" : "a signed number that its type does not hold",
                    __builtin_return_address(0));
  // The processor would stop the whole program.
  Executor::running().abandon();
}
void conversion_hook(void*, std::uintptr_t) {
  report_arithmetic(Executor::running(), "a conversion to an integer type that does not hold the number",
                    __builtin_return_address(0));
}
/// What clang tells of an array whose bounds were missed (compiler-rt, ubsan_handlers.h).
struct MissedArray {
  struct Type {
    std::uint16_t kind, info;
    char name[1];
  };
  const char* file;
  std::uint32_t line, column;
  const Type* array;
  const Type* index;
};

void index_hook(const MissedArray* missed, std::uintptr_t index) {
  report_index(Executor::running(), index, missed->array->name, __builtin_return_address(0));
  // What lies there may be another thread's stack.
  Executor::running().abandon();
}

struct Named {
  std::string_view name;
  void* function;
};

template <class Function>
Named named(std::string_view name, Function* function) {
  return {name, reinterpret_cast<void*>(function)};
}

const Named hooks[] = {
    named("__tsan_read1", hook<1, false, true>),
    named("__tsan_read2", hook<2, false, true>),
    named("__tsan_read4", hook<4, false, true>),
    named("__tsan_read8", hook<8, false, true>),
    named("__tsan_read16", hook<16, false, true>),
    named("__tsan_write1", hook<1, true, true>),
    named("__tsan_write2", hook<2, true, true>),
    named("__tsan_write4", hook<4, true, true>),
    named("__tsan_write8", hook<8, true, true>),
    named("__tsan_write16", hook<16, true, true>),
    named("__tsan_unaligned_read2", hook<2, false, false>),
    named("__tsan_unaligned_read4", hook<4, false, false>),
    named("__tsan_unaligned_read8", hook<8, false, false>),
    named("__tsan_unaligned_read16", hook<16, false, false>),
    named("__tsan_unaligned_write2", hook<2, true, false>),
    named("__tsan_unaligned_write4", hook<4, true, false>),
    named("__tsan_unaligned_write8", hook<8, true, false>),
    named("__tsan_unaligned_write16", hook<16, true, false>),
    named("memcpy", copy_hook),
    named("memmove", copy_hook),
    named("memset", set_hook),
    named("__tsan_memcpy", copy_hook),
    named("__tsan_memmove", copy_hook),
    named("__tsan_memset", set_hook),
    named("__tsan_atomic32_load", load_hook),
    named("__tsan_atomic32_store", store_hook),
    named("__tsan_atomic32_exchange", exchange_hook),
    named("__tsan_atomic32_fetch_add", fetch_hook<fetch_add>),
    named("__tsan_atomic32_fetch_sub", fetch_hook<fetch_sub>),
    named("__tsan_atomic32_fetch_and", fetch_hook<fetch_and>),
    named("__tsan_atomic32_fetch_or", fetch_hook<fetch_or>),
    named("__tsan_atomic32_fetch_xor", fetch_hook<fetch_xor>),
    named("__tsan_atomic32_compare_exchange_strong", compare_hook),
    named("__tsan_atomic32_compare_exchange_weak", compare_hook),
    named("__tsan_atomic32_compare_exchange_val", compare_value_hook),
    named("__ubsan_handle_shift_out_of_bounds", shift_hook),
    named("__ubsan_handle_divrem_overflow", division_hook),
    named("__ubsan_handle_float_cast_overflow", conversion_hook),
    named("__ubsan_handle_out_of_bounds", index_hook),
    named("__asan_set_shadow_00", mark_hook<0x00>),
    named("__asan_set_shadow_f1", mark_hook<0xf1>),
    named("__asan_set_shadow_f2", mark_hook<0xf2>),
    named("__asan_set_shadow_f3", mark_hook<0xf3>),
    named("__asan_handle_no_return", trap_hook),
    named("__ubsan_handle_add_overflow", overflow_hook),
    named("__ubsan_handle_sub_overflow", overflow_hook),
    named("__ubsan_handle_mul_overflow", overflow_hook),
    named("__ubsan_handle_negate_overflow", overflow_hook),
    named("russet_step", step_hook),
    named("russet_begin_own", begin_own_hook),
    named("russet_end_own", end_own_hook),
};

void* hook_of(std::string_view name) {
  for (const Named& row : hooks) {
    if (row.name == name) return row.function;
  }
  throw InternalError(fmt::format("simulated GPU: no hook is named {}", name));
}

}  // namespace

void fill_hooks(void** table) {
  space = &AddressSpace::shared();
#define RUSSET_FILL(name, index) table[index] = hook_of(#name);
  RUSSET_HOOKS(RUSSET_FILL)
#undef RUSSET_FILL
  table[russet_simulator::shadow_offset_index] = reinterpret_cast<void*>(Stacks::shadow_offset());
}

}  // namespace russet::simulator
