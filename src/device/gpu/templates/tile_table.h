#pragma once
// The tiles that a family of Apple's GPUs prefers where nothing was measured.
//
// None of these was measured by us: no such GPU has run russet. What they rest on:
// - A threadgroup has 32 KiB of memory on every family; the tiles here take 5 to 10 KiB, so that several threadgroups
//   share a core, and one loads while another multiplies.
// - A simdgroup loads a matrix of 8x8 from threadgroup memory for each eight rows and each eight columns of its
//   quarter, and multiplies each pair of them: 64x64 loads 8 for 16 products, 64x32 and 32x64 load 6 for 8, 32x32 loads
//   4 for 4.
//   So large tiles are better as long as there are enough of them for all cores, and as a result has rows and columns
//   to fill them. A lane holds 8, 16 or 32 sums.
// - MLX, which was measured on these GPUs, has tiles of 32 and 64 rows and columns as well, in slices of 16 and 32, and
//   takes the large ones for large products (mlx/backend/metal/matmul.cpp).
// - Apple7 and Apple8 (M1, M2) grant a thread its registers for the whole kernel. From Apple9 on (M3, M4) registers and
//   threadgroup memory are cached as they are used ("dynamic caching"), so that what a short side leaves unused costs
//   less. There the two squares serve all shapes: fewer kernels to compile, and products of different shapes share
//   their launches.
#include <string_view>

#include "device/gpu/templates/tiles.h"

namespace russet::gpu {

/// A family's tiles, by TileShape.
struct TilePreference {
  std::string_view family;
  Tile tiles[4];
};

inline constexpr TilePreference tile_table[] = {
    // family    few           tall          wide          large
    {"apple7", {{32, 32, 16}, {64, 32, 16}, {32, 64, 16}, {64, 64, 16}}},
    {"apple8", {{32, 32, 16}, {64, 32, 16}, {32, 64, 16}, {64, 64, 16}}},
    {"apple9", {{32, 32, 16}, {32, 32, 16}, {32, 32, 16}, {64, 64, 16}}},
    {"apple10", {{32, 32, 16}, {32, 32, 16}, {32, 32, 16}, {64, 64, 16}}},
};

}  // namespace russet::gpu
