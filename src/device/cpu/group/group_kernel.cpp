#include "device/cpu/group/group_kernel.h"

#include <algorithm>
#include <deque>
#include <optional>

#include "device/cpu/group/tile_interpreter.h"
#include "device/cpu/workers.h"
#include "device/cpu/workspace.h"

namespace russet::cpu {
namespace {

using tiles::Accumulation;
using tiles::Nest;
using tiles::ProgramPart;
using tiles::TileBounds;
using tiles::TileInterpreter;
using tiles::TileProgram;
using tiles::Tiling;

/// Elementwise groups and whole rows: every tile by itself.
class DirectKernel final : public compile::Kernel {
 public:
  DirectKernel(Tiling tiling, const compile::Group& group)
      : tiling_(std::move(tiling)), program_(tiles::translate(group, tiling_, ProgramPart::whole)) {
    program_.nest = &tiling_.nest;
    const Nest& nest = tiling_.nest;
    row_tiles_ = divide_up(nest.rows(), nest.tile_rows);
    column_tiles_ = std::max<std::int64_t>(divide_up(nest.columns(), nest.tile_columns), 1);
    const bool nothing = group.kind == compile::Group::Kind::elementwise && nest.columns() == 0;
    if (nothing) row_tiles_ = 0;
    cost_ = program_.cost * static_cast<double>(nest.rows()) * static_cast<double>(nest.columns());
    worker_bytes_ = TileInterpreter::scratch_bytes(program_);
    scratch_ = workspace_.add<std::byte>(static_cast<std::int64_t>(worker_bytes_), workers_.count());
  }

  std::string name() const override { return "tiles"; }
  std::size_t scratch_bytes() const override { return workspace_.bytes(); }

  void run(const compile::Bindings& bindings) const override {
    workers_.split(tiles(), cost_, [&](int worker, std::int64_t begin, std::int64_t end) {
      run_tiles(bindings, scratch_.at(bindings, worker), begin, end);
    });
  }

  std::int64_t tiles() const { return row_tiles_ * column_tiles_; }
  /// An estimate of the whole, in nanoseconds.
  double cost() const { return cost_; }
  std::size_t worker_bytes() const { return worker_bytes_; }

  void run_tiles(const compile::Bindings& bindings, std::byte* scratch, std::int64_t begin, std::int64_t end) const {
    if (begin == end) return;
    const Nest& nest = tiling_.nest;
    const std::int64_t rows = nest.rows();
    const std::int64_t columns = nest.columns();
    TileInterpreter interpreter(program_, no_arrays_, bindings, scratch);
    std::int64_t row_tile = begin / column_tiles_;
    std::int64_t column_tile = begin % column_tiles_;
    for (std::int64_t tile = begin; tile < end; ++tile) {
      const std::int64_t row = row_tile * nest.tile_rows;
      const std::int64_t column = column_tile * nest.tile_columns;
      interpreter.run(
          TileBounds{row, std::min(nest.tile_rows, rows - row), column, std::min(nest.tile_columns, columns - column)});
      if (++column_tile == column_tiles_) {
        column_tile = 0;
        ++row_tile;
      }
    }
  }

 private:
  Tiling tiling_;
  TileProgram program_;
  Workers workers_;
  std::vector<std::int64_t> no_arrays_;
  std::int64_t row_tiles_ = 0;
  std::int64_t column_tiles_ = 0;
  double cost_ = 0;
  std::size_t worker_bytes_ = 0;
  Workspace workspace_;
  Scratch<std::byte> scratch_;
};

/// Several elementwise groups as one kernel: their tiles are numbered one group after the other, and split over the
/// workers together.
class BundleKernel final : public compile::Kernel {
 public:
  explicit BundleKernel(const compile::Bundle& bundle) {
    std::size_t worker_bytes = 0;
    for (const compile::Step& member : bundle.members) {
      const auto& group = std::get<compile::Group>(member);
      kernels_.emplace_back(tiles::tile_group(group, tiles::full_follows_reduction(group)), group);
      const DirectKernel& kernel = kernels_.back();
      firsts_.push_back(tiles_);
      tiles_ += kernel.tiles();
      cost_ += kernel.cost();
      worker_bytes = std::max(worker_bytes, kernel.worker_bytes());
    }
    scratch_ = workspace_.add<std::byte>(static_cast<std::int64_t>(worker_bytes), workers_.count());
  }

