// From a group to the bytecode of tiles.
#include <fmt/format.h>
#include <russet/error.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>

#include "device/cpu/group/registers.h"
#include "device/cpu/group/tile_program.h"
#include "ops/table.h"

namespace russet::cpu::tiles {
namespace {

using compile::Extent;
using compile::Group;
using compile::Instruction;
using ops::Op;
using Kind = Instruction::Kind;

constexpr std::size_t index_of(std::int16_t position) { return static_cast<std::size_t>(position); }

/// Which instructions depend on a reduction (reductions themselves included).
std::vector<bool> after_reduction(const Group& group) {
  std::vector<bool> after(group.code.size(), false);
  for (std::size_t i = 0; i < group.code.size(); ++i) {
    after[i] = group.code[i].kind == Kind::reduce;
    for (const std::int16_t input : group.code[i].inputs) {
      if (input >= 0 && after[index_of(input)]) after[i] = true;
    }
  }
  return after;
}

/// Operators whose results of narrow inputs need no rounding.
bool is_exact(const Group& group, const Instruction& instruction) {
  switch (instruction.op) {
    case Op::eq:
    case Op::ne:
    case Op::lt:
    case Op::le:
    case Op::where:
    case Op::maximum:
    case Op::minimum:
    case Op::sign:
    case Op::floor:
    case Op::ceil:
    case Op::round:
    case Op::trunc:
    case Op::fmod:
    case Op::bitwise_and:
    case Op::bitwise_or:
    case Op::bitwise_xor:
    case Op::shift_right: return true;
    case Op::neg:
    case Op::abs: return is_floating(instruction.dtype);
    case Op::cast: return group.code[index_of(instruction.inputs[0])].dtype == instruction.dtype;
    default: return false;
  }
}

/// Nanoseconds for an element, roughly.
double cost_of(Op op, TileType tile_type) {
  const double wide = size_of(tile_type) == 8 ? 2 : 1;
  switch (ops::row(op).cost) {
    case ops::Cost::root:
    case ops::Cost::series: return 0.4 * wide * wide;
    case ops::Cost::chain:
    case ops::Cost::remainder: return 4 * wide;
    case ops::Cost::draw: return 1;
    case ops::Cost::draw_more: return 4;
    default: return 0.08 * wide;
  }
}

class Translator {
 public:
  Translator(const Group& group, const Tiling& tiling, ProgramPart part) : group_(group), tiling_(tiling), part_(part) {
    program_.nest = part == ProgramPart::results ? &tiling.kept : &tiling.nest;
    results_.assign(group.code.size(), -1);
    only_stored_.assign(group.code.size(), true);
    for (const Instruction& instruction : group.code) {
      for (const std::int16_t input : instruction.inputs) {
        if (input >= 0 && instruction.kind != Kind::store) only_stored_[index_of(input)] = false;
      }
    }
  }

  TileProgram run() {
    const std::vector<bool> wanted = wanted_instructions();
    int reductions = 0;
    for (std::size_t i = 0; i < group_.code.size(); ++i) {
      const Instruction& instruction = group_.code[i];
      if (instruction.kind == Kind::reduce) reduction_ = reductions++;
      if (wanted[i]) translate(i);
    }
    copy_what_stores_could_change();
    program_.body.insert(program_.body.end(), stores_.begin(), stores_.end());
    drop_unused();
    place_registers(program_, values_);
    return std::move(program_);
  }

 private:
  /// A load that is used where it lies must not be stored after another store, which may have overwritten it.
  void copy_what_stores_could_change() {
    for (std::size_t i = 1; i < stores_.size(); ++i) {
      for (TileOp& op : program_.body) {
        if (op.kind == TileOp::Kind::load_here && op.out == stores_[i].in[0]) op.kind = TileOp::Kind::load;
      }
    }
  }

  /// Drops operations whose results nothing reads, such as positions that random numbers count by themselves.
  void drop_unused() {
    std::vector<bool> used(values_.size(), false);
    std::vector<TileOp> kept;
    for (auto op = program_.body.rbegin(); op != program_.body.rend(); ++op) {
      if (op->out >= 0 && !used[index_of(op->out)] && (op->second < 0 || !used[index_of(op->second)])) continue;
      for (const std::int16_t input : op->in) {
        if (input >= 0) used[index_of(input)] = true;
      }
      kept.push_back(*op);
    }
    program_.body.assign(kept.rbegin(), kept.rend());
  }

