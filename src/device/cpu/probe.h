#pragma once
// What this machine does now, measured: the limits that a kernel's speed is held against. Speeds of shared machines
// vary by a factor of two within minutes, so measure next to what is compared.

namespace russet::cpu {

struct MachineLimits {
  double float32_rate = 0;      // multiply-adds count as two operations a second, all threads, registers and L1 only
  double bfloat16_rate = 0;     // the same in a large product by oneDNN; 0 without bfloat16 instructions
  double memory_bandwidth = 0;  // bytes a second, read and written, by a copy that misses all caches
};

/// Takes about a third of a second.
MachineLimits measure_limits();

}  // namespace russet::cpu
