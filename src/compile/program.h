#pragma once
// Program: pending work as flat arrays, without pointers. Passes rewrite it, from record order to steps.
#include <russet/device.h>
#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compile/step.h"
#include "ops/operation.h"

namespace russet::compile {

using ValueId = std::int32_t;

/// What a value is computed from; -1 for inputs that it lacks, which come last.
struct Inputs : std::array<ValueId, ops::max_inputs> {
  constexpr Inputs() : array{} { fill(-1); }
  constexpr Inputs(std::initializer_list<ValueId> first) : Inputs() { std::copy(first.begin(), first.end(), begin()); }
};

struct Value : ops::Operation {
  Inputs inputs{};
  /// Position of the run-time argument, or -1.
  std::int32_t argument = -1;
  /// Leaves: position in Program::leaves.
  std::int32_t leaf = -1;
  /// Memory order where the value is materialised: dense, in elements. Row-major until the layout pass.
  Strides strides{};
  /// The overwrite that the value is a piece of, if it is computed where that puts it, or -1; then it lies in the
  /// memory of the overwrite's result from `offset` on, with strides of that. See the pass `place`.
  ValueId within = -1;
  std::int64_t offset = 0;
  /// Computed for backward again, so that the first result need not be kept: the two do not become one, nor do groups
  /// that would compute both at once.
  bool again = false;
  /// The node of the work that the value was recorded as, or that passes made it for: what fails with it.
  std::int32_t origin = -1;
};

struct Leaf {
  ValueId value = -1;
  bool donatable = false;
  bool steady = false;  // it is likely to have the same value in the next run
  bool operator==(const Leaf&) const = default;
};

/// A value that must be in memory when the plan has run; `donor` is the leaf whose memory it takes, or -1.
struct Output {
  ValueId value = -1;
  std::int32_t donor = -1;
  bool operator==(const Output&) const = default;
};

/// What one step will compute: a group of fusable values, or one primitive.
struct Cluster {
  enum class Kind : std::uint8_t { group, primitive };
  Kind kind = Kind::group;
  /// Ascending, hence inputs before readers. A cheap value may be a member of several clusters: each computes it anew.
  std::vector<ValueId> members;
  /// Members that must be in memory afterwards.
  std::vector<ValueId> stores;
  /// Groups: the shape that full values have, and the axes that its reductions reduce.
  Shape space;
  std::uint32_t reduced = 0;
  /// Primitives: the group whose code became this one's epilogue, and those that compute what it reads; -1 for none.
  std::int32_t epilogue = -1;
  std::array<std::int32_t, 2> prologues{-1, -1};
  bool dead = false;
};

/// A piece of memory that steps refer to by number.
struct Slot {
  enum class Kind : std::uint8_t { leaf, output, temporary, prepared };
  Kind kind = Kind::temporary;
  std::int32_t index = -1;  // of the leaf, output or the preparation's output
  std::size_t bytes = 0;
  std::size_t offset = 0;  // temporary: place in the arena
  ValueId value = -1;
};

struct Program {
  Device device;
  std::vector<Value> values;  // inputs before readers
  std::vector<Leaf> leaves;
  std::vector<Output> outputs;
  std::int32_t arguments = 0;

  // Filled by fusion and what follows it.
  std::vector<Cluster> clusters;
  std::vector<std::int32_t> owner;  // the cluster that computes and, if anybody else reads it, stores each value
  std::vector<std::int32_t> order;  // of clusters

  /// How many bytes temporaries may take, if something limits them: see the pass rematerialise.
  std::optional<std::size_t> room;

  // Filled by lowering and the arena pass.
  std::vector<Step> steps;
  std::vector<Slot> slots;
  /// Offsets of each step's scratch, and the arena that holds temporaries and scratch.
  std::vector<std::size_t> scratch;
  std::size_t arena_bytes = 0;
  /// What runs before, unless its outputs are kept from an earlier run; nullptr if nothing. See the pass hoist.
  std::shared_ptr<Program> preparation;
};

/// A pass rewrites a program for a target.
struct Pass {
  const char* name;
  const char* documentation;
  void (*run)(Program& program, const Target& target);
};

std::string to_string(const Program& program);

const Value& value_at(const Program& program, ValueId id);
std::size_t byte_size(const Value& value);
/// Whether the value is a constant of that number.
bool is_constant(const Value& value, int number);
/// Another temporary of so many bytes; returns its slot.
std::int32_t add_temporary(Program& program, std::size_t bytes);
/// How many values and outputs read each value.
std::vector<std::int32_t> count_uses(const Program& program);

}  // namespace russet::compile