  /// Instructions of this part, and those that they need.
  std::vector<bool> wanted_instructions() const {
    std::vector<bool> wanted(group_.code.size(), false);
    for (std::size_t i = group_.code.size(); i-- > 0;) {
      const Instruction& instruction = group_.code[i];
      if (instruction.kind == Kind::store) {
        const bool reduced = instruction.extent == Extent::reduced && group_.kind != Group::Kind::elementwise;
        if (part_ == ProgramPart::whole || reduced == (part_ == ProgramPart::results)) wanted[i] = true;
      }
      if (instruction.kind == Kind::reduce && part_ == ProgramPart::reduce) wanted[i] = true;
      const bool total = instruction.kind == Kind::reduce && part_ == ProgramPart::results;
      if (!wanted[i] || total) continue;
      for (const std::int16_t input : instruction.inputs) {
        if (input >= 0) wanted[index_of(input)] = true;
      }
    }
    return wanted;
  }

  std::int16_t add_value(TileType tile_type, Form form) {
    values_.push_back({tile_type, form});
    return static_cast<std::int16_t>(values_.size() - 1);
  }

  Value value(std::int16_t id) const { return values_[index_of(id)]; }
  bool rows_are_single() const { return program_.nest->tile_rows == 1; }

  void emit(TileOp op) {
    const bool once = op.form == Form::uniform && op.kind != TileOp::Kind::store;
    (once ? program_.prelude : program_.body).push_back(op);
  }

  void translate(std::size_t position) {
    const Instruction& instruction = group_.code[position];
    std::int16_t& result = results_[position];
    switch (instruction.kind) {
      case Kind::load: result = load(instruction); break;
      case Kind::store: store(instruction); break;
      case Kind::index: result = index(instruction); break;
      case Kind::scalar: result = scalar(instruction); break;
      case Kind::constant: result = constant(instruction.dtype, instruction.number); break;
      case Kind::compute: result = compute(position); break;
      case Kind::random: result = random(instruction); break;
      case Kind::reduce: result = part_ == ProgramPart::results ? total(instruction) : reduce(instruction); break;
    }
  }

  const TileView& view_of(const Instruction& instruction) const {
    return program_.nest->views.at(index_of(instruction.access));
  }

  static bool is_constant(const Strides& strides) {
    return std::all_of(strides.begin(), strides.end(), [](std::int64_t stride) { return stride == 0; });
  }

  Form form_of(const TileView& view) const {
    if (!is_constant(view.inner)) return Form::full;
    return is_constant(view.outer) ? Form::uniform : Form::rows;
  }

  /// Whether every tile of the nest is one run in the memory of `view`.
  bool is_dense(const TileView& view) const {
    const Nest& nest = *program_.nest;
    const auto contiguous = [](const Shape& sizes, const Strides& strides, std::int64_t& expected) {
      for (int axis = sizes.rank() - 1; axis >= 0; --axis) {
        if (sizes[axis] != 1 && strides[axis] != expected) return false;
        expected *= sizes[axis];
      }
      return true;
    };
    std::int64_t expected = 1;
    if (nest.tile_rows == 1 && nest.inner.rank() == 1) return view.inner[0] == 1;
    if (!contiguous(nest.inner, view.inner, expected)) return false;
    if (nest.tile_rows == 1) return true;
    return nest.tile_columns == nest.columns() && contiguous(nest.outer, view.outer, expected);
  }

  std::int16_t load(const Instruction& instruction) {
    const TileView& view = view_of(instruction);
    TileOp op;
    op.kind = TileOp::Kind::load;
    op.form = form_of(view);
    op.dtype = view.dtype;
    op.tile_type = tile_type_of(view.dtype);
    op.view = instruction.access;
    op.load = loops().load[at(view.dtype)];
    op.dense = op.form == Form::full && is_dense(view);
    if (op.dense && is_tile_type(view.dtype)) op.kind = TileOp::Kind::load_here;
    op.out = add_value(op.tile_type, op.form);
    program_.cost += 0.1 * static_cast<double>(russet::size_of(view.dtype));
    emit(op);
    return op.form == Form::uniform ? splatted(op.out) : op.out;
  }

  std::int16_t index(const Instruction& instruction) {
    TileOp op;
    op.kind = TileOp::Kind::index;
    op.form = form_of(view_of(instruction));
    op.tile_type = TileType::i64;
    op.view = instruction.access;
    op.out = add_value(op.tile_type, op.form);
    program_.cost += 0.2;
    emit(op);
    return op.form == Form::uniform ? splatted(op.out) : op.out;
  }

  std::int16_t scalar(const Instruction& instruction) {
    TileOp op;
    op.kind = TileOp::Kind::scalar;
    op.form = Form::uniform;
    op.dtype = instruction.dtype;
    op.tile_type = tile_type_of(instruction.dtype);
    op.number = instruction.argument;
    op.out = add_value(op.tile_type, op.form);
    emit(op);
    return rounded(op.out, instruction.dtype);
  }

