#pragma once
// The tiles of contractions: all that may be taken for one give the same bits, so what a GPU prefers is free.
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/function_ref.h"
#include "compile/implementation.h"

namespace russet::gpu {

/// What a threadgroup computes of a result, and how much of the depth it holds at once.
struct Tile {
  int rows = 0, columns = 0;  // 32 or 64
  int depth = 16;             // 16 or 32
  bool operator==(const Tile&) const = default;
};
/// "64x32"; with the depth behind it where that is not 16.
std::string to_string(const Tile& tile);

/// What tiles are chosen by: sizes of a contraction, and the parts that its depth is split into, each but the last of
/// `chunk`, a multiple of 16.
struct TileProblem {
  std::int64_t rows = 1, columns = 1, depth = 1, batches = 1;
  std::int64_t splits = 1, chunk = 16;
};

/// How a result fills tiles: `few` where tiles as large as its sides allow would leave cores idle; else `tall` has at
/// most 32 columns, `wide` at most 32 rows.
enum class TileShape : std::uint8_t { few, tall, wide, large };
TileShape shape_of(const TileProblem& problem);

/// The table's tile for a GPU's family ("apple9"); the newest family's for one that it does not know.
Tile preferred_tile(std::string_view family, const TileProblem& problem);

/// Tiles that give the bits that the preferred one gives, which comes first. `group_memory`: bytes that a threadgroup
/// may have.
std::vector<Tile> candidate_tiles(std::string_view family, std::uint32_t group_memory, const TileProblem& problem);

/// A contraction that wants a tile.
struct TileQuestion {
  std::span<const Tile> candidates;                         // the table's first
  base::FunctionRef<std::string()> key;                     // says all that their speed depends on
  base::FunctionRef<compile::KernelPtr(const Tile&)> make;  // the kernel with that tile
};

/// An answer other than the table's, if there is one.
class TileAdviser {
 public:
  virtual ~TileAdviser() = default;
  /// One of the candidates, or none (rows = 0): then the table holds.
  virtual Tile advise(const TileQuestion& question) = 0;
};

}  // namespace russet::gpu
