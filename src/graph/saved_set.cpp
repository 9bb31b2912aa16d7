#include "graph/saved_set.h"

#include "graph/closure.h"
#include "ops/table.h"

namespace russet::graph {
namespace {

constexpr std::size_t most_known = 256;
constexpr std::int32_t at_no_cost = -1;  // the mark of what is an output anyway

bool is_recipe(const Node& node) {
  switch (ops::row(node.op).family) {
    case ops::Family::elementwise:
    case ops::Family::movement:
    case ops::Family::random:
    case ops::Family::source: return true;
    default: return false;
  }
}

}  // namespace

void SavedSet::clear() {
  saved_.clear();
  nodes_.clear();
}

/// The node's position; met for the first time, it gets one. -1 if it is in memory or will be.
std::int32_t SavedSet::number(const NodeRef& node) {
  if (!node || node->materialised()) return -1;
  if (node->mark.epoch != flush_epoch()) {
    node->mark = {flush_epoch(), static_cast<std::int32_t>(nodes_.size()), 0};
    nodes_.push_back(&node);
  }
  return node->mark.index;
}

/// Numbers the saved values and, through recipes, what they are computed from.
void SavedSet::visit(const std::vector<NodeRef>& outputs) {
  start_epoch();
  for (const NodeRef& output : outputs) output->mark = {flush_epoch(), at_no_cost, 0};
  for (const NodeRef* saved : saved_) number(*saved);
  is_saved_.assign(nodes_.size(), true);
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const Node& node = **nodes_[i];
    if (!is_recipe(node)) continue;
    for (const NodeRef& input : node.inputs()) number(input);
  }
  is_saved_.resize(nodes_.size(), false);
}

std::uint64_t SavedSet::structure() const {
  std::uint64_t hash = 0;
  const auto mix = [&](std::uint64_t value) { hash = (hash ^ value) * 0x9e3779b97f4a7c15U + (hash >> 29); };
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const Node& node = **nodes_[i];
    mix(node.hash() + is_saved_[i]);
    if (!is_recipe(node)) continue;
    for (const NodeRef& input : node.inputs()) {
      if (input) mix(static_cast<std::uint64_t>(input->materialised() ? -2 : input->mark.index));
    }
  }
  return hash;
}

/// A node is two vertices with an edge between them: to keep it is to cut that edge.
void SavedSet::cut() {
  const auto count = static_cast<std::int32_t>(nodes_.size());
  const std::int32_t source = 2 * count, sink = source + 1;
  const auto before = [](std::int32_t node) { return 2 * node; };
  const auto behind = [](std::int32_t node) { return 2 * node + 1; };
  min_cut_.reset(2 * count + 2);
  for (std::int32_t i = 0; i < count; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const Node& node = **nodes_[at];
    min_cut_.add_edge(before(i), behind(i), static_cast<std::int64_t>(byte_size(node)));
    if (is_saved_[at]) min_cut_.add_edge(behind(i), sink, MinCut::unlimited);
    if (!is_recipe(node)) {
      min_cut_.add_edge(source, before(i), MinCut::unlimited);
      continue;
    }
    for (const NodeRef& input : node.inputs()) {
      const std::int32_t from = number(input);
      if (from >= 0) min_cut_.add_edge(behind(from), before(i), MinCut::unlimited);
    }
  }
  const std::vector<bool>& sink_side = min_cut_.solve(source, sink);
  kept_.clear();
  for (std::int32_t i = 0; i < count; ++i) {
    const auto at = static_cast<std::size_t>(before(i));
    if (!sink_side[at] && sink_side[at + 1]) kept_.push_back(i);
  }
}

void SavedSet::choose(std::vector<NodeRef>& outputs) {
  if (saved_.empty()) return;
  visit(outputs);
  if (nodes_.empty()) return;
  const std::uint64_t key = structure();
  auto known = known_.find(key);
  if (known == known_.end()) {
    cut();
    if (known_.size() >= most_known) known_.clear();
    known = known_.emplace(key, kept_).first;
  }
  for (const std::int32_t position : known->second) {
    if (static_cast<std::size_t>(position) < nodes_.size())
      outputs.push_back(*nodes_[static_cast<std::size_t>(position)]);
  }
}

}  // namespace russet::graph