  std::int16_t constant(DType dtype, const ops::Number& number) {
    const TileType tile_type = tile_type_of(dtype);
    const std::int16_t id = add_value(tile_type, Form::uniform);
    const auto put = [&](auto element) {
      const std::size_t start = program_.constants.size();
      program_.constants.resize(start + tile_alignment);
      for (std::size_t i = 0; i < splat_count; ++i) {
        std::memcpy(program_.constants.data() + start + i * sizeof(element), &element, sizeof(element));
      }
      program_.registers.resize(values_.size());
      program_.registers.back() = {Register::Kind::constant, start};
    };
    switch (dtype) {
      case DType::float64: put(number.real); break;
      case DType::float32: put(static_cast<float>(number.real)); break;
      case DType::float16: put(static_cast<float>(float16(static_cast<float>(number.real)))); break;
      case DType::bfloat16: put(static_cast<float>(bfloat16(static_cast<float>(number.real)))); break;
      case DType::int64: put(number.integer); break;
      case DType::boolean: put(std::int32_t{number.integer != 0}); break;
      default:
        visit_dtype(dtype, [&]<class T>() {
          if constexpr (std::is_integral_v<T>) {
            put(static_cast<std::int32_t>(static_cast<T>(number.integer)));
          }
        });
    }
    return id;
  }

  /// The first element repeated.
  std::int16_t splatted(std::int16_t id, Form form = Form::uniform) {
    TileOp op;
    op.kind = TileOp::Kind::splat;
    op.form = form;
    op.tile_type = value(id).tile_type;
    op.in[0] = id;
    op.out = add_value(op.tile_type, form);
    emit(op);
    return op.out;
  }

  /// The value in the form that an operation on `form` elements reads.
  std::int16_t in_form(std::int16_t id, Form form) {
    if (form != Form::full || value(id).form != Form::rows) return id;
    const auto [known, added] = expanded_.try_emplace(id, std::int16_t{-1});
    if (!added) return known->second;
    if (rows_are_single()) return known->second = splatted(id, Form::row);
    TileOp op;
    op.kind = TileOp::Kind::expand;
    op.form = Form::full;
    op.tile_type = value(id).tile_type;
    op.in[0] = id;
    op.out = add_value(op.tile_type, Form::full);
    op.expand = loops().expand[at(op.tile_type)];
    emit(op);
    return known->second = op.out;
  }

  /// The value with all elements of the tile written out, for operations that cannot read a splat.
  std::int16_t materialised(std::int16_t id, Form form) {
    const Value have = value(id);
    if (have.form == form) return id;
    if (have.form == Form::rows && !rows_are_single()) return in_form(id, form);
    const std::int16_t source = have.form == Form::rows ? in_form(id, Form::full) : id;
    TileOp op;
    op.form = form;
    op.tile_type = have.tile_type;
    // A splat read with step false fills the tile.
    op.op = is_floating(have.tile_type) ? Op::maximum : Op::bitwise_or;
    op.compute = loops().compute[at(op.op)][at(have.tile_type)];
    op.in = {source, source, -1};
    op.step = {false, false, true};
    op.out = add_value(have.tile_type, form);
    emit(op);
    return op.out;
  }

  std::int16_t unary(Compute compute, std::int16_t input, TileType tile_type) {
    TileOp op;
    op.form = value(input).form;
    op.tile_type = tile_type;
    op.compute = compute;
    op.in[0] = input;
    op.out = add_value(tile_type, op.form);
    emit(op);
    return op.out;
  }

  std::int16_t rounded(std::int16_t id, DType dtype) {
    const Compute round = loops().round[at(dtype)];
    return round == nullptr ? id : unary(round, id, tile_type_of(dtype));
  }

  std::int16_t in_tile_type(std::int16_t id, TileType tile_type) {
    const TileType have = value(id).tile_type;
    return have == tile_type ? id : unary(loops().cast[at(have)][at(tile_type)], id, tile_type);
  }

  std::int16_t to_boolean(std::int16_t id, DType from) {
    return from == DType::boolean ? id : compared_with_zero(Op::ne, id, from);
  }

  std::int16_t compared_with_zero(Op comparison, std::int16_t id, DType type) {
    const std::int16_t zero = constant(type, {});
    TileOp op;
    op.op = comparison;
    op.form = value(id).form;
    op.tile_type = TileType::i32;
    op.compute = loops().compute[at(comparison)][at(value(id).tile_type)];
    op.in = {id, zero, -1};
    op.step = {true, false, true};
    op.out = add_value(TileType::i32, op.form);
    emit(op);
    return op.out;
  }

