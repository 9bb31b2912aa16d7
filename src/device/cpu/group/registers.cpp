#include "device/cpu/group/registers.h"

#include <algorithm>
#include <map>

namespace russet::cpu::tiles {
namespace {

class RegisterAllocator {
 public:
  RegisterAllocator(TileProgram& program, const std::vector<Value>& values) : program_(program), values_(values) {
    program.registers.resize(values.size());
    last_use_.assign(values.size(), -1);
    for (std::size_t i = 0; i < program.body.size(); ++i) {
      for (const std::int16_t input : program.body[i].in) {
        if (input >= 0) last_use_[static_cast<std::size_t>(input)] = static_cast<int>(i);
      }
    }
  }

  void run() {
    // Values of the prelude are computed once and read by every tile, so their memory is never shared.
    for (const TileOp& op : program_.prelude) take(op.out);
    for (std::size_t i = 0; i < program_.body.size(); ++i) {
      TileOp& op = program_.body[i];
      if (op.kind == TileOp::Kind::load_here) {
        program_.registers[static_cast<std::size_t>(op.out)].kind = Register::Kind::memory;
        continue;
      }
      const bool in_place = op.kind == TileOp::Kind::compute;
      if (in_place) free_inputs(op, static_cast<int>(i), true);
      take(op.out);
      take(op.second);
      free_inputs(op, static_cast<int>(i), false);
      free_unused(op.out);
      free_unused(op.second);
    }
  }

 private:
  std::size_t bytes_of(const Value& value) const {
    const Nest& nest = *program_.nest;
    std::int64_t count = static_cast<std::int64_t>(splat_count);
    if (value.form == Form::full) count = nest.tile_rows * nest.tile_columns;
    if (value.form == Form::rows) count = nest.tile_rows;
    const std::size_t bytes = static_cast<std::size_t>(count) * size_of(value.tile_type);
    // A vector of room beyond the end, for loops that write whole vectors.
    return (bytes + 2 * tile_alignment - 1) / tile_alignment * tile_alignment;
  }

  void take(std::int16_t id) {
    if (id < 0) return;
    const std::size_t bytes = bytes_of(values_[static_cast<std::size_t>(id)]);
    Register& reg = program_.registers[static_cast<std::size_t>(id)];
    reg.kind = Register::Kind::scratch;
    auto& free = free_[bytes];
    if (free.empty()) {
      reg.offset = program_.scratch_bytes;
      program_.scratch_bytes += bytes;
    } else {
      reg.offset = free.back();
      free.pop_back();
    }
  }

  void give(std::int16_t id) {
    const Register& reg = program_.registers[static_cast<std::size_t>(id)];
    if (reg.kind == Register::Kind::scratch)
      free_[bytes_of(values_[static_cast<std::size_t>(id)])].push_back(reg.offset);
  }

  /// Frees inputs that are read here for the last time. Those that the loop may overwrite while it reads them are freed
  /// before the output gets its memory, so that the output may take theirs; the others are freed after.
  void free_inputs(const TileOp& op, int position, bool before) {
    for (std::size_t i = 0; i < op.in.size(); ++i) {
      const std::int16_t id = op.in[i];
      if (id < 0 || last_use_[static_cast<std::size_t>(id)] != position) continue;
      if (std::find(op.in.begin(), op.in.begin() + static_cast<std::ptrdiff_t>(i), id) !=
          op.in.begin() + static_cast<std::ptrdiff_t>(i)) {
        continue;
      }
      const Value& value = values_[static_cast<std::size_t>(id)];
      if (value.form == Form::uniform) continue;
      const bool overwritable =
          op.kind == TileOp::Kind::compute && op.step[i] && value.form == op.form &&
          size_of(value.tile_type) == size_of(values_[static_cast<std::size_t>(op.out)].tile_type);
      if (overwritable == before) give(id);
    }
  }

  void free_unused(std::int16_t id) {
    if (id >= 0 && last_use_[static_cast<std::size_t>(id)] < 0) give(id);
  }

  TileProgram& program_;
  const std::vector<Value>& values_;
  std::vector<int> last_use_;
  std::map<std::size_t, std::vector<std::size_t>> free_;
};

}  // namespace

void place_registers(TileProgram& program, const std::vector<Value>& values) {
  RegisterAllocator(program, values).run();
}

}  // namespace russet::cpu::tiles
