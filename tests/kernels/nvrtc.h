#pragma once
// CUDA's compiler at run time, for kernels in the dialect.
#include <stdexcept>
#include <string>
#include <vector>

#include "device/gpu/launch.h"

namespace russet::kernels {

/// Whether this was built with CUDA's toolkit.
bool has_nvrtc();

struct Cubin {
  std::string code;  // an ELF file
  std::string log;   // warnings, and what the assembler says of registers
};

/// A unit as sm_90's machine code. Throws std::runtime_error with the compiler's words. Thread-safe.
Cubin compile_for_cuda(const gpu::CompilationUnit& unit);

}  // namespace russet::kernels
