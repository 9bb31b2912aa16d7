#include "compile/build.h"

#include <fmt/format.h>

#include <algorithm>

#include "ops/table.h"

namespace russet::compile {
namespace {

bool has_argument(const graph::Work::Entry& entry) {
  if (entry.leaf) return false;
  if (const auto* view = std::get_if<ops::View>(&entry.node->attributes)) return view->dynamic;
  return ops::row(entry.node->op).has_argument;
}

}  // namespace

Key::Key(const graph::Work& work, std::uint64_t environment)
    : further_inputs_(work.further_inputs), device_(work.device), environment_(environment), hash_(hash(work)) {
  entries_.reserve(work.entries.size());
  for (const graph::Work::Entry& entry : work.entries) entries_.push_back({entry, entry.operation(), entry.output});
}

/// But for what must be materialised.
bool Key::is_alike(const Entry& entry, const Entry& other) {
  return entry.role == other.role && entry.operation == other.operation;
}

/// Likewise, without a copy of what the node holds: this is asked of every entry of every replay.
bool Key::is_alike(const Entry& entry, const graph::Work::Entry& other) {
  return entry.role == other && other.computes(entry.operation);
}

bool Key::serves(const graph::Work& work, std::uint64_t environment) const {
  if (entries_.size() != work.entries.size() || environment_ != environment || !(device_ == work.device)) return false;
  if (further_inputs_ != work.further_inputs) return false;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (!is_alike(entries_[i], work.entries[i]) || (work.entries[i].output && !entries_[i].output)) return false;
  }
  return true;
}

std::size_t Key::common_prefix(const Key& other) const {
  const std::size_t count = std::min(entries_.size(), other.entries_.size());
  std::size_t i = 0;
  while (i < count && is_alike(entries_[i], other.entries_[i])) ++i;
  return i;
}

std::string Key::difference(const Key& earlier) const {
  if (!(device_ == earlier.device_))
    return fmt::format("device {} instead of {}", to_string(device_), to_string(earlier.device_));
  if (environment_ != earlier.environment_) return "another number of threads, memory limit or kernel table";
  const std::size_t at = common_prefix(earlier);
  const std::size_t count = entries_.size();
  const std::size_t count_before = earlier.entries_.size();
  if (at == count_before && at == count) {
    for (std::size_t i = 0; i < at; ++i) {
      if (entries_[i].output && !earlier.entries_[i].output) return fmt::format("node {} must be kept in memory", i);
    }
    return further_inputs_ == earlier.further_inputs_ ? "" : "a node with many inputs reads other nodes";
  }
  if (at == count_before) return fmt::format("{} more nodes after node {}", count - at, at);
  if (at == count) return fmt::format("it ends after {} nodes instead of {}", at, count_before);
  const Entry& before = earlier.entries_[at];
  const Entry& now = entries_[at];
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
  if (before.role.persistent != now.role.persistent) return where + "became a module's parameter, or stopped being one";
  return where + "other attributes";
}

std::uint64_t Key::hash(const graph::Work& work) {
  std::uint64_t hash = work.entries.size();
  for (const graph::Work::Entry& entry : work.entries) {
    hash = (hash ^ (entry.leaf ? entry.node->leaf_hash() : entry.node->hash())) * 0x100000001B3ULL;
    hash ^= static_cast<std::uint64_t>(entry.inputs[0] + 1) * 0x9E3779B97F4A7C15ULL;
  }
  return hash;
}

Program build_program(const graph::Work& work) {
  Program program;
  program.device = work.device;
  program.values.reserve(work.entries.size());
  auto further = work.further_inputs.begin();
  for (const graph::Work::Entry& entry : work.entries) {
    const auto id = static_cast<ValueId>(program.values.size());
    Value value{entry.operation()};
    value.strides = contiguous_strides(value.shape);
    value.origin = id;
    const auto first = std::copy(entry.inputs.begin(), entry.inputs.end(), value.inputs.begin());
    std::copy_n(further, entry.further_inputs, first);
    further += entry.further_inputs;
    if (entry.leaf) {
      value.leaf = static_cast<std::int32_t>(program.leaves.size());
      program.leaves.push_back({id, entry.donatable, entry.persistent});
    }
    if (has_argument(entry)) value.argument = program.arguments++;
    if (entry.output) program.outputs.push_back({id, -1});
    program.values.push_back(std::move(value));
  }
  return program;
}

void collect_arguments(const graph::Work& work, std::vector<std::uint64_t>& arguments) {
  arguments.clear();
  for (const graph::Work::Entry& entry : work.entries) {
    if (has_argument(entry)) arguments.push_back(entry.node->argument);
  }
}

}  // namespace russet::compile
