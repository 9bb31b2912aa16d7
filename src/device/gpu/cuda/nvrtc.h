#pragma once
// NVRTC: CUDA's compiler at run time, for kernels in the dialect.
#include <stdexcept>
#include <string>

#include "device/gpu/launch.h"

namespace russet::cuda {

/// The compiler refuses a text; its words.
class CompileError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Cubin {
  std::string code;  // an ELF file
  std::string log;   // warnings, and what the assembler says of registers
};

/// A unit as it is compiled.
std::string source_of(const gpu::CompilationUnit& unit);
/// What, besides the text, the machine code depends on: version, prelude, options. Throws DeviceError if there is no
/// NVRTC.
std::string compiler_name(int capability);
/// A source as machine code for GPUs of a compute capability (90 is 9.0). Throws CompileError, and DeviceError if there
/// is no NVRTC. Thread-safe.
Cubin compile(const std::string& source, int capability);

}  // namespace russet::cuda
