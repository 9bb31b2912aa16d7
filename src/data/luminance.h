#pragma once
// The luminance of an RGB pixel: ITU-R 601-2 in fixed point, the same bits as Pillow's.
#include <cstdint>

namespace russet::data {

inline std::uint8_t luminance(const std::uint8_t* rgb) {
  return static_cast<std::uint8_t>((rgb[0] * 19595 + rgb[1] * 38470 + rgb[2] * 7471 + 32768) >> 16);
}

}  // namespace russet::data
