#pragma once
// Cubins: machine code of units, by NVRTC or from the files that earlier runs left.
#include <filesystem>
#include <string>

#include "base/disk_cache.h"
#include "device/gpu/cuda/compilers.h"
#include "device/gpu/launch.h"

namespace russet::cuda {

/// A file a unit: text, GPU, NVRTC's version and its options make its name. What is damaged is made anew. Thread-safe.
class Cubins {
 public:
  /// `folder`: none is kept if it is empty. `compilers` outlives it.
  Cubins(std::filesystem::path folder, Compilers& compilers);

  /// An ELF file. Throws DeviceError with the compiler's words.
  std::string of(const gpu::CompilationUnit& unit) const;

 private:
  std::string known(const std::string& name) const;
  void keep(const std::string& name, const std::string& code) const;

  base::DiskCache files_;
  Compilers& compilers_;
};

/// Where machine code of this user lies; empty if there is no such folder.
std::filesystem::path cubin_folder();

}  // namespace russet::cuda
