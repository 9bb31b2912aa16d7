#pragma once
// JPEG files at a part of their size.
#include <russet/io/image.h>

namespace russet::io {

/// decode_reduced of a JPEG file; without `choose` at its full size.
int decode_jpeg_reduced(std::span<const std::byte> file, std::string_view name, int channels,
                        const ChooseReduction& choose, Image& image, const ImageLimits& limits);

}  // namespace russet::io
