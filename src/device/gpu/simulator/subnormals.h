#pragma once
// Subnormal numbers on this thread: kept, or flushed to zero as Apple's GPUs may.
#include <xmmintrin.h>

#include <cstdint>

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
  using Control = std::uint32_t;
  static constexpr Control flush_bits = 0x8040;  // results, and operands
  static Control control() { return _mm_getcsr(); }
  static void set_control(Control value) { _mm_setcsr(value); }

  Control before_;
};

}  // namespace russet::simulator
