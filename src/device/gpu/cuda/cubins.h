#pragma once
// Cubins: machine code of units, by NVRTC or from the files that earlier runs left.
#include <filesystem>
#include <string>

#include "base/disk_cache.h"
#include "device/gpu/launch.h"

namespace russet::cuda {

/// A file a unit: text, GPU, NVRTC's version and its options make its name. What is damaged is made anew. Thread-safe.
class Cubins {
 public:
  /// `folder`: none is kept if it is empty. `capability`: compute capability, 90 is 9.0. Throws DeviceError if there is
  /// no NVRTC.
  Cubins(std::filesystem::path folder, int capability);

  /// What, besides the text, the machine code depends on.
  const std::string& compiler() const { return compiler_; }
  /// An ELF file. Throws DeviceError with the compiler's words.
  std::string of(const gpu::CompilationUnit& unit) const;

 private:
  std::string known(const std::string& name) const;
  void keep(const std::string& name, const std::string& code) const;

  base::DiskCache files_;
  int capability_;
  std::string compiler_;
};

/// Where machine code of this user lies; empty if there is no such folder.
std::filesystem::path cubin_folder();

}  // namespace russet::cuda
