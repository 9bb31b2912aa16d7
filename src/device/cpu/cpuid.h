#pragma once
// What this processor is.
#include <string>
#include <vector>

namespace russet::cpu {

/// "Intel(R) Xeon(R) Processor", "Apple M2".
std::string processor_name();
/// The instruction sets that matter here and are usable: "avx2", "fma", "avx512f", "avx512_bf16", "amx_bf16", ...,
/// "neon".
std::vector<std::string> instruction_sets();

}  // namespace russet::cpu
