#include "device/gpu/templates/tiles.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "device/gpu/emitter/emit.h"
#include "device/gpu/templates/tile_table.h"

namespace russet::gpu {
namespace {

constexpr std::int64_t enough_tiles = 64;  // that each core of any of these GPUs gets at least one

/// TileMemory of tile.metal.
std::size_t memory_of(const Tile& tile) {
  const int floats = tile.rows * (tile.depth + 4) + tile.depth * (tile.columns + 4);
  return static_cast<std::size_t>(floats) * sizeof(float);
}

/// A last slice that holds nothing but zeros would turn a sum of -0 into 0: slices of 32 are for parts that slices of
/// 16 fill in pairs.
bool same_slices(const Tile& tile, const TileProblem& problem) {
  const std::int64_t last = divide_up(problem.depth - (problem.splits - 1) * problem.chunk, 16) * 16;
  return (problem.splits == 1 || problem.chunk % tile.depth == 0) && last % tile.depth == 0;
}

}  // namespace

std::string to_string(const Tile& tile) {
  return fmt::format("{}x{}{}", tile.rows, tile.columns, tile.depth == 16 ? "" : fmt::format("x{}", tile.depth));
}

TileShape shape_of(const TileProblem& problem) {
  const bool tall = problem.rows > 32;
  const bool wide = problem.columns > 32;
  const std::int64_t tiles = divide_up(problem.rows, tall ? 64 : 32) * divide_up(problem.columns, wide ? 64 : 32);
  if (tall == wide && !tall) return TileShape::few;
  if (tiles * problem.batches * problem.splits < enough_tiles) return TileShape::few;
  return tall && wide ? TileShape::large : tall ? TileShape::tall : TileShape::wide;
}

Tile preferred_tile(std::string_view family, const TileProblem& problem) {
  const auto* row = std::find_if(std::begin(tile_table), std::end(tile_table),
                                 [&](const TilePreference& entry) { return entry.family == family; });
  if (row == std::end(tile_table)) row = std::prev(std::end(tile_table));
  Tile tile = row->tiles[static_cast<std::size_t>(shape_of(problem))];
  if (!same_slices(tile, problem)) tile.depth = 16;
  return tile;
}

std::vector<Tile> candidate_tiles(std::string_view family, std::uint32_t group_memory, const TileProblem& problem) {
  std::vector<Tile> tiles{preferred_tile(family, problem)};
  for (const int rows : {32, 64}) {
    for (const int columns : {32, 64}) {
      for (const int depth : {16, 32}) {
        const Tile tile{rows, columns, depth};
        const bool empty = (rows == 64 && problem.rows <= 32) || (columns == 64 && problem.columns <= 32);
        if (empty || tile == tiles.front() || memory_of(tile) > group_memory || !same_slices(tile, problem)) continue;
        tiles.push_back(tile);
      }
    }
  }
  return tiles;
}

}  // namespace russet::gpu
