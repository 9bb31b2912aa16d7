#pragma once
// Groups for tests: a builder, memory with guards, and running both ways.
#include <array>
#include <bit>
#include <cstring>
#include <vector>

#include "compile/step.h"
#include "device/cpu/group/group_kernel.h"
#include "device/cpu/group/loops.h"
#include "group_reference.h"

namespace russet::test {

using compile::Access;
using compile::Extent;
using compile::Group;
using compile::Instruction;
using ops::Op;
using Kind = Instruction::Kind;

/// Memory for one run, aligned as buffers are, with guard bytes around each slot that nobody may change.
class Memory {
 public:
  int add(std::size_t bytes) {
    Line guard;
    guard.fill(std::byte{0xA5});
    slots_.emplace_back(bytes / sizeof(Line) + 1 + 2 * guard_lines, guard);
    bytes_.push_back(static_cast<std::int64_t>(bytes));
    return static_cast<int>(slots_.size() - 1);
  }
  std::int64_t bytes(int i) const { return bytes_[static_cast<std::size_t>(i)]; }
  std::byte* slot(int i) { return slots_[static_cast<std::size_t>(i)][guard_lines].data(); }
  std::vector<std::byte*> pointers() {
    std::vector<std::byte*> result;
    for (auto& slot : slots_) result.push_back(slot[guard_lines].data());
    return result;
  }
  bool operator==(const Memory& other) const { return slots_ == other.slots_; }

 private:
  struct alignas(64) Line : std::array<std::byte, 64> {};
  static constexpr std::size_t guard_lines = 4;
  std::vector<std::vector<Line>> slots_;
  std::vector<std::int64_t> bytes_;
};

inline void run_kernel(const Group& group, Memory& memory, const std::vector<std::uint64_t>& arguments) {
  const auto kernel = cpu::make_group_kernel(group);
  std::vector<std::byte> scratch(kernel->scratch_bytes() + 64, std::byte{0xFF});
  const std::size_t shift = (64 - reinterpret_cast<std::uintptr_t>(scratch.data()) % 64) % 64;
  const std::vector<std::byte*> slots = memory.pointers();
  kernel->run({slots.data(), arguments.data(), scratch.data() + shift});
}

inline void run_reference(const Group& group, Memory& memory, const std::vector<std::uint64_t>& arguments) {
  const std::vector<std::byte*> slots = memory.pointers();
  GroupReference(group, slots.data(), arguments.data()).run();
}

/// Runs groups with an older instruction set as long as it lives.
class Limit {
 public:
  explicit Limit(cpu::tiles::InstructionSet most) { cpu::tiles::limit_instruction_sets(most); }
  ~Limit() { cpu::tiles::limit_instruction_sets(cpu::tiles::InstructionSet::best); }
  Limit(const Limit&) = delete;
  Limit& operator=(const Limit&) = delete;
};

inline constexpr cpu::tiles::InstructionSet instruction_sets[] = {
    cpu::tiles::InstructionSet::best, cpu::tiles::InstructionSet::avx2, cpu::tiles::InstructionSet::plain};

/// A group under construction, with the memory that it works on.
class Builder {
 public:
  explicit Builder(Group::Kind kind, Shape space, int split) {
    group.kind = kind;
    group.space = std::move(space);
    group.split = split;
  }

  std::int16_t push(Instruction instruction) {
    group.code.push_back(instruction);
    return static_cast<std::int16_t>(group.code.size() - 1);
  }
  std::int16_t access(Access access) {
    group.accesses.push_back(std::move(access));
    return static_cast<std::int16_t>(group.accesses.size() - 1);
  }
  std::int16_t load(int slot, DType type, Strides strides, Extent extent = Extent::full, std::int64_t offset = 0) {
    return push({.kind = Kind::load,
                 .dtype = type,
                 .extent = extent,
                 .access = access({slot, type, offset, -1, std::move(strides)})});
  }
  void store(std::int16_t value, int slot, Strides strides, Extent extent = Extent::full, std::int64_t offset = 0) {
    const DType type = group.code[static_cast<std::size_t>(value)].dtype;
    push({.kind = Kind::store,
          .dtype = type,
          .extent = extent,
          .inputs = {value, -1, -1},
          .access = access({slot, type, offset, -1, std::move(strides)})});
  }
  std::int16_t compute(Op op, DType type, std::int16_t a, std::int16_t b = -1, std::int16_t c = -1,
                       Extent extent = Extent::full) {
    return push({.kind = Kind::compute, .op = op, .dtype = type, .extent = extent, .inputs = {a, b, c}});
  }
  std::int16_t constant(DType type, double real, std::int64_t integer) {
    return push({.kind = Kind::constant, .dtype = type, .number = {real, integer}});
  }
  std::int16_t reduce(Op op, DType type, std::int16_t value) {
    return push({.kind = Kind::reduce, .op = op, .dtype = type, .extent = Extent::reduced, .inputs = {value, -1, -1}});
  }

  Group group;
  Memory memory;
  std::vector<std::uint64_t> arguments;
};

template <class T>
void write(Memory& memory, int slot, const std::vector<T>& values) {
  if (!values.empty()) std::memcpy(memory.slot(slot), values.data(), values.size() * sizeof(T));
}
template <class T>
std::vector<T> read(Memory& memory, int slot, std::size_t count) {
  std::vector<T> values(count);
  if (count != 0) std::memcpy(values.data(), memory.slot(slot), count * sizeof(T));
  return values;
}

}  // namespace russet::test
