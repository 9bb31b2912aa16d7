#include "compile/build.h"

#include <fmt/format.h>

#include <algorithm>

#include "ops/table.h"

namespace russet::compile {
namespace {

bool has_argument(const graph::WorkNode& node) {
  if (node.leaf) return false;
  if (const auto* view = std::get_if<ops::View>(&node.recorded->attributes)) return view->dynamic;
  return ops::row(node.recorded->op).has_argument;
}

}  // namespace

Key::Key(const graph::Work& work, std::uint64_t environment)
    : further_inputs_(work.further_inputs), device_(work.device), environment_(environment), hash_(hash(work)) {
  nodes_.reserve(work.nodes.size());
  for (const graph::WorkNode& node : work.nodes) nodes_.push_back({node, node.operation(), node.output});
}

/// But for what must be materialised.
bool Key::is_alike(const KeyNode& node, const KeyNode& other) {
  return node.role == other.role && node.operation == other.operation;
}

/// Likewise, without a copy of what the node holds: this is asked of every node of every replay.
bool Key::is_alike(const KeyNode& node, const graph::WorkNode& other) {
  return node.role == other && other.computes(node.operation);
}

bool Key::serves(const graph::Work& work, std::uint64_t environment) const {
  if (nodes_.size() != work.nodes.size() || environment_ != environment || !(device_ == work.device)) return false;
  if (further_inputs_ != work.further_inputs) return false;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (!is_alike(nodes_[i], work.nodes[i]) || (work.nodes[i].output && !nodes_[i].output)) return false;
  }
  return true;
}

std::size_t Key::common_prefix(const Key& other) const {
  const std::size_t count = std::min(nodes_.size(), other.nodes_.size());
  std::size_t i = 0;
  while (i < count && is_alike(nodes_[i], other.nodes_[i])) ++i;
  return i;
}

std::string Key::difference(const Key& earlier) const {
  if (!(device_ == earlier.device_))
    return fmt::format("device {} instead of {}", to_string(device_), to_string(earlier.device_));
  if (environment_ != earlier.environment_) return "another number of threads, memory limit or kernel table";
  const std::size_t at = common_prefix(earlier);
  const std::size_t count = nodes_.size();
  const std::size_t count_before = earlier.nodes_.size();
  if (at == count_before && at == count) {
    for (std::size_t i = 0; i < at; ++i) {
      if (nodes_[i].output && !earlier.nodes_[i].output) return fmt::format("node {} must be kept in memory", i);
    }
    return further_inputs_ == earlier.further_inputs_ ? "" : "a node with many inputs reads other nodes";
  }
  if (at == count_before) return fmt::format("{} more nodes after node {}", count - at, at);
  if (at == count) return fmt::format("it ends after {} nodes instead of {}", at, count_before);
  const KeyNode& before = earlier.nodes_[at];
  const KeyNode& now = nodes_[at];
  const ops::Operation& was = before.operation;
  const ops::Operation& is = now.operation;
  const std::string where = fmt::format("node {} ({}): ", at, ops::row(is.op).name);
  if (was.op != is.op) return where + fmt::format("was {}", ops::row(was.op).name);
  if (was.dtype != is.dtype) return where + fmt::format("type {} instead of {}", name_of(is.dtype), name_of(was.dtype));
  if (was.shape != is.shape)
    return where + fmt::format("shape {} instead of {}", to_string(is.shape), to_string(was.shape));
  if (before.role.inputs != now.role.inputs || before.role.further_inputs != now.role.further_inputs)
    return where + "reads other nodes";
  if (before.role.donatable != now.role.donatable) {
    return where + (now.role.donatable ? "its memory may now be overwritten" : "its memory is still needed by others");
  }
  if (before.role.again != now.role.again) return where + "is computed again for backward, or is no longer";
  if (before.role.steady != now.role.steady) {
    return where +
           (now.role.steady ? "is a parameter of an evaluation now" : "is no parameter of an evaluation any more");
  }
  return where + "other attributes";
}

std::uint64_t Key::hash(const graph::Work& work) {
  std::uint64_t hash = work.nodes.size();
  for (const graph::WorkNode& node : work.nodes) {
    hash = (hash ^ (node.leaf ? node.recorded->leaf_hash() : node.recorded->hash())) * 0x100000001B3ULL;
    hash ^= static_cast<std::uint64_t>(node.inputs[0] + 1) * 0x9E3779B97F4A7C15ULL;
  }
  return hash;
}

Program build_program(const graph::Work& work) {
  Program program;
  program.device = work.device;
  program.values.reserve(work.nodes.size());
  auto further = work.further_inputs.begin();
  for (const graph::WorkNode& node : work.nodes) {
    const auto id = static_cast<ValueId>(program.values.size());
    Value value{node.operation()};
    value.strides = contiguous_strides(value.shape);
    value.origin = id;
    value.again = node.again;
    const auto first = std::copy(node.inputs.begin(), node.inputs.end(), value.inputs.begin());
    std::copy_n(further, node.further_inputs, first);
    further += node.further_inputs;
    if (node.leaf) {
      value.leaf = static_cast<std::int32_t>(program.leaves.size());
      program.leaves.push_back({id, node.donatable, node.steady});
    }
    if (has_argument(node)) value.argument = program.arguments++;
    if (node.output) program.outputs.push_back({id, -1});
    program.values.push_back(std::move(value));
  }
  return program;
}

void collect_arguments(const graph::Work& work, std::vector<std::uint64_t>& arguments) {
  arguments.clear();
  for (const graph::WorkNode& node : work.nodes) {
    if (has_argument(node)) arguments.push_back(node.recorded->argument);
  }
}

}  // namespace russet::compile
