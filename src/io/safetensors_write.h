#pragma once
// Shared by save_safetensors and save_checkpoint.
#include <russet/io/safetensors.h>
#include <functional>

namespace russet::io {

/// The header's text, padded so that data begins at a multiple of 64 bytes, and the order of the data: wide types
/// first, else as they come.
struct SafetensorsLayout {
  std::string header;              // with the 8 bytes of its length
  std::vector<std::size_t> order;  // positions in the StateDict
};
SafetensorsLayout lay_out_safetensors(const StateDict& tensors, const Metadata& metadata);

}  // namespace russet::io
