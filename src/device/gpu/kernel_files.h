#pragma once
// The files of kernels/ as the build put them into the library.
#include <string_view>

namespace russet::gpu {

struct KernelFile {
  std::string_view name;  // relative to kernels/
  std::string_view text;
};

/// Ends with an entry without a name.
extern const KernelFile kernel_files[];

}  // namespace russet::gpu
