#include "compile/build.h"

#include <fmt/format.h>

#include <algorithm>

#include "ops/table.h"

namespace russet::compile {
namespace {

bool has_argument(const graph::Node& node) {
  if (node.materialised()) return false;
  if (const auto* view = std::get_if<ops::View>(&node.attributes)) return view->dynamic;
  return ops::row(node.op).has_argument;
}

}  // namespace

Key::Key(const graph::Work& work, std::uint64_t environment)
    : further_inputs_(work.further_inputs), device_(work.device), environment_(environment), hash_(hash(work)) {
  entries_.reserve(work.entries.size());
  for (const graph::Work::Entry& entry : work.entries) {
    const graph::Node& node = *entry.node;
    entries_.push_back({node.op, node.dtype, entry.output, entry.donatable, entry.persistent, node.shape,
                        node.attributes, entry.inputs});
  }
}

bool Key::same(const Entry& entry, const graph::Work::Entry& other) {
  const graph::Node& node = *other.node;
  return entry.op == node.op && entry.dtype == node.dtype && entry.donatable == other.donatable &&
         entry.persistent == other.persistent && entry.inputs == other.inputs && entry.shape == node.shape &&
         entry.attributes == node.attributes;
}

bool Key::serves(const graph::Work& work, std::uint64_t environment) const {
  if (entries_.size() != work.entries.size() || environment_ != environment || !(device_ == work.device)) return false;
  if (further_inputs_ != work.further_inputs) return false;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (!same(entries_[i], work.entries[i]) || (work.entries[i].output && !entries_[i].output)) return false;
  }
  return true;
}

std::size_t Key::common_prefix(const graph::Work& work) const {
  const std::size_t count = std::min(entries_.size(), work.entries.size());
  std::size_t i = 0;
  while (i < count && same(entries_[i], work.entries[i])) ++i;
  return i;
}

std::string Key::difference(const graph::Work& work, std::uint64_t environment) const {
  if (!(device_ == work.device))
    return fmt::format("device {} instead of {}", to_string(work.device), to_string(device_));
  if (environment_ != environment) return "another number of threads, memory limit or kernel table";
  const std::size_t at = common_prefix(work);
  if (at == entries_.size() && at == work.entries.size()) {
    for (std::size_t i = 0; i < at; ++i) {
      if (work.entries[i].output && !entries_[i].output) return fmt::format("node {} must be kept in memory", i);
    }
    return further_inputs_ == work.further_inputs ? "" : "a node with many inputs reads other nodes";
  }
  if (at == entries_.size()) return fmt::format("{} more nodes after node {}", work.entries.size() - at, at);
  if (at == work.entries.size()) return fmt::format("it ends after {} nodes instead of {}", at, entries_.size());
  const Entry& before = entries_[at];
  const graph::Work::Entry& now = work.entries[at];
  const graph::Node& node = *now.node;
  const std::string where = fmt::format("node {} ({}): ", at, ops::row(node.op).name);
  if (before.op != node.op) return where + fmt::format("was {}", ops::row(before.op).name);
  if (before.dtype != node.dtype)
    return where + fmt::format("type {} instead of {}", name_of(node.dtype), name_of(before.dtype));
  if (before.shape != node.shape)
    return where + fmt::format("shape {} instead of {}", to_string(node.shape), to_string(before.shape));
  if (before.inputs != now.inputs) return where + "reads other nodes";
  if (before.donatable != now.donatable) {
    return where + (now.donatable ? "its memory may now be overwritten" : "its memory is still needed by others");
  }
  if (before.persistent != now.persistent) return where + "became a module's parameter, or stopped being one";
  return where + "other attributes";
}

std::uint64_t Key::hash(const graph::Work& work) {
  std::uint64_t hash = work.entries.size();
  for (const graph::Work::Entry& entry : work.entries) {
    hash = (hash ^ entry.node->hash()) * 0x100000001B3ULL;
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
    const graph::Node& node = *entry.node;
    const auto id = static_cast<ValueId>(program.values.size());
    Value value{node.op, node.dtype, node.shape, node.attributes, {}, -1, -1, contiguous_strides(node.shape)};
    const auto first = std::copy(entry.inputs.begin(), entry.inputs.end(), value.inputs.begin());
    const std::size_t more = node.inputs().size() - entry.inputs.size();
    std::copy_n(further, more, first);
    further += static_cast<std::ptrdiff_t>(more);
    if (node.materialised()) {
      value.leaf = static_cast<std::int32_t>(program.leaves.size());
      program.leaves.push_back({id, entry.donatable, entry.persistent});
    }
    if (has_argument(node)) value.argument = program.arguments++;
    if (entry.output) program.outputs.push_back({id, -1});
    program.values.push_back(std::move(value));
  }
  return program;
}

void collect_arguments(const graph::Work& work, std::vector<std::uint64_t>& arguments) {
  arguments.clear();
  for (const graph::Work::Entry& entry : work.entries) {
    if (has_argument(*entry.node)) arguments.push_back(entry.node->argument);
  }
}

}  // namespace russet::compile
