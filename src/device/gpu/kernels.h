#pragma once
// The texts under src/device/gpu/kernels, which are a part of the library.
#include <span>
#include <string_view>

namespace russet::gpu {

/// A file of that folder: its name there ("math.metal", "prelude/metal.h") and what it holds.
struct KernelFile {
  std::string_view name;
  std::string_view text;
};

/// All of them, by name.
std::span<const KernelFile> kernel_files();

/// One of them. Throws InternalError if there is none of that name.
std::string_view kernel_text(std::string_view name);

}  // namespace russet::gpu
