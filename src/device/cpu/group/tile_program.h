#pragma once
// The bytecode of tiles: what happens to each tile, with loops resolved and registers placed.
#include <vector>

#include "compile/group.h"
#include "device/cpu/group/loops.h"
#include "device/cpu/group/tiling.h"

namespace russet::cpu::tiles {

/// How many numbers of a tile a value has.
enum class Form : std::uint8_t {
  uniform,  // one number for the whole run, repeated splat_count times
  rows,     // one number for each row of the tile
  full,     // rows times columns
  row,      // the number of one row, repeated splat_count times: how a `rows` value is read beside a `full` one
};

struct TileOp {
  enum class Kind : std::uint8_t {
    load,       // view -> out
    load_here,  // no copy: out points into the operand's memory
    store,      // in[0] -> view
    index,      // affine numbers of view -> out
    scalar,     // argument -> out
    splat,      // first element of in[0] -> out, repeated
    expand,     // in[0], a number a row -> out
    compute,
    random,      // at positions in[0], or at the affine ones of view -> out
    reduce,      // in[0] -> out, positions or means -> second
    accumulate,  // in[0], positions or means in[1] into accumulator `number`
    total,       // accumulator `number` -> out
  };
  Kind kind = Kind::compute;
  Form form = Form::full;  // how many elements it works on
  ops::Op op = ops::Op::leaf;
  TileType tile_type = TileType::f32;  // of the result; of the input for stores, reductions and accumulation
  DType dtype = DType::float32;
  std::int16_t out = -1;
  std::int16_t second = -1;
  std::array<std::int16_t, 3> in{-1, -1, -1};
  std::array<bool, 3> step{true, true, true};
  std::int32_t view = -1;
  std::int32_t number = -1;  // argument or accumulator
  std::uint64_t seed = 0;
  bool dense = false;  // loads and stores: the box is one run in memory

  // The loop, by kind.
  Compute compute = nullptr;
  Load load = nullptr;
  Store store = nullptr;
  Reduce reduce = nullptr;
  Expand expand = nullptr;
  Random random = nullptr;
  RandomRun random_run = nullptr;
};

/// Where a value of a program lives.
struct Register {
  enum class Kind : std::uint8_t { none, scratch, constant, memory };
  Kind kind = Kind::none;
  std::size_t offset = 0;  // in scratch or among the constants
};

/// One reduction's running result: float64 or int64 numbers; for argmax and argmin also their positions; for
/// squared_deviations also the mean and the number of elements.
struct Accumulator {
  ops::Op op = ops::Op::sum;
  TileType tile_type = TileType::f32;
  bool has_positions() const { return op == ops::Op::argmax || op == ops::Op::argmin; }
  bool has_means() const { return op == ops::Op::squared_deviations; }
  std::int64_t arrays() const { return has_means() ? 3 : has_positions() ? 2 : 1; }
};

struct TileProgram {
  const Nest* nest = nullptr;
  std::vector<TileOp> prelude;  // once a run
  std::vector<TileOp> body;     // for each tile
  std::vector<Register> registers;
  std::vector<std::byte> constants;
  std::size_t scratch_bytes = 0;
  /// Estimated nanoseconds for an element of a tile.
  double cost = 0;
};

/// Which instructions a program runs.
enum class ProgramPart : std::uint8_t {
  whole,    // all of them; in direct mode
  reduce,   // those that reductions depend on, the reductions, and stores of full values
  results,  // those that depend on reductions; they run over the kept axes
};

/// Translates the part of `group` that `part` names to run on tiles of `nest`. `accumulators` are filled by `reduce`
/// and read by `results`, in the order of the group's reductions.
TileProgram translate(const compile::Group& group, const Tiling& tiling, ProgramPart part);

/// The accumulators of a group, one for each reduction.
std::vector<Accumulator> accumulators_of(const compile::Group& group);

/// Whether a full instruction depends on a reduction.
bool full_follows_reduction(const compile::Group& group);

}  // namespace russet::cpu::tiles
