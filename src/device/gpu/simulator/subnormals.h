#pragma once
// Subnormal numbers on this thread: kept, or flushed to zero as Apple's GPUs may.
#include <cstdint>
#ifdef __SSE__
#include <xmmintrin.h>
#endif

namespace russet::simulator {

/// For as long as it lives, arithmetic of this thread flushes subnormal operands and results if `flush`.
class SubnormalMode {
 public:
  explicit SubnormalMode(bool flush) : before_(control()) {
    if (flush) set_control(before_ | flush_bits);
  }
  ~SubnormalMode() { set_control(before_); }
  SubnormalMode(const SubnormalMode&) = delete;
  SubnormalMode& operator=(const SubnormalMode&) = delete;

 private:
#if defined(__SSE__)
  using Control = std::uint32_t;
  static constexpr Control flush_bits = 0x8040;  // results, and operands
  static Control control() { return _mm_getcsr(); }
  static void set_control(Control value) { _mm_setcsr(value); }
#elif defined(__aarch64__)
  using Control = std::uint64_t;
  static constexpr Control flush_bits = 1u << 24;
  static Control control() {
    Control value;
    asm volatile("mrs %0, fpcr" : "=r"(value));
    return value;
  }
  static void set_control(Control value) { asm volatile("msr fpcr, %0" ::"r"(value)); }
#else
#error "the simulated GPU runs on x86-64 and aarch64"
#endif

  Control before_;
};

}  // namespace russet::simulator
