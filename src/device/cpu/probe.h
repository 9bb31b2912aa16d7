#pragma once
// Measures the machine's peak rates, which a kernel's speed is compared with. On shared machines they vary by a factor
// of two within minutes, so measure them next to the kernel.

namespace russet::cpu {

struct MachineLimits {
  double float32_rate = 0;      // multiply-adds count as two operations a second, all threads, registers and L1 only
  double bfloat16_rate = 0;     // the same in a large product by oneDNN; 0 without bfloat16 instructions
  double memory_bandwidth = 0;  // bytes a second, read and written, by a copy that misses all caches
};

/// Takes about a third of a second.
MachineLimits measure_limits();

}  // namespace russet::cpu
