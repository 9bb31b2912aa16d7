#pragma once
// Shared by save_safetensors and save_checkpoint.
#include <russet/io/safetensors.h>
#include <functional>
#include <span>

namespace russet::io {

/// The header's text, padded so that data begins at a multiple of 64 bytes, and the order of the data: wide types
/// first, else as they come.
struct SafetensorsLayout {
  std::string header;              // with the 8 bytes of its length
  std::vector<std::size_t> order;  // positions in the StateDict
};
SafetensorsLayout lay_out_safetensors(const StateDict& tensors, const Metadata& metadata);

/// The data in the layout's order, in pieces, so that no large tensor is in memory twice.
void visit_data(const SafetensorsLayout& layout, const StateDict& tensors,
                const std::function<void(std::span<const std::byte>)>& take);

}  // namespace russet::io
