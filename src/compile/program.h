#pragma once
// Program: pending work as flat arrays, without pointers. Passes rewrite it, from record order to steps.
#include <array>
#include <cstdint>
#include <russet/device.h>
#include <string>
#include <vector>

#include "compile/step.h"
#include "ops/attributes.h"

namespace russet::compile {

using ValueId = std::int32_t;

struct Value {
  ops::Op op = ops::Op::leaf;
  DType dtype = DType::float32;
  Shape shape;
  ops::Attributes attributes;
  std::array<ValueId, 3> inputs{-1, -1, -1};
  /// Position of the run-time argument, or -1.
  std::int32_t argument = -1;
  /// Leaves: position in Program::leaves.
  std::int32_t leaf = -1;
  /// Memory order, set by the layout pass: dense, in elements.
  Strides strides;
  bool operator==(const Value&) const = default;
};

struct Leaf {
  ValueId value = -1;
  bool donatable = false;
  bool persistent = false;
  bool operator==(const Leaf&) const = default;
};

struct Output {
  ValueId value = -1;
  bool operator==(const Output&) const = default;
};

/// A piece of memory that steps refer to by number.
struct Slot {
  enum class Kind : std::uint8_t { leaf, output, temporary, alias };
  Kind kind = Kind::temporary;
  std::int32_t index = -1;  // of the leaf or output; for alias: the slot whose memory this is
  std::size_t bytes = 0;
  std::size_t offset = 0;  // temporary: place in the arena
  bool operator==(const Slot&) const = default;
};

struct Program {
  Device device;
  std::vector<Value> values;  // inputs before readers
  std::vector<Leaf> leaves;
  std::vector<Output> outputs;
  std::int32_t arguments = 0;

  // Filled by fusion, schedule and arena.
  std::vector<Step> steps;
  std::vector<Slot> slots;
  /// Outputs whose memory is that of a donated leaf: output i takes leaf donors[i]'s buffer, -1 for a new one.
  std::vector<std::int32_t> donors;
  std::size_t arena_bytes = 0;
};

/// A pass rewrites a program for a target.
struct Pass {
  const char* name;
  const char* documentation;
  void (*run)(Program& program, const Target& target);
};

std::string to_string(const Program& program);

}  // namespace russet::compile
