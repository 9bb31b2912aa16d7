#include "device/cpu/group/tile_interpreter.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "device/cpu/group/scalar_math.h"

namespace russet::cpu::tiles {
namespace {

using ops::Op;

constexpr std::size_t aligned(std::size_t bytes) {
  return (bytes + tile_alignment - 1) / tile_alignment * tile_alignment;
}

/// Calls visitor with the C++ type of a tile.
template <class Visitor>
decltype(auto) visit_tile_type(TileType tile_type, Visitor&& visitor) {
  switch (tile_type) {
    case TileType::f32: return visitor.template operator()<float>();
    case TileType::f64: return visitor.template operator()<double>();
    case TileType::i32: return visitor.template operator()<std::int32_t>();
    case TileType::i64: break;
  }
  return visitor.template operator()<std::int64_t>();
}

/// Accumulators are wider than tiles: float64 for floating lanes, int64 for the others.
template <class T>
using Wide = std::conditional_t<std::is_floating_point_v<T>, double, std::int64_t>;

bool is_maximum(Op op) { return op == Op::amax || op == Op::argmax; }

template <class A>
A identity(Op op) {
  if (op == Op::sum || op == Op::squared_deviations) return 0;
  if (op == Op::prod) return 1;
  if constexpr (std::is_floating_point_v<A>) {
    return is_maximum(op) ? -std::numeric_limits<A>::infinity() : std::numeric_limits<A>::infinity();
  } else {
    return is_maximum(op) ? std::numeric_limits<A>::min() : std::numeric_limits<A>::max();
  }
}

/// Whether b replaces a, which came first.
template <class A>
bool beats(bool maximum, A b, A a) {
  return (maximum ? b > a : b < a) || (b != b && a == a);
}

/// Folds `count` numbers into an accumulator's line. Positions, if any, count from `base`.
template <class A, class T>
void fold(Op op, const T* from, const std::int64_t* positions, std::int64_t base, std::int64_t count, A* to,
          std::int64_t* to_positions) {
  if (op == Op::sum) {
    for (std::int64_t i = 0; i < count; ++i) {
      if constexpr (std::is_integral_v<A>) {
        to[i] = static_cast<A>(static_cast<std::uint64_t>(to[i]) + static_cast<std::uint64_t>(from[i]));
      } else {
        to[i] += from[i];
      }
    }
  } else if (op == Op::prod) {
    for (std::int64_t i = 0; i < count; ++i) {
      if constexpr (std::is_integral_v<A>) {
        to[i] = wrapping_multiply<A>(to[i], from[i]);
      } else {
        to[i] *= from[i];
      }
    }
  } else if (op == Op::amax) {
    for (std::int64_t i = 0; i < count; ++i) to[i] = larger<A>(to[i], from[i]);
  } else if (op == Op::amin) {
    for (std::int64_t i = 0; i < count; ++i) to[i] = smaller<A>(to[i], from[i]);
  } else {
    const bool maximum = op == Op::argmax;
    for (std::int64_t i = 0; i < count; ++i) {
      // A position below 0 says that nothing has come yet: then even a number that only equals the identity counts.
      if (to_positions[i] >= 0 && !beats<A>(maximum, from[i], to[i])) continue;
      to[i] = from[i];
      to_positions[i] = positions[i] + base;
    }
  }
}

/// Adds the squared deviations of `more` further elements with the given means to those of `counts` elements, of
/// which all numbers of a line have seen as many. The method of Chan, Golub and LeVeque (1979), "Updating formulae and
/// a pairwise algorithm for computing sample variances".
template <class T>
void fold_deviations(const T* squares, const double* means, double more, std::int64_t count, double* to,
                     double* to_means, double* counts) {
  if (more == 0 || count == 0) return;
  const double share = more / (counts[0] + more);
  const double weight = counts[0] * share;
  for (std::int64_t i = 0; i < count; ++i) {
    const double distance = means[i] - to_means[i];
    to[i] += squares[i] + distance * distance * weight;
    to_means[i] += distance * share;
    counts[i] += more;
  }
}

template <class A>
A* line(const Accumulation& accumulation, std::int64_t number) {
  return reinterpret_cast<A*>(accumulation.arrays + number * accumulation.stride * 8);
}

}  // namespace

std::int64_t line_count(const std::vector<Accumulator>& accumulators) {
  std::int64_t count = 0;
  for (const Accumulator& accumulator : accumulators) count += accumulator.arrays();
  return count;
}

std::vector<std::int64_t> first_arrays(const std::vector<Accumulator>& accumulators) {
  std::vector<std::int64_t> arrays;
  std::int64_t next = 0;
  for (const Accumulator& accumulator : accumulators) {
    arrays.push_back(next);
    next += accumulator.arrays();
  }
  return arrays;
}

void clear(const std::vector<Accumulator>& accumulators, const Accumulation& target, std::int64_t count) {
  std::int64_t next = 0;
  for (const Accumulator& accumulator : accumulators) {
    visit_tile_type(accumulator.tile_type, [&]<class T>() {
      std::fill_n(line<Wide<T>>(target, next), count, identity<Wide<T>>(accumulator.op));
    });
    if (accumulator.has_positions()) std::fill_n(line<std::int64_t>(target, next + 1), count, std::int64_t{-1});
    if (accumulator.has_means()) {
      for (const std::int64_t more : {next + 1, next + 2}) std::fill_n(line<double>(target, more), count, 0.0);
    }
    next += accumulator.arrays();
  }
}

void combine(const std::vector<Accumulator>& accumulators, const Accumulation& from, const Accumulation& to,
             std::int64_t count) {
  std::int64_t next = 0;
  for (const Accumulator& accumulator : accumulators) {
    const bool finds = accumulator.has_positions();
    const std::int64_t first = std::exchange(next, next + accumulator.arrays());
    if (accumulator.has_means()) {
      fold_deviations(line<double>(from, first), line<double>(from, first + 1), line<double>(from, first + 2)[0], count,
                      line<double>(to, first), line<double>(to, first + 1), line<double>(to, first + 2));
      continue;
    }
    visit_tile_type(accumulator.tile_type, [&]<class T>() {
      using A = Wide<T>;
      fold<A, A>(accumulator.op, line<A>(from, first), finds ? line<std::int64_t>(from, first + 1) : nullptr, 0, count,
                 line<A>(to, first), finds ? line<std::int64_t>(to, first + 1) : nullptr);
    });
  }
}

std::size_t TileInterpreter::scratch_bytes(const TileProgram& program) {
  return aligned(program.registers.size() * sizeof(std::byte*)) + aligned(program.scratch_bytes);
}

TileInterpreter::TileInterpreter(const TileProgram& program, const std::vector<std::int64_t>& arrays,
                                 const compile::Bindings& bindings, std::byte* scratch)
    : program_(program), arrays_(arrays), bindings_(bindings), values_(reinterpret_cast<std::byte**>(scratch)) {
  std::byte* memory = scratch + aligned(program.registers.size() * sizeof(std::byte*));
  for (std::size_t i = 0; i < program.registers.size(); ++i) {
    const Register& reg = program.registers[i];
    values_[i] = nullptr;
    if (reg.kind == Register::Kind::scratch) values_[i] = memory + reg.offset;
    // Constants are only read.
    if (reg.kind == Register::Kind::constant)
      values_[i] = const_cast<std::byte*>(program.constants.data()) + reg.offset;
  }
  for (const TileOp& op : program.prelude) run(op, TileBounds{0, 1, 0, 1}, {}, 0);
}

void TileInterpreter::run(const TileBounds& box, const Accumulation& accumulation, std::int64_t base) {
  for (const TileOp& op : program_.body) run(op, box, accumulation, base);
}

/// Values without a column dimension are boxes of one column.
TileBounds TileInterpreter::box_for(const TileOp& op, const TileBounds& box) const {
  if (op.form == Form::full) return box;
  if (op.form == Form::rows) return {box.row, box.rows, 0, 1};
  return {0, 1, 0, 1};
}

void TileInterpreter::run(const TileOp& op, const TileBounds& box, const Accumulation& accumulation,
                          std::int64_t base) {
  const auto value = [&](std::int16_t id) { return id < 0 ? nullptr : values_[id]; };
  switch (op.kind) {
    case TileOp::Kind::compute: {
      std::int64_t count = static_cast<std::int64_t>(splat_count);
      if (op.form == Form::full) count = box.rows * box.columns;
      if (op.form == Form::rows) count = box.rows;
      op.compute(static_cast<std::size_t>(count),
                 Operands{value(op.out), {value(op.in[0]), value(op.in[1]), value(op.in[2])}, op.step});
      break;
    }
    case TileOp::Kind::load: load(op, box_for(op, box)); break;
    case TileOp::Kind::load_here: load_here(op, box); break;
    case TileOp::Kind::store: store(op, box_for(op, box)); break;
    case TileOp::Kind::index: index(op, box_for(op, box)); break;
    case TileOp::Kind::scalar: scalar(op); break;
    case TileOp::Kind::splat: splat(op); break;
    case TileOp::Kind::expand:
      op.expand(static_cast<std::size_t>(box.rows), static_cast<std::size_t>(box.columns), value(op.in[0]),
                value(op.out));
      break;
    case TileOp::Kind::random: random(op, box_for(op, box)); break;
    case TileOp::Kind::reduce:
      op.reduce(value(op.in[0]), static_cast<std::size_t>(box.rows), static_cast<std::size_t>(box.columns),
                value(op.out), value(op.second));
      break;
    case TileOp::Kind::accumulate: {
      const std::int64_t first = arrays_[static_cast<std::size_t>(op.number)];
      const std::int64_t count = op.form == Form::rows ? box.rows : box.columns;
      const auto reduced = static_cast<double>(op.form == Form::rows ? box.columns : box.rows);
      const bool finds = op.in[1] >= 0;
      visit_tile_type(op.tile_type, [&]<class T>() {
        if (op.op == Op::squared_deviations) {
          return fold_deviations(reinterpret_cast<const T*>(value(op.in[0])),
                                 reinterpret_cast<const double*>(value(op.in[1])), reduced, count,
                                 line<double>(accumulation, first), line<double>(accumulation, first + 1),
                                 line<double>(accumulation, first + 2));
        }
        fold(op.op, reinterpret_cast<const T*>(value(op.in[0])), reinterpret_cast<const std::int64_t*>(value(op.in[1])),
             base, count, line<Wide<T>>(accumulation, first),
             finds ? line<std::int64_t>(accumulation, first + 1) : nullptr);
      });
      break;
    }
    case TileOp::Kind::total: {
      const std::int64_t first = arrays_[static_cast<std::size_t>(op.number)];
      if (op.op == Op::argmax || op.op == Op::argmin) {
        auto* out = reinterpret_cast<std::int64_t*>(value(op.out));
        const auto* positions = line<std::int64_t>(accumulation, first + 1);
        for (std::int64_t i = 0; i < box.columns; ++i) out[i] = std::max<std::int64_t>(positions[i], 0);
      } else {
        visit_tile_type(op.tile_type, [&]<class T>() {
          const auto* totals = line<Wide<T>>(accumulation, first);
          std::transform(totals, totals + box.columns, reinterpret_cast<T*>(value(op.out)),
                         [](auto total) { return static_cast<T>(total); });
        });
      }
      break;
    }
  }
}

/// The pieces of an access in its box; axes along which its form does not vary do not count.
template <class Body>
void TileInterpreter::for_each_block_of(const TileOp& op, const TileBounds& box, Body&& body) const {
  static const Shape none;
  const Nest& nest = *program_.nest;
  const TileView& view = nest.views[static_cast<std::size_t>(op.view)];
  for_each_block(op.form == Form::uniform ? none : nest.outer, op.form == Form::full ? nest.inner : none, view, box,
                 body);
}

std::int64_t TileInterpreter::start_of(const TileView& view) const {
  if (view.offset_argument < 0) return view.offset;
  return view.offset + static_cast<std::int64_t>(bindings_.arguments[view.offset_argument]);
}

std::byte* TileInterpreter::memory_of(const TileView& view) const {
  return bindings_.slots[view.slot] + start_of(view) * static_cast<std::int64_t>(russet::size_of(view.dtype));
}

void TileInterpreter::load(const TileOp& op, const TileBounds& box) {
  const TileView& view = program_.nest->views[static_cast<std::size_t>(op.view)];
  const std::byte* memory = memory_of(view);
  std::byte* tile = values_[op.out];
  const auto element = static_cast<std::int64_t>(russet::size_of(view.dtype));
  if (op.dense) {
    const std::int64_t start = Cursor(program_.nest->outer, view.outer, box.row).offset() +
                               Cursor(program_.nest->inner, view.inner, box.column).offset();
    const std::int64_t count = box.rows * box.columns;
    op.load(Block{1, 0, count, 1, count}, memory + start * element, tile);
    return;
  }
  const auto width = static_cast<std::int64_t>(size_of(op.tile_type));
  for_each_block_of(op, box, [&](std::int64_t offset, std::int64_t position, const Block& block) {
    op.load(block, memory + offset * element, tile + position * width);
  });
}

void TileInterpreter::load_here(const TileOp& op, const TileBounds& box) {
  const TileView& view = program_.nest->views[static_cast<std::size_t>(op.view)];
  const std::int64_t start = Cursor(program_.nest->outer, view.outer, box.row).offset() +
                             Cursor(program_.nest->inner, view.inner, box.column).offset();
  values_[op.out] = memory_of(view) + start * static_cast<std::int64_t>(russet::size_of(view.dtype));
}

void TileInterpreter::store(const TileOp& op, const TileBounds& box) {
  const TileView& view = program_.nest->views[static_cast<std::size_t>(op.view)];
  std::byte* memory = memory_of(view);
  const std::byte* tile = values_[op.in[0]];
  const auto element = static_cast<std::int64_t>(russet::size_of(view.dtype));
  if (op.dense) {
    const std::int64_t start = Cursor(program_.nest->outer, view.outer, box.row).offset() +
                               Cursor(program_.nest->inner, view.inner, box.column).offset();
    const std::int64_t count = box.rows * box.columns;
    op.store(Block{1, 0, count, 1, count}, tile, memory + start * element);
    return;
  }
  const auto width = static_cast<std::int64_t>(size_of(op.tile_type));
  for_each_block_of(op, box, [&](std::int64_t offset, std::int64_t position, const Block& block) {
    op.store(block, tile + position * width, memory + offset * element);
  });
}

void TileInterpreter::index(const TileOp& op, const TileBounds& box) {
  const TileView& view = program_.nest->views[static_cast<std::size_t>(op.view)];
  const std::int64_t start = start_of(view);
  auto* tile = reinterpret_cast<std::int64_t*>(values_[op.out]);
  for_each_block_of(op, box, [&](std::int64_t offset, std::int64_t position, const Block& block) {
    loops().index(block, start + offset, tile + position);
  });
}

void TileInterpreter::random(const TileOp& op, const TileBounds& box) {
  const std::uint64_t offset = op.number < 0 ? 0 : bindings_.arguments[op.number];
  std::byte* tile = values_[op.out];
  const std::int64_t count = box.rows * box.columns;
  if (op.view < 0) {
    op.random(op.seed, offset, reinterpret_cast<const std::int64_t*>(values_[op.in[0]]),
              static_cast<std::size_t>(count), tile);
    if (op.form == Form::uniform) splat(TileOp{.tile_type = op.tile_type, .out = op.out, .in = {op.out, -1, -1}});
    return;
  }
  const TileView& view = program_.nest->views[static_cast<std::size_t>(op.view)];
  const std::int64_t start = start_of(view);
  const auto width = static_cast<std::int64_t>(size_of(op.tile_type));
  if (op.dense) {
    const std::int64_t first = Cursor(program_.nest->outer, view.outer, box.row).offset() +
                               Cursor(program_.nest->inner, view.inner, box.column).offset();
    return op.random_run(op.seed, offset, start + first, static_cast<std::size_t>(count), tile);
  }
  for_each_block_of(op, box, [&](std::int64_t at, std::int64_t position, const Block& block) {
    for (std::int64_t r = 0; r < block.rows; ++r) {
      op.random_run(op.seed, offset, start + at + r * block.row_stride, static_cast<std::size_t>(block.columns),
                    tile + (position + r * block.pitch) * width);
    }
  });
}

void TileInterpreter::scalar(const TileOp& op) {
  const std::uint64_t bits = bindings_.arguments[op.number];
  visit_tile_type(op.tile_type, [&]<class T>() {
    auto* out = reinterpret_cast<T*>(values_[op.out]);
    T number;
    if constexpr (std::is_floating_point_v<T>) {
      number = static_cast<T>(std::bit_cast<double>(bits));
    } else {
      number = static_cast<T>(static_cast<std::int64_t>(bits));
      if (op.dtype == DType::boolean) number = bits != 0;
    }
    std::fill_n(out, splat_count, number);
  });
}

void TileInterpreter::splat(const TileOp& op) {
  visit_tile_type(op.tile_type, [&]<class T>() {
    std::fill_n(reinterpret_cast<T*>(values_[op.out]), splat_count, *reinterpret_cast<const T*>(values_[op.in[0]]));
  });
}

}  // namespace russet::cpu::tiles
