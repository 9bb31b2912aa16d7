#pragma once
// From a flush's work to a program, and the key under which the plan is found again.
#include <span>
#include <string>

#include "compile/program.h"
#include "graph/executor.h"

namespace russet::compile {

/// The structure of a work, compared node by node.
class Key {
 public:
  Key(const graph::Work& work, std::uint64_t environment);

  /// Whether a plan with this key serves the work: the same structure, and outputs that cover the work's.
  bool serves(const graph::Work& work, std::uint64_t environment) const;
  /// The first thing by which this key differs from an earlier one, in words; empty if there is none.
  std::string difference(const Key& earlier) const;
  /// How many nodes agree from the start.
  std::size_t common_prefix(const Key& other) const;

  static std::uint64_t hash(const graph::Work& work);
  std::uint64_t hash() const { return hash_; }
  bool operator==(const Key&) const = default;
  std::size_t bytes() const { return sizeof(Key) + nodes_.size() * sizeof(KeyNode) + further_inputs_.size() * 4; }

 private:
  struct KeyNode {
    graph::NodeRole role;
    ops::Operation operation;
    bool output;  // is materialised
    bool operator==(const KeyNode&) const = default;
  };
  static bool is_alike(const KeyNode& node, const KeyNode& other);
  static bool is_alike(const KeyNode& node, const graph::WorkNode& other);
  std::vector<KeyNode> nodes_;
  std::vector<std::int32_t> further_inputs_;
  Device device_;
  std::uint64_t environment_;
  std::uint64_t hash_;
};

/// The flat form of the work; outputs in record order.
Program build_program(const graph::Work& work);

/// The run-time arguments, in the order that build_program numbers them.
void collect_arguments(const graph::Work& work, std::vector<std::uint64_t>& arguments);

}  // namespace russet::compile