  /// A boolean's opposite: comparison with 0.
  std::int16_t negated(const Instruction& instruction) {
    return compared_with_zero(Op::eq, results_[index_of(instruction.inputs[0])], DType::boolean);
  }

  std::int16_t cast(const Instruction& instruction) {
    const DType from = group_.code[index_of(instruction.inputs[0])].dtype;
    const DType to = instruction.dtype;
    const std::int16_t input = results_[index_of(instruction.inputs[0])];
    if (from == to) return input;
    if (to == DType::boolean) return to_boolean(input, from);
    return in_tile_type(input, tile_type_of(to));
  }

  std::int16_t compute(std::size_t position) {
    const Instruction& instruction = group_.code[position];
    const std::int16_t result = instruction.op == Op::cast ? cast(instruction) : apply(instruction);
    // A store converts to its type anyway; any other operation needs a boolean to be 0 or 1.
    if (is_exact(group_, instruction) || only_stored_[position]) return result;
    return rounded(result, instruction.dtype);
  }

  std::int16_t apply(const Instruction& instruction) {
    if (instruction.op == Op::bitwise_not && instruction.dtype == DType::boolean) return negated(instruction);
    std::array<std::int16_t, 3> inputs{-1, -1, -1};
    const bool chooses = instruction.op == Op::where;
    const DType type = group_.code[index_of(instruction.inputs[chooses ? 1 : 0])].dtype;
    const TileType tile_type = tile_type_of(type);
    Form form = Form::uniform;
    for (std::size_t i = 0; i < 3 && instruction.inputs[i] >= 0; ++i) {
      const std::int16_t source = results_[index_of(instruction.inputs[i])];
      const DType source_type = group_.code[index_of(instruction.inputs[i])].dtype;
      inputs[i] = chooses && i == 0 ? to_boolean(source, source_type) : in_tile_type(source, tile_type);
      form = std::max(form, value(inputs[i]).form);
    }
    TileOp op;
    op.op = instruction.op;
    op.form = form;
    op.compute = loops().compute[at(instruction.op)][at(tile_type)];
    if (op.compute == nullptr) {
      throw TypeError(fmt::format("{}: not defined for {}", ops::row(instruction.op).name, name_of(type)));
    }
    op.tile_type = instruction.op >= Op::eq && instruction.op <= Op::le ? TileType::i32 : tile_type;
    for (std::size_t i = 0; i < 3 && inputs[i] >= 0; ++i) {
      op.in[i] = in_form(inputs[i], form);
      op.step[i] = value(op.in[i]).form == form;
    }
    op.out = add_value(op.tile_type, form);
    program_.cost += form == Form::full ? cost_of(instruction.op, tile_type) : 0;
    emit(op);
    return in_tile_type(op.out, tile_type_of(instruction.dtype));
  }

  std::int16_t random(const Instruction& instruction) {
    const Instruction& positions = group_.code[index_of(instruction.inputs[0])];
    TileOp op;
    op.kind = TileOp::Kind::random;
    op.op = instruction.op;
    op.tile_type = instruction.op == Op::random_bits ? TileType::i64 : TileType::f32;
    op.number = instruction.argument;
    op.seed = instruction.seed;
    const auto kind = static_cast<std::size_t>(random_of(instruction.op));
    op.random = loops().random[kind];
    op.random_run = loops().random_run[kind];
    if (positions.kind == Kind::index && follows_positions(view_of(positions))) {
      op.form = Form::full;
      op.view = positions.access;
      op.dense = is_dense(view_of(positions));
    } else {
      op.in[0] = in_tile_type(results_[index_of(instruction.inputs[0])], TileType::i64);
      op.form = value(op.in[0]).form;
    }
    op.out = add_value(op.tile_type, op.form);
    program_.cost += cost_of(instruction.op, op.tile_type);
    emit(op);
    const std::int16_t result = in_tile_type(op.out, tile_type_of(instruction.dtype));
    return rounded(result, instruction.dtype);
  }

  /// Whether positions rise by one along the last axis, so that they need not be written down.
  static bool follows_positions(const TileView& view) { return !view.inner.empty() && view.inner.back() == 1; }