  std::string name() const override { return "tiles"; }
  std::size_t scratch_bytes() const override { return workspace_.bytes(); }

  void run(const compile::Bindings& bindings) const override {
    workers_.split(tiles_, cost_, [&](int worker, std::int64_t begin, std::int64_t end) {
      for (std::size_t i = 0; i < kernels_.size(); ++i) {
        const std::int64_t first = std::max(begin - firsts_[i], std::int64_t{0});
        const std::int64_t last = std::min(end - firsts_[i], kernels_[i].tiles());
        if (first < last) kernels_[i].run_tiles(bindings, scratch_.at(bindings, worker), first, last);
      }
    });
  }

 private:
  Workers workers_;
  std::deque<DirectKernel> kernels_;  // which stay where they are made
  std::vector<std::int64_t> firsts_;  // number of each kernel's first tile
  std::int64_t tiles_ = 0;
  double cost_ = 0;
  Workspace workspace_;
  Scratch<std::byte> scratch_;
};

/// Reductions over many elements: tiles add to accumulators. The reduced axes are cut into chunks that depend on the
/// shapes alone; their accumulators are combined in order.
class AccumulateKernel final : public compile::Kernel {
 public:
  AccumulateKernel(Tiling tiling, const compile::Group& group)
      : tiling_(std::move(tiling)),
        accumulators_(tiles::accumulators_of(group)),
        arrays_(tiles::first_arrays(accumulators_)),
        reduce_(tiles::translate(group, tiling_, ProgramPart::reduce)),
        results_(tiles::translate(group, tiling_, ProgramPart::results)) {
    const Nest& nest = tiling_.nest;
    reduced_ = tiling_.reduces_columns ? nest.columns() : nest.rows();
    kept_ = tiling_.reduces_columns ? nest.rows() : nest.columns();
    kept_step_ = tiling_.kept.tile_columns;
    reduced_step_ = tiling_.reduces_columns ? nest.tile_columns : nest.tile_rows;
    kept_tiles_ = divide_up(kept_, kept_step_);
    // With one chunk, a tile's accumulators are read as soon as they are complete, so one set for each worker is
    // enough.
    stride_ = tiling_.chunks == 1 ? kept_step_ : kept_tiles_ * kept_step_;
    const auto interpreter_bytes =
        std::max(TileInterpreter::scratch_bytes(reduce_), TileInterpreter::scratch_bytes(results_));
    interpreters_ = workspace_.add<std::byte>(static_cast<std::int64_t>(interpreter_bytes), workers_.count());
    chunks_ = workspace_.add<std::byte>(tiles::line_count(accumulators_) * stride_ * 8,
                                        tiling_.chunks == 1 ? workers_.count() : tiling_.chunks);
    cost_ = reduce_.cost * static_cast<double>(reduced_) * static_cast<double>(kept_);
  }

  std::string name() const override { return "tiles"; }
  std::size_t scratch_bytes() const override { return workspace_.bytes(); }

