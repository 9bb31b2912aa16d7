#pragma once
// What Pillow's Convert.c (hsv2rgb) makes of a hue and of a saturation, each a byte, before it looks at the value.
#include <array>
#include <cstddef>
#include <cstdint>

namespace russet::data::pixels {

struct HueTable {
  std::array<std::int32_t, 256> sector{};  // of the six, by hue
  std::array<float, 256> part{};           // how far into its sector a hue lies
  std::array<float, 256> share{};          // of 1, by saturation
};

constexpr HueTable make_hue_table() {
  HueTable table;
  for (std::size_t byte = 0; byte < 256; ++byte) {
    const double turn = static_cast<double>(byte) * 6.0 / 255.0;
    const auto sector = static_cast<std::int32_t>(turn);
    table.sector[byte] = sector % 6;
    table.part[byte] = static_cast<float>(turn - sector);
    table.share[byte] = static_cast<float>(static_cast<double>(byte) / 255.0);
  }
  return table;
}

inline constexpr HueTable hue_table = make_hue_table();

}  // namespace russet::data::pixels