  std::int16_t reduce(const Instruction& instruction) {
    std::int16_t input = results_[index_of(instruction.inputs[0])];
    const bool finds = instruction.op == Op::argmax || instruction.op == Op::argmin;
    if (!finds) input = in_tile_type(input, tile_type_of(instruction.dtype));
    input = materialised(input, Form::full);
    TileOp op;
    op.kind = TileOp::Kind::reduce;
    op.op = instruction.op;
    op.tile_type = value(input).tile_type;
    op.in[0] = input;
    const auto& table =
        part_ == ProgramPart::reduce && !tiling_.reduces_columns ? loops().reduce_columns : loops().reduce_rows;
    op.reduce = table[static_cast<std::size_t>(reduction_of(instruction.op))][at(op.tile_type)];
    // With kept columns, a row of the tile holds the partial results.
    const Form form = part_ == ProgramPart::reduce && !tiling_.reduces_columns ? Form::full : Form::rows;
    op.form = form;
    op.out = add_value(op.tile_type, form);
    if (finds) op.second = add_value(TileType::i64, form);
    if (instruction.op == Op::squared_deviations && part_ == ProgramPart::reduce)
      op.second = add_value(TileType::f64, form);
    program_.cost += 0.1;
    program_.body.push_back(op);
    if (part_ == ProgramPart::reduce) {
      accumulate(op);
      return op.out;
    }
    return finds ? in_tile_type(op.second, tile_type_of(instruction.dtype)) : rounded(op.out, instruction.dtype);
  }

  void accumulate(const TileOp& partial) {
    TileOp op;
    op.kind = TileOp::Kind::accumulate;
    op.form = partial.form;
    op.op = partial.op;
    op.tile_type = partial.tile_type;
    op.in = {partial.out, partial.second, -1};
    op.number = reduction_;
    program_.body.push_back(op);
  }

  std::int16_t total(const Instruction& instruction) {
    const Instruction& input = group_.code[index_of(instruction.inputs[0])];
    const bool finds = instruction.op == Op::argmax || instruction.op == Op::argmin;
    TileOp op;
    op.kind = TileOp::Kind::total;
    op.op = instruction.op;
    op.tile_type = finds ? tile_type_of(input.dtype) : tile_type_of(instruction.dtype);
    op.number = reduction_;
    op.out = add_value(finds ? TileType::i64 : op.tile_type, Form::full);
    program_.body.push_back(op);
    return finds ? in_tile_type(op.out, tile_type_of(instruction.dtype)) : rounded(op.out, instruction.dtype);
  }

  void store(const Instruction& instruction) {
    const TileView& view = view_of(instruction);
    TileOp op;
    op.kind = TileOp::Kind::store;
    // Reduced results of whole rows: one element for each row.
    const bool per_row =
        part_ == ProgramPart::whole && group_.kind != Group::Kind::elementwise && instruction.extent == Extent::reduced;
    op.form = per_row ? Form::rows : Form::full;
    op.dtype = view.dtype;
    const std::int16_t source = in_tile_type(results_[index_of(instruction.inputs[0])], tile_type_of(view.dtype));
    op.in[0] = per_row ? materialised(source, Form::rows) : materialised(in_form(source, Form::full), Form::full);
    op.tile_type = tile_type_of(view.dtype);
    op.view = instruction.access;
    op.store = loops().store[at(view.dtype)];
    op.dense = op.form == Form::full && is_dense(view);
    program_.cost += 0.1 * static_cast<double>(russet::size_of(view.dtype));
    stores_.push_back(op);
  }

  const Group& group_;
  const Tiling& tiling_;
  ProgramPart part_;
  std::vector<bool> only_stored_;
  std::vector<std::int16_t> results_;
  std::vector<Value> values_;
  std::map<std::int16_t, std::int16_t> expanded_;
  // Stores come last: values that are read from their operand's memory (load_here) are read before it is overwritten.
  std::vector<TileOp> stores_;
  int reduction_ = 0;
  TileProgram program_;
};

}  // namespace

TileProgram translate(const Group& group, const Tiling& tiling, ProgramPart part) {
  return Translator(group, tiling, part).run();
}

std::vector<Accumulator> accumulators_of(const Group& group) {
  std::vector<Accumulator> result;
  for (const Instruction& instruction : group.code) {
    if (instruction.kind != Kind::reduce) continue;
    const bool finds = instruction.op == Op::argmax || instruction.op == Op::argmin;
    const DType type = finds ? group.code[index_of(instruction.inputs[0])].dtype : instruction.dtype;
    result.push_back({instruction.op, tile_type_of(type)});
  }
  return result;
}

bool full_follows_reduction(const Group& group) {
  const std::vector<bool> after = after_reduction(group);
  for (std::size_t i = 0; i < group.code.size(); ++i) {
    const Instruction& instruction = group.code[i];
    if (after[i] && instruction.kind != Kind::reduce && instruction.extent == Extent::full) return true;
  }
  return false;
}

}  // namespace russet::cpu::tiles
