#include "device/gpu/kernels.h"

#include <fmt/format.h>
#include <russet/error.h>

namespace russet::gpu {

std::string_view kernel_text(std::string_view name) {
  for (const KernelFile& kernel : kernel_files()) {
    if (kernel.name == name) return kernel.text;
  }
  throw InternalError(fmt::format("no text of a kernel is named {}", name));
}

}  // namespace russet::gpu
