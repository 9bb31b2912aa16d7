#pragma once
// Runs tile programs.
#include "compile/step.h"
#include "device/cpu/group/tile_program.h"

namespace russet::cpu::tiles {

/// Running results of one kept tile: for each accumulator its arrays of `stride` numbers of 8 bytes.
struct Accumulation {
  std::byte* arrays = nullptr;
  std::int64_t stride = 0;
};

/// The arrays that accumulators take.
std::int64_t line_count(const std::vector<Accumulator>& accumulators);
/// The first line of each accumulator.
std::vector<std::int64_t> first_arrays(const std::vector<Accumulator>& accumulators);

/// Sets `count` numbers of each accumulator to the reduction's identity: such as 0 for a sum.
void clear(const std::vector<Accumulator>& accumulators, const Accumulation& target, std::int64_t count);
/// Combines partial results: `to` = `to` with `from`, whose elements follow those of `to`.
void combine(const std::vector<Accumulator>& accumulators, const Accumulation& from, const Accumulation& to,
             std::int64_t count);

/// One program on one worker's scratch memory.
class TileInterpreter {
 public:
  /// Bytes of scratch memory that a worker needs.
  static std::size_t scratch_bytes(const TileProgram& program);
  /// Runs the prelude.
  TileInterpreter(const TileProgram& program, const std::vector<std::int64_t>& arrays,
                  const compile::Bindings& bindings, std::byte* scratch);
  /// Runs the body on a tile. `base` is the reduced position at which the tile starts.
  void run(const TileBounds& box, const Accumulation& accumulation = {}, std::int64_t base = 0);

 private:
  void run(const TileOp& op, const TileBounds& box, const Accumulation& accumulation, std::int64_t base);
  void load(const TileOp& op, const TileBounds& box);
  void load_here(const TileOp& op, const TileBounds& box);
  void store(const TileOp& op, const TileBounds& box);
  void index(const TileOp& op, const TileBounds& box);
  void random(const TileOp& op, const TileBounds& box);
  void scalar(const TileOp& op);
  void splat(const TileOp& op);
  std::int64_t start_of(const TileView& view) const;
  std::byte* memory_of(const TileView& view) const;
  TileBounds box_for(const TileOp& op, const TileBounds& box) const;
  template <class Body>
  void for_each_block_of(const TileOp& op, const TileBounds& box, Body&& body) const;

  const TileProgram& program_;
  const std::vector<std::int64_t>& arrays_;
  const compile::Bindings& bindings_;
  std::byte** values_;
};

}  // namespace russet::cpu::tiles