  void run(const compile::Bindings& bindings) const override {
    if (tiling_.chunks == 1) {
      workers_.split(kept_tiles_, cost_, [&](int worker, std::int64_t begin, std::int64_t end) {
        for (std::int64_t tile = begin; tile < end; ++tile) {
          const Accumulation accumulation{chunks_.at(bindings, worker), stride_};
          reduce(bindings, worker, tile, 0, accumulation);
          finish(bindings, worker, tile, accumulation);
        }
      });
      return;
    }
    workers_.split(kept_tiles_ * tiling_.chunks, cost_, [&](int worker, std::int64_t begin, std::int64_t end) {
      for (std::int64_t item = begin; item < end; ++item) {
        const std::int64_t part = item / kept_tiles_;
        const std::int64_t tile = item % kept_tiles_;
        reduce(bindings, worker, tile, part, accumulation_of(bindings, part, tile));
      }
    });
    const double combining = 2.0 * static_cast<double>(tiling_.chunks * kept_ * tiles::line_count(accumulators_));
    workers_.split(kept_tiles_, combining, [&](int worker, std::int64_t begin, std::int64_t end) {
      for (std::int64_t tile = begin; tile < end; ++tile) {
        const Accumulation total = accumulation_of(bindings, 0, tile);
        for (std::int64_t part = 1; part < tiling_.chunks; ++part) {
          tiles::combine(accumulators_, accumulation_of(bindings, part, tile), total, kept_in(tile));
        }
        finish(bindings, worker, tile, total);
      }
    });
  }

 private:
  std::int64_t kept_in(std::int64_t tile) const { return std::min(kept_step_, kept_ - tile * kept_step_); }

  Accumulation accumulation_of(const compile::Bindings& bindings, std::int64_t part, std::int64_t tile) const {
    return {chunks_.at(bindings, part) + tile * kept_step_ * 8, stride_};
  }

  void reduce(const compile::Bindings& bindings, int worker, std::int64_t tile, std::int64_t part,
              const Accumulation& accumulation) const {
    tiles::clear(accumulators_, accumulation, kept_in(tile));
    TileInterpreter interpreter(reduce_, arrays_, bindings, interpreters_.at(bindings, worker));
    const std::int64_t kept = tile * kept_step_;
    const std::int64_t end = std::min((part + 1) * tiling_.steps_per_chunk * reduced_step_, reduced_);
    for (std::int64_t at = part * tiling_.steps_per_chunk * reduced_step_; at < end; at += reduced_step_) {
      const std::int64_t count = std::min(reduced_step_, end - at);
      const TileBounds box = tiling_.reduces_columns ? TileBounds{kept, kept_in(tile), at, count}
                                                     : TileBounds{at, count, kept, kept_in(tile)};
      interpreter.run(box, accumulation, at);
    }
  }

  void finish(const compile::Bindings& bindings, int worker, std::int64_t tile,
              const Accumulation& accumulation) const {
    TileInterpreter interpreter(results_, arrays_, bindings, interpreters_.at(bindings, worker));
    interpreter.run(TileBounds{0, 1, tile * kept_step_, kept_in(tile)}, accumulation);
  }

  Tiling tiling_;
  std::vector<tiles::Accumulator> accumulators_;
  std::vector<std::int64_t> arrays_;
  TileProgram reduce_;
  TileProgram results_;
  Workers workers_;
  std::int64_t reduced_ = 0;
  std::int64_t kept_ = 0;
  std::int64_t kept_step_ = 1;
  std::int64_t reduced_step_ = 1;
  std::int64_t kept_tiles_ = 0;
  std::int64_t stride_ = 0;
  double cost_ = 0;
  Workspace workspace_;
  Scratch<std::byte> interpreters_, chunks_;
};

}  // namespace

std::unique_ptr<compile::Kernel> make_group_kernel(const compile::Group& group) {
  Tiling tiling = tiles::tile_group(group, tiles::full_follows_reduction(group));
  if (tiling.mode == Tiling::Mode::direct) return std::make_unique<DirectKernel>(std::move(tiling), group);
  return std::make_unique<AccumulateKernel>(std::move(tiling), group);
}

std::unique_ptr<compile::Kernel> make_bundle_kernel(const compile::Bundle& bundle) {
  return std::make_unique<BundleKernel>(bundle);
}

}  // namespace russet::cpu
