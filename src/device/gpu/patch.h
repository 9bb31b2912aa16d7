#pragma once
// Patch: where a run-time argument goes in what a launch hands to its kernel.
#include <cstddef>
#include <cstdint>

namespace russet::gpu {

/// A run-time argument that goes into the bytes of values or of a table at `at`.
struct Patch {
  enum class Form : std::uint8_t {
    bits,      // 8 bytes as they are (long, ulong)
    int32,     // an int64 as int, wrapped
    float32,   // a double rounded to float
    float16,   // a double rounded to float, then to float16, as float
    bfloat16,  // likewise
  };
  std::uint32_t at = 0;
  std::int32_t argument = -1;
  Form form = Form::bits;
};

/// Puts an argument's value into the bytes.
void apply(const Patch& patch, std::uint64_t argument, std::byte* bytes);

}  // namespace russet::gpu
