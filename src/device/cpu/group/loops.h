#pragma once
// The loops that tile programs are made of, as tables of function pointers for the best instruction set at hand.
#include <russet/dtype.h>
#include <array>
#include <cstddef>
#include <cstdint>

#include "ops/op.h"

namespace russet::cpu::tiles {

/// The types that tiles are computed in; narrower types are converted on loading and storing.
enum class TileType : std::uint8_t { f32, f64, i32, i64 };
inline constexpr int tile_type_count = 4;

constexpr TileType tile_type_of(DType type) {
  if (type == DType::float64) return TileType::f64;
  if (type == DType::int64) return TileType::i64;
  return is_floating(type) ? TileType::f32 : TileType::i32;
}
constexpr std::size_t size_of(TileType tile_type) {
  return tile_type == TileType::f32 || tile_type == TileType::i32 ? 4 : 8;
}
constexpr bool is_floating(TileType tile_type) { return tile_type == TileType::f32 || tile_type == TileType::f64; }
/// Whether elements of this type lie in memory as they do in tiles.
constexpr bool is_tile_type(DType type) {
  return type == DType::float32 || type == DType::float64 || type == DType::int32 || type == DType::int64;
}

/// The memory of a tile is padded to a multiple of this many bytes. Loops write whole vectors, so they may write to the
/// padding.
inline constexpr std::size_t tile_alignment = 128;
/// A number that all elements of a tile share is stored this many times, which fills a vector; loops read it with
/// `step` false.
inline constexpr std::size_t splat_count = 16;

/// out[i] = f(in[0][i], ...). An input whose `step` is false stays at its first vector (a splat).
struct Operands {
  void* out = nullptr;
  std::array<const void*, 3> in{};
  std::array<bool, 3> step{true, true, true};
};
using Compute = void (*)(std::size_t count, const Operands& operands);

/// A rectangle between memory (strides in elements) and a tile (rows `pitch` elements apart).
struct Block {
  std::int64_t rows = 1;
  std::int64_t row_stride = 0;
  std::int64_t columns = 1;
  std::int64_t column_stride = 1;
  std::int64_t pitch = 0;
};
using Load = void (*)(const Block& block, const void* memory, void* tile);
using Store = void (*)(const Block& block, const void* tile, void* memory);
/// tile[r][c] = start + r * row_stride + c * column_stride.
using Index = void (*)(const Block& block, std::int64_t start, std::int64_t* tile);

/// Reduces each row (or each column) of a dense rows x columns tile. `more`: argmax and argmin give positions (int64)
/// there, squared_deviations the means (double) unless it is null.
using Reduce = void (*)(const void* tile, std::size_t rows, std::size_t columns, void* values, void* more);
/// tile[r][c] = values[r].
using Expand = void (*)(std::size_t rows, std::size_t columns, const void* values, void* tile);
using Random = void (*)(std::uint64_t seed, std::uint64_t offset, const std::int64_t* positions, std::size_t count,
                        void* out);

/// The same at positions start, start + 1, ...
using RandomRun = void (*)(std::uint64_t seed, std::uint64_t offset, std::int64_t start, std::size_t count, void* out);

inline constexpr int reduction_count = 7;
constexpr int reduction_of(ops::Op op) { return static_cast<int>(op) - static_cast<int>(ops::Op::sum); }
constexpr int random_of(ops::Op op) { return static_cast<int>(op) - static_cast<int>(ops::Op::uniform); }

template <class T>
using PerTileType = std::array<T, tile_type_count>;
template <class T>
using PerType = std::array<T, dtype_count>;

struct Loops {
  const char* target = "";
  /// By operator and type of the inputs (of the values, for where). Null where an operator does not take a type.
  std::array<PerTileType<Compute>, ops::op_count> compute{};
  /// From type, to type: as convert_element().
  PerTileType<PerTileType<Compute>> cast{};
  /// In-place rounding of a tile to a type narrower than its own; null where there is nothing to do.
  PerType<Compute> round{};
  PerType<Load> load{};
  PerType<Store> store{};
  Index index = nullptr;
  std::array<PerTileType<Reduce>, reduction_count> reduce_rows{};
  std::array<PerTileType<Reduce>, reduction_count> reduce_columns{};
  PerTileType<Expand> expand{};
  std::array<Random, 3> random{};
  std::array<RandomRun, 3> random_run{};
};

/// The loops for this machine.
const Loops& loops();

/// For tests: makes loops() choose among fewer instruction sets. Not while another thread makes or runs groups.
enum class InstructionSet : std::uint8_t { best, avx2, plain };
void limit_instruction_sets(InstructionSet most);

constexpr std::size_t at(TileType tile_type) { return static_cast<std::size_t>(tile_type); }
constexpr std::size_t at(DType type) { return static_cast<std::size_t>(type); }
constexpr std::size_t at(ops::Op op) { return static_cast<std::size_t>(op); }

}  // namespace russet::cpu::tiles
